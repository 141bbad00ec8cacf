//! What terminals enter: random choices that several transactions make alike.

use ensilo::Text;
use serde::{Deserialize, Serialize};

use super::options::{DISTRICTS, Scale, WarehouseChoice};
use super::random::{LAST_NAMES, NuRand, Strings};
use super::wire;
use crate::mix::Share;
use crate::random::Random;

/// The choices of one worker.
#[derive(Debug)]
pub(super) struct Inputs<'a> {
    pub(super) random: &'a mut Random,
    pub(super) strings: &'a mut Strings,
    pub(super) nu_rand: &'a NuRand,
    pub(super) scale: Scale,
    pub(super) warehouses: u16,
    pub(super) remote_items: Share,
    pub(super) remote_customers: Share,
}

/// A customer as a terminal names it: clause 2.5.1.2 has 60 of 100 by last name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum CustomerChoice {
    /// By number.
    Number(u16),
    /// By last name.
    LastName(#[serde(with = "wire::text")] Text<16>),
}

impl Inputs<'_> {
    /// Any district.
    #[inline]
    pub(super) fn district(&mut self) -> u8 {
        self.random.between(1, u64::from(DISTRICTS)) as u8
    }

    /// A customer's number.
    #[inline]
    pub(super) fn customer(&mut self) -> u16 {
        self.nu_rand.customer(self.scale.customers, self.random)
    }

    /// A customer by last name or by number.
    #[inline]
    pub(super) fn customer_choice(&mut self) -> CustomerChoice {
        if !self.random.percent(60) {
            return CustomerChoice::Number(self.customer());
        }
        let names = LAST_NAMES.min(u64::from(self.scale.customers));
        let number = self.nu_rand.last_name(names, self.random);
        CustomerChoice::LastName(Text::truncated(self.strings.last_name(number)))
    }

    /// Whether an item of an order comes from another warehouse.
    #[inline]
    pub(super) fn is_remote_item(&mut self) -> bool {
        self.remote_items.draw(self.random)
    }

    /// Whether a payment is by a customer of another warehouse.
    #[inline]
    pub(super) fn is_remote_customer(&mut self) -> bool {
        self.remote_customers.draw(self.random)
    }

    /// An item's number.
    #[inline]
    pub(super) fn item(&mut self) -> u32 {
        self.nu_rand.item(self.scale.items, self.random)
    }

    /// Any warehouse but `home`, unless there is no other.
    #[inline]
    pub(super) fn other_warehouse(&mut self, home: u16) -> u16 {
        if self.warehouses == 1 {
            return home;
        }
        let other = self.random.between(1, u64::from(self.warehouses) - 1) as u16;
        if other < home { other } else { other + 1 }
    }
}

/// The warehouses that one worker's transactions are for.
#[derive(Debug, Clone)]
pub(super) struct Homes {
    choice: WarehouseChoice,
    warehouses: u16,
    /// The worker's own: `first`, `first + step` and so on, `count` of them.
    first: u16,
    step: u16,
    count: u16,
}

impl Homes {
    /// The warehouses of `worker` among `workers`: as many for each as there are to share, or one for several workers.
    pub(super) fn new(choice: WarehouseChoice, warehouses: u16, worker: usize, workers: usize) -> Self {
        let first = (worker % usize::from(warehouses)) as u16 + 1;
        let step = u16::try_from(workers).unwrap_or(u16::MAX).max(1);
        let count = (warehouses - first) / step + 1;
        Self { choice, warehouses, first, step, count }
    }

    /// The next transaction's warehouse.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u16 {
        let all = u64::from(self.warehouses);
        match self.choice {
            WarehouseChoice::Home if self.count == 1 => self.first,
            WarehouseChoice::Home => self.first + self.step * random.below(u64::from(self.count)) as u16,
            WarehouseChoice::Uniform => random.between(1, all) as u16,
            WarehouseChoice::EightyTwenty => {
                let hot = all.div_ceil(5);
                let is_hot = hot == all || random.percent(80);
                (if is_hot { random.between(1, hot) } else { random.between(hot + 1, all) }) as u16
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn drawn(choice: WarehouseChoice, warehouses: u16, worker: usize, workers: usize) -> BTreeSet<u16> {
        let homes = Homes::new(choice, warehouses, worker, workers);
        let mut random = Random::new(1);
        (0..1_000).map(|_| homes.draw(&mut random)).collect()
    }

    #[test]
    fn every_warehouse_is_somebodys_home() {
        for (warehouses, workers) in [(1, 1), (1, 4), (4, 4), (5, 2), (7, 3), (2, 3)] {
            let homes: Vec<_> = (0..workers)
                .map(|worker| drawn(WarehouseChoice::Home, warehouses, worker, workers))
                .collect();
            let union: BTreeSet<u16> = homes.iter().flatten().copied().collect();
            assert!(union.into_iter().eq(1..=warehouses), "{warehouses} for {workers}");
            if usize::from(warehouses) >= workers {
                let total: usize = homes.iter().map(BTreeSet::len).sum();
                assert_eq!(total, usize::from(warehouses), "nobody shares: {warehouses} for {workers}");
            }
        }
    }

    #[test]
    fn other_choices_reach_every_warehouse() {
        for choice in [WarehouseChoice::Uniform, WarehouseChoice::EightyTwenty] {
            for warehouses in [1, 2, 5, 11] {
                assert!(
                    drawn(choice, warehouses, 0, 1).into_iter().eq(1..=warehouses),
                    "{choice:?} {warehouses}"
                );
            }
        }
    }

    #[test]
    fn eighty_of_a_hundred_go_to_a_fifth() {
        let homes = Homes::new(WarehouseChoice::EightyTwenty, 10, 0, 1);
        let mut random = Random::new(2);
        let hot = (0..10_000).filter(|_| homes.draw(&mut random) <= 2).count();
        assert!((7_800..8_200).contains(&hot), "{hot}");
    }

    #[test]
    fn another_warehouse_is_never_home() {
        let (mut random, mut strings) = (Random::new(3), Strings::default());
        let (nu_rand, _) = NuRand::of_seed(3);
        let mut inputs = Inputs {
            random: &mut random,
            strings: &mut strings,
            nu_rand: &nu_rand,
            scale: Scale::SPECIFICATION,
            warehouses: 3,
            remote_items: Share::ONE_OF_100,
            remote_customers: Share::FIFTEEN_OF_100,
        };
        let others: BTreeSet<u16> = (0..1_000).map(|_| inputs.other_warehouse(2)).collect();
        assert!(others.into_iter().eq([1, 3]));
        inputs.warehouses = 1;
        assert_eq!(inputs.other_warehouse(1), 1);
    }
}
