//! Which pools have threads that wait for other pools, so that none waits in a circle.
//!
//! Where all threads of the pools along a circle wait, none is left to run what they wait for. A thread does
//! not begin to wait if that would close a circle, though other threads of the pools may still be free:
//! whether they are is over before it is known.

use std::sync::Mutex;

use crate::mutex::lock;

/// The waits under way: of a thread of the first queue's pool for the second's.
static WAITS: Mutex<Vec<Edge>> = Mutex::new(Vec::new());

/// The addresses of two queues, which live as long as the wait: compared, never followed.
type Edge = (usize, usize);

/// The wait of a pool's thread for another pool, until it is dropped.
#[derive(Debug)]
pub(crate) struct Wait(Option<Edge>);

/// That a wait would close a circle.
#[derive(Debug)]
pub(crate) struct WaitCycle;

impl Wait {
    /// Notes that a thread of the pool with the queue `own` waits for the pool of another. Threads of no pool
    /// wait without a note.
    pub(super) fn begin(own: Option<usize>, other: usize) -> Result<Wait, WaitCycle> {
        let Some(own) = own else { return Ok(Wait(None)) };
        let edge = (own, other);
        let mut waits = lock(&WAITS);
        if leads_to(&waits, edge.1, own) {
            return Err(WaitCycle);
        }
        waits.push(edge);
        Ok(Wait(Some(edge)))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(edge) = self.0 else { return };
        let mut waits = lock(&WAITS);
        if let Some(at) = waits.iter().position(|&wait| wait == edge) {
            waits.swap_remove(at);
        }
    }
}

/// Returns whether waits lead from one queue to another, or they are the same.
fn leads_to(waits: &[Edge], from: usize, to: usize) -> bool {
    let mut reached = vec![from];
    let mut looked_at = 0;
    while let Some(&queue) = reached.get(looked_at) {
        if queue == to {
            return true;
        }
        looked_at += 1;
        for &(_, next) in waits.iter().filter(|(waiting, _)| *waiting == queue) {
            if !reached.contains(&next) {
                reached.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_however_long_it_is() {
        let waits = [(1, 2), (2, 3), (2, 4), (4, 2), (5, 6)];
        assert!(leads_to(&waits, 7, 7), "a queue leads to itself");
        assert!(leads_to(&waits, 1, 3) && leads_to(&waits, 1, 4) && leads_to(&waits, 4, 3));
        assert!(!leads_to(&waits, 3, 1) && !leads_to(&waits, 1, 6) && !leads_to(&waits, 2, 1));
    }
}
