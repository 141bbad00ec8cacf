//! How the tables of a TPC-C database are arranged, and what a system does around its transactions.
//!
//! # Source
//! Silo (SOSP 2013) §5.4: MemSilo+Split, MemSilo+FastIds and Partitioned-Store. Tables are split by warehouse, all but the items, which
//! nobody writes.

use std::fmt;
use std::thread;

use ensilo::generic::Database;
use ensilo::{Engine, Result, Silo};
use ensilo_baselines::PartitionedStore;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::{AtomicBool, AtomicU32};

use super::options::{DISTRICTS, LINES_MAX, TpccOptions};
use super::tables::Tables;

/// How the tables are arranged, and what is done around transactions.
pub trait Arrangement: fmt::Debug + Send + Sync + Sized + 'static {
    /// What runs the transactions.
    type Engine: Engine;
    /// What a transaction holds while it runs.
    type Locks<'a>
    where
        Self: 'a;

    /// Whether there are several sets of tables.
    const IS_SPLIT: bool = false;
    /// Whether the numbers of orders come from counters outside of transactions.
    const HAS_FAST_IDS: bool = false;

    /// Creates the tables, empty, in `database`.
    ///
    /// # Errors
    /// A failure of the database.
    fn create(database: &Database<Self::Engine>, options: &TpccOptions) -> Result<Self>;

    /// The tables of a warehouse.
    fn of(&self, warehouse: u16) -> &Tables<Self::Engine>;

    /// All sets of tables.
    fn sets(&self) -> &[Tables<Self::Engine>];

    /// Makes sure that the caller may run a transaction that touches these warehouses, each named once or more.
    fn lock(&self, warehouses: impl Iterator<Item = u16>) -> Self::Locks<'_>;

    /// Takes a number for the next order of a district. Called only where there are [`Arrangement::HAS_FAST_IDS`].
    fn take_order(&self, warehouse: u16, district: u8) -> u32 {
        unreachable!("the orders of district {warehouse}/{district} are numbered in their transactions")
    }

    /// The number that the next order of a district gets. Called only where there are [`Arrangement::HAS_FAST_IDS`].
    fn next_order(&self, warehouse: u16, district: u8) -> u32 {
        unreachable!("the orders of district {warehouse}/{district} are numbered in their transactions")
    }
}

/// One set of tables for all warehouses: the product and its variants.
#[derive(Debug)]
pub struct Whole<E: Engine = Silo>(pub(super) [Tables<E>; 1]);

impl<E: Engine> Whole<E> {
    /// The tables that are in `database`.
    ///
    /// # Errors
    /// A failure of the database.
    pub(super) fn open(database: &Database<E>) -> Result<Self> {
        Ok(Self([Tables::open(database)?]))
    }
}

impl<E: Engine> Arrangement for Whole<E> {
    type Engine = E;
    type Locks<'a> = ();

    fn create(database: &Database<E>, _options: &TpccOptions) -> Result<Self> {
        Ok(Self([Tables::create(database)?]))
    }

    #[inline]
    fn of(&self, _warehouse: u16) -> &Tables<E> {
        &self.0[0]
    }

    fn sets(&self) -> &[Tables<E>] {
        &self.0
    }

    #[inline]
    fn lock(&self, _warehouses: impl Iterator<Item = u16>) {}
}

/// MemSilo+Split: a set of tables for each partition.
#[derive(Debug)]
pub struct Split<E: Engine = Silo> {
    sets: Vec<Tables<E>>,
    warehouses: u16,
}

impl<E: Engine> Split<E> {
    /// The partition of a warehouse, from 0.
    #[inline]
    fn partition(&self, warehouse: u16) -> usize {
        usize::from(warehouse - 1) * self.sets.len() / usize::from(self.warehouses)
    }
}

impl<E: Engine> Arrangement for Split<E> {
    type Engine = E;
    type Locks<'a> = ();

    const IS_SPLIT: bool = true;

    fn create(database: &Database<E>, options: &TpccOptions) -> Result<Self> {
        let items = database.create_table()?;
        let sets = 1..=options.partitions();
        let sets =
            sets.map(|number| Tables::create_numbered(database, number, &items)).collect::<Result<_>>()?;
        Ok(Self { sets, warehouses: options.warehouses })
    }

    #[inline]
    fn of(&self, warehouse: u16) -> &Tables<E> {
        &self.sets[self.partition(warehouse)]
    }

    fn sets(&self) -> &[Tables<E>] {
        &self.sets
    }

    #[inline]
    fn lock(&self, _warehouses: impl Iterator<Item = u16>) {}
}

/// Partitioned-Store: a set of tables for each partition, and a lock, which transactions take in order before they begin.
#[derive(Debug)]
pub struct LockedPartitions {
    tables: Split<PartitionedStore>,
    locks: Vec<PartitionLock>,
}

/// A lock on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PartitionLock(AtomicBool);

/// The most partitions that a transaction touches: those of an order's lines and its own.
const PARTITIONS_MAX: usize = LINES_MAX + 1;

/// Locks that are held; free when this goes.
#[derive(Debug)]
pub struct HeldLocks<'a> {
    locks: &'a [PartitionLock],
    /// In rising order.
    held: [u16; PARTITIONS_MAX],
    count: usize,
}

impl Arrangement for LockedPartitions {
    type Engine = PartitionedStore;
    type Locks<'a> = HeldLocks<'a>;

    const IS_SPLIT: bool = true;

    fn create(database: &Database<PartitionedStore>, options: &TpccOptions) -> Result<Self> {
        let locks = (0..options.partitions()).map(|_| PartitionLock::default()).collect();
        Ok(Self { tables: Split::create(database, options)?, locks })
    }

    #[inline]
    fn of(&self, warehouse: u16) -> &Tables<PartitionedStore> {
        self.tables.of(warehouse)
    }

    fn sets(&self) -> &[Tables<PartitionedStore>] {
        self.tables.sets()
    }

    fn lock(&self, warehouses: impl Iterator<Item = u16>) -> HeldLocks<'_> {
        let mut held = HeldLocks { locks: &self.locks, held: [0; PARTITIONS_MAX], count: 0 };
        for warehouse in warehouses {
            held.add(self.tables.partition(warehouse) as u16);
        }
        held.held[..held.count].sort_unstable();
        held.held[..held.count].iter().for_each(|&partition| self.locks[usize::from(partition)].lock());
        held
    }
}

impl HeldLocks<'_> {
    #[inline]
    fn add(&mut self, partition: u16) {
        if !self.held[..self.count].contains(&partition) {
            self.held[self.count] = partition;
            self.count += 1;
        }
    }
}

impl Drop for HeldLocks<'_> {
    fn drop(&mut self) {
        self.held[..self.count].iter().for_each(|&partition| self.locks[usize::from(partition)].unlock());
    }
}

impl PartitionLock {
    /// Spins, as the paper's locks do, and gives the processor away when that takes long: there may be fewer than workers.
    #[inline]
    fn lock(&self) {
        const SPINS_MAX: u32 = 100;
        let mut spins = 0;
        // Acquire: what the transaction before this one did to the partition.
        while self.0.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            // Relaxed: a look that leaves the line where it is; the exchange above decides.
            while self.0.load(Ordering::Relaxed) {
                spins += 1;
                if spins < SPINS_MAX { std::hint::spin_loop() } else { thread::yield_now() }
            }
        }
    }

    #[inline]
    fn unlock(&self) {
        // Release: what this transaction did to the partition.
        self.0.store(false, Ordering::Release);
    }
}

/// MemSilo+FastIds: orders get their numbers outside of their transactions. A request that is rolled back leaves a gap.
#[derive(Debug)]
pub struct FastIds {
    tables: Whole<Silo>,
    /// The next number of each district.
    next: Vec<NextOrder>,
}

/// A counter on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct NextOrder(AtomicU32);

impl FastIds {
    #[inline]
    fn counter(&self, warehouse: u16, district: u8) -> &AtomicU32 {
        let at = usize::from(warehouse - 1) * usize::from(DISTRICTS) + usize::from(district - 1);
        &self.next[at].0
    }
}

impl Arrangement for FastIds {
    type Engine = Silo;
    type Locks<'a> = ();

    const HAS_FAST_IDS: bool = true;

    fn create(database: &Database<Silo>, options: &TpccOptions) -> Result<Self> {
        let districts = usize::from(options.warehouses) * usize::from(DISTRICTS);
        // The load enters an order for each customer.
        let first = u32::from(options.scale.customers) + 1;
        let next = (0..districts).map(|_| NextOrder(AtomicU32::new(first))).collect();
        Ok(Self { tables: Whole::create(database, options)?, next })
    }

    #[inline]
    fn of(&self, warehouse: u16) -> &Tables<Silo> {
        self.tables.of(warehouse)
    }

    fn sets(&self) -> &[Tables<Silo>] {
        self.tables.sets()
    }

    #[inline]
    fn lock(&self, _warehouses: impl Iterator<Item = u16>) {}

    #[inline]
    fn take_order(&self, warehouse: u16, district: u8) -> u32 {
        // Relaxed: that no number is taken twice is all.
        self.counter(warehouse, district).fetch_add(1, Ordering::Relaxed)
    }

    #[inline]
    fn next_order(&self, warehouse: u16, district: u8) -> u32 {
        self.counter(warehouse, district).load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::database::DatabaseOptions;
    use crate::tpcc::tests::small;

    fn partitions(warehouses: u16, partitions: u16) -> LockedPartitions {
        let database = DatabaseOptions::default().open_in_memory().unwrap();
        let options = TpccOptions { partitions: Some(partitions), ..small(warehouses, 1) };
        LockedPartitions::create(&database, &options).unwrap()
    }

    #[test]
    fn every_partition_gets_its_share_of_warehouses() {
        let partitions = partitions(7, 3);
        let of = |warehouse| partitions.tables.partition(warehouse);
        assert_eq!((1..=7).map(of).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(partitions.sets().len(), 3);
    }

    #[test]
    fn locks_are_taken_once_each_and_in_order() {
        let partitions = partitions(20, 20);
        let held = partitions.lock([7, 3, 7, 20, 3].into_iter());
        assert_eq!(held.held[..held.count], [2, 6, 19]);
        let is_locked = |partition: usize| partitions.locks[partition].0.load(Ordering::Relaxed);
        assert_eq!((0..20).filter(|&partition| is_locked(partition)).collect::<Vec<_>>(), [2, 6, 19]);
        drop(held);
        assert!(!(0..20).any(is_locked));
        assert_eq!(partitions.lock(1..=16).count, PARTITIONS_MAX);
    }

    #[test]
    fn who_holds_a_lock_is_alone() {
        let (partitions, sum) = (partitions(3, 3), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (partitions, sum) = (&partitions, &sum);
                scope.spawn(move || {
                    for turn in 0..2_000 {
                        let other = [1, 3][(thread + turn) % 2];
                        let _held = partitions.lock([other, 2].into_iter());
                        let seen = sum.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        sum.store(seen + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 8_000);
    }
}
