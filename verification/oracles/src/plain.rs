//! The format once more, after the document, by code that has nothing in common with the one that is checked
//! by it.

use std::ops::Range;

use crc_fast::{CrcAlgorithm, checksum};
use ensilo_log::{Change, EpochWidth, FILE_HEADER_BYTES, FORMAT_VERSION, FileIdentity, Write};

/// Section 5: bytes of a manifest before its body.
pub(crate) const MANIFEST_HEAD_BYTES: usize = 24;

/// A block that is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainBlock {
    /// Header and payload.
    pub(crate) bytes: usize,
    /// Without entries none.
    pub(crate) epochs: Option<(u64, u64)>,
    /// 0 for none.
    pub(crate) mark: u64,
    /// 0 for none, and what is said there.
    pub(crate) end: u32,
    /// 0 for none.
    pub(crate) reserved_bytes: u64,
}

/// A write of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainWrite {
    pub(crate) table: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) change: PlainChange,
}

impl PlainWrite {
    /// Returns what was read.
    pub(crate) fn of(write: &Write<'_>) -> PlainWrite {
        let change = match &write.change {
            Change::Put(row) => PlainChange::Put(row.to_vec()),
            Change::Patch(words) => PlainChange::Patch(words.clone().collect()),
            Change::Delete => PlainChange::Delete,
        };
        PlainWrite { table: write.table, key: write.key.to_vec(), change }
    }
}

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlainChange {
    Put(Vec<u8>),
    Patch(Vec<(u32, u64)>),
    Delete,
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    (0..4).map(|place| u32::from(bytes[at + place]) << (8 * place)).sum()
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    (0..8).map(|place| u64::from(bytes[at + place]) << (8 * place)).sum()
}

fn crc(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Sections 2 and 5: of a file header or a manifest, over all bytes but itself.
fn crc_of_file(bytes: &[u8]) -> u32 {
    crc(&[&bytes[..12], &bytes[16..]].concat())
}

/// Section 3: of a block, over the identity of its file and all bytes behind the checksum.
fn crc_of_block(file: &FileIdentity, block: &[u8]) -> u32 {
    let opening = file.opening.0.to_le_bytes();
    let opening = if file.opening.0 == 0 { &[][..] } else { &opening };
    crc(&[&file.encode()[..], opening, &block[8..]].concat())
}

/// Makes a header of the first bytes, as far as its magic and checksum go.
pub(crate) fn mend_header(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(FILE_HEADER_BYTES), 0);
    mend_head(*b"ENSILOLG", &mut bytes[..FILE_HEADER_BYTES]);
}

/// Makes a block of the first bytes, as far as its magic and checksum go, and its length if that reaches past
/// the end.
pub(crate) fn mend_block(file: &FileIdentity, bytes: &mut [u8]) {
    let Some(room) = bytes.len().checked_sub(64) else { return };
    bytes[..4].copy_from_slice(b"ENSB");
    let claimed = u32_at(bytes, 8) as usize;
    if claimed > room {
        let payload_bytes = u32::try_from(room).unwrap_or(0).to_le_bytes();
        bytes[8..12].copy_from_slice(&payload_bytes);
        bytes[12..16].copy_from_slice(&payload_bytes);
    }
    let crc = crc_of_block(file, &bytes[..64 + claimed.min(room)]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// Makes magic and checksum of a file header or a manifest right.
fn mend_head(magic: [u8; 8], bytes: &mut [u8]) {
    bytes[..8].copy_from_slice(&magic);
    let crc = crc_of_file(bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// Section 5: a manifest of the newest format with this body, whatever it is.
pub(crate) fn manifest_with_body(body: &[u8]) -> Vec<u8> {
    framed(*b"ENSILOMF", FORMAT_VERSION, body)
}

/// Section 5: the file `CHANGES` of a format with this body, whatever it is.
pub(crate) fn changes_of_format(format: u32, body: &[u8]) -> Vec<u8> {
    framed(*b"ENSILOCH", format, body)
}

fn framed(magic: [u8; 8], format: u32, body: &[u8]) -> Vec<u8> {
    let len = (MANIFEST_HEAD_BYTES + body.len()) as u64;
    let mut bytes = [&[0; 8][..], &format.to_le_bytes(), &[0; 4], &len.to_le_bytes(), body].concat();
    mend_head(magic, &mut bytes);
    bytes
}

/// Section 5: the body of a file `CHANGES` of this format, if the head is right.
pub(crate) fn changes_body(format: u32, bytes: &[u8]) -> Option<&[u8]> {
    let (head, body) = bytes.split_at_checked(MANIFEST_HEAD_BYTES)?;
    let is_right = head.starts_with(b"ENSILOCH")
        && (u32_at(head, 8), u64_at(head, 16)) == (format, bytes.len() as u64)
        && u32_at(head, 12) == crc_of_file(bytes);
    is_right.then_some(body)
}

/// Section 2: whether the first bytes are a file header.
pub(crate) fn is_header(bytes: &[u8]) -> bool {
    if bytes.len() < FILE_HEADER_BYTES {
        return false;
    }
    let bytes = &bytes[..FILE_HEADER_BYTES];
    let (format, role, sequence) = (u32_at(bytes, 8), u32_at(bytes, 32), u64_at(bytes, 48));
    let (first_epoch, reserved_bytes) = (u64_at(bytes, 56), u64_at(bytes, 64));
    let is_zero = |range: Range<usize>| bytes[range].iter().all(|&byte| byte == 0);
    let are_fields_right = match (format, role) {
        (1 | 3, 1) => first_epoch < 1 << 40 && reserved_bytes >= 4096,
        (4, 1) => first_epoch < 1 << 44 && reserved_bytes >= 4096,
        (1, 2) => (sequence, first_epoch, reserved_bytes) == (0, 0, 0),
        _ => false,
    };
    bytes.starts_with(b"ENSILOLG")
        && u32_at(bytes, 12) == crc_of_file(bytes)
        && are_fields_right
        && is_zero(72..88) == (format == 1)
        && is_zero(88..4096)
}

/// Section 1: the first and the last epoch that a number in this file stands for. 0 is none.
fn epochs_of(file: &FileIdentity, number: u64) -> Option<(u64, u64)> {
    match file.epochs {
        EpochWidth::Bits40 if number == 0 => Some((0, 0)),
        EpochWidth::Bits40 => (number < 1 << 40).then(|| (16 * number, 16 * number + 15)),
        EpochWidth::Bits44 => (number < 1 << 44).then_some((number, number)),
    }
}

/// Section 3: the block at the beginning of `bytes`, which lie at `offset` of this file.
pub(crate) fn plain_block(file: &FileIdentity, bytes: &[u8], offset: u64) -> Option<PlainBlock> {
    if bytes.len() < 64 || !bytes.starts_with(b"ENSB") || u64_at(bytes, 24) != offset {
        return None;
    }
    let (payload_bytes, raw_bytes) = (u64::from(u32_at(bytes, 8)), u64::from(u32_at(bytes, 12)));
    let (flags, unsynced) = (u32_at(bytes, 16), u64::from(u32_at(bytes, 20)));
    let (is_compressed, end, is_reservation) = (flags & 1 == 1, flags >> 1 & 3, flags & 8 == 8);
    let (first, last, mark, durable) =
        (u64_at(bytes, 32), u64_at(bytes, 40), u64_at(bytes, 48), u64_at(bytes, 56));
    let are_lengths_right = match is_compressed {
        true => payload_bytes < raw_bytes && raw_bytes <= 256 * payload_bytes,
        false => payload_bytes == raw_bytes,
    };
    let are_epochs_right = match is_reservation {
        true => (payload_bytes, raw_bytes, end, last, mark) == (0, 0, 0, 0, 0),
        false => first <= last,
    };
    let ((first_entry, _), (_, last_entry)) = match is_reservation {
        true => ((0, 0), (0, 0)),
        false => (epochs_of(file, first)?, epochs_of(file, last)?),
    };
    let (mark, _) = epochs_of(file, mark)?;
    epochs_of(file, durable)?;
    let is_right =
        flags < 16 && raw_bytes <= 1 << 30 && are_lengths_right && are_epochs_right && unsynced <= offset;
    let block = bytes.get(..64 + payload_bytes as usize)?;
    let is_whole = u32_at(block, 4) == crc_of_block(file, block);
    (is_right && is_whole).then(|| PlainBlock {
        bytes: block.len(),
        epochs: (last_entry > 0).then_some((first_entry, last_entry)),
        mark,
        end,
        reserved_bytes: if is_reservation { first } else { 0 },
    })
}

/// Section 4: the transactions of a payload, and whether it is valid to its last byte. The writes in front of
/// what is not are there.
pub(crate) fn plain_entries(mut bytes: &[u8]) -> (Vec<(u64, Vec<PlainWrite>)>, bool) {
    let mut transactions = Vec::new();
    while !bytes.is_empty() {
        let (Some(tid), Some(count)) = (take_u64(&mut bytes), take_varint(&mut bytes)) else {
            return (transactions, false);
        };
        transactions.push((tid, Vec::new()));
        for _ in 0..count {
            let (Some(write), Some((_, writes))) = (take_write(&mut bytes), transactions.last_mut()) else {
                return (transactions, false);
            };
            writes.push(write);
        }
    }
    (transactions, true)
}

/// Section 6: the records of a payload, by their TIDs, if it is valid. One without anything is passed over.
pub(crate) fn plain_records(mut bytes: &[u8]) -> Option<Vec<(u64, PlainWrite)>> {
    let mut records = Vec::new();
    if bytes.is_empty() {
        return Some(records);
    }
    let table = take_u32(&mut bytes)?;
    while !bytes.is_empty() {
        let key = take_counted(&mut bytes)?;
        let tid = take_u64(&mut bytes)?;
        let change = PlainChange::Put(take_counted(&mut bytes)?);
        records.push((tid, PlainWrite { table, key, change }));
    }
    Some(records)
}

fn take_write(bytes: &mut &[u8]) -> Option<PlainWrite> {
    let head = take(bytes, 1)?[0];
    let key_bytes = match head >> 2 {
        63 => take_varint(bytes).filter(|&len| len >= 63)?,
        len => u64::from(len),
    };
    let table = take_u32(bytes)?;
    let key = take(bytes, key_bytes)?.to_vec();
    let change = match head & 3 {
        0 => PlainChange::Put(take_counted(bytes)?),
        1 => {
            let count = take_varint(bytes)?;
            let mut pairs = Vec::new();
            for _ in 0..count {
                pairs.push((take_u32(bytes)?, take_u64(bytes)?));
            }
            PlainChange::Patch(pairs)
        }
        2 => PlainChange::Delete,
        _ => return None,
    };
    Some(PlainWrite { table, key, change })
}

fn take<'b>(bytes: &mut &'b [u8], len: u64) -> Option<&'b [u8]> {
    if len > bytes.len() as u64 {
        return None;
    }
    let (taken, rest) = bytes.split_at(len as usize);
    *bytes = rest;
    Some(taken)
}

pub(crate) fn take_counted(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let len = take_varint(bytes)?;
    take(bytes, len).map(<[u8]>::to_vec)
}

pub(crate) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes, 8).map(|taken| u64_at(taken, 0))
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take_varint(bytes).and_then(|number| u32::try_from(number).ok())
}

pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let len = bytes.iter().position(|&byte| byte < 128)? + 1;
    let taken = take(bytes, len as u64)?;
    let is_shortest = len == 1 || taken[len - 1] != 0;
    if len > 10 || !is_shortest {
        return None;
    }
    let value: u128 =
        taken.iter().enumerate().map(|(place, &byte)| u128::from(byte & 127) << (7 * place)).sum();
    u64::try_from(value).ok()
}
