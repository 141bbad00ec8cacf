//! What a transaction needs, and how many of them workers get done.

use super::hardware::Hardware;
use super::mva;

/// What a transaction needs of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Nanoseconds that it takes while no other worker is there.
    pub alone_ns: f64,
    /// Lines that it gets from memory.
    pub memory_lines: f64,
    /// Lines that it gets from other cores when there are very many of them, but for the hot ones.
    pub fetched_lines: f64,
    /// Lines that all workers write again and again.
    pub hot_lines: usize,
    /// Times that it has to get one of them.
    pub hot_fetches: f64,
}

impl Demand {
    /// Transactions a second that `workers` get done. `crowding` is by how much getting a hot line takes longer while others want it, too.
    ///
    /// ```text
    /// thinking = alone + memory lines * farther memory + fetched lines * transfer * (n - 1) / n
    /// demand of a hot line = fetches / hot lines * crowding * transfer * (n - 1) / n
    /// ```
    /// The last of `n` workers that had a line was another one in `(n - 1) / n` of all cases.
    pub fn throughput(&self, workers: usize, hardware: &Hardware, crowding: f64) -> f64 {
        let others = (workers - 1) as f64 / workers as f64;
        let transfer_ns = hardware.transfer_ns(workers) * others;
        let thinking_ns = self.alone_ns
            + self.memory_lines * hardware.farther_memory_ns(workers)
            + self.fetched_lines * transfer_ns;
        let each_ns = self.hot_fetches / self.hot_lines.max(1) as f64 * crowding * transfer_ns;
        mva::throughput(workers, thinking_ns, &vec![each_ns; self.hot_lines]) * 1e9
    }

    /// The crowding with which `workers` get `throughput` transactions a second done, between 1 and 100.
    pub fn crowding_for(&self, workers: usize, throughput: f64, hardware: &Hardware) -> f64 {
        let (mut least, mut most) = (1.0, 100.0);
        for _ in 0..60 {
            let middle = f64::midpoint(least, most);
            if self.throughput(workers, hardware, middle) > throughput {
                least = middle
            } else {
                most = middle
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand =
        Demand { alone_ns: 1000.0, memory_lines: 5.0, fetched_lines: 0.0, hot_lines: 1, hot_fetches: 1.0 };

    #[test]
    fn one_worker_pays_for_nothing_but_its_own_work() {
        assert!((DEMAND.throughput(1, &Hardware::PAPER, 1.0) - 1e6).abs() < 1e-3);
    }

    #[test]
    fn a_hot_line_bounds_what_any_number_of_workers_get_done() {
        let hardware = Hardware::one_socket(100.0);
        let most = DEMAND.throughput(5_000, &hardware, 1.0);
        assert!((9.9e6..10.01e6).contains(&most), "{most}");
        let alone = Demand { hot_lines: 0, hot_fetches: 0.0, ..DEMAND };
        assert!((alone.throughput(64, &hardware, 1.0) - 64e6).abs() < 1.0);
    }

    #[test]
    fn crowding_is_found_again() {
        let seen = DEMAND.throughput(32, &Hardware::PAPER, 2.5);
        assert!((DEMAND.crowding_for(32, seen, &Hardware::PAPER) - 2.5).abs() < 1e-6);
    }
}
