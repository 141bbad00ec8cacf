//! Reads log files in the plainest way: what a recovery must at least find.

use std::collections::BTreeMap;
use std::path::Path;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_log::{
    BlockCodec, BlockEnd, Change, EpochWidth, FILE_HEADER_BYTES, FileHeader, LogFileName, Transactions,
    epoch_of, log_identity,
};

use crate::rig::{DATABASE, OPENING};

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The least of the loggers' last marks, less one.
    pub(crate) durable_epoch: Epoch,
    /// The largest durable epoch that a block claims.
    pub(crate) claimed_epoch: Epoch,
    /// How often each key was found, and the epoch of its transaction.
    pub(crate) entries: BTreeMap<u64, (Epoch, usize)>,
    /// How many loggers ended in order.
    pub(crate) closed: usize,
    /// Names of the files.
    pub(crate) files: Vec<LogFileName>,
    pub(crate) transactions: u64,
    pub(crate) blocks: u64,
    /// Blocks that say that a file was made longer.
    pub(crate) reservations: u64,
}

impl Scan {
    /// Checks that all transactions of the epochs that were found to be durable are there, once, and that
    /// everything is durable that was `acknowledged`.
    pub(crate) fn check(&self, committed: &[(u64, Epoch)], acknowledged: Epoch) {
        assert!(self.durable_epoch >= acknowledged, "{} < {acknowledged}", self.durable_epoch);
        assert!(self.claimed_epoch <= self.durable_epoch, "{} > {}", self.claimed_epoch, self.durable_epoch);
        for &(key, epoch) in committed.iter().filter(|(_, epoch)| *epoch <= self.durable_epoch) {
            assert_eq!(self.entries.get(&key), Some(&(epoch, 1)), "{key:x} of epoch {epoch}");
        }
        assert!(self.entries.values().all(|&(_, count)| count == 1));
    }
}

fn read(disk: &dyn Disk, directory: &Path, name: LogFileName) -> Vec<u8> {
    let file = disk.open(&directory.join(name.to_string())).unwrap();
    let mut bytes = vec![0; file.len_bytes().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Scans the newest generation.
pub(crate) fn scan(disk: &dyn Disk, directories: &[&Path]) -> Scan {
    let mut scan = Scan::default();
    let mut marks = Vec::new();
    for (logger, directory) in (0u32..).zip(directories) {
        let mut names: Vec<_> = disk
            .list(directory)
            .unwrap()
            .iter()
            .filter_map(|listed| LogFileName::parse(&listed.name))
            .filter(|name| name.logger == logger)
            .collect();
        names.sort_unstable_by_key(|name| name.sequence);
        let mut mark = None;
        let mut may_go_on = true;
        for (expected, &name) in (names[0].sequence..).zip(&names) {
            assert_eq!(name.sequence, expected, "a file is missing");
            scan.files.push(name);
            if may_go_on {
                may_go_on = scan.file(disk, directory, name, &mut mark);
            } else {
                scan.assert_unused(disk, directory, name);
            }
        }
        assert!(!may_go_on, "the file after a seal is missing");
        marks.push(mark.unwrap_or(Epoch::new(1)));
    }
    scan.durable_epoch = Epoch::new(marks.iter().min().unwrap().get() - 1);
    scan
}

impl Scan {
    /// The file was made ahead: it has no block, and if that was interrupted no header.
    fn assert_unused(&self, disk: &dyn Disk, directory: &Path, name: LogFileName) {
        let bytes = read(disk, directory, name);
        if let Ok(header) = FileHeader::decode(&bytes) {
            assert!(bytes.len() as u64 >= header.reserved_bytes, "{name} is shorter than it says");
            assert!(bytes[FILE_HEADER_BYTES..].iter().all(|&byte| byte == 0), "{name}");
        }
    }

    /// Returns whether the file ends with a seal.
    fn file(
        &mut self,
        disk: &dyn Disk,
        directory: &Path,
        name: LogFileName,
        mark: &mut Option<Epoch>,
    ) -> bool {
        let bytes = read(disk, directory, name);
        let header = FileHeader::decode(&bytes).unwrap();
        assert_eq!(header.identity, log_identity(DATABASE, OPENING, name));
        // Before its first epoch there was nothing to store.
        let first_mark = *mark.get_or_insert(header.first_epoch);
        assert!(header.first_epoch <= first_mark);
        let codec = BlockCodec::new(&header.identity);
        let (mut offset, mut end, mut scratch) = (FILE_HEADER_BYTES, BlockEnd::None, Vec::new());
        let mut reserved_bytes = header.reserved_bytes;
        while let Ok((block, payload)) = codec.check(&bytes[offset..], offset as u64) {
            assert_eq!(end, BlockEnd::None, "a block after the end");
            assert!(block.header.synced_to <= offset as u64);
            let raw = block.raw(&bytes[offset..][payload], &mut scratch).unwrap();
            let (first, last) = block.header.epochs.unwrap_or_default();
            assert!(first >= header.first_epoch || block.header.epochs.is_none());
            assert!(
                name.largest_epoch(EpochWidth::default()).is_none_or(|largest| last <= largest),
                "{name} has {last}"
            );
            self.block(raw, first, last);
            *mark = block.header.mark.max(*mark);
            self.claimed_epoch = self.claimed_epoch.max(block.header.durable_epoch);
            end = block.header.end;
            self.reservations += u64::from(block.header.reserved_bytes.is_some());
            reserved_bytes = reserved_bytes.max(block.header.reserved_bytes.unwrap_or_default());
            offset += block.bytes();
            assert!(offset as u64 <= reserved_bytes, "{name} is written past what it says");
        }
        assert!(
            end != BlockEnd::None || bytes.len() as u64 >= reserved_bytes,
            "{name} is shorter than it says"
        );
        self.closed += usize::from(end == BlockEnd::Closed);
        assert!(!name.is_sealed() || end == BlockEnd::Seal, "{name} was renamed before it was sealed");
        end == BlockEnd::Seal
    }

    fn block(&mut self, payload: &[u8], first: Epoch, last: Epoch) {
        self.blocks += 1;
        let mut transactions = Transactions::new(payload);
        while let Some(write) = transactions.next_write().unwrap() {
            let epoch = epoch_of(write.tid);
            assert!(first <= epoch && epoch <= last, "{epoch} is not in {first}..={last}");
            let key = u64::from_be_bytes(write.key.try_into().unwrap());
            let Change::Put(row) = write.change else { panic!("only puts were logged") };
            let expected = key.to_le_bytes().into_iter().cycle();
            assert!(row.iter().copied().eq(expected.take(row.len())), "the row of {key:x}");
            self.entries.entry(key).or_insert((epoch, 0)).1 += 1;
            self.transactions += 1;
        }
    }
}
