//! The order-preserving key codec: comparing two encoded keys byte by byte compares the values.
//!
//! # Layout
//! The columns of a key stand one after the other:
//! ```text
//! unsigned, bool   big endian
//! signed, decimal, timestamp   big endian with the sign bit flipped
//! floats           big endian; positive: sign bit flipped, negative: all bits flipped (IEEE 754 total order)
//! fixed bytes      as they are
//! text, bytes      escaped, then 00: byte 00 as 01 01, byte 01 as 01 02, every other byte as it is
//! nullable         00 for null, or 01 and the value: nulls come first; 02 for null where they come last
//! descending       all bytes of the column inverted
//! ```
//!
//! # Invariants
//! - K1: of one column type, no encoding is a proper prefix of another. So the first column that differs decides, and a
//!   key of several columns has the order of its tuple. For text: the codes of the symbols end < 00 < 01 < others are
//!   `00 < 01 01 < 01 02 < 02..`, in order and none a prefix of another.
//! - K2: equal encodings mean equal values. Floats are equal when their bits are: -0.0 comes before 0.0 and every NaN is a
//!   key of its own.

mod as_key;
mod as_key_column;
mod as_key_range;
mod buf;
mod column;
pub(crate) mod escaped;
mod given_as;
mod nulls_last;
mod prefix;
mod reader;
mod tuple;

pub use as_key::AsKey;
pub use as_key_column::{AsKeyColumn, TextColumn};
pub use as_key_range::AsKeyRange;
pub use buf::KeyBuf;
pub(crate) use column::NOT_NULL;
pub use column::{KeyColumn, KeyPart, Order};
pub use given_as::GivenAs;
pub use nulls_last::NullsLast;
pub use prefix::KeyPrefix;
pub use reader::KeyReader;
pub use tuple::Key;
