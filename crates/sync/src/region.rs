//! Which part of a transaction a thread is in: in programs that are built with `--cfg ensilo_regions`, another thread can look.
//!
//! A part [enters](enter) its [`Region`] where it begins, and whoever was there before is back when the guard is dropped. Code that a part
//! calls back, such as the visitor of a scan, is its [`Caller`]'s. In such a build each worker that is observed keeps the region that it is
//! in in a byte of its own, at which the crate `ensilo-counting` looks a thousand times a second. In every other build the guards hold
//! nothing and do nothing.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §4.4, figure 11, whose components these are. The paper counts processor cycles.
//!
//! # Memory ordering
//! Relaxed: a look says where a worker is at about that moment, and nothing is read on the strength of it.

use std::marker::PhantomData;

#[cfg(ensilo_regions)]
pub use self::observed::{Observed, WORKERS_MAX, current, observe};

/// A part of what a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Region {
    /// Nothing that counts: between transactions, or not observed.
    Outside,
    /// The transaction's own code, and the tables that make keys and rows of what it says.
    Workload,
    /// What of an engine is in no region of its own: sets, validation, commit.
    Engine,
    /// Look-ups, scans and changes of an index.
    Index,
    /// Indirection arrays, and the versions that they lead to.
    Indirection,
    /// Making log entries.
    Log,
    /// Epochs and what they are for: pins, horizons, freeing garbage.
    Epochs,
    /// Waiting for the disk.
    Waiting,
}

impl Region {
    /// Every region, by its number.
    pub const ALL: [Self; 8] = [
        Self::Outside,
        Self::Workload,
        Self::Engine,
        Self::Index,
        Self::Indirection,
        Self::Log,
        Self::Epochs,
        Self::Waiting,
    ];
}

/// Enters `region` until the guard is dropped.
#[inline(always)]
pub fn enter(region: Region) -> InRegion {
    InRegion::new(region)
}

/// The proof that the thread is in a region.
#[derive(Debug)]
#[must_use = "the region ends when the guard is dropped"]
pub struct InRegion {
    #[cfg(ensilo_regions)]
    outer: observed::Outer,
    /// It is left on the thread that has entered it.
    of_this_thread: PhantomData<*mut ()>,
}

/// The region from which another one was entered.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    #[cfg(ensilo_regions)]
    region: u8,
}

impl InRegion {
    /// Leaves the region.
    #[inline(always)]
    pub fn leave(self) {}
}

#[cfg(not(ensilo_regions))]
impl InRegion {
    #[inline(always)]
    fn new(_: Region) -> Self {
        InRegion { of_this_thread: PhantomData }
    }

    /// Returns the region from which this one was entered, for code that is called back.
    #[inline(always)]
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller {}
    }
}

#[cfg(not(ensilo_regions))]
impl Caller {
    /// Enters the caller's region until the guard is dropped.
    #[inline(always)]
    pub fn enter(self) -> InRegion {
        InRegion { of_this_thread: PhantomData }
    }
}

#[cfg(ensilo_regions)]
mod observed {
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::{Caller, InRegion, Region};
    use crate::CachePadded;

    /// Workers that can be observed at a time.
    pub const WORKERS_MAX: usize = 256;

    /// The region of each worker, by its number. In a place that nobody has, there is [`FREE`].
    static PLACES: [CachePadded<AtomicU8>; WORKERS_MAX] =
        [const { CachePadded::new(AtomicU8::new(FREE)) }; WORKERS_MAX];

    const FREE: u8 = u8::MAX;

    thread_local! {
        static PLACE: Cell<Option<&'static AtomicU8>> = const { Cell::new(None) };
    }

    /// Where the thread was before, if it is observed.
    #[derive(Debug)]
    pub(super) struct Outer(Option<(&'static AtomicU8, u8)>);

    impl InRegion {
        #[inline]
        pub(super) fn new(region: Region) -> Self {
            Self::enter_byte(region as u8)
        }

        #[inline]
        fn enter_byte(region: u8) -> Self {
            let outer = PLACE.get().map(|place| {
                let outer = place.load(Ordering::Relaxed);
                place.store(region, Ordering::Relaxed);
                (place, outer)
            });
            InRegion { outer: Outer(outer), of_this_thread: PhantomData }
        }

        /// Returns the region from which this one was entered, for code that is called back.
        #[inline]
        #[must_use]
        pub fn caller(&self) -> Caller {
            Caller { region: self.outer.0.map_or(Region::Outside as u8, |(_, outer)| outer) }
        }
    }

    impl Drop for InRegion {
        #[inline]
        fn drop(&mut self) {
            if let Some((place, outer)) = self.outer.0 {
                place.store(outer, Ordering::Relaxed);
            }
        }
    }

    impl Caller {
        /// Enters the caller's region until the guard is dropped.
        #[inline]
        pub fn enter(self) -> InRegion {
            InRegion::enter_byte(self.region)
        }
    }

    /// A thread whose regions can be seen, until this is dropped. It is in no region then.
    #[derive(Debug)]
    #[must_use = "the thread is observed until this is dropped"]
    pub struct Observed {
        place: &'static AtomicU8,
        of_this_thread: PhantomData<*mut ()>,
    }

    /// Lets others see the calling thread's regions as those of `worker`.
    ///
    /// # Panics
    /// If `worker` is not below [`WORKERS_MAX`] or another thread is that worker, or if the thread is observed already.
    pub fn observe(worker: usize) -> Observed {
        assert!(worker < WORKERS_MAX, "worker {worker} of at most {WORKERS_MAX}");
        assert!(PLACE.get().is_none(), "a thread is observed as one worker at a time");
        let place: &'static AtomicU8 = &PLACES[worker];
        let claimed =
            place.compare_exchange(FREE, Region::Outside as u8, Ordering::Relaxed, Ordering::Relaxed);
        assert!(claimed.is_ok(), "worker {worker} is another thread");
        PLACE.set(Some(place));
        Observed { place, of_this_thread: PhantomData }
    }

    impl Drop for Observed {
        fn drop(&mut self) {
            PLACE.set(None);
            self.place.store(FREE, Ordering::Relaxed);
        }
    }

    /// Returns the region that a worker is in, if it is observed.
    #[must_use]
    pub fn current(worker: usize) -> Option<Region> {
        let region = PLACES.get(worker)?.load(Ordering::Relaxed);
        Region::ALL.get(usize::from(region)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_stands_at_its_number() {
        assert!(Region::ALL.iter().enumerate().all(|(at, &region)| region as usize == at));
    }

    #[cfg(not(ensilo_regions))]
    #[test]
    fn a_guard_of_an_ordinary_build_holds_nothing_and_does_nothing() {
        assert_eq!((size_of::<InRegion>(), size_of::<Caller>()), (0, 0));
        assert!(!std::mem::needs_drop::<InRegion>());
    }

    #[cfg(ensilo_regions)]
    mod observed {
        use super::*;

        /// Each test has a worker of its own: they run side by side.
        fn now(worker: usize) -> Region {
            current(worker).unwrap()
        }

        #[test]
        fn regions_nest_and_come_back() {
            let observed = observe(0);
            assert_eq!(now(0), Region::Outside);
            {
                let _engine = enter(Region::Engine);
                assert_eq!(now(0), Region::Engine);
                {
                    let _index = enter(Region::Index);
                    let _same = enter(Region::Index);
                    assert_eq!(now(0), Region::Index);
                }
                assert_eq!(now(0), Region::Engine);
                enter(Region::Log).leave();
                assert_eq!(now(0), Region::Engine);
            }
            assert_eq!(now(0), Region::Outside);
            drop(observed);
            assert_eq!(current(0), None);
        }

        #[test]
        fn what_is_called_back_is_the_callers() {
            let _observed = observe(1);
            let _workload = enter(Region::Workload);
            let engine = enter(Region::Engine);
            let index = enter(Region::Index);
            let (of_engine, of_index) = (engine.caller(), index.caller());
            {
                let _visitor = of_index.enter();
                assert_eq!(now(1), Region::Engine);
                let _decode = of_engine.enter();
                assert_eq!(now(1), Region::Workload);
            }
            assert_eq!(now(1), Region::Index);
        }

        #[test]
        fn a_panic_leaves_the_regions_that_it_passes() {
            let _observed = observe(2);
            let caught = std::panic::catch_unwind(|| {
                let _engine = enter(Region::Engine);
                let _index = enter(Region::Index);
                panic!("on purpose");
            });
            assert!(caught.is_err());
            assert_eq!(now(2), Region::Outside);
        }

        #[test]
        fn a_thread_that_is_not_observed_shows_nothing() {
            let _observed = observe(3);
            let elsewhere = std::thread::spawn(|| {
                let engine = enter(Region::Engine);
                let _caller = engine.caller().enter();
                now(3)
            });
            assert_eq!(elsewhere.join().unwrap(), Region::Outside);
            assert!(std::thread::spawn(|| drop(observe(3))).join().is_err(), "two threads are one worker");
        }
    }
}
