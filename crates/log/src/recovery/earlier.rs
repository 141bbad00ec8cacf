//! A log file of an earlier generation that the manifest names.

use super::corruption::{CorruptPlace, CorruptionKind};
use super::log_file::LogFile;
use super::scan::LogFileScan;
use crate::format::{BlockEnd, EarlierFile};

/// A log file of an earlier generation.
#[derive(Debug)]
pub(super) struct EarlierLogFile {
    pub(super) entry: EarlierFile,
    pub(super) file: LogFile,
}

impl EarlierLogFile {
    /// Returns what is wrong with it, if anything is.
    pub(super) fn corrupt_place(&self) -> Option<CorruptPlace> {
        let corrupt_place = |offset, kind| CorruptPlace::new(&self.file.path, offset, kind);
        if let Err(kind) = &self.file.header {
            return Some(corrupt_place(Some(0), kind.clone()));
        }
        let at_stop = |scan: &LogFileScan| {
            corrupt_place(
                Some(scan.valid_end),
                scan.stopped.map_or(CorruptionKind::NoEnd, CorruptionKind::Block),
            )
        };
        match (self.entry.valid_bytes, &self.file.scan) {
            (Some(bytes), _) if self.file.bytes < bytes => {
                Some(corrupt_place(Some(self.file.bytes), CorruptionKind::NoEnd))
            }
            (Some(bytes), Some(scan)) if scan.valid_end < bytes => Some(at_stop(scan)),
            (None, Some(scan)) if scan.end != BlockEnd::Seal => Some(at_stop(scan)),
            _ => None,
        }
    }

    /// Returns what can be used of the file: all of it, or what lies before its damage.
    pub(super) fn usable(&self) -> Option<EarlierFile> {
        if self.file.header.is_err() {
            return None;
        }
        let valid_bytes = match (&self.file.scan, self.corrupt_place()) {
            (Some(scan), Some(_)) => Some(scan.valid_end),
            _ => self.entry.valid_bytes,
        };
        Some(EarlierFile { valid_bytes, ..self.entry.clone() })
    }
}
