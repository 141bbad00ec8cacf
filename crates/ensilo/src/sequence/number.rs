//! The types of numbers that sequences give.

mod sealed {
    pub trait Sealed {}
}

/// An integer that a [`Sequence`](crate::Sequence) gives: `u8` to `u64`, `i8` to `i64`.
///
/// Sealed: implemented for these.
pub trait SequenceNumber: Copy + sealed::Sealed + 'static {
    #[doc(hidden)]
    const LEAST: i128;
    #[doc(hidden)]
    const LARGEST: i128;

    #[doc(hidden)]
    fn to_wide(self) -> i128;

    /// Returns the number, unless the type does not have it.
    #[doc(hidden)]
    fn of_wide(wide: i128) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl sealed::Sealed for $number {}

        impl SequenceNumber for $number {
            const LEAST: i128 = <$number>::MIN as i128;
            const LARGEST: i128 = <$number>::MAX as i128;

            #[inline]
            fn to_wide(self) -> i128 {
                i128::from(self)
            }

            #[inline]
            fn of_wide(wide: i128) -> Option<Self> {
                wide.try_into().ok()
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 i8 i16 i32 i64);
