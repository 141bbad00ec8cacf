//! Internal to `ensilo`, not to be used by itself: log files, checkpoints, the manifest, and their replay.

mod format;
mod recovery;
mod runtime;

pub use format::{
    BLOCK_HEADER_BYTES, BlockCodec, BlockEnd, BlockError, BlockHeader, Change, CheckpointEntry,
    CheckpointPart, Compression, Cursor, DatabaseId, EarlierFile, EpochWidth, FILE_HEADER_BYTES,
    FORMAT_VERSION, FileHeader, FileIdentity, FileRole, HeaderError, LEFT_OUT_BYTES, LogFileName,
    LoggerFiles, Malformed, Manifest, ManifestError, OpeningId, PATCH_PAIR_BYTES_MAX, PAYLOAD_BYTES_MAX,
    PatchWords, SealedHeader, Transactions, Write, block_bytes, delete_bytes, encode_delete, encode_patch,
    encode_put, encode_transaction, epoch_of, patch_bytes, patch_bytes_max, put_bytes, sequence_of,
    transaction_bytes, varint_bytes, write_bytes_max,
};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use recovery::fuzzing;
pub use recovery::{
    BackedUp, BlockScratch, ChangeReadError, ChangeReader, ChangeReaderOptions, CheckedFile, CheckpointBlock,
    CheckpointBlocks, CheckpointPlace, CheckpointRecord, CheckpointWriter, CheckpointWriterOptions,
    Corruption, CorruptionKind, DEFINITION_TABLES, DataLoss, DatabaseFiles, Dumped, EpochChanges,
    FinishedCheckpoint, Found, GenerationOptions, GivenUp, HistoryId, InstalledCheckpoint, LogPlace,
    LoggedChange, NewGeneration, NewLogger, OpenError, Progress, ProgressReport, ReadOnlyFiles, RecordKey,
    Repaired, Replay, ReplayError, Replayed, SalvageLoss, Salvaged, SalvagedTable, Unopened,
    UnreadableRecords, Verified, WrittenParts, backup, change_history, check_file, dump, inspect,
    inspect_beside, inspect_read_only, log_identity, manifest_of, repair, salvage, verify, writer_of,
};
pub use runtime::{
    Callback, EpochClock, ForeignAfter, Log, LogError, LogOptions, LogStatistics, LogWriter, Place,
    RECORD_BYTES_MAX, ReserveError, Ring, Stored, UNIT_BYTES, UNITS_PER_EPOCH, Watcher, call_foreign,
    is_in_foreign_code, survive, take_place,
};
