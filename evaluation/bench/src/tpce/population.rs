//! Who and what there is, as functions of numbers: tiers, accounts, brokers, securities. The loader and the transactions' inputs share it,
//! so that nobody has to look in the database for what to ask it.
//!
//! # Source
//! TPC-E revision 1.14, clauses 2.6 (cardinalities) and 6.4 (inputs): of ten customers two, six and two are in the tiers 1, 2 and 3,
//! which have 1 to 4, 2 to 8 and 5 to 10 accounts, and are chosen with weights of 1, 2 and 3.

use ensilo::Text;

use super::names::Person;
use super::options::TpceOptions;
use super::schema::Symbol;
use crate::random::Random;

/// Accounts that a customer may have at most; the account numbers of a customer are this far from the next one's.
pub(super) const ACCOUNTS_MAX: u32 = 10;
/// Securities that an account trades in.
const SECURITIES_OF_ACCOUNT: u32 = 18;

/// Kinds of random streams; a stream's number has its kind in the highest bits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Tiers = 1,
    Account,
    Load,
    Worker,
}

/// The population of a database.
#[derive(Debug)]
pub(super) struct Population {
    pub(super) customers: u32,
    pub(super) companies: u32,
    pub(super) securities: u32,
    pub(super) brokers: u32,
    seed: u64,
    /// By customer.
    tiers: Vec<u8>,
    /// How many accounts each customer has.
    accounts: Vec<u8>,
    by_tier: [Vec<u32>; 3],
}

impl Population {
    pub(super) fn new(options: &TpceOptions) -> Self {
        let customers = options.customers;
        let companies = (customers / 2).max(SECURITIES_OF_ACCOUNT);
        let mut population = Self {
            customers,
            companies,
            securities: companies + companies * 37 / 100,
            brokers: (customers / 100).max(1),
            seed: options.seed,
            tiers: Vec::with_capacity(customers as usize),
            accounts: Vec::with_capacity(customers as usize),
            by_tier: Default::default(),
        };
        for first in (1..=customers).step_by(10) {
            population.add_ten(first);
        }
        population
    }

    fn add_ten(&mut self, first: u32) {
        let mut tiers = [1, 1, 2, 2, 2, 2, 2, 2, 3, 3];
        let mut random = self.random(Stream::Tiers, u64::from(first));
        random.shuffle(&mut tiers);
        for (customer, tier) in (first..=self.customers).zip(tiers) {
            let (low, high) = [(1, 4), (2, 8), (5, 10)][usize::from(tier) - 1];
            self.tiers.push(tier);
            self.accounts.push(random.between(low, high) as u8);
            self.by_tier[usize::from(tier) - 1].push(customer);
        }
    }

    /// Random numbers of one part of the whole.
    pub(super) fn random(&self, stream: Stream, number: u64) -> Random {
        Random::for_stream(self.seed, (stream as u64) << 56 | number)
    }

    pub(super) fn tier(&self, customer: u32) -> u8 {
        self.tiers[customer as usize - 1]
    }

    /// The accounts of a customer.
    pub(super) fn accounts(&self, customer: u32) -> impl ExactSizeIterator<Item = u32> + use<> {
        let first = (customer - 1) * ACCOUNTS_MAX + 1;
        (0..u32::from(self.accounts[customer as usize - 1])).map(move |at| first + at)
    }

    /// The customer of an account.
    pub(super) fn customer_of(account: u32) -> u32 {
        (account - 1) / ACCOUNTS_MAX + 1
    }

    /// The weight with which a customer is chosen is the tier.
    pub(super) fn weight(&self, customer: u32) -> u64 {
        u64::from(self.tier(customer))
    }

    /// Draws a customer: 1, 6 and 3 of ten are in the tiers 1, 2 and 3.
    pub(super) fn draw_customer(&self, random: &mut Random) -> u32 {
        let tier = match random.below(10) {
            0 => 0,
            1..7 => 1,
            _ => 2,
        };
        let of_tier = &self.by_tier[tier];
        of_tier[random.below(of_tier.len() as u64) as usize]
    }

    /// Draws a customer and one of their accounts.
    pub(super) fn draw_account(&self, random: &mut Random) -> u32 {
        let customer = self.draw_customer(random);
        let accounts = self.accounts(customer);
        (customer - 1) * ACCOUNTS_MAX + 1 + random.below(accounts.len() as u64) as u32
    }

    /// What is known of an account.
    pub(super) fn account(&self, account: u32) -> Account {
        let mut random = self.random(Stream::Account, u64::from(account));
        let spread = u64::from(self.securities / SECURITIES_OF_ACCOUNT).max(1);
        Account {
            number: account,
            broker: random.between(1, u64::from(self.brokers)) as u32,
            tax_status: [0, 1, 1, 1, 1, 2, 2, 2, 2, 2][random.below(10) as usize],
            permitted: [1, 1, 1, 1, 1, 1, 2, 2, 2, 3][random.below(10) as usize],
            opening_cents: random.between(0, 20_000_000) as i64 - 10_000_000,
            first_security: random.below(u64::from(self.securities)) as u32,
            security_step: random.between(1, spread) as u32,
            securities: self.securities,
        }
    }

    /// The name of a security: four letters of the company, and which of its issues it is if not the first.
    pub(super) fn symbol(&self, security: u32) -> Symbol {
        let mut company = self.company_of(security) - 1;
        let mut letters = [b'A'; 4];
        for letter in letters.iter_mut().rev() {
            *letter = b'A' + (company % 26) as u8;
            company /= 26;
        }
        let mut symbol: Symbol = Text::EMPTY;
        // Four and three letters: they fit.
        let _ = symbol.push_str(std::str::from_utf8(&letters).unwrap_or_default());
        let _ = symbol.push_str(if security < self.companies { "" } else { "PRA" });
        symbol
    }

    /// The company of a security, from 1.
    pub(super) fn company_of(&self, security: u32) -> u32 {
        security % self.companies + 1
    }

    /// The issue that a security is of.
    pub(super) fn issue_of(&self, security: u32) -> Text<6> {
        Text::truncated(if security < self.companies { "COMMON" } else { "PREF_A" })
    }

    /// The number of the exchange where a security is traded, from 0.
    pub(super) fn exchange_of(security: u32) -> usize {
        security as usize % super::fees::EXCHANGES.len()
    }
}

/// What is known of an account without looking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    number: u32,
    pub(super) broker: u32,
    /// 0: not taxed; 1: taxed, withheld; 2: taxed, not withheld.
    pub(super) tax_status: u8,
    /// People that may trade for it, the customer included.
    pub(super) permitted: u32,
    /// The balance before the first trade.
    pub(super) opening_cents: i64,
    first_security: u32,
    security_step: u32,
    securities: u32,
}

impl Account {
    /// The person at this place of those that may trade for it; the first is the customer.
    pub(super) fn person(&self, at: u32) -> Person {
        match at {
            0 => Person::of(u64::from(Population::customer_of(self.number))),
            at => Person::of(1 << 36 | u64::from(self.number) << 2 | u64::from(at)),
        }
    }

    /// Draws one of the securities that it trades in.
    pub(super) fn draw_security(&self, random: &mut Random) -> u32 {
        let at = random.below(u64::from(SECURITIES_OF_ACCOUNT.min(self.securities))) as u32;
        (self.first_security + at * self.security_step) % self.securities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_name_one_security_each() {
        let population = Population::new(&TpceOptions { customers: 2_000, ..TpceOptions::new(1) });
        assert_eq!((population.companies, population.securities, population.brokers), (1_000, 1_370, 20));
        let symbols = (0..population.securities).map(|security| population.symbol(security));
        assert_eq!(symbols.collect::<std::collections::BTreeSet<_>>().len(), 1_370);
    }

    #[test]
    fn customers_are_drawn_by_tier() {
        let population = Population::new(&TpceOptions { customers: 1_000, ..TpceOptions::new(1) });
        let mut random = Random::new(3);
        let mut drawn = [0u32; 4];
        for _ in 0..10_000 {
            drawn[usize::from(population.tier(population.draw_customer(&mut random)))] += 1;
        }
        assert!((800..1_200).contains(&drawn[1]) && (5_700..6_300).contains(&drawn[2]), "{drawn:?}");
        let accounts: usize = (1..=1_000).map(|customer| population.accounts(customer).len()).sum();
        assert!((4_800..5_200).contains(&accounts), "{accounts}");
    }
}
