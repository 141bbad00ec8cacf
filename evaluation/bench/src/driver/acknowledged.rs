//! Counts of what was acknowledged as stored, kept in a file that outlives the process: what a crash must not lose.
//!
//! # Layout
//! A slot for each worker, one after the other: for each transaction type the effects that were acknowledged, 64 bits in the machine's
//! order.
//!
//! # Crash
//! A worker writes its slot after it has seen that the epoch of what it counts is durable. So whenever the process is killed the file
//! holds no more than was acknowledged. (It does not outlive the machine: nothing is synced.)

use std::fs::File;
use std::io;
use std::path::Path;

use super::failure::Failure;

const COUNT_BYTES: usize = size_of::<u64>();

/// One worker's slot.
pub(super) struct Acknowledged<'a> {
    file: &'a File,
    offset: u64,
    counts: Vec<u64>,
    /// The counts as they are in the file, or will be.
    bytes: Vec<u8>,
    is_changed: bool,
}

impl<'a> Acknowledged<'a> {
    pub(super) fn new(file: &'a File, worker: usize, types: usize) -> Self {
        let len = types * COUNT_BYTES;
        Acknowledged {
            file,
            offset: (worker * len) as u64,
            counts: vec![0; types],
            bytes: vec![0; len],
            is_changed: false,
        }
    }

    #[inline]
    pub(super) fn count(&mut self, transaction: usize, effects: u16) {
        self.counts[transaction] += u64::from(effects);
        self.is_changed = true;
    }

    /// Puts what was counted into the file.
    pub(super) fn write(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        for (bytes, count) in self.bytes.chunks_exact_mut(COUNT_BYTES).zip(&self.counts) {
            bytes.copy_from_slice(&count.to_ne_bytes());
        }
        write_at(self.file, &self.bytes, self.offset)
            .map_err(|error| Failure::Io("cannot note down what is acknowledged".to_owned(), error))
    }
}

/// By transaction type, what all workers together had acknowledged.
///
/// # Errors
/// What reading the file fails with.
pub(crate) fn read_acknowledged(path: &Path, types: usize) -> io::Result<Vec<u64>> {
    let mut sums = vec![0; types];
    for slot in std::fs::read(path)?.chunks(types * COUNT_BYTES) {
        for (sum, bytes) in sums.iter_mut().zip(slot.chunks_exact(COUNT_BYTES)) {
            *sum += u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
    }
    Ok(sums)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn write_at(_file: &File, _bytes: &[u8], _offset: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_workers_add_up() {
        let path = std::env::temp_dir().join(format!("ensilo-acknowledged-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let mut slots: Vec<_> = (0..3).map(|worker| Acknowledged::new(&file, worker, 2)).collect();
        slots[2].count(1, 10);
        slots[0].count(0, 1);
        slots[0].count(1, 2);
        slots.iter_mut().for_each(|slot| slot.write().unwrap());
        slots[1].count(0, 100);
        assert_eq!(read_acknowledged(&path, 2).unwrap(), [1, 12], "what was not written is not counted");
        std::fs::remove_file(path).unwrap();
    }
}
