//! Engines that take turns on one directory: each goes on where another one has ended.

use ensilo::Silo;
use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::two_phase_locking::TwoPhaseLocking;

type SnapshotErmia = Ermia<SnapshotIsolation>;

mod crash_points {
    use ensilo_crash::environment::seed_or;
    use ensilo_crash::serial::History;
    use ensilo_test_disk::SimulatedDisk;

    use super::*;
    use crate::lives::life;

    #[test]
    fn each_engine_goes_on_where_another_one_lost_its_power() {
        for seed in 4..6 {
            let seed = seed_or(1) + seed;
            let (mut disk, mut history) = (SimulatedDisk::new(), History::default());
            for number in 0..6 {
                let life = match number % 4 {
                    0 => life::<Silo, Ermia>,
                    1 => life::<Ermia, TwoPhaseLocking>,
                    2 => life::<SnapshotErmia, Ermia>,
                    _ => life::<TwoPhaseLocking, Silo>,
                };
                disk = life(disk, &mut history, (seed, number), 100, 15);
            }
        }
    }
}

mod kill {
    use ensilo_crash::victim::Victim;

    use super::*;
    use crate::kills::{cycles_or, survive_kills};

    #[test]
    fn what_one_engine_acknowledged_survives_kills_and_the_other_engine() {
        let victims = [
            Victim::of::<Silo>(),
            Victim::of::<Ermia>(),
            Victim::of::<SnapshotErmia>(),
            Victim::of::<TwoPhaseLocking>(),
        ];
        survive_kills("in-turn", &victims, cycles_or(8));
    }
}
