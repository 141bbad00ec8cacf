//! What the disk itself does, the yardstick of everything durable: measured in the directory of a run just before it, or by itself.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use ensilo::disk::{Disk, RealDisk};
use serde::Serialize;

use crate::driver::{Failure, Interrupt, Latencies};

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
/// Writes of [`SyncedWrites`] go round over so many pages.
const PAGES: u64 = 1024;
const FILE_NAME: &str = "ensilo-disk-measurement";

impl DiskReport {
    /// Measures in `directory`, for half a second.
    ///
    /// # Errors
    /// [`Failure::Io`].
    pub(crate) fn measure(directory: &Path) -> Result<Self, Failure> {
        in_new_file(directory, measure_in)
    }
}

/// One client's writes of 4 KiB, each with an fdatasync, over space that was written before, past the page cache where the system allows
/// that: the least that an answer from disk can take.
#[derive(Debug, Clone)]
pub struct SyncedWrites {
    /// Seconds that were counted; fewer than asked for after an interrupt.
    pub seconds: f64,
    /// How long each took.
    pub latencies: Latencies,
}

/// A page of memory that begins where the system wants one that it writes past its cache.
#[repr(align(4096))]
struct AlignedPage([u8; SMALL_BYTES]);

impl SyncedWrites {
    /// Measures in `directory` for about the time `measured`, after `warmup`.
    ///
    /// # Errors
    /// [`Failure::Io`].
    pub fn measure(
        directory: &Path,
        warmup: Duration,
        measured: Duration,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        in_new_file(directory, |path| Self::measure_in(path, warmup, measured, interrupt))
    }

    fn measure_in(
        path: &Path,
        warmup: Duration,
        measured: Duration,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let page = Box::new(AlignedPage([0xa5; SMALL_BYTES]));
        let file = RealDisk.create(path, PAGES * SMALL_BYTES as u64)?;
        let offsets = || (0..PAGES).map(|number| number * SMALL_BYTES as u64);
        offsets().try_for_each(|offset| file.write_at(offset, &page.0))?;
        file.sync_all()?;
        let (mut latencies, mut began) = (Latencies::new(), Instant::now());
        let (first, last) = (began + warmup, began + warmup + measured);
        let mut counted_since = None;
        for offset in offsets().cycle() {
            file.write_at(offset, &page.0)?;
            file.sync_data()?;
            let ended = Instant::now();
            if began >= first {
                counted_since.get_or_insert(began);
                latencies.record(u64::try_from((ended - began).as_nanos()).unwrap_or(u64::MAX));
            }
            began = ended;
            if ended >= last && counted_since.is_some() || interrupt.is_raised() {
                break;
            }
        }
        let seconds = counted_since.map_or(0.0, |since| (began - since).as_secs_f64());
        Ok(Self { seconds, latencies })
    }
}

/// What `measure` finds with a file of its own in `directory`, which is removed.
fn in_new_file<T>(directory: &Path, measure: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, Failure> {
    let path = directory.join(FILE_NAME);
    let measured = measure(&path);
    // A file that could not be made need not be removed.
    let _ = std::fs::remove_file(&path);
    measured.map_err(|error| Failure::Io(format!("cannot write to {}", directory.display()), error))
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
    fn synced_writes_are_counted_for_the_time_that_was_asked_for() {
        let directory = std::env::temp_dir().join(format!("ensilo-disk-synced-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let time = Duration::from_millis(20);
        let measure = |interrupt: &Interrupt| SyncedWrites::measure(&directory, time, time, interrupt);
        let writes = measure(&Interrupt::new()).unwrap();
        assert!(writes.latencies.count() > 0 && writes.seconds > 0.0, "{writes:?}");
        assert!(writes.latencies.quantile_ns(0.5) > 0);
        let interrupt = Interrupt::new();
        interrupt.raise();
        assert_eq!(measure(&interrupt).unwrap().latencies.count(), 0);
        std::fs::remove_dir(&directory).unwrap();
        assert!(matches!(measure(&Interrupt::new()), Err(Failure::Io(..))));
    }

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
