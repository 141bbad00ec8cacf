//! What must hold for any bytes that somebody takes for a header, a block, entries or a manifest.
//!
//! Each function looks at the bytes as they are, and once more with their checksums made right, because
//! hardly any bytes get past those. What is valid is said a second time here, after `docs/format.md` and as
//! plainly as can be ([`plain`]); whatever is accepted must be written again as the same bytes.

use ensilo_log::{
    BlockCodec, Compression, Cursor, DatabaseId, EpochWidth, FILE_HEADER_BYTES, FileHeader, FileIdentity,
    FileRole, Manifest, OpeningId, Transactions, delete_bytes, encode_delete, encode_patch, encode_put,
    encode_transaction, patch_bytes, put_bytes, transaction_bytes,
};

use crate::plain::{self, PlainChange, PlainWrite, mend_block, mend_header, plain_block, plain_entries};

/// The file that blocks are taken to be of.
const LOG_FILE: FileIdentity = FileIdentity {
    database: DatabaseId(0x0123_4567_89ab_cdef),
    file: FileRole::Log { generation: 1, logger: 0, sequence: 1 },
    opening: OpeningId(0xfedc_ba98_7654_3210),
    epochs: EpochWidth::Bits44,
};

/// The same file as an earlier version would have written it.
const OLD_LOG_FILE: FileIdentity = FileIdentity { epochs: EpochWidth::Bits40, ..LOG_FILE };

/// The header at the beginning of these bytes.
pub fn file_header(bytes: &[u8]) {
    check_header(bytes);
    let mut mended = bytes.to_vec();
    mend_header(&mut mended);
    check_header(&mended);
}

/// A block of a log file at the beginning of these bytes, and the entries in it.
pub fn block(bytes: &[u8]) {
    for file in [&LOG_FILE, &OLD_LOG_FILE] {
        check_block(file, bytes);
        let mut mended = bytes.to_vec();
        mend_block(file, &mut mended);
        check_block(file, &mended);
    }
}

/// The payload of a block of a log file.
pub fn entries(bytes: &[u8]) {
    let (transactions, is_valid) = plain_entries(bytes);
    let mut reader = Transactions::new(bytes);
    for (tid, writes) in &transactions {
        for write in writes {
            let read = reader.next_write().expect("a valid write").expect("no end yet");
            assert_eq!((read.tid, PlainWrite::of(&read)), (*tid, write.clone()));
        }
    }
    match reader.next_write() {
        Ok(None) => assert!(is_valid, "malformed entries were accepted"),
        Ok(Some(write)) => panic!("a malformed write was accepted: {write:?}"),
        Err(malformed) => assert!(!is_valid, "valid entries were refused: {malformed}"),
    }
    if is_valid {
        assert_eq!(encode_entries(&transactions), bytes, "entries have one form");
    }
}

/// A manifest, and one with this body.
pub fn manifest(bytes: &[u8]) {
    check_manifest(bytes);
    check_manifest(&plain::manifest_with_body(bytes));
}

fn check_header(bytes: &[u8]) {
    let is_valid = plain::is_header(bytes);
    let decoded = FileHeader::decode(bytes);
    assert_eq!(decoded.is_ok(), is_valid, "{decoded:?}");
    if let Ok(header) = decoded {
        assert_eq!(header.encode(), bytes[..FILE_HEADER_BYTES], "a header has one form");
    }
}

fn check_block(file: &FileIdentity, bytes: &[u8]) {
    let codec = BlockCodec::new(file);
    let offset = bytes.get(24..32).map_or(0, |field| plain::u64_at(field, 0));
    let plain = plain_block(file, bytes, offset);
    let found = codec.check(bytes, offset);
    assert_eq!(found.is_ok(), plain.is_some(), "{found:?}");
    let (Ok((sealed, payload)), Some(plain)) = (found, plain) else { return };
    assert_eq!(sealed.bytes(), plain.bytes);
    let payload = &bytes[payload];
    if let Ok(raw) = sealed.raw(payload, &mut Vec::new()) {
        assert_eq!(raw.len(), sealed.raw_bytes);
        entries(raw);
    }
    if !sealed.compressed {
        let mut again = Vec::new();
        codec.seal(&mut again, &sealed.header, &[payload], Compression::None);
        assert_eq!(again, bytes[..plain.bytes], "a block has one form");
    }
}

fn check_manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(manifest.encode(), bytes, "a manifest has one form");
    }
}

fn encode_entries(transactions: &[(u64, Vec<PlainWrite>)]) -> Vec<u8> {
    let write_bytes = |write: &PlainWrite| match &write.change {
        PlainChange::Put(row) => put_bytes(write.table, write.key.len(), row.len()),
        PlainChange::Patch(pairs) => {
            patch_bytes(write.table, write.key.len(), pairs.iter().map(|pair| pair.0))
        }
        PlainChange::Delete => delete_bytes(write.table, write.key.len()),
    };
    let of_transaction = |(_, writes): &(u64, Vec<PlainWrite>)| {
        transaction_bytes(writes.len()) + writes.iter().map(write_bytes).sum::<usize>()
    };
    let mut bytes = vec![0; transactions.iter().map(of_transaction).sum()];
    let mut cursor = Cursor::new(&mut bytes);
    for (tid, writes) in transactions {
        encode_transaction(&mut cursor, *tid, writes.len());
        for PlainWrite { table, key, change } in writes {
            match change {
                PlainChange::Put(row) => encode_put(&mut cursor, *table, key, row.len(), words(row)),
                PlainChange::Patch(pairs) => encode_patch(&mut cursor, *table, key, pairs.iter().copied()),
                PlainChange::Delete => encode_delete(&mut cursor, *table, key),
            }
        }
    }
    assert_eq!(cursor.filled(), bytes.len(), "entries have the length that was foretold");
    bytes
}

/// Returns the words of a row; what is missing of the last one is zeros.
fn words(row: &[u8]) -> impl Iterator<Item = u64> {
    row.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

#[cfg(test)]
mod tests {
    use ensilo_epoch::Epoch;
    use ensilo_log::FORMAT_VERSION;

    use super::*;
    use crate::plain::MANIFEST_HEAD_BYTES;

    #[test]
    fn a_mended_header_is_valid() {
        let header = FileHeader { identity: LOG_FILE, first_epoch: Epoch::new(6), reserved_bytes: 1 << 20 };
        let mut bytes = header.encode().to_vec();
        bytes[..16].fill(0);
        bytes[8] = 4;
        assert!(FileHeader::decode(&bytes).is_err());
        mend_header(&mut bytes);
        assert_eq!(FileHeader::decode(&bytes), Ok(header));
    }

    #[test]
    fn a_manifest_is_its_body_behind_a_head() {
        let manifest = Manifest {
            format: FORMAT_VERSION,
            database: LOG_FILE.database,
            generation: 1,
            first_epoch: Epoch::new(1),
            durable_epoch: Epoch::default(),
            next_checkpoint: 1,
            loggers: Vec::new(),
            earlier: Vec::new(),
            checkpoint: None,
            opening: OpeningId(3),
            previous_opening: OpeningId(2),
            last_generation_of_40_bits: 0,
        };
        let bytes = manifest.encode();
        assert_eq!(plain::manifest_with_body(&bytes[MANIFEST_HEAD_BYTES..]), bytes);
    }
}
