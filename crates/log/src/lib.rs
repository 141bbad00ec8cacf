//! Bytes and epochs on disk: log files, checkpoints, the manifest, and their replay.

mod format;
mod runtime;

pub use format::{
    BLOCK_HEADER_BYTES, BlockCodec, BlockDamage, BlockEnd, BlockHeader, Change, Compression, Cursor,
    DatabaseId, FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, FileIdentity, FileRole, HeaderDamage,
    LogFileName, Malformed, PATCH_PAIR_BYTES_MAX, PAYLOAD_BYTES_MAX, PatchWords, SealedHeader, Transactions,
    Write, block_bytes, delete_bytes, encode_delete, encode_patch, encode_put, encode_transaction, epoch_of,
    patch_bytes, patch_bytes_max, put_bytes, transaction_bytes, varint_bytes,
};
pub use runtime::{LogError, LogWriter, ReserveError};
