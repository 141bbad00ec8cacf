//! A small database that writes its files through the functions of this crate, one step at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::model::{AnyOrder, Op, Rows, Transaction, Versions, in_order};
use crate::format::{
    BLOCK_HEADER_BYTES, BlockCodec, BlockEnd, BlockHeader, Compression, Cursor, EpochWidth,
    FILE_HEADER_BYTES, LogFileName, Manifest, delete_bytes, encode_delete, encode_patch, encode_put,
    encode_transaction, epoch_of, patch_bytes, put_bytes, transaction_bytes,
};
use crate::recovery::{
    CheckpointPlace, CheckpointWriterOptions, CreatedLogFile, DatabaseFiles, FinishedCheckpoint, Found,
    GenerationOptions, InstalledCheckpoint, LogFilePlan, NewGeneration, OpenError, Progress, SealedFiles,
    inspect, log_identity,
};

pub(crate) const DIR: &str = "db";
pub(crate) const FILE_BYTES: u64 = 8 << 10;

/// A database that is open.
pub(crate) struct TestLog {
    pub(crate) disk: Arc<SimulatedDisk>,
    pub(crate) files: DatabaseFiles,
    pub(crate) loggers: Vec<TestLogger>,
    sealed: SealedFiles,
    pub(crate) durable_epoch: Epoch,
    pub(crate) first_epoch: Epoch,
    pub(crate) compression: Compression,
    /// How long files are made from now on.
    pub(crate) file_bytes: u64,
}

pub(crate) struct TestLogger {
    directory: PathBuf,
    name: LogFileName,
    file: Box<dyn File>,
    codec: BlockCodec,
    pub(crate) offset: u64,
    pub(crate) synced_to: u64,
    reserved_bytes: u64,
    largest_epoch: Epoch,
}

pub(crate) fn directories(loggers: usize) -> Vec<PathBuf> {
    // Two in one directory, the others in their own.
    (0..loggers)
        .map(|logger| Path::new(DIR).join(if logger < 2 { "log".into() } else { format!("log-{logger}") }))
        .collect()
}

pub(crate) fn find(disk: &Arc<SimulatedDisk>) -> Result<Found, OpenError> {
    let disk: Arc<dyn Disk> = Arc::clone(disk) as Arc<dyn Disk>;
    inspect(&disk, Path::new(DIR))
}

/// Returns the rows that an opening would bring back, and the durable epoch.
pub(crate) fn recover(disk: &Arc<SimulatedDisk>, threads: usize) -> Result<(Rows, Option<Epoch>), OpenError> {
    let found = find(disk)?;
    let target = AnyOrder::default();
    found.replay(&target, threads, &Progress::new())?;
    Ok((target.rows(), found.durable_epoch()))
}

pub(crate) fn options(found: &Found, loggers: usize) -> GenerationOptions {
    let first_epoch = Epoch::new(found.largest_epoch().get() + 3);
    GenerationOptions { directories: directories(loggers), file_bytes: FILE_BYTES, first_epoch }
}

impl TestLog {
    pub(crate) fn open(disk: &Arc<SimulatedDisk>, loggers: usize) -> TestLog {
        let found = find(disk).unwrap();
        let options = options(&found, loggers);
        let (generation, files) = found.next_generation(&options).unwrap();
        TestLog::new(Arc::clone(disk), generation, files)
    }

    pub(crate) fn new(disk: Arc<SimulatedDisk>, generation: NewGeneration, files: DatabaseFiles) -> TestLog {
        let NewGeneration { database, opening, generation, first_epoch, loggers, sealed } = generation;
        let loggers = (0u32..)
            .zip(loggers)
            .map(|(logger, new)| {
                let name = LogFileName { generation, logger, sequence: new.sequence, epoch_number: None };
                TestLogger {
                    directory: new.directory,
                    name,
                    file: new.file,
                    codec: BlockCodec::new(&log_identity(database, opening, name)),
                    offset: FILE_HEADER_BYTES as u64,
                    synced_to: FILE_HEADER_BYTES as u64,
                    reserved_bytes: new.reserved_bytes,
                    largest_epoch: Epoch::default(),
                }
            })
            .collect();
        let durable_epoch = Epoch::new(first_epoch.get() - 1);
        TestLog {
            disk,
            files,
            loggers,
            sealed,
            durable_epoch,
            first_epoch,
            compression: Compression::None,
            file_bytes: FILE_BYTES,
        }
    }

    /// Appends a block to a logger's file, without a sync.
    pub(crate) fn append(
        &mut self,
        logger: usize,
        transactions: &[Transaction],
        mark: Option<Epoch>,
        end: BlockEnd,
    ) {
        let durable_epoch = self.durable_epoch;
        let logger = &mut self.loggers[logger];
        let mut epochs = transactions.iter().map(|transaction| epoch_of(transaction.tid));
        let epochs = epochs.next().map(|first| {
            let rest: Vec<Epoch> = epochs.collect();
            let all = || rest.iter().copied().chain([first]);
            (all().min().unwrap(), all().max().unwrap())
        });
        let payload: Vec<u8> = transactions.iter().flat_map(encode).collect();
        logger.make_room(payload.len() as u64, durable_epoch);
        let header = BlockHeader { epochs, mark, end, ..logger.header(durable_epoch) };
        let mut block = Vec::new();
        logger.codec.seal(&mut block, &header, &[&payload], self.compression);
        logger.file.write_at(logger.offset, &block).unwrap();
        logger.offset += block.len() as u64;
        logger.largest_epoch = logger.largest_epoch.max(epochs.map_or(Epoch::default(), |(_, last)| last));
    }

    pub(crate) fn sync(&mut self, logger: usize) {
        let logger = &mut self.loggers[logger];
        logger.file.sync_data().unwrap();
        logger.synced_to = logger.offset;
    }

    /// Every logger writes its transactions with a mark, and syncs.
    pub(crate) fn round(&mut self, transactions: &[Vec<Transaction>], mark: Epoch) {
        for (logger, transactions) in transactions.iter().enumerate() {
            self.append(logger, transactions, Some(mark), BlockEnd::None);
        }
        (0..self.loggers.len()).for_each(|logger| self.sync(logger));
        self.durable_epoch = Epoch::new(mark.get() - 1);
    }

    /// A logger seals its file with a mark and goes on in the next one.
    pub(crate) fn rotate(&mut self, logger: usize, mark: Epoch) {
        let Manifest { database, opening, .. } = *self.files.manifest();
        let (next, CreatedLogFile { file, reserved_bytes, .. }) = self.create_next(logger, mark);
        self.append(logger, &[], Some(mark), BlockEnd::Seal);
        self.sync(logger);
        let logger = &mut self.loggers[logger];
        let sealed = logger.name.sealed(logger.largest_epoch, EpochWidth::default());
        self.disk
            .rename(
                &logger.directory.join(logger.name.to_string()),
                &logger.directory.join(sealed.to_string()),
            )
            .unwrap();
        logger.file.set_len(logger.offset).unwrap();
        self.sealed.add(logger.name, logger.largest_epoch);
        logger.name = next;
        logger.file = file;
        logger.codec = BlockCodec::new(&log_identity(database, opening, next));
        logger.offset = FILE_HEADER_BYTES as u64;
        logger.synced_to = FILE_HEADER_BYTES as u64;
        logger.reserved_bytes = reserved_bytes;
        logger.largest_epoch = Epoch::default();
    }

    /// Makes the file that a logger would go on in.
    pub(crate) fn make_ahead(&self, logger: usize) {
        let _ = self.create_next(logger, Epoch::new(self.durable_epoch.get() + 1));
    }

    fn create_next(&self, logger: usize, first_epoch: Epoch) -> (LogFileName, CreatedLogFile) {
        let Manifest { database, opening, .. } = *self.files.manifest();
        let TestLogger { name, directory, .. } = &self.loggers[logger];
        let name = LogFileName { sequence: name.sequence + 1, ..*name };
        let disk = &*self.disk;
        let file_bytes = self.file_bytes;
        let plan = LogFilePlan { disk, directory, database, opening, name, first_epoch, file_bytes };
        (name, plan.create().unwrap())
    }

    /// Ends the log in order.
    pub(crate) fn close(&mut self) {
        for logger in 0..self.loggers.len() {
            self.append(logger, &[], None, BlockEnd::Closed);
            self.sync(logger);
            let logger = &self.loggers[logger];
            logger.file.set_len(logger.offset).unwrap();
        }
    }

    /// Takes a checkpoint of `rows`, given with the TIDs that changed them last, in `parts` files.
    pub(crate) fn checkpoint(&mut self, begin: Epoch, rows: &Versions<Vec<u8>>, parts: u32) {
        self.try_checkpoint(begin, rows, parts).unwrap();
    }

    /// Takes a checkpoint, or gives it up.
    pub(crate) fn try_checkpoint(
        &mut self,
        begin: Epoch,
        rows: &Versions<Vec<u8>>,
        parts: u32,
    ) -> Result<InstalledCheckpoint, OpenError> {
        let place = self.files.begin_checkpoint(begin)?;
        let installed = self.write_and_install(place.clone(), rows, parts);
        if installed.is_err() {
            // What is left goes with the next one.
            let _ = self.files.give_up_checkpoint(&place);
        }
        installed
    }

    fn write_and_install(
        &mut self,
        place: CheckpointPlace,
        rows: &Versions<Vec<u8>>,
        parts: u32,
    ) -> Result<InstalledCheckpoint, OpenError> {
        let options = CheckpointWriterOptions { parts, compression: self.compression, ..Default::default() };
        let io = OpenError::io("write", Path::new(DIR));
        let write = || {
            let mut writer = place.writer(0, options)?;
            for ((table, key), (tid, row)) in rows {
                writer.record(*table, key, *tid, row.len(), words(row))?;
            }
            writer.finish()
        };
        let written = vec![write().map_err(io)?];
        let finished = FinishedCheckpoint { place, end_epoch: self.durable_epoch, written };
        self.files.install_checkpoint(finished, self.durable_epoch)
    }
}

impl TestLogger {
    fn header(&self, durable_epoch: Epoch) -> BlockHeader {
        BlockHeader::new(self.offset, self.synced_to, durable_epoch)
    }

    /// Makes the file longer, if the payload does not fit into it as long as it says that it is.
    fn make_room(&mut self, payload_bytes: u64, durable_epoch: Epoch) {
        let header_bytes = BLOCK_HEADER_BYTES as u64;
        let needed = self.offset + payload_bytes + 2 * header_bytes;
        if needed <= self.reserved_bytes {
            return;
        }
        self.reserved_bytes = needed + header_bytes + 1000;
        self.file.set_len(self.reserved_bytes).unwrap();
        self.file.sync_data().unwrap();
        self.synced_to = self.offset;
        let reservation =
            BlockHeader { reserved_bytes: Some(self.reserved_bytes), ..self.header(durable_epoch) };
        let mut block = Vec::new();
        self.codec.seal(&mut block, &reservation, &[], Compression::None);
        self.file.write_at(self.offset, &block).unwrap();
        self.offset += header_bytes;
    }
}

pub(crate) fn words(row: &[u8]) -> Vec<u64> {
    row.chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        })
        .collect()
}

pub(crate) fn encode(transaction: &Transaction) -> Vec<u8> {
    let write_bytes = |write: &super::model::OneWrite| match &write.op {
        Op::Put(row) => put_bytes(write.table, write.key.len(), row.len()),
        Op::Patch(words) => patch_bytes(write.table, write.key.len(), words.iter().map(|word| word.0)),
        Op::Delete => delete_bytes(write.table, write.key.len()),
    };
    let writes: usize = transaction.writes.iter().map(write_bytes).sum();
    let mut bytes = vec![0; transaction_bytes(transaction.writes.len()) + writes];
    let mut cursor = Cursor::new(&mut bytes);
    encode_transaction(&mut cursor, transaction.tid, transaction.writes.len());
    for write in &transaction.writes {
        match &write.op {
            Op::Put(row) => encode_put(&mut cursor, write.table, &write.key, row.len(), words(row)),
            Op::Patch(pairs) => encode_patch(&mut cursor, write.table, &write.key, pairs.iter().copied()),
            Op::Delete => encode_delete(&mut cursor, write.table, &write.key),
        }
    }
    bytes
}

/// Returns the rows of all transactions up to an epoch.
pub(crate) fn rows_up_to(history: &[Transaction], last: Epoch) -> Rows {
    in_order(history.iter().filter(|transaction| epoch_of(transaction.tid) <= last))
}
