//! The epoch protocol on a machine with store buffers, where the frequent side has no fence at all.
//!
//! `loom` knows processor fences only. On Linux a participant's barrier is a compiler barrier, and the tick makes up for it: a
//! system call that drains the store buffers of all cores. This file explores every interleaving of the protocol's
//! steps on such a machine: x86's total store order, in which each core's stores reach memory in order, at any later
//! time. What needs proof here is what the page of the crate argues: the lag of the memory horizon, and that the others need none.
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
    SnapshotHorizon,
}

const CELLS: usize = 9;
const REGISTERS: usize = 6;
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
    BackUnlessEqual(Register, Register, usize),
    /// Skips so many steps unless the first register is less than the second.
    SkipUnlessLess(Register, Register, usize),
    /// Skips so many steps unless the register holds the value.
    SkipUnless(Register, u8, usize),
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

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Core {
    next: usize,
    registers: [u8; REGISTERS],
    /// Stores on their way to memory, the oldest first.
    buffer: Vec<(Cell, u8)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Machine {
    memory: [u8; CELLS],
    cores: Vec<Core>,
    being_read: bool,
    reused: bool,
}

impl Machine {
    fn new(cores: usize) -> Machine {
        let mut memory = [0; CELLS];
        memory[Cell::Global as usize] = FIRST;
        memory[Cell::SnapshotEpoch as usize] = FIRST;
        memory[Cell::SnapshotHorizon as usize] = FIRST;
        memory[Cell::MemoryHorizon as usize] = FIRST - 1;
        for cell in [Cell::Pin, Cell::Commit, Cell::Snapshot] {
            memory[cell as usize] = IDLE;
        }
        let core = Core { next: 0, registers: [0; REGISTERS], buffer: Vec::new() };
        Machine { memory, cores: vec![core; cores], being_read: false, reused: false }
    }

    /// Lets the oldest store of a core reach memory.
    fn drain_one(&mut self, core: usize) {
        let (cell, value) = self.cores[core].buffer.remove(0);
        self.memory[cell as usize] = value;
    }

    /// A core sees its own stores first.
    fn load(&self, core: usize, cell: Cell) -> u8 {
        let own = self.cores[core].buffer.iter().rev().find(|(stored, _)| *stored == cell);
        own.map_or(self.memory[cell as usize], |&(_, value)| value)
    }

    /// Runs a core's next step. `Err` when it shows that the protocol is broken.
    fn run(&mut self, core: usize, step: Step) -> Result<(), Step> {
        let loaded = if let Load(_, cell) = step { self.load(core, cell) } else { 0 };
        let at = self.cores[core].next;
        self.cores[core].next = at + 1;
        let Core { next, registers, buffer } = &mut self.cores[core];
        match step {
            Load(register, _) => registers[register] = loaded,
            Store(cell, register) => buffer.push((cell, registers[register])),
            Set(register, value) => registers[register] = value,
            Add(register, more) => registers[register] = registers[register].wrapping_add_signed(more),
            Min(one, other) => registers[one] = registers[one].min(registers[other]),
            Max(one, other) => registers[one] = registers[one].max(registers[other]),
            BackUnlessEqual(one, other, steps) if registers[one] != registers[other] => *next = at - steps,
            SkipUnlessLess(one, other, steps) if registers[one] >= registers[other] => *next += steps,
            SkipUnless(register, value, steps) if registers[register] != value => *next += steps,
            BackUnlessEqual(..) | SkipUnlessLess(..) | SkipUnless(..) => {}
            Check(one, other) if registers[one] < registers[other] => return Err(step),
            Check(..) => {}
            Read(_) if self.reused => return Err(step),
            Read(begins) => self.being_read = begins,
            Reuse if self.being_read => return Err(step),
            Reuse => self.reused = true,
            Heavy => {
                for core in 0..self.cores.len() {
                    while !self.cores[core].buffer.is_empty() {
                        self.drain_one(core);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Explores everything that the cores may do. Returns the step that fails, if any order of things makes one fail.
fn explore(programs: &[Vec<Step>]) -> Result<usize, Step> {
    let mut seen = HashSet::new();
    let mut open = vec![Machine::new(programs.len())];
    while let Some(machine) = open.pop() {
        if !seen.insert(machine.clone()) {
            continue;
        }
        for (core, program) in programs.iter().enumerate() {
            if !machine.cores[core].buffer.is_empty() {
                let mut drained = machine.clone();
                drained.drain_one(core);
                open.push(drained);
            }
            if let Some(&step) = program.get(machine.cores[core].next) {
                let mut stepped = machine.clone();
                stepped.run(core, step)?;
                open.push(stepped);
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
    /// The snapshot horizon follows from the new snapshot epoch.
    SnapshotHorizonDoesNotLag,
    /// The global epoch is stored behind the barrier.
    EpochAfterBarrier,
}

/// Ticks as in `Epochs::advance`, with a snapshot interval of one epoch.
fn ticks(count: usize, fault: Fault) -> Vec<Step> {
    const GLOBAL: Register = 0;
    const OLDEST: Register = 1;
    const SNAPSHOT: Register = 2;
    const MEMORY_HORIZON: Register = 3;
    const SNAPSHOT_HORIZON: Register = 4;

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
    let snapshot_horizon = [
        Load(OLDEST, Cell::Snapshot),
        Min(OLDEST, SNAPSHOT),
        Max(SNAPSHOT_HORIZON, OLDEST),
        Store(Cell::SnapshotHorizon, SNAPSHOT_HORIZON),
    ];
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
    tick.extend(memory);
    if fault == Fault::SnapshotHorizonDoesNotLag {
        tick.extend(snapshot.iter().chain(&snapshot_horizon));
    } else {
        tick.extend(snapshot_horizon.iter().chain(&snapshot));
    }
    let begin = [
        Set(GLOBAL, FIRST),
        Set(SNAPSHOT, FIRST),
        Set(MEMORY_HORIZON, FIRST - 1),
        Set(SNAPSHOT_HORIZON, FIRST),
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
    let states = |fault| explore(&[ticks(3, fault), reader(), retirer()]);
    assert!(states(Fault::None).is_ok_and(|states| states > 1000));
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
    let states = |fault| explore(&[ticks(3, fault), committer(), snapshot_observer()]);
    assert!(states(Fault::None).is_ok_and(|states| states > 1000));
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
    let states = |fault| explore(&[ticks(3, fault), snapshot_reader(), version_collector()]);
    assert!(states(Fault::None).is_ok_and(|states| states > 1000));
    assert!(states(Fault::NoHeavyBarrier).is_err());
    assert!(states(Fault::SnapshotHorizonDoesNotLag).is_err());
}
