//! The epoch protocol on a machine with store buffers, where the frequent side has no fence at all.
//!
//! `loom` knows processor fences only. On Linux a participant's barrier is a compiler barrier, and the tick makes up for it: a
//! system call that drains the store buffers of all cores. This file explores every interleaving of the protocol's
//! steps on such a machine: x86's total store order, in which each core's stores reach memory in order, at any later
//! time. What needs proof here is what the page of the crate argues: the lags of the horizons and of the oldest snapshot, and that the
//! snapshot epoch needs none.
//!
//! Each fault is planted once, to see that the machine finds it.

use std::collections::HashSet;

/// Memory cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Cell {
    Global,
    Pin,
    Commit,
    Snapshot,
    /// 0: the object (or old version) is linked; 1: unlinked.
    Unlinked,
    /// 1 once the commit is installed.
    Installed,
    MemoryHorizon,
    SnapshotEpoch,
    OldestSnapshot,
    SnapshotHorizon,
}

const CELLS: usize = 10;
const CORES: usize = 3;
const REGISTERS: usize = 8;
/// Stores that a core can have under way. With a full buffer it waits.
const BUFFER: usize = 6;
const IDLE: u8 = u8::MAX;
const FIRST: u8 = 4;

type Register = usize;

/// One step of a core's program.
#[derive(Debug, Clone, Copy)]
enum Step {
    Load(Register, Cell),
    Store(Cell, Register),
    Set(Register, u8),
    /// Adds to a register.
    Add(Register, i8),
    /// The lesser of two registers goes into the first.
    Min(Register, Register),
    /// The greater of two registers goes into the first.
    Max(Register, Register),
    /// Drains all store buffers.
    Heavy,
    /// Goes back by so many steps when the registers differ.
    BackUnlessEqual(Register, Register, u8),
    /// Skips so many steps unless the first register is less than the second.
    SkipUnlessLess(Register, Register, u8),
    /// Skips so many steps unless the register holds the value.
    SkipUnless(Register, u8, u8),
    /// The object is read here: `Read(true)` begins, `Read(false)` ends.
    Read(bool),
    /// The object is reused here. It must be in nobody's hands, now or later.
    Reuse,
    /// Fails when the first register is less than the second.
    Check(Register, Register),
}

use Step::{
    Add, BackUnlessEqual, Check, Heavy, Load, Max, Min, Read, Reuse, Set, SkipUnless, SkipUnlessLess, Store,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Core {
    next: u8,
    registers: [u8; REGISTERS],
    /// Stores on their way to memory, the oldest first.
    buffer: [Option<(Cell, u8)>; BUFFER],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Machine {
    memory: [u8; CELLS],
    cores: [Core; CORES],
    being_read: bool,
    reused: bool,
}

impl Core {
    fn must_drain(&self) -> bool {
        self.buffer[BUFFER - 1].is_some()
    }

    fn store(&mut self, cell: Cell, value: u8) {
        let place = self.buffer.iter_mut().find(|place| place.is_none());
        *place.expect("a core with a full buffer waits") = Some((cell, value));
    }
}

impl Machine {
    fn new() -> Machine {
        let mut memory = [0; CELLS];
        memory[Cell::Global as usize] = FIRST;
        memory[Cell::SnapshotEpoch as usize] = FIRST;
        memory[Cell::SnapshotHorizon as usize] = FIRST;
        memory[Cell::MemoryHorizon as usize] = FIRST - 1;
        for cell in [Cell::Pin, Cell::Commit, Cell::Snapshot] {
            memory[cell as usize] = IDLE;
        }
        let core = Core { next: 0, registers: [0; REGISTERS], buffer: [None; BUFFER] };
        Machine { memory, cores: [core; CORES], being_read: false, reused: false }
    }

    /// Lets the oldest store of a core reach memory; `false` if there is none.
    fn drain_one(&mut self, core: usize) -> bool {
        let buffer = &mut self.cores[core].buffer;
        let Some((cell, value)) = buffer[0].take() else { return false };
        buffer.rotate_left(1);
        self.memory[cell as usize] = value;
        true
    }

    /// A core sees its own stores first.
    fn load(&self, core: usize, cell: Cell) -> u8 {
        let mut own = self.cores[core].buffer.iter().rev().flatten().filter(|(stored, _)| *stored == cell);
        own.next().map_or(self.memory[cell as usize], |&(_, value)| value)
    }

    /// Runs a core's next step. `Err` when it shows that the protocol is broken.
    fn run(&mut self, core: usize, step: Step) -> Result<(), Step> {
        let loaded = if let Load(_, cell) = step { self.load(core, cell) } else { 0 };
        self.cores[core].next += 1;
        let at = &mut self.cores[core];
        match step {
            Load(register, _) => at.registers[register] = loaded,
            Store(cell, register) => at.store(cell, at.registers[register]),
            Set(register, value) => at.registers[register] = value,
            Add(register, more) => at.registers[register] = at.registers[register].wrapping_add_signed(more),
            Min(one, other) => at.registers[one] = at.registers[one].min(at.registers[other]),
            Max(one, other) => at.registers[one] = at.registers[one].max(at.registers[other]),
            BackUnlessEqual(one, other, steps) if at.registers[one] != at.registers[other] => {
                at.next -= 1 + steps;
            }
            SkipUnlessLess(one, other, steps) if at.registers[one] >= at.registers[other] => at.next += steps,
            SkipUnless(register, value, steps) if at.registers[register] != value => at.next += steps,
            BackUnlessEqual(..) | SkipUnlessLess(..) | SkipUnless(..) => {}
            Check(one, other) if at.registers[one] < at.registers[other] => return Err(step),
            Check(..) => {}
            Read(_) if self.reused => return Err(step),
            Read(begins) => self.being_read = begins,
            Reuse if self.being_read => return Err(step),
            Reuse => self.reused = true,
            Heavy => (0..CORES).for_each(|core| while self.drain_one(core) {}),
        }
        Ok(())
    }
}

/// Explores everything that the cores may do. Returns the step that fails, if any order of things makes one fail.
fn explore(programs: [Vec<Step>; CORES]) -> Result<usize, Step> {
    let mut seen = HashSet::new();
    let mut open = vec![Machine::new()];
    while let Some(machine) = open.pop() {
        for (core, program) in programs.iter().enumerate() {
            let mut drained = machine;
            if drained.drain_one(core) && seen.insert(drained) {
                open.push(drained);
            }
            if let Some(&step) = program.get(usize::from(machine.cores[core].next))
                && !machine.cores[core].must_drain()
            {
                let mut stepped = machine;
                stepped.run(core, step)?;
                if seen.insert(stepped) {
                    open.push(stepped);
                }
            }
        }
    }
    Ok(seen.len())
}

/// What can be wrong with a tick.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    NoHeavyBarrier,
    /// The memory horizon is the least pin itself.
    MemoryHorizonDoesNotLag,
    /// The oldest snapshot follows from the new snapshot epoch.
    OldestSnapshotDoesNotLag,
    /// The snapshot horizon is the oldest snapshot.
    SnapshotHorizonDoesNotLag,
    /// The snapshot horizon does not wait for commits.
    SnapshotHorizonPassesCommits,
    /// The global epoch is stored behind the barrier.
    EpochAfterBarrier,
}

/// What a model looks at. Ticks leave out the rest, which would only multiply the states.
#[derive(Clone, Copy, PartialEq)]
enum Aspect {
    Memory,
    Snapshots,
}

/// Ticks as in `Epochs::advance`, with a snapshot interval of one epoch.
fn ticks(count: usize, aspect: Aspect, fault: Fault) -> Vec<Step> {
    const GLOBAL: Register = 0;
    const OLDEST: Register = 1;
    const SNAPSHOT: Register = 2;
    const MEMORY_HORIZON: Register = 3;
    const OLDEST_SNAPSHOT: Register = 4;
    const COMPLETE: Register = 5;
    /// The next snapshot horizon, and the epoch of the tick that has published it.
    const NEXT_HORIZON: Register = 6;
    const PUBLISHED_AT: Register = 7;

    let publish_global = [Add(GLOBAL, 1), Store(Cell::Global, GLOBAL)];
    let barrier: &[Step] = if fault == Fault::NoHeavyBarrier { &[] } else { &[Heavy] };
    let lag = if fault == Fault::MemoryHorizonDoesNotLag { 0 } else { -1 };
    let memory = [
        Load(OLDEST, Cell::Pin),
        Min(OLDEST, GLOBAL),
        Add(OLDEST, lag),
        Max(MEMORY_HORIZON, OLDEST),
        Store(Cell::MemoryHorizon, MEMORY_HORIZON),
    ];
    let oldest_snapshot = [
        Load(OLDEST, Cell::Snapshot),
        Min(OLDEST, SNAPSHOT),
        Max(OLDEST_SNAPSHOT, OLDEST),
        Store(Cell::OldestSnapshot, OLDEST_SNAPSHOT),
    ];
    let complete: &[Step] = match fault {
        Fault::SnapshotHorizonPassesCommits => &[Set(COMPLETE, IDLE)],
        _ => &[Load(COMPLETE, Cell::Commit), Min(COMPLETE, GLOBAL)],
    };
    let move_horizon: &[Step] = match fault {
        Fault::SnapshotHorizonDoesNotLag => &[Store(Cell::SnapshotHorizon, OLDEST_SNAPSHOT)],
        _ => &[
            SkipUnlessLess(PUBLISHED_AT, COMPLETE, 3),
            Store(Cell::SnapshotHorizon, NEXT_HORIZON),
            Max(NEXT_HORIZON, OLDEST_SNAPSHOT),
            Max(PUBLISHED_AT, GLOBAL),
        ],
    };
    let snapshot = [
        Load(OLDEST, Cell::Commit),
        Min(OLDEST, GLOBAL),
        Max(SNAPSHOT, OLDEST),
        Store(Cell::SnapshotEpoch, SNAPSHOT),
    ];
    let mut tick = Vec::new();
    if fault == Fault::EpochAfterBarrier {
        tick.extend(barrier);
        tick.extend(publish_global);
    } else {
        tick.extend(publish_global);
        tick.extend(barrier);
    }
    match (aspect, fault) {
        (Aspect::Memory, _) => tick.extend(memory),
        (Aspect::Snapshots, Fault::OldestSnapshotDoesNotLag) => {
            tick.extend(snapshot.iter().chain(&oldest_snapshot).chain(complete).chain(move_horizon));
        }
        (Aspect::Snapshots, _) => {
            tick.extend(oldest_snapshot.iter().chain(complete).chain(move_horizon).chain(&snapshot));
        }
    }
    let begin = [
        Set(GLOBAL, FIRST),
        Set(SNAPSHOT, FIRST),
        Set(MEMORY_HORIZON, FIRST - 1),
        Set(OLDEST_SNAPSHOT, FIRST),
        Set(NEXT_HORIZON, FIRST),
        Set(PUBLISHED_AT, FIRST),
    ];
    begin.into_iter().chain((0..count).flat_map(|_| tick.clone())).collect()
}

/// Unlinks the object, tags it and reuses it if the horizon has passed the tag.
fn retirer() -> Vec<Step> {
    vec![
        Set(0, 1),
        Store(Cell::Unlinked, 0),
        Load(1, Cell::Global),
        Load(2, Cell::MemoryHorizon),
        SkipUnlessLess(1, 2, 1),
        Reuse,
    ]
}

/// Pins, twice, and reads the object if it is linked.
fn reader() -> Vec<Step> {
    let once = [
        Load(0, Cell::Global),
        Store(Cell::Pin, 0),
        Load(1, Cell::Unlinked),
        SkipUnless(1, 0, 2),
        Read(true),
        Read(false),
        Set(2, IDLE),
        Store(Cell::Pin, 2),
    ];
    once.iter().chain(&once).copied().collect()
}

#[test]
fn a_reader_never_touches_reused_memory() {
    let states = |fault| explore([ticks(3, Aspect::Memory, fault), reader(), retirer()]);
    assert!(states(Fault::None).is_ok_and(|states| states > 10_000));
    assert!(states(Fault::NoHeavyBarrier).is_err());
    assert!(states(Fault::MemoryHorizonDoesNotLag).is_err());
}

/// Commits: publishes, reads the epoch of the commit, installs, withdraws.
fn committer() -> Vec<Step> {
    vec![
        Load(0, Cell::Global),
        Store(Cell::Commit, 0),
        Load(1, Cell::Global),
        Store(Cell::Installed, 1),
        Set(2, IDLE),
        Store(Cell::Commit, 2),
    ]
}

/// Reads a snapshot epoch, and then whether a commit of an earlier epoch becomes visible later.
fn snapshot_observer() -> Vec<Step> {
    vec![
        Load(0, Cell::SnapshotEpoch),
        // Not installed yet: it must be of no epoch below the snapshot when it comes.
        Load(1, Cell::Installed),
        SkipUnless(1, 0, 3),
        Load(1, Cell::Installed),
        SkipUnlessLess(3, 1, 1),
        Check(1, 0),
    ]
}

#[test]
fn a_snapshot_epoch_never_covers_an_incomplete_commit() {
    let states = |fault| explore([ticks(3, Aspect::Snapshots, fault), committer(), snapshot_observer()]);
    assert!(states(Fault::None).is_ok_and(|states| states > 10_000));
    assert!(states(Fault::NoHeavyBarrier).is_err());
    assert!(states(Fault::EpochAfterBarrier).is_err());
}

/// Pins a snapshot as in `Participant::pin_snapshot` and reads the old version if the snapshot shows it.
fn snapshot_reader() -> Vec<Step> {
    vec![
        Load(0, Cell::SnapshotEpoch),
        Store(Cell::Snapshot, 0),
        Load(1, Cell::SnapshotEpoch),
        BackUnlessEqual(0, 1, 3),
        Set(2, FIRST + 1),
        SkipUnlessLess(0, 2, 2),
        Read(true),
        Read(false),
        Set(3, IDLE),
        Store(Cell::Snapshot, 3),
    ]
}

/// Reuses the version that was superseded in the first epoch, if no snapshot shows it any more.
fn version_collector() -> Vec<Step> {
    vec![Set(0, FIRST), Load(1, Cell::SnapshotHorizon), SkipUnlessLess(0, 1, 1), Reuse]
}

#[test]
fn a_version_outlives_every_snapshot_that_shows_it() {
    let states =
        |fault| explore([ticks(3, Aspect::Snapshots, fault), snapshot_reader(), version_collector()]);
    assert!(states(Fault::None).is_ok_and(|states| states > 10_000));
    assert!(states(Fault::NoHeavyBarrier).is_err());
    assert!(states(Fault::OldestSnapshotDoesNotLag).is_err());
}

/// Commits, and looks meanwhile at the version that was superseded in the first epoch if a snapshot may need it.
fn version_renewer() -> Vec<Step> {
    vec![
        Load(0, Cell::Global),
        Store(Cell::Commit, 0),
        Load(1, Cell::OldestSnapshot),
        Set(2, FIRST + 1),
        SkipUnlessLess(1, 2, 2),
        Read(true),
        Read(false),
        Set(3, IDLE),
        Store(Cell::Commit, 3),
    ]
}

#[test]
fn a_version_outlives_every_commit_that_looks_at_it() {
    let states =
        |fault| explore([ticks(3, Aspect::Snapshots, fault), version_renewer(), version_collector()]);
    assert!(states(Fault::None).is_ok_and(|states| states > 10_000));
    assert!(states(Fault::NoHeavyBarrier).is_err());
    assert!(states(Fault::SnapshotHorizonDoesNotLag).is_err());
    assert!(states(Fault::SnapshotHorizonPassesCommits).is_err());
}
