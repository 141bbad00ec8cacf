//! The rows of the transfer workload, which tell afterwards whether an update was lost.

/// An account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Its key.
    pub id: u64,
    /// What is on it.
    pub balance: i64,
    /// How many transfers have changed it.
    pub updates: u64,
}

/// Bytes of an account without its key, where rows are bytes.
pub const ACCOUNT_BYTES: usize = 16;

impl Account {
    /// What is on every account at first.
    pub const BALANCE_AT_FIRST: i64 = 1_000;

    /// The account as it is loaded.
    pub fn at_first(id: u64) -> Self {
        Self { id, balance: Self::BALANCE_AT_FIRST, updates: 0 }
    }

    /// Adds `amount`, which may be negative.
    #[inline]
    pub fn add(&mut self, amount: i64) {
        self.balance += amount;
        self.updates += 1;
    }

    /// Writes balance and updates, eight bytes each.
    #[inline]
    pub fn put(&self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.balance.to_le_bytes());
        bytes[8..ACCOUNT_BYTES].copy_from_slice(&self.updates.to_le_bytes());
    }

    /// Reads what [`Account::put`] wrote; `None` if it is something else.
    #[inline]
    pub fn read(id: u64, bytes: &[u8]) -> Option<Self> {
        let (balance, updates) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            id,
            balance: i64::from_le_bytes(*balance),
            updates: u64::from_le_bytes(updates.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read() {
        let mut account = Account::at_first(3);
        account.add(-2_000);
        let mut bytes = [0; ACCOUNT_BYTES];
        account.put(&mut bytes);
        assert_eq!(Account::read(3, &bytes), Some(Account { id: 3, balance: -1_000, updates: 1 }));
        assert_eq!(Account::read(3, &bytes[1..]), None);
    }
}
