//! How much of the log a repair gives up, as far as it can still be read.

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::error::OpenError;
use super::log_file::LogFile;
use super::scan::each_block_beyond;
use super::survey::Survey;
use crate::format::{BlockCodec, BlockError, FILE_HEADER_BYTES, Malformed, Transactions, epoch_of};

/// What a repair has given up, as far as it could be read. Files that are missing are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenUp {
    /// Transactions.
    pub transactions: u64,
    /// Their writes.
    pub writes: u64,
    /// The log files in which they, or bytes that cannot be read, were found.
    pub files: u64,
    /// Bytes of these files, in front of a valid block, that are none: nobody knows what they held.
    pub unreadable_bytes: u64,
}

/// Counts what the log files hold of epochs after `kept_to`, also behind damage.
pub(super) fn count_given_up(disk: &dyn Disk, found: &Survey, kept_to: Epoch) -> Result<GivenUp, OpenError> {
    let earlier = found.earlier.iter().map(|earlier| (&earlier.file, earlier.entry.durable_epoch));
    let chains = found.chains.iter().flat_map(|chain| chain.files.iter().chain(&chain.unreached));
    let last = Epoch::new(u64::MAX);
    let mut total = GivenUp::default();
    for (file, durable_epoch) in earlier.chain(chains.map(|file| (file, last))) {
        let counted = count_in(disk, file, kept_to, durable_epoch)?;
        total.transactions += counted.transactions;
        total.writes += counted.writes;
        total.unreadable_bytes += counted.unreadable_bytes;
        total.files += u64::from(counted != GivenUp::default());
    }
    Ok(total)
}

/// Counts the entries of a file with epochs after `after`, up to `last`.
fn count_in(disk: &dyn Disk, file: &LogFile, after: Epoch, last: Epoch) -> Result<GivenUp, OpenError> {
    let mut counted = GivenUp::default();
    if last <= after {
        return Ok(counted);
    }
    let opened = disk.open_read(&file.path).map_err(OpenError::io("open", &file.path))?;
    let codec = BlockCodec::new(&file.identity);
    let (mut end, mut raw) = (FILE_HEADER_BYTES as u64, Vec::new());
    let mut is_readable = true;
    each_block_beyond(&*opened, &codec, end, file.bytes, &mut |sealed, payload| {
        counted.unreadable_bytes += sealed.header.offset.saturating_sub(end);
        end = sealed.end_offset();
        if sealed.header.epochs.is_some_and(|(first, to)| to > after && first <= last) {
            let entries = sealed.raw(payload, &mut raw);
            is_readable = entries != Err(BlockError::CompressionUnsupported);
            match entries.ok().and_then(|raw| count_entries(raw, after, last).ok()) {
                Some((transactions, writes)) => {
                    counted.transactions += transactions;
                    counted.writes += writes;
                }
                None => counted.unreadable_bytes += sealed.bytes() as u64,
            }
        }
        is_readable
    })
    .map_err(OpenError::io("read", &file.path))?;
    if is_readable { Ok(counted) } else { Err(OpenError::CompressionUnsupported { file: file.path.clone() }) }
}

/// Returns how many transactions, and writes, of epochs after `after`, up to `last`, a payload has.
fn count_entries(raw: &[u8], after: Epoch, last: Epoch) -> Result<(u64, u64), Malformed> {
    let (mut transactions, mut writes) = (0, 0);
    let mut entries = Transactions::new(raw);
    let mut tid = None;
    while let Some(write) = entries.next_write()? {
        if epoch_of(write.tid) > after && epoch_of(write.tid) <= last {
            transactions += u64::from(tid != Some(write.tid));
            writes += 1;
            tid = Some(write.tid);
        }
    }
    Ok((transactions, writes))
}
