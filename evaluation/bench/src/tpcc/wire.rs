//! How values of rows are written where requests are sent as bytes.

/// A decimal as its scaled number.
pub(super) mod scaled {
    use ensilo::Decimal;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::tpcc) fn serialize<const SCALE: u8, S: Serializer>(
        value: &Decimal<SCALE>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.scaled().serialize(serializer)
    }

    pub(in crate::tpcc) fn deserialize<'de, const SCALE: u8, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Decimal<SCALE>, D::Error> {
        i64::deserialize(deserializer).map(Decimal::from_scaled)
    }
}

/// The same for many.
pub(super) mod all_scaled {
    use ensilo::Decimal;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::tpcc) fn serialize<const SCALE: u8, S: Serializer>(
        values: &[Decimal<SCALE>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| value.scaled()))
    }

    pub(in crate::tpcc) fn deserialize<'de, const SCALE: u8, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Decimal<SCALE>>, D::Error> {
        let scaled = Vec::<i64>::deserialize(deserializer)?;
        Ok(scaled.into_iter().map(Decimal::from_scaled).collect())
    }
}

/// A moment as its microseconds.
pub(super) mod micros {
    use ensilo::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::tpcc) fn serialize<S: Serializer>(
        value: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.micros().serialize(serializer)
    }

    pub(in crate::tpcc) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_micros)
    }
}

/// A text as a string.
pub(super) mod text {
    use ensilo::Text;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::tpcc) fn serialize<const N: usize, S: Serializer>(
        value: &Text<N>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_str().serialize(serializer)
    }

    pub(in crate::tpcc) fn deserialize<'de, const N: usize, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Text<N>, D::Error> {
        <&str>::deserialize(deserializer).map(Text::truncated)
    }
}
