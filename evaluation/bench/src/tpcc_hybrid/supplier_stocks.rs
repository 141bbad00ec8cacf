//! Which stocks a supplier supplies.

/// The stocks of every supplier. A stock's supplier is `(s_w_id * s_i_id) mod suppliers`, as CH-benCHmark joins them.
#[derive(Debug)]
pub(super) struct SupplierStocks {
    suppliers: u32,
    /// By supplier.
    stocks: Vec<Vec<(u16, u32)>>,
}

impl SupplierStocks {
    /// The stocks of `items` items in each of `warehouses` warehouses.
    pub(super) fn new(suppliers: u32, warehouses: u16, items: u32) -> Self {
        let mut stocks = vec![Vec::new(); suppliers as usize];
        for warehouse in 1..=warehouses {
            for item in 1..=items {
                stocks[supplier(suppliers, warehouse, item) as usize].push((warehouse, item));
            }
        }
        Self { suppliers, stocks }
    }

    /// How many suppliers there are; they are numbered from 0.
    pub(super) fn suppliers(&self) -> u32 {
        self.suppliers
    }

    /// The keys of a supplier's stocks.
    #[inline]
    pub(super) fn of(&self, supplier: u32) -> &[(u16, u32)] {
        &self.stocks[supplier as usize]
    }
}

/// The supplier of a stock.
fn supplier(suppliers: u32, warehouse: u16, item: u32) -> u32 {
    (u64::from(warehouse) * u64::from(item) % u64::from(suppliers)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stock_has_one_supplier() {
        let stocks = SupplierStocks::new(10_000, 3, 100_000);
        assert_eq!((0..10_000).map(|supplier| stocks.of(supplier).len()).sum::<usize>(), 300_000);
        // Ten stocks of a warehouse whose number has no divisor in common with theirs.
        assert_eq!(stocks.of(7).iter().filter(|(warehouse, _)| *warehouse == 1).count(), 10);
        assert!(stocks.of(7).contains(&(3, 6_669)), "3 * 6669 = 2 * 10000 + 7");
    }
}
