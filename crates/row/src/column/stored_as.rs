//! Types of other crates as columns: each is stored as another type, and holds a part of its values.

/// Makes types columns, by the type that they are stored as, the stored value of one, and the one of a stored value, if there is one.
///
/// Equal values have equal stored values, and the order of both is the same.
macro_rules! stored_as {
    ($($(#[$docs:meta])* $type:ty as $stored:ty, |$value:ident| $to:expr, |$read:ident| $of:expr;)+) => {$(
        $(#[$docs])*
        impl $crate::ColumnValue for $type {
            const TYPE: $crate::ColumnType = <$stored as $crate::ColumnValue>::TYPE;
            const KEY_LEN: Option<usize> = <$stored as $crate::ColumnValue>::KEY_LEN;
            const KEY_IS_WORD: bool = <$stored as $crate::ColumnValue>::KEY_IS_WORD;

            #[inline]
            fn read(row: &impl $crate::Words, slot: $crate::Slot) -> Result<Self, $crate::Malformed> {
                let $read = <$stored as $crate::ColumnValue>::read(row, slot)?;
                ($of).ok_or($crate::Malformed)
            }

            #[inline]
            fn write(&self, words: &mut [u64], slot: $crate::Slot) {
                let $value = *self;
                let stored: $stored = $to;
                $crate::ColumnValue::write(&stored, words, slot);
            }

            #[inline]
            fn is_same(&self, other: &Self) -> bool {
                let stored = |$value: Self| -> $stored { $to };
                stored(*self) == stored(*other)
            }

            #[inline]
            fn value_key_bits(&self) -> u64 {
                let $value = *self;
                let stored: $stored = $to;
                $crate::ColumnValue::value_key_bits(&stored)
            }

            #[inline]
            fn encode_value_key(&self, key: &mut $crate::KeyBuf) {
                let $value = *self;
                let stored: $stored = $to;
                $crate::ColumnValue::encode_value_key(&stored, key);
            }

            #[inline]
            fn decode_value_key(key: &mut $crate::KeyReader<'_>) -> Result<Self, $crate::Malformed> {
                let $read = <$stored as $crate::ColumnValue>::decode_value_key(key)?;
                ($of).ok_or($crate::Malformed)
            }
        }

        impl From<$type> for $crate::Value {
            fn from($value: $type) -> Self {
                let stored: $stored = $to;
                Self::from(stored)
            }
        }
    )+};
}

pub(super) use stored_as;
