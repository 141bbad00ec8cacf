//! Loads until enough has happened, however slow the disk and however busy the machine.

use std::time::Duration;

use ensilo_islands::{Islands, LoadTime};

use crate::bank::Bank;

/// Runs loads of transfers, one after the other, until more than `least` have committed in the time that counts. Returns how many that were: no
/// more than `least` where as many loads as a busy machine may need were not enough.
pub(crate) fn load_until(islands: &Islands<Bank>, clients: usize, measured: Duration, least: u64) -> u64 {
    let mut committed = 0;
    for _ in 0..60 {
        let time = LoadTime { warmup: Duration::ZERO, measured };
        committed += islands.run_load(clients, time, &[]).unwrap().committed;
        if committed > least {
            break;
        }
    }
    committed
}
