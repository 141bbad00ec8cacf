//! What the disk itself does, measured in the directory of a run just before it: the yardstick of everything durable.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::driver::Failure;

/// How fast a disk writes and syncs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DiskReport {
    /// Milliseconds of a write of 4 KiB with an fdatasync; the median.
    pub sync_4_kib_ms: f64,
    /// Millions of bytes a second that are written and synced in large pieces.
    pub sequential_mb_per_second: f64,
}

/// Each of the two figures is measured for so long.
const TIME: Duration = Duration::from_millis(250);
const LARGE_BYTES: usize = 4 << 20;
const SMALL_BYTES: usize = 4 << 10;

impl DiskReport {
    /// Measures in `directory`, for half a second.
    ///
    /// # Errors
    /// [`Failure::Io`].
    pub(crate) fn measure(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("ensilo-disk-measurement");
        let measured = measure_in(&path);
        // A file that could not be made need not be removed.
        let _ = std::fs::remove_file(&path);
        measured.map_err(|error| Failure::Io(format!("cannot write to {}", directory.display()), error))
    }
}

fn measure_in(path: &Path) -> io::Result<DiskReport> {
    let file = File::create(path)?;
    let piece = vec![0xa5; LARGE_BYTES];
    let (start, mut len) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        write_and_sync(&file, &piece, len)?;
        len += LARGE_BYTES as u64;
    }
    let sequential_mb_per_second = len as f64 / 1e6 / start.elapsed().as_secs_f64();
    // As a log does, over what was allocated before.
    file.sync_all()?;
    let (start, mut offset, mut times) = (Instant::now(), 0, Vec::new());
    while start.elapsed() < TIME {
        let began = Instant::now();
        write_and_sync(&file, &piece[..SMALL_BYTES], offset)?;
        times.push(began.elapsed());
        offset = (offset + SMALL_BYTES as u64) % len;
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(DiskReport { sync_4_kib_ms: median.as_secs_f64() * 1e3, sequential_mb_per_second })
}

#[cfg(unix)]
fn write_and_sync(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)?;
    file.sync_data()
}

#[cfg(not(unix))]
fn write_and_sync(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_figures_and_is_left_as_it_was() {
        let directory = std::env::temp_dir().join(format!("ensilo-disk-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let report = DiskReport::measure(&directory).unwrap();
        assert!(report.sync_4_kib_ms > 0.0 && report.sequential_mb_per_second > 0.0, "{report:?}");
        std::fs::remove_dir(&directory).unwrap();
        assert!(matches!(DiskReport::measure(&directory), Err(Failure::Io(..))));
    }
}
