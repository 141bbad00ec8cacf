//! What the workload's transactions do.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::Plan;
use crate::random::Random;
use crate::schema::{Blob, Numbers, Pair, Wide};
use crate::state::DatabaseState;

/// Something that a transaction does.
#[derive(Clone, Debug)]
pub(super) enum Statement {
    Insert(Wide),
    SetAmount(u32, i64),
    SetNumbers(u32, Numbers),
    Replace(Wide),
    Delete(u32),
    PutPair(Pair),
    DeletePair(u8, u32),
    PutBlob(Arc<Blob>),
    DeleteBlob(u32),
    Event,
}

impl Statement {
    /// Draws one, and does to `state` what it does to the database, but for an event.
    pub(super) fn draw(random: &mut Random, plan: &Plan, state: &mut DatabaseState) -> Statement {
        let rows = state.wide.get_or_insert_default();
        let id = random.small(plan.rows);
        match random.below(100) {
            0..62 if !rows.contains_key(&id) => {
                let row = draw_row(random, id);
                rows.insert(id, Arc::new(row.clone()));
                Statement::Insert(row)
            }
            0..30 => {
                let amount = random.below(1000) as i64;
                change(rows, id, |row| row.amount = amount);
                Statement::SetAmount(id, amount)
            }
            30..42 => {
                let numbers = draw_numbers(random);
                change(rows, id, |row| {
                    row.group = numbers.group;
                    row.maybe = numbers.maybe;
                    row.first = numbers.first;
                    row.third = numbers.third;
                });
                Statement::SetNumbers(id, numbers)
            }
            42..50 => {
                let row = draw_row(random, id);
                rows.insert(id, Arc::new(row.clone()));
                Statement::Replace(row)
            }
            50..62 => {
                rows.remove(&id);
                Statement::Delete(id)
            }
            62..84 => match &mut state.pairs {
                Some(pairs) => draw_pair(random, pairs),
                None => Statement::Event,
            },
            84..92 => draw_blob(random, plan.blob_bytes_max, state.blobs.get_or_insert_default()),
            _ => Statement::Event,
        }
    }
}

fn change(rows: &mut BTreeMap<u32, Arc<Wide>>, id: u32, change: impl FnOnce(&mut Wide)) {
    if let Some(row) = rows.get_mut(&id) {
        change(Arc::make_mut(row));
    }
}

fn draw_row(random: &mut Random, id: u32) -> Wide {
    let numbers = draw_numbers(random);
    let note_len = if random.percent(10) { random.below(2000) } else { random.below(40) };
    let letter = char::from(b'a' + random.below(26) as u8);
    Wide {
        id,
        group: numbers.group,
        amount: random.below(1000) as i64,
        maybe: numbers.maybe,
        first: numbers.first,
        second: random.draw(),
        third: numbers.third,
        note: std::iter::repeat_n(letter, note_len as usize).collect(),
    }
}

fn draw_numbers(random: &mut Random) -> Numbers {
    Numbers {
        group: random.below(7) as u16,
        maybe: random.percent(50).then(|| random.draw().cast_signed()),
        first: random.draw(),
        third: random.draw(),
    }
}

fn draw_pair(random: &mut Random, pairs: &mut BTreeMap<(u8, u32), u64>) -> Statement {
    let (left, right) = (random.below(3) as u8, random.small(12));
    if pairs.contains_key(&(left, right)) && random.percent(40) {
        pairs.remove(&(left, right));
        return Statement::DeletePair(left, right);
    }
    let value = random.below(50);
    pairs.insert((left, right), value);
    Statement::PutPair(Pair { left, right, value })
}

fn draw_blob(random: &mut Random, bytes_max: u64, blobs: &mut BTreeMap<u32, Arc<Blob>>) -> Statement {
    let id = random.small(6);
    if blobs.contains_key(&id) && random.percent(30) {
        blobs.remove(&id);
        return Statement::DeleteBlob(id);
    }
    // Half of it compresses well.
    let len = random.below(bytes_max);
    let bytes = (0..len).map(|at| if at % 2 == 0 { random.draw() as u8 } else { 7 }).collect();
    let row = Arc::new(Blob { id, bytes });
    blobs.insert(id, Arc::clone(&row));
    Statement::PutBlob(row)
}
