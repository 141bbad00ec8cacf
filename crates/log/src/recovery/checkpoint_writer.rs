//! Writing the parts of a checkpoint.
//!
//! # Source
//! SiloR (OSDI 2014) §4.2. A checkpointer walks its tables in the order of their keys; each block of records
//! goes to the next of its files, so that recovery can read as many files at once as it has cores; what was
//! written is synced now and then (every 32 MB).
//!
//! # Layout
//! A part is a file header, blocks, and a last block that ends it (see [`crate::BlockEnd::Part`]) and has the
//! part's number of records as its payload, a varint. The payload of the others is
//! ```text
//! table varint | (key_len varint | key | tid u64 | row_len varint | row bytes)*
//! ```
//! A part may have records that others have too ([`CheckpointPlace::writer_of_copies`]): those without which
//! the others are of no use.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Appender, Checksum, Disk};
use ensilo_epoch::Epoch;

use crate::format::{
    BlockCodec, BlockEnd, BlockHeader, CheckpointPart, Compression, Cursor, DatabaseId, EpochWidth,
    FILE_HEADER_BYTES, FIRST_COPY, FileHeader, FileIdentity, FileRole, OpeningId, varint_bytes,
};

/// Payload bytes of a block, unless a single record has more.
const BLOCK_BYTES: usize = 256 << 10;

/// The tables with records that say what all others hold: a checkpoint has them twice
/// ([`CheckpointPlace::writer_of_copies`]).
pub const DEFINITION_TABLES: [u32; 2] = [1, 3];

/// The name of the file of copies.
const COPIES: &str = "copies.ckpt";

/// Where the parts of a checkpoint go.
#[derive(Debug, Clone)]
pub struct CheckpointPlace {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database: DatabaseId,
    pub(crate) id: u64,
    pub(crate) begin_epoch: Epoch,
    pub(crate) directory: PathBuf,
    pub(crate) spelled: String,
}

/// How the parts of a checkpoint are written.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointWriterOptions {
    /// How many files each checkpointer writes.
    pub parts: u32,
    /// Whether blocks are compressed.
    pub compression: Compression,
    /// How many bytes each checkpointer writes between two syncs.
    pub sync_bytes: u64,
}

impl Default for CheckpointWriterOptions {
    /// One file, not compressed, synced every 32 MiB.
    fn default() -> Self {
        CheckpointWriterOptions { parts: 1, compression: Compression::None, sync_bytes: 32 << 20 }
    }
}

/// Writes the records of one checkpointer into its files.
#[derive(Debug)]
pub struct CheckpointWriter {
    parts: Vec<PartWriter>,
    /// Gets the next block.
    next: usize,
    options: CheckpointWriterOptions,
    /// The payload of the next block: records of `table`.
    payload: Vec<u8>,
    table: u32,
    /// Records in `payload`.
    pending: u64,
    /// The next block, sealed.
    sealed: Vec<u8>,
    tables: BTreeMap<u32, u64>,
    bytes: u64,
    synced_bytes: u64,
}

#[derive(Debug)]
struct PartWriter {
    file: Appender,
    spelled: String,
    number: u32,
    codec: BlockCodec,
    records: u64,
    digest: Checksum,
}

/// What a checkpointer has written.
#[derive(Debug, Clone)]
pub struct WrittenParts {
    pub(crate) parts: Vec<CheckpointPart>,
    /// Records by table, but for copies.
    pub(crate) tables: BTreeMap<u32, u64>,
}

impl CheckpointPlace {
    /// Returns the number of the checkpoint.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// `e_l`: the checkpoint leaves out records of this epoch and later ones.
    #[must_use]
    pub fn begin_epoch(&self) -> Epoch {
        self.begin_epoch
    }

    /// Returns the directory of its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the writer for the `checkpointer`-th of those that write this checkpoint. All have the same
    /// options.
    ///
    /// # Errors
    /// Those of the system.
    ///
    /// # Panics
    /// When there is to be no file.
    pub fn writer(
        &self,
        checkpointer: u32,
        options: CheckpointWriterOptions,
    ) -> io::Result<CheckpointWriter> {
        assert!(options.parts > 0, "a checkpoint without files");
        let numbers = (0..options.parts).map(|part| checkpointer * options.parts + part);
        let parts = numbers.map(|number| self.part(number, &format!("part-{number}.ckpt")));
        Ok(CheckpointWriter::new(parts.collect::<io::Result<_>>()?, options))
    }

    /// Returns the writer for records that one of the other writers gets too, so that damage of one place
    /// loses none of them. It writes one file. Its records are not counted again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn writer_of_copies(&self, options: CheckpointWriterOptions) -> io::Result<CheckpointWriter> {
        Ok(CheckpointWriter::new(vec![self.part(FIRST_COPY, COPIES)?], options))
    }

    fn part(&self, part: u32, name: &str) -> io::Result<PartWriter> {
        let role = FileRole::Checkpoint { checkpoint: self.id, part };
        let identity = FileIdentity {
            database: self.database,
            file: role,
            opening: OpeningId::default(),
            epochs: EpochWidth::default(),
        };
        let file = self.disk.create(&self.directory.join(name), 0)?;
        let header = FileHeader { identity, first_epoch: Epoch::default(), reserved_bytes: 0 };
        file.write_at(0, &header.encode())?;
        Ok(PartWriter {
            file: Appender::new(file, FILE_HEADER_BYTES as u64),
            spelled: format!("{}/{name}", self.spelled),
            number: part,
            codec: BlockCodec::new(&identity),
            records: 0,
            digest: Checksum::default(),
        })
    }
}

impl CheckpointWriter {
    fn new(parts: Vec<PartWriter>, options: CheckpointWriterOptions) -> Self {
        CheckpointWriter {
            bytes: parts.len() as u64 * FILE_HEADER_BYTES as u64,
            parts,
            next: 0,
            options,
            payload: Vec::new(),
            table: 0,
            pending: 0,
            sealed: Vec::new(),
            tables: BTreeMap::new(),
            synced_bytes: 0,
        }
    }

    /// Appends a record: a row of `row_len` bytes, given by its words.
    ///
    /// # Errors
    /// Those of the system; the checkpoint is to be given up.
    ///
    /// # Panics
    /// When there are fewer words than `row_len` asks for.
    #[inline]
    pub fn record(
        &mut self,
        table: u32,
        key: &[u8],
        tid: u64,
        row_len: usize,
        words: impl IntoIterator<Item = u64>,
    ) -> io::Result<()> {
        let (key_len, len) = (key.len() as u64, row_len as u64);
        let record = varint_bytes(key_len) + key.len() + 8 + varint_bytes(len) + row_len;
        if table != self.table || self.payload.len() + record > BLOCK_BYTES {
            self.write_block()?;
            self.table = table;
        }
        let start = self.payload.len();
        let head = if start == 0 { varint_bytes(u64::from(table)) } else { 0 };
        self.payload.try_reserve(head + record)?;
        self.payload.resize(start + head + record, 0);
        let mut cursor = Cursor::new(&mut self.payload[start..]);
        if head > 0 {
            cursor.put_varint(u64::from(table));
        }
        cursor.put_varint(key_len);
        cursor.put_bytes(key);
        cursor.put_u64(tid);
        cursor.put_varint(len);
        cursor.put_words(row_len, words);
        self.pending += 1;
        Ok(())
    }

    /// Returns how many bytes were written to files so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes what is left, and syncs the files.
    ///
    /// # Errors
    /// Those of the system; the checkpoint is to be given up.
    pub fn finish(mut self) -> io::Result<WrittenParts> {
        self.write_block()?;
        let mut parts = Vec::new();
        for part in &mut self.parts {
            let mut records = vec![0; varint_bytes(part.records)];
            Cursor::new(&mut records).put_varint(part.records);
            part.append(&mut self.sealed, &records, Compression::None, BlockEnd::Part)?;
            part.file.trim()?;
            part.file.sync_all()?;
            parts.push(CheckpointPart {
                path: mem::take(&mut part.spelled),
                number: part.number,
                bytes: part.file.offset(),
                records: part.records,
                digest: part.digest.value(),
            });
        }
        Ok(WrittenParts { parts, tables: self.tables })
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.pending == 0 {
            return Ok(());
        }
        let part = &mut self.parts[self.next];
        let before = part.file.offset();
        part.append(&mut self.sealed, &self.payload, self.options.compression, BlockEnd::None)?;
        part.records += self.pending;
        if part.number < FIRST_COPY {
            *self.tables.entry(self.table).or_insert(0) += self.pending;
        }
        self.bytes += part.file.offset() - before;
        self.next = (self.next + 1) % self.parts.len();
        self.pending = 0;
        self.payload.clear();
        // Those of a single large record go.
        self.payload.shrink_to(2 * BLOCK_BYTES);
        self.sealed.clear();
        self.sealed.shrink_to(2 * BLOCK_BYTES);
        if self.bytes - self.synced_bytes >= self.options.sync_bytes {
            self.synced_bytes = self.bytes;
            self.parts.iter_mut().try_for_each(|part| part.file.sync_data())?;
        }
        Ok(())
    }
}

impl PartWriter {
    fn append(
        &mut self,
        sealed: &mut Vec<u8>,
        payload: &[u8],
        compression: Compression,
        end: BlockEnd,
    ) -> io::Result<()> {
        let header = BlockHeader { end, ..BlockHeader::new(self.file.offset(), 0, Epoch::default()) };
        sealed.clear();
        self.codec.seal(sealed, &header, &[payload], compression);
        self.file.append(sealed)?;
        self.digest.update(&sealed[4..8]);
        Ok(())
    }
}
