//! Columns' values, in Ensilo and in PostgreSQL.
//!
//! Numbers are the next wider signed type's (32 bits stay 32: no number of TPC-C needs the last one), money and rates are `numeric`, times
//! `timestamptz`, all without loss.

use std::time::{Duration, SystemTime};

use ensilo::{Decimal, Text, Timestamp};
use postgres::types::{FromSql, ToSql};
use rust_decimal::Decimal as Numeric;

/// A column's value as PostgreSQL has it.
pub(super) trait SqlValue: Sized {
    /// What it is there.
    type Sql<'v>: ToSql + FromSql<'v> + Sync
    where
        Self: 'v;

    /// What it becomes.
    fn sql(&self) -> Self::Sql<'_>;

    /// What it was, if it can have been one.
    fn of_sql(value: Self::Sql<'_>) -> Option<Self>;
}

macro_rules! wider {
    ($($number:ty as $sql:ty),+) => {
        $(
            impl SqlValue for $number {
                type Sql<'v> = $sql;

                fn sql(&self) -> $sql {
                    (*self).into()
                }

                fn of_sql(value: $sql) -> Option<Self> {
                    value.try_into().ok()
                }
            }
        )+
    };
}

wider!(u8 as i16, i16 as i16, u16 as i32, bool as bool);

impl SqlValue for u32 {
    type Sql<'v> = i32;

    fn sql(&self) -> i32 {
        self.cast_signed()
    }

    fn of_sql(value: i32) -> Option<Self> {
        Some(value.cast_unsigned())
    }
}

impl<const N: usize> SqlValue for Text<N> {
    type Sql<'v> = &'v str;

    fn sql(&self) -> &str {
        self.as_str()
    }

    fn of_sql(value: &str) -> Option<Self> {
        Self::new(value).ok()
    }
}

impl<const SCALE: u8> SqlValue for Decimal<SCALE> {
    type Sql<'v> = Numeric;

    fn sql(&self) -> Numeric {
        Numeric::new(self.scaled(), SCALE.into())
    }

    fn of_sql(mut value: Numeric) -> Option<Self> {
        value.rescale(SCALE.into());
        value.mantissa().try_into().ok().map(Self::from_scaled)
    }
}

impl SqlValue for Timestamp {
    type Sql<'v> = SystemTime;

    fn sql(&self) -> SystemTime {
        let distance = Duration::from_micros(self.micros().unsigned_abs());
        let epoch = SystemTime::UNIX_EPOCH;
        if self.micros() < 0 { epoch - distance } else { epoch + distance }
    }

    fn of_sql(value: SystemTime) -> Option<Self> {
        Some(value.into())
    }
}

impl<V: SqlValue> SqlValue for Option<V> {
    type Sql<'v>
        = Option<V::Sql<'v>>
    where
        V: 'v;

    fn sql(&self) -> Option<V::Sql<'_>> {
        self.as_ref().map(V::sql)
    }

    fn of_sql(value: Option<V::Sql<'_>>) -> Option<Self> {
        match value {
            None => Some(None),
            Some(value) => V::of_sql(value).map(Some),
        }
    }
}
