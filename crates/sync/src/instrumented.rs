//! The standard library's atomics, which report each access before they make it, in programs that are built with `--cfg ensilo_count`.
//!
//! In such a build the types of [`crate::atomic`] and [`crate::unchecked`] are these, and the program's [`Observer`]
//! gets their accesses: the
//! crate `ensilo-counting` has one that counts them by cache line. In every other build neither this module nor any trace of it exists.

use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic as std_atomic;
use std::sync::atomic::Ordering;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic read-modify-write.
    ReadModifyWrite,
}

/// Gets each access on the thread that makes it: the address, what is done there, and the source file that does it. It must not use these
/// types itself.
pub type Observer = fn(address: usize, access: Access, file: &'static str);

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Reports all accesses from now on to `observer`.
///
/// # Panics
/// When the program has an observer already.
pub fn set_observer(observer: Observer) {
    assert!(OBSERVER.set(observer).is_ok(), "a program has one observer");
}

/// Reports an access of the calling thread.
#[inline]
#[track_caller]
fn report(address: usize, access: Access) {
    if let Some(observer) = OBSERVER.get() {
        observer(address, access, Location::caller().file());
    }
}

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
                self.report(Access::ReadModifyWrite);
                self.0.$method(current, new, success, failure)
            }
        )*
    };
}

macro_rules! instrumented {
    ($name:ident $(<$parameter:ident>)?, $inner:ty, $value:ty) => {
        #[doc = concat!("The standard library's `", stringify!($name), "`, its accesses reported.")]
        #[repr(transparent)]
        pub struct $name $(<$parameter>)? ($inner);

        impl $(<$parameter>)? $name $(<$parameter>)? {
            /// Returns a new one. Not an access: it may not have its address yet.
            #[inline]
            pub const fn new(value: $value) -> Self {
                Self(<$inner>::new(value))
            }

            #[inline]
            #[track_caller]
            fn report(&self, access: Access) {
                report((&raw const self.0).addr(), access);
            }

            /// See the standard library.
            #[inline]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                self.report(Access::Load);
                self.0.load(order)
            }

            /// See the standard library.
            #[inline]
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.report(Access::Store);
                self.0.store(value, order);
            }

            /// See the standard library.
            #[inline]
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.report(Access::ReadModifyWrite);
                self.0.swap(value, order)
            }

            compare_exchanges!($value, compare_exchange compare_exchange_weak);

            /// See the standard library. Reported as one read-modify-write.
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
                self.report(Access::ReadModifyWrite);
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

macro_rules! instrumented_arithmetic {
    ($name:ident, $value:ty, $($method:ident)*) => {
        impl $name {
            $(
                /// See the standard library.
                #[inline]
                #[track_caller]
                pub fn $method(&self, value: $value, order: Ordering) -> $value {
                    self.report(Access::ReadModifyWrite);
                    self.0.$method(value, order)
                }
            )*
        }
    };
}

instrumented!(AtomicBool, std_atomic::AtomicBool, bool);
instrumented!(AtomicU8, std_atomic::AtomicU8, u8);
instrumented!(AtomicU32, std_atomic::AtomicU32, u32);
instrumented!(AtomicU64, std_atomic::AtomicU64, u64);
instrumented!(AtomicUsize, std_atomic::AtomicUsize, usize);
instrumented!(AtomicPtr<T>, std_atomic::AtomicPtr<T>, *mut T);

instrumented_arithmetic!(AtomicBool, bool, fetch_and fetch_or);
instrumented_arithmetic!(AtomicU8, u8, fetch_add fetch_sub fetch_and fetch_or fetch_max);
instrumented_arithmetic!(AtomicU32, u32, fetch_add fetch_sub fetch_and fetch_or fetch_max);
instrumented_arithmetic!(AtomicU64, u64, fetch_add fetch_sub fetch_and fetch_or fetch_max);
instrumented_arithmetic!(AtomicUsize, usize, fetch_add fetch_sub fetch_and fetch_or fetch_max);
