//! Where the runs of an experiment come from: kept beside them, so that a reader of a directory of results needs nothing else.

use std::sync::LazyLock;

use ensilo_bench::report::{Build, Machine};
use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use crate::sizes::Sizes;

/// The sizes, the machine, the program, and the commands that were given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Provenance {
    /// What the experiment's description follows from.
    pub sizes: Sizes,
    /// Runs of another origin are not of it.
    pub origin: Origin,
    /// The machine in words.
    pub machine: String,
    /// The program in words.
    pub program: String,
    /// The commands of the user that made runs, in order.
    pub commands: Vec<String>,
}

impl Provenance {
    /// Runs of this program in these sizes on `machine`, before any command.
    pub(crate) fn new(sizes: Sizes, machine: &Machine, origin: Origin) -> Self {
        let (machine, program) = (machine_in_words(machine), program_in_words(&origin));
        Self { sizes, origin, machine, program, commands: Vec::new() }
    }

    /// Words and what they are, for people; `measured` is from when to when the runs were made.
    pub(crate) fn facts(&self, measured: &str) -> Vec<(&'static str, String)> {
        vec![
            ("machine", self.machine.clone()),
            ("program", self.program.clone()),
            ("sizes", self.sizes.to_string()),
            ("measured", measured.to_owned()),
            ("command", self.commands.join("\n")),
        ]
    }
}

/// A machine: processor, number of processors, memory, operating system.
pub(crate) fn machine_in_words(machine: &Machine) -> String {
    let Machine { cpu, cores, memory_bytes, os } = machine;
    let gibibytes = *memory_bytes as f64 / f64::from(1 << 30);
    format!("{cpu}, {cores} processors, {gibibytes:.1} GiB, {os}")
}

/// How many processors a machine has, by its words of [`machine_in_words`].
pub(crate) fn processors_in(machine: &str) -> Option<usize> {
    machine.rsplit(", ").find_map(|part| part.strip_suffix(" processors")?.parse().ok())
}

/// The program that runs, from the file of `origin`: version, profile, compiler, target, checksum.
pub(crate) fn program_in_words(origin: &Origin) -> String {
    let Build { version, profile, rustc, target, .. } = Build::this();
    format!("ensilo {version}, {profile}, {rustc}, {target} (checksum {})", origin.program)
}

/// The program that runs, as [`program_in_words`] has it.
pub(crate) fn this_program_in_words() -> &'static str {
    static WORDS: LazyLock<String> = LazyLock::new(|| {
        let origin = Origin::of_this_program();
        origin.map_or_else(|_| "a program whose file is gone".to_owned(), |it| program_in_words(&it))
    });
    &WORDS
}

/// The time, to the second, in UTC.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// From the first to the last of these times; empty if there are none.
pub(crate) fn from_to<'t>(times: impl Iterator<Item = &'t str> + Clone) -> String {
    let times = times.filter(|time| !time.is_empty());
    match (times.clone().min(), times.max()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(only), _) => only.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_for_a_machine_have_its_processors() {
        let machine = |cpu: &str| Machine {
            cpu: cpu.to_owned(),
            cores: 12,
            memory_bytes: 1 << 34,
            os: "Linux, 6.1".to_owned(),
        };
        let read = |cpu: &str| processors_in(&machine_in_words(&machine(cpu)));
        assert_eq!((read("some CPU"), read("two, 2 processors")), (Some(12), Some(12)));
        assert_eq!((processors_in(""), processors_in("a machine, many processors")), (None, None));
    }

    #[test]
    fn times_are_shown_from_the_first_to_the_last() {
        let shown = |times: &[&'static str]| from_to(times.iter().copied());
        assert_eq!((shown(&[]), shown(&["", "b"])), (String::new(), "b".to_owned()));
        assert_eq!(shown(&["b", "a", "c"]), "a to c");
    }
}
