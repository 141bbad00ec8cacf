//! Columns that hold any value that serde knows, as JSON.

use std::fmt;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{ColumnType, ColumnValue, KeyBuf, KeyReader, Malformed, Slot, Words};

/// A column that holds a value of any type that serde knows, as a text column with the value as JSON.
///
/// It has the text from the beginning, and keeps that of a stored row as it is. What a value looks like in JSON is up to its type, so a type that
/// changes has to go on reading what is stored: a row whose text is none of its values is an error of the statement that reads it
/// (`Error::UnknownValue`).
///
/// Keys have the order of the texts, and are equal if those are.
///
/// ```
/// use ensilo_row::Json;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
/// struct Address {
///     street: String,
///     lines: Vec<String>,
/// }
///
/// let mut address = Json::new(Address { street: "Main St".to_owned(), lines: vec![] })?;
/// assert_eq!(address.text(), r#"{"street":"Main St","lines":[]}"#);
/// address.change(|address| address.lines.push("2nd floor".to_owned()))?;
/// assert_eq!(address.lines, ["2nd floor"]);
/// # Ok::<(), ensilo_row::JsonError>(())
/// ```
#[derive(Clone)]
pub struct Json<T> {
    value: T,
    text: String,
}

/// Why a value cannot be a [`Json`].
#[derive(Debug)]
#[non_exhaustive]
pub enum JsonError {
    /// The value cannot be written as JSON, or the text is none of its type.
    Serde(serde_json::Error),
    /// What is written as JSON is not read as the same value: it has a NaN, say, or a field that is left out.
    Changed,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serde(error) => write!(f, "the value is no JSON: {error}"),
            Self::Changed => {
                f.write_str("the value would not be read from JSON as it is; leave out no field, and no float that is a NaN")
            }
        }
    }
}

impl std::error::Error for JsonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Serde(error) => Some(error),
            Self::Changed => None,
        }
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Serde(error)
    }
}

impl<T: Serialize + DeserializeOwned + PartialEq> Json<T> {
    /// Returns the value as a column. It is written as JSON, and read again to see whether it is kept.
    ///
    /// # Errors
    /// [`JsonError::Serde`] if it cannot be written, [`JsonError::Changed`] if it would be read as another value.
    pub fn new(value: T) -> Result<Self, JsonError> {
        let text = serde_json::to_string(&value)?;
        let read = serde_json::from_str::<T>(&text).map_err(|_| JsonError::Changed)?;
        if read == value { Ok(Self { value, text }) } else { Err(JsonError::Changed) }
    }

    /// Changes the value.
    ///
    /// # Errors
    /// As [`Json::new`]; the value is as it was then.
    pub fn change(&mut self, change: impl FnOnce(&mut T)) -> Result<(), JsonError>
    where
        T: Clone,
    {
        let mut value = self.value.clone();
        change(&mut value);
        *self = Self::new(value)?;
        Ok(())
    }
}

impl<T: DeserializeOwned> Json<T> {
    /// Returns the value that a text is, and keeps the text.
    ///
    /// # Errors
    /// [`JsonError::Serde`] if it is none of the type.
    pub fn from_text(text: String) -> Result<Self, JsonError> {
        Ok(Self { value: serde_json::from_str(&text)?, text })
    }
}

impl<T> Json<T> {
    /// Returns the value as JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Json<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Json<T> {}

impl<T: fmt::Debug> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> From<Json<T>> for crate::Value {
    fn from(json: Json<T>) -> Self {
        Self::Text(json.text)
    }
}

/// As the value is.
impl<T: Serialize> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: Serialize + DeserializeOwned + PartialEq> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(T::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl<T: DeserializeOwned + Clone + PartialEq + 'static> ColumnValue for Json<T> {
    const TYPE: ColumnType = ColumnType::Text;
    const KEY_LEN: Option<usize> = None;

    fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
        Self::from_text(String::read(row, slot)?).map_err(|_| Malformed)
    }

    #[inline(always)]
    fn write(&self, _words: &mut [u64], _slot: Slot) {}

    #[inline(always)]
    fn variable_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }

    fn encode_value_key(&self, key: &mut KeyBuf) {
        self.text.encode_value_key(key);
    }

    fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        Self::from_text(String::decode_value_key(key)?).map_err(|_| Malformed)
    }
}
