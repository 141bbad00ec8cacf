//! What a machine takes to move a cache line.

/// A machine, its workers on cores in order: the first socket is filled first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hardware {
    /// Cores of a socket.
    pub cores_per_socket: usize,
    /// Nanoseconds until a line that another core of the socket has changed is here.
    pub transfer_in_socket_ns: f64,
    /// The same from a core of another socket.
    pub transfer_between_sockets_ns: f64,
    /// How many nanoseconds longer a line from another socket's memory takes than one from the own.
    pub remote_memory_ns: f64,
}

/// A core's cycle at 2.13 GHz.
const CYCLE_NS: f64 = 1.0 / 2.13;

impl Hardware {
    /// The machine of Silo §5.1: four Xeon E7-4830 of eight cores.
    ///
    /// 7-cpu.com measured a processor of this kind (Westmere): 40 cycles for the cache that the cores of a socket share, 40 cycles and 67 ns for
    /// the own memory, 40 cycles and 105 ns for that of the other socket. A line that another core has changed takes that cache's time
    /// twice, there and on to the core; one in another socket takes as long as that socket's memory.
    pub const PAPER: Self = Self {
        cores_per_socket: 8,
        transfer_in_socket_ns: 2.0 * 40.0 * CYCLE_NS,
        transfer_between_sockets_ns: 40.0 * CYCLE_NS + 105.0,
        remote_memory_ns: 105.0 - 67.0,
    };

    /// One socket with cores that are all equally far from each other.
    pub fn one_socket(transfer_ns: f64) -> Self {
        Self {
            cores_per_socket: usize::MAX,
            transfer_in_socket_ns: transfer_ns,
            transfer_between_sockets_ns: transfer_ns,
            remote_memory_ns: 0.0,
        }
    }

    /// Nanoseconds until a line is here that one of the other workers had last, each of them with equal chances.
    pub fn transfer_ns(&self, workers: usize) -> f64 {
        let pairs = (workers * workers.saturating_sub(1)).max(1) as f64;
        let in_socket: f64 = self.sockets(workers).map(|here| (here * (here - 1)) as f64).sum();
        let share = in_socket / pairs;
        share * self.transfer_in_socket_ns + (1.0 - share) * self.transfer_between_sockets_ns
    }

    /// How many nanoseconds longer a line of memory takes than with one worker. Every worker has brought its part of the memory.
    pub fn farther_memory_ns(&self, workers: usize) -> f64 {
        let own: f64 = self.sockets(workers).map(|here| (here as f64 / workers as f64).powi(2)).sum();
        (1.0 - own) * self.remote_memory_ns
    }

    /// Workers of each socket.
    fn sockets(&self, workers: usize) -> impl Iterator<Item = usize> {
        let size = self.cores_per_socket;
        (0..workers.div_ceil(size)).map(move |socket| size.min(workers - socket * size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARDWARE: Hardware = Hardware {
        cores_per_socket: 8,
        transfer_in_socket_ns: 10.0,
        transfer_between_sockets_ns: 110.0,
        remote_memory_ns: 40.0,
    };

    #[test]
    fn lines_stay_in_the_first_socket_as_long_as_it_has_cores() {
        assert_eq!((HARDWARE.transfer_ns(8), HARDWARE.farther_memory_ns(8)), (10.0, 0.0));
        assert!(HARDWARE.transfer_ns(9) > 10.0 && HARDWARE.farther_memory_ns(9) > 0.0);
    }

    #[test]
    fn lines_come_from_workers_and_sockets_in_proportion() {
        // Of the 31 others 7 are in the socket; a quarter of the memory is.
        assert!((HARDWARE.transfer_ns(32) - (110.0 - 100.0 * 7.0 / 31.0)).abs() < 1e-9);
        assert!((HARDWARE.farther_memory_ns(32) - 30.0).abs() < 1e-9);
        // Eight and four: 68 of 132 pairs; 4/9 and 1/9 of the memory.
        assert!((HARDWARE.transfer_ns(12) - (110.0 - 100.0 * 68.0 / 132.0)).abs() < 1e-9);
        assert!((HARDWARE.farther_memory_ns(12) - 40.0 * 4.0 / 9.0).abs() < 1e-9);
    }
}
