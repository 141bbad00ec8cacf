//! The standard library's atomics, each access noted before it is made.

use std::sync::atomic as std_atomic;
use std::sync::atomic::Ordering;

use super::Access;
use super::note;

macro_rules! compare_exchanges {
    ($value:ty, $($method:ident)*) => {
        $(
            /// See the standard library.
            ///
            /// # Errors
            /// The value that was there, if it was not `current`.
            #[inline]
            #[track_caller]
            pub fn $method(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.note(Access::ReadModifyWrite);
                self.0.$method(current, new, success, failure)
            }
        )*
    };
}

macro_rules! counted {
    ($name:ident $(<$parameter:ident>)?, $inner:ty, $value:ty) => {
        #[doc = concat!("The standard library's `", stringify!($name), "`, its accesses counted.")]
        #[repr(transparent)]
        pub struct $name $(<$parameter>)? ($inner);

        impl $(<$parameter>)? $name $(<$parameter>)? {
            /// A new one. Not an access: it may not have its address yet.
            #[inline]
            pub const fn new(value: $value) -> Self {
                Self(<$inner>::new(value))
            }

            #[inline]
            #[track_caller]
            fn note(&self, access: Access) {
                note((&raw const self.0).addr(), access);
            }

            /// See the standard library.
            #[inline]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                self.note(Access::Load);
                self.0.load(order)
            }

            /// See the standard library.
            #[inline]
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.note(Access::Store);
                self.0.store(value, order);
            }

            /// See the standard library.
            #[inline]
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.note(Access::ReadModifyWrite);
                self.0.swap(value, order)
            }

            compare_exchanges!($value, compare_exchange compare_exchange_weak);

            /// See the standard library. Counted as one read-modify-write.
            ///
            /// # Errors
            /// The value that was there, if `update` returned `None`.
            #[inline]
            #[track_caller]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                self.note(Access::ReadModifyWrite);
                self.0.fetch_update(set, fetch, update)
            }

            /// See the standard library.
            #[inline]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// See the standard library.
            #[inline]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
        }

        impl $(<$parameter>)? std::fmt::Debug for $name $(<$parameter>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $(<$parameter>)? Default for $name $(<$parameter>)? {
            fn default() -> Self {
                Self(<$inner>::default())
            }
        }
    };
}

macro_rules! counted_arithmetic {
    ($name:ident, $value:ty, $($method:ident)*) => {
        impl $name {
            $(
                /// See the standard library.
                #[inline]
                #[track_caller]
                pub fn $method(&self, value: $value, order: Ordering) -> $value {
                    self.note(Access::ReadModifyWrite);
                    self.0.$method(value, order)
                }
            )*
        }
    };
}

counted!(AtomicBool, std_atomic::AtomicBool, bool);
counted!(AtomicU8, std_atomic::AtomicU8, u8);
counted!(AtomicU32, std_atomic::AtomicU32, u32);
counted!(AtomicU64, std_atomic::AtomicU64, u64);
counted!(AtomicUsize, std_atomic::AtomicUsize, usize);
counted!(AtomicPtr<T>, std_atomic::AtomicPtr<T>, *mut T);

counted_arithmetic!(AtomicBool, bool, fetch_and fetch_or);
counted_arithmetic!(AtomicU8, u8, fetch_add fetch_sub fetch_and fetch_or fetch_max);
counted_arithmetic!(AtomicU32, u32, fetch_add fetch_sub fetch_and fetch_or fetch_max);
counted_arithmetic!(AtomicU64, u64, fetch_add fetch_sub fetch_and fetch_or fetch_max);
counted_arithmetic!(AtomicUsize, usize, fetch_add fetch_sub fetch_and fetch_or fetch_max);
