//! Which program measured, and on which machine.

use std::fs;
use std::path::{Path, PathBuf};

use ensilo_bench::report::Machine;
use serde::{Deserialize, Serialize};

use crate::error::FiguresError;

/// What measured: results of different origins are not mixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// A checksum of the program's file.
    pub program: String,
    /// The processor's name, the number of processors, and the operating system.
    pub machine: String,
}

impl Origin {
    /// The program that runs, on this machine.
    ///
    /// # Errors
    /// [`FiguresError::File`] if the program's file is not there any more.
    pub fn of_this_program() -> Result<Self, FiguresError> {
        Self::of(&this_program()?, &Machine::this())
    }

    /// The program at `path` on `machine`.
    ///
    /// # Errors
    /// [`FiguresError::File`] if the program cannot be read.
    pub fn of(path: &Path, machine: &Machine) -> Result<Self, FiguresError> {
        let bytes = fs::read(path).map_err(FiguresError::file(path))?;
        let checksum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, &bytes);
        Ok(Self {
            program: format!("{checksum:016x}"),
            machine: format!("{}, {} processors, {}", machine.cpu, machine.cores, machine.os),
        })
    }
}

/// The file of the program that runs.
pub(crate) fn this_program() -> Result<PathBuf, FiguresError> {
    std::env::current_exe().map_err(FiguresError::file(Path::new("the program")))
}
