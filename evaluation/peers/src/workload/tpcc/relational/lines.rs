//! The lines of an order as the arrays that the function of new-order takes.

use ensilo_bench::tpcc::NewOrderInput;

/// LineArrays, a place of all arrays each, in the order of their stocks' keys: in which clients lock them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineArrays {
    /// Their places in the order, from 1.
    pub(super) numbers: Vec<i16>,
    pub(super) supply_warehouses: Vec<i32>,
    pub(super) items: Vec<i32>,
    pub(super) quantities: Vec<i16>,
    /// 1 for the first line of a stock, 2 for the second one and so on.
    pub(super) turns: Vec<i16>,
}

impl LineArrays {
    pub(super) fn of(input: &NewOrderInput) -> Self {
        Self::sorted(input.lines().iter().map(|line| {
            // The number of the item that there is not is beyond PostgreSQL's: it becomes one below all.
            (i32::from(line.supply_warehouse), line.item.cast_signed(), i16::from(line.quantity))
        }))
    }

    /// Of supplying warehouse, item and quantity of each line.
    fn sorted(entered: impl Iterator<Item = (i32, i32, i16)>) -> Self {
        let mut lines: Vec<_> = (1..).zip(entered).collect();
        // Stable: lines of one stock stay in the order in which they were entered.
        lines.sort_by_key(|&(_, (warehouse, item, _))| (warehouse, item));
        let mut turns: Vec<i16> = Vec::with_capacity(lines.len());
        for (at, (_, (warehouse, item, _))) in lines.iter().enumerate() {
            let is_further = at > 0 && (lines[at - 1].1.0, lines[at - 1].1.1) == (*warehouse, *item);
            turns.push(if is_further { turns[at - 1] + 1 } else { 1 });
        }
        Self {
            numbers: lines.iter().map(|&(number, _)| number).collect(),
            supply_warehouses: lines.iter().map(|&(_, (warehouse, ..))| warehouse).collect(),
            items: lines.iter().map(|&(_, (_, item, _))| item).collect(),
            quantities: lines.iter().map(|&(_, (.., quantity))| quantity).collect(),
            turns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_stock_take_turns_in_the_order_of_entry() {
        let entered = [(2, 7, 1), (1, 7, 2), (2, 5, 3), (2, 7, 4), (2, -1, 5), (2, 7, 6)];
        let expected = LineArrays {
            numbers: vec![2, 5, 3, 1, 4, 6],
            supply_warehouses: vec![1, 2, 2, 2, 2, 2],
            items: vec![7, -1, 5, 7, 7, 7],
            quantities: vec![2, 5, 3, 1, 4, 6],
            turns: vec![1, 1, 1, 1, 2, 3],
        };
        assert_eq!(LineArrays::sorted(entered.into_iter()), expected);
    }
}
