//! Internal to `ensilo`, not to be used by itself: log files, checkpoints, the manifest, and their replay.

mod format;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod recovery;
mod runtime;

pub use format::{
    BLOCK_HEADER_BYTES, BlockCodec, BlockDamage, BlockEnd, BlockHeader, Change, CheckpointEntry,
    CheckpointPart, Compression, Cursor, DatabaseId, EarlierFile, FILE_HEADER_BYTES, FORMAT_VERSION,
    FileHeader, FileIdentity, FileRole, HeaderDamage, LEFT_OUT_BYTES, LogFileName, LoggerFiles, Malformed,
    Manifest, ManifestDamage, OpeningId, PATCH_PAIR_BYTES_MAX, PAYLOAD_BYTES_MAX, PatchWords, SealedHeader,
    Transactions, Write, block_bytes, delete_bytes, encode_delete, encode_patch, encode_put,
    encode_transaction, epoch_of, patch_bytes, patch_bytes_max, put_bytes, transaction_bytes, varint_bytes,
    write_bytes_max,
};
pub use recovery::{
    BackedUp, CheckedFile, CheckpointPlace, CheckpointWriter, CheckpointWriterOptions, Consequence,
    DEFINITION_TABLES, Damage, DatabaseFiles, Dumped, Finding, FinishedCheckpoint, Found, GenerationOptions,
    GivenUp, InstalledCheckpoint, Loss, NewGeneration, NewLogger, OpenError, Progress, ProgressReport,
    ReadOnlyFiles, RecordKey, Repaired, Replay, ReplayError, Replayed, Salvaged, SalvagedTable, Unopened,
    UnreadableRecords, Verified, WrittenParts, backup, check_file, dump, inspect, inspect_read_only,
    log_identity, manifest_of, repair, salvage, verify,
};
pub use runtime::{
    Callback, EpochClock, ForeignAfter, Log, LogError, LogOptions, LogStatistics, LogWriter, ReserveError,
    Stored, Watcher, call_foreign, is_in_foreign_code, survive,
};
