//! What keys, rows and schemas may have at most.

/// The longest key in bytes.
pub const KEY_LEN_MAX: usize = 4096;

/// The longest row in bytes: values of 16 MiB, and room beside them.
pub const ROW_LEN_MAX: usize = 32 << 20;

/// The most bytes of a row that its columns of fixed width take. A column of variable length takes four of them.
pub const FIXED_LEN_MAX: usize = 1 << 20;

/// The longest name of a table, column or index in bytes.
pub const NAME_LEN_MAX: usize = 255;

/// The most columns of a table.
pub(crate) const COLUMNS_MAX: usize = 1024;

/// The most secondary indexes of a table.
pub const INDEXES_MAX: usize = 64;
