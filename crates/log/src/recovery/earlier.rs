//! A log file of an earlier generation that the manifest names.

use super::corruption::{Finding, Flaw};
use super::log_file::LogFile;
use super::scan::Scan;
use crate::format::{BlockEnd, EarlierFile};

/// A log file of an earlier generation.
#[derive(Debug)]
pub(super) struct Earlier {
    pub(super) entry: EarlierFile,
    pub(super) file: LogFile,
}

impl Earlier {
    /// What is wrong with it, if anything is.
    pub(super) fn flaw(&self) -> Option<Flaw> {
        let flaw = |offset, finding| Flaw { file: self.file.path.clone(), offset, finding };
        if let Err(finding) = &self.file.header {
            return Some(flaw(Some(0), finding.clone()));
        }
        let at_stop =
            |scan: &Scan| flaw(Some(scan.valid_end), scan.stopped.map_or(Finding::NoEnd, Finding::Block));
        match (self.entry.valid_bytes, &self.file.scan) {
            (Some(bytes), _) if self.file.bytes < bytes => Some(flaw(Some(self.file.bytes), Finding::NoEnd)),
            (Some(bytes), Some(scan)) if scan.valid_end < bytes => Some(at_stop(scan)),
            (None, Some(scan)) if scan.end != BlockEnd::Seal => Some(at_stop(scan)),
            _ => None,
        }
    }

    /// What can be used of the file: all of it, or what lies before its damage.
    pub(super) fn usable(&self) -> Option<EarlierFile> {
        if self.file.header.is_err() {
            return None;
        }
        let valid_bytes = match (&self.file.scan, self.flaw()) {
            (Some(scan), Some(_)) => Some(scan.valid_end),
            _ => self.entry.valid_bytes,
        };
        Some(EarlierFile { valid_bytes, ..self.entry.clone() })
    }
}
