//! The machine and the build that a figure was measured with.

use std::fs;

use serde::Serialize;

/// The machine, as its operating system describes it.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Bytes of main memory, 0 if unknown.
    pub memory_bytes: u64,
    /// The operating system and its kernel.
    pub os: String,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self {
            cpu: value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: value_of("/proc/meminfo", "MemTotal")
                .and_then(|text| kibibytes(&text))
                .unwrap_or(0),
            os: operating_system(),
        }
    }
}

/// Bytes of memory that a program may take now without driving others out, 0 if unknown.
pub fn free_memory_bytes() -> u64 {
    value_of("/proc/meminfo", "MemAvailable").and_then(|text| kibibytes(&text)).unwrap_or(0)
}

/// The program that measured.
#[derive(Debug, Clone, Serialize)]
pub struct Build {
    /// Ensilo's version.
    pub version: &'static str,
    /// The Cargo profile, `release` or `debug`.
    pub profile: &'static str,
    /// The compiler.
    pub rustc: &'static str,
    /// The target it compiled for.
    pub target: &'static str,
    /// Whether debug assertions are in.
    pub debug_assertions: bool,
}

impl Build {
    /// This program.
    pub fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            profile: env!("ENSILO_BUILD_PROFILE"),
            rustc: env!("ENSILO_BUILD_RUSTC"),
            target: env!("ENSILO_BUILD_TARGET"),
            debug_assertions: cfg!(debug_assertions),
        }
    }
}

/// The value of the first line `key : value` of a file of the operating system.
fn value_of(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// Bytes of a text like `123 kB`.
fn kibibytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(target_os = "linux")]
fn operating_system() -> String {
    let kernel = rustix::system::uname();
    format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy())
}

#[cfg(not(target_os = "linux"))]
fn operating_system() -> String {
    std::env::consts::OS.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_a_core() {
        let machine = Machine::this();
        assert!(!machine.cpu.is_empty() && machine.cores > 0 && !machine.os.is_empty());
    }

    #[test]
    fn kibibytes_are_read_with_their_unit() {
        assert_eq!(kibibytes("12 kB"), Some(12_288));
        assert_eq!(kibibytes("many kB"), None);
    }
}
