//! The bytes of log files, checkpoints and the manifest: encoding and decoding, no files. Byte by byte:
//! `docs/format.md`.
#![forbid(unsafe_code)]

mod block;
mod block_error;
mod change_history;
mod compression;
mod cursor;
mod entry;
mod epoch_width;
mod file_header;
mod file_name;
mod framed;
mod identity;
mod manifest;
mod owner;
mod preamble;
mod transactions;

pub use block::{
    BLOCK_HEADER_BYTES, BlockCodec, BlockEnd, BlockHeader, PAYLOAD_BYTES_MAX, SealedHeader, block_bytes,
};
pub(crate) use block::{BLOCK_MAGIC, BlockClaim};
pub use block_error::BlockError;
pub(crate) use change_history::{ChangeHistory, KeptFile};
pub use compression::Compression;
pub(crate) use cursor::Decoder;
pub use cursor::{Cursor, Malformed, varint_bytes};
pub use entry::{
    LEFT_OUT_BYTES, PATCH_PAIR_BYTES_MAX, delete_bytes, encode_delete, encode_patch, encode_put,
    encode_transaction, patch_bytes, patch_bytes_max, put_bytes, transaction_bytes, write_bytes_max,
};
pub(crate) use entry::{encode_left_out, encode_patched};
pub(crate) use epoch_width::EPOCH_END;
pub use epoch_width::EpochWidth;
pub use file_header::{FILE_HEADER_BYTES, FileHeader};
pub use file_name::LogFileName;
pub(crate) use file_name::parse_number;
pub use identity::{DatabaseId, FileIdentity, FileRole, OpeningId};
pub(crate) use manifest::FIRST_COPY;
pub use manifest::{CheckpointEntry, CheckpointPart, EarlierFile, LoggerFiles, Manifest, ManifestError};
pub(crate) use owner::Owner;
pub use preamble::{FORMAT_VERSION, HeaderError};
pub use transactions::{Change, PatchWords, Transactions, Write, epoch_of, sequence_of};
