//! Whether what some transactions have seen is explained by running them one after the other.

use std::collections::BTreeMap;

/// What a committed transaction did with one record: a row is a number, and `None` is no row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// It has seen this.
    Saw(usize, Option<u64>),
    /// It has made this of it.
    Made(usize, Option<u64>),
}

/// Returns whether some serial order of these transactions leads from `rows` to `end`, and has each see what it saw.
pub(super) fn is_serializable(
    committed: &[&[Deed]],
    rows: &BTreeMap<usize, u64>,
    end: &BTreeMap<usize, u64>,
) -> bool {
    if committed.is_empty() {
        return rows == end;
    }
    (0..committed.len()).any(|first| {
        let mut rows = rows.clone();
        let mut others = committed.to_vec();
        let deeds = others.remove(first);
        deeds.iter().all(|deed| run(deed, &mut rows)) && is_serializable(&others, &rows, end)
    })
}

/// Does the deed, and returns whether it is as it was.
fn run(deed: &Deed, rows: &mut BTreeMap<usize, u64>) -> bool {
    match *deed {
        Deed::Saw(record, row) => rows.get(&record).copied() == row,
        Deed::Made(record, Some(row)) => {
            rows.insert(record, row);
            true
        }
        Deed::Made(record, None) => rows.remove(&record).is_some(),
    }
}
