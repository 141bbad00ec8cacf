//! The boxed details of errors.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Error;
use super::key_shape::{KeyShape, ShapedKey};

/// A name or a text in an error, one pointer wide.
#[derive(Clone, PartialEq, Eq)]
pub struct Name(Box<Box<str>>);

impl Name {
    #[cold]
    pub(crate) fn new(text: impl Into<Box<str>>) -> Self {
        Name(Box::new(text.into()))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The name of a column or an index, and the table that it is of, or that has none of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameInTable(Box<Named>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    table: Box<str>,
    name: Box<str>,
    /// What the table has instead, as far as it is known.
    instead: Option<Box<str>>,
}

/// So many names are listed that a table has.
const NAMES_LISTED_MAX: usize = 8;

impl NameInTable {
    #[cold]
    pub(crate) fn new(table: impl Into<Box<str>>, name: impl Into<Box<str>>) -> Self {
        NameInTable(Box::new(Named { table: table.into(), name: name.into(), instead: None }))
    }

    /// Returns a name that the table does not have, where it has these.
    #[cold]
    pub(crate) fn not_among(table: &str, name: &str, names: &[&str]) -> Self {
        let listed = names[..names.len().min(NAMES_LISTED_MAX)].join(", ");
        let instead = match names.len().checked_sub(NAMES_LISTED_MAX + 1) {
            None if names.is_empty() => "none".to_owned(),
            None => listed,
            Some(more) => format!("{listed} and {} more", more + 1),
        };
        let instead = Some(instead.into());
        NameInTable(Box::new(Named { table: table.into(), name: name.into(), instead }))
    }

    /// Returns the table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.table
    }

    /// Returns the name of the column or the index.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Writes that the table has no index of this name, and which ones it has, if that is known.
    pub(super) fn write_unknown_index(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {} has no index {}", self.table(), self.name())?;
        self.0.instead.iter().try_for_each(|instead| write!(f, "; its indexes: {instead}"))
    }
}

impl fmt::Display for NameInTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of table {}", self.name(), self.table())
    }
}

/// Which table differs from its static row type, and in what.
#[derive(Clone, Debug)]
pub struct SchemaMismatch(Box<(Box<str>, Vec<String>)>);

impl SchemaMismatch {
    #[cold]
    pub(crate) fn new(table: &str, differences: Vec<String>) -> Self {
        SchemaMismatch(Box::new((table.into(), differences)))
    }

    /// Returns the table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.0
    }

    /// Returns the differences, each in words that say what the table has, what the row type has, and what to write.
    /// Where columns differ, keys and indexes are not compared.
    #[must_use]
    pub fn differences(&self) -> &[String] {
        &self.0.1
    }
}

impl fmt::Display for SchemaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the row type does not fit table {}: {}", self.table(), self.differences().join("; "))?;
        f.write_str("; or, if a later version of the program has changed the table, run that one")
    }
}

/// Which step of a migration has failed, and with which error.
#[derive(Clone, Debug)]
pub struct MigrationFailed(Box<FailedStep>);

#[derive(Clone, Debug)]
struct FailedStep {
    number: u32,
    name: Box<str>,
    error: Error,
    /// What else there is to know, if anything.
    note: &'static str,
}

impl MigrationFailed {
    #[cold]
    pub(crate) fn new(number: u32, name: &str, error: Error, note: &'static str) -> Self {
        MigrationFailed(Box::new(FailedStep { number, name: name.into(), error, note }))
    }

    /// Returns the step's place, from 1 on; 0 of the set-up of a new database.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Returns the step's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the error that it has failed with.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.0.error
    }
}

impl fmt::Display for MigrationFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedStep { number, name, error, note } = &*self.0;
        match number {
            0 => write!(f, "{name} has failed: {error}{note}"),
            _ => write!(f, "step {number} of the migrations, \"{name}\", has failed: {error}{note}"),
        }
    }
}

/// Which column got a value that does not fit it.
#[derive(Clone, Debug)]
pub struct WrongType(Box<(Box<str>, Box<str>)>);

impl WrongType {
    #[cold]
    pub(crate) fn new(column: &str, problem: impl Into<Box<str>>) -> Self {
        WrongType(Box::new((column.into(), problem.into())))
    }

    /// Returns the column's name. It is empty when the number of values is what is wrong.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.0.0
    }

    /// Returns what is wrong, in words that name the column.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.0.1
    }
}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.problem())
    }
}

/// Which row of which table has a value that the program's row type does not have.
#[derive(Clone, Debug)]
pub struct UnknownValue(Box<RowKey>);

impl UnknownValue {
    #[cold]
    pub(crate) fn new(table: Arc<str>, keys: KeyShape, key: &[u8]) -> Self {
        UnknownValue(Box::new(RowKey { table, key: ShapedKey::new(keys, key) }))
    }

    /// Returns the table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.table
    }

    /// Returns the encoded primary key of the row.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0.key.bytes
    }
}

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, key) = (self.table(), &self.0.key);
        write!(f, "the row with {key} in table {table} has a value that the program's types do not have; ")?;
        f.write_str("read it with the version of the program that wrote it, or as a dynamic row")
    }
}

/// What is too long, how long it is and how long it may be.
#[derive(Clone, Debug)]
pub struct TooLong(Box<(Arc<str>, usize, usize)>);

impl TooLong {
    #[cold]
    pub(crate) fn new(table: Arc<str>, len_bytes: usize, len_bytes_max: usize) -> Self {
        TooLong(Box::new((table, len_bytes, len_bytes_max)))
    }

    /// Returns the table's name, or `table.index` for an index.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.0
    }

    /// Returns the length of the key or row, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.0.1
    }

    /// Returns the largest length that can be stored, in bytes.
    #[must_use]
    pub fn len_bytes_max(&self) -> usize {
        self.0.2
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {}, at most {}", self.len_bytes(), self.table(), self.len_bytes_max())
    }
}

/// Which key of which table or unique index is taken.
#[derive(Clone, Debug)]
pub struct DuplicateKey(Box<TakenKey>);

#[derive(Clone, Debug)]
struct TakenKey {
    table: Arc<str>,
    index: Option<Arc<str>>,
    key: ShapedKey,
}

impl DuplicateKey {
    #[cold]
    pub(crate) fn new(table: Arc<str>, index: Option<Arc<str>>, keys: KeyShape, key: &[u8]) -> Self {
        DuplicateKey(Box::new(TakenKey { table, index, key: ShapedKey::new(keys, key) }))
    }

    /// Returns the table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.table
    }

    /// Returns the unique index's name, or `None` for the primary key.
    #[must_use]
    pub fn index(&self) -> Option<&str> {
        self.0.index.as_deref()
    }

    /// Returns the encoded key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0.key.bytes
    }
}

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {} has a row with {} already", self.table(), self.0.key)?;
        match self.index() {
            Some(index) => write!(f, ", and its index {index} is unique"),
            None => Ok(()),
        }
    }
}

/// Which primary key of which table is missing.
#[derive(Clone, Debug)]
pub struct MissingRow(Box<RowKey>);

/// A primary key, and the table that it belongs to.
#[derive(Clone, Debug)]
struct RowKey {
    table: Arc<str>,
    key: ShapedKey,
}

impl MissingRow {
    #[cold]
    pub(crate) fn new(table: Arc<str>, keys: KeyShape, key: &[u8]) -> Self {
        MissingRow(Box::new(RowKey { table, key: ShapedKey::new(keys, key) }))
    }

    /// Returns the table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.table
    }

    /// Returns the encoded primary key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0.key.bytes
    }
}

impl fmt::Display for MissingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {} has no row with {}", self.table(), self.0.key)
    }
}

/// Which number of which row has no room for a sum.
#[derive(Clone, Debug)]
pub struct SumOutOfRange(Box<(RowKey, Box<str>)>);

impl SumOutOfRange {
    #[cold]
    pub(crate) fn new(table: Arc<str>, keys: KeyShape, key: &[u8], column: &str) -> Self {
        SumOutOfRange(Box::new((RowKey { table, key: ShapedKey::new(keys, key) }, column.into())))
    }

    /// Returns the table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.0.table
    }

    /// Returns the column's name.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.0.1
    }

    /// Returns the encoded primary key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0.0.key.bytes
    }
}

impl fmt::Display for SumOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (column, table) = (self.column(), self.table());
        write!(
            f,
            "the sum for column {column} of table {table} is below its smallest or above its largest number, in the row with {}",
            self.0.0.key
        )
    }
}

/// The error with which a closure undid its own transaction.
#[derive(Clone, Debug)]
pub struct UserError(Arc<Box<dyn std::error::Error + Send + Sync>>);

impl UserError {
    pub(super) fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        UserError(Arc::new(Box::new(error)))
    }

    pub(super) fn from_text(text: String) -> Self {
        UserError(Arc::new(text.into()))
    }

    /// Returns the error itself.
    #[must_use]
    pub fn get(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &**self.0
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
