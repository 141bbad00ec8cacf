//! Text of a bounded length, stored in place.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::Malformed;

/// Text of at most `N` (up to 65535) bytes of UTF-8, held in place: it is `Copy` and never allocates.
///
/// ```
/// use ensilo_row::Text;
///
/// let name: Text<16> = "BARBARBAR".try_into()?;
/// assert_eq!(name, "BARBARBAR");
/// assert_eq!(Text::<3>::truncated("naïve").as_str(), "na");
/// # Ok::<(), ensilo_row::TextError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    len: u16,
    /// UTF-8 up to `len`, then zeros.
    bytes: [u8; N],
}

/// Why bytes are no [`Text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextError {
    /// The text is longer than the column holds: shorten it, or make the column wider.
    TooLong {
        /// The length of the text in bytes.
        len: usize,
        /// The most bytes that the column holds.
        len_max: usize,
    },
    /// The bytes are not UTF-8.
    NotUtf8,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { len, len_max } => {
                write!(
                    f,
                    "text of {len} bytes does not fit a column of {len_max}; shorten it or widen the column"
                )
            }
            Self::NotUtf8 => f.write_str("the bytes are not UTF-8; use a bytes column"),
        }
    }
}

impl std::error::Error for TextError {}

impl<const N: usize> Text<N> {
    /// The empty text.
    pub const EMPTY: Self = {
        assert!(N <= u16::MAX as usize, "Text holds at most 65535 bytes");
        Self { len: 0, bytes: [0; N] }
    };

    /// Returns the same text.
    ///
    /// # Errors
    /// [`TextError::TooLong`].
    #[inline]
    pub fn new(text: &str) -> Result<Self, TextError> {
        Self::of_valid(text.as_bytes())
    }

    /// Returns the text that these bytes are.
    ///
    /// # Errors
    /// [`TextError::TooLong`], [`TextError::NotUtf8`].
    #[inline]
    pub fn from_utf8(bytes: &[u8]) -> Result<Self, TextError> {
        if !bytes.is_ascii() && std::str::from_utf8(bytes).is_err() {
            return Err(TextError::NotUtf8);
        }
        Self::of_valid(bytes)
    }

    /// As much of the front of `text` as fits.
    pub fn truncated(text: &str) -> Self {
        let mut result = Self::EMPTY;
        result.push_truncated(text);
        result
    }

    /// Appends the text.
    ///
    /// # Errors
    /// [`TextError::TooLong`]; nothing is appended then.
    pub fn push_str(&mut self, text: &str) -> Result<(), TextError> {
        let end = self.len() + text.len();
        let target = self
            .bytes
            .get_mut(usize::from(self.len)..end)
            .ok_or(TextError::TooLong { len: end, len_max: N })?;
        target.copy_from_slice(text.as_bytes());
        self.len = end as u16;
        Ok(())
    }

    /// Returns the text.
    #[inline]
    pub fn as_str(&self) -> &str {
        match std::str::from_utf8(self.as_bytes()) {
            Ok(text) => text,
            Err(_) => unreachable!("every constructor takes UTF-8 alone"),
        }
    }

    /// Returns the text as UTF-8.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether it is the empty text.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the text, then zeros.
    #[inline]
    pub(crate) const fn padded(&self) -> &[u8; N] {
        &self.bytes
    }

    /// Returns the text of `len <= N` bytes that `next_word` gives word by word.
    ///
    /// # Errors
    /// [`Malformed`] if they are not UTF-8.
    #[inline]
    pub(crate) fn from_words(len: usize, mut next_word: impl FnMut() -> u64) -> Result<Self, Malformed> {
        const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
        debug_assert!(len <= N);
        let mut text = Self { len: len as u16, bytes: [0; N] };
        let mut seen = 0;
        let mut at = 0;
        let (chunks, rest) = text.bytes.as_chunks_mut::<8>();
        for chunk in chunks {
            // Short columns are read whole: a few loads cost less than a branch that depends on the text.
            if N > BRANCH_FREE_MAX && at >= len {
                break;
            }
            let word = next_word() & kept(len.saturating_sub(at));
            seen |= word;
            *chunk = word.to_le_bytes();
            at += 8;
        }
        if !rest.is_empty() && at < len {
            let word = next_word() & kept(len - at);
            seen |= word;
            let part = rest.len();
            rest.copy_from_slice(&word.to_le_bytes()[..part]);
        }
        if seen & HIGHS != 0 && std::str::from_utf8(text.as_bytes()).is_err() {
            return Err(Malformed);
        }
        Ok(text)
    }

    fn of_valid(bytes: &[u8]) -> Result<Self, TextError> {
        let mut text = Self::EMPTY;
        let target =
            text.bytes.get_mut(..bytes.len()).ok_or(TextError::TooLong { len: bytes.len(), len_max: N })?;
        target.copy_from_slice(bytes);
        text.len = bytes.len() as u16;
        Ok(text)
    }

    fn push_truncated(&mut self, text: &str) {
        let room = N - self.len();
        let part = &text[..text.floor_char_boundary(room)];
        let start = self.len();
        self.bytes[start..start + part.len()].copy_from_slice(part.as_bytes());
        self.len += part.len() as u16;
    }
}

/// The longest column that is read without asking how long the text is.
const BRANCH_FREE_MAX: usize = 64;

/// Returns the mask of the first `len` bytes of a word.
#[inline(always)]
const fn kept(len: usize) -> u64 {
    if len >= 8 { u64::MAX } else { (1 << (len * 8)) - 1 }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> PartialEq for Text<N> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.bytes == other.bytes
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> PartialOrd for Text<N> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> Ord for Text<N> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl<const N: usize> Hash for Text<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl<const N: usize> PartialEq<str> for Text<N> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> PartialEq<&str> for Text<N> {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> AsRef<str> for Text<N> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> TryFrom<&str> for Text<N> {
    type Error = TextError;

    fn try_from(text: &str) -> Result<Self, TextError> {
        Self::new(text)
    }
}

impl<const N: usize> FromStr for Text<N> {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::new(text)
    }
}

impl<const N: usize> From<Text<N>> for String {
    fn from(text: Text<N>) -> Self {
        text.as_str().to_owned()
    }
}

/// Appends; a text that does not fit is an error and leaves the front of it that was written before.
impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text).map_err(|_| fmt::Error)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn words_past_the_text_do_not_count() {
        fn check<const N: usize>(text: &str) {
            let mut stored = text.as_bytes().to_vec();
            stored.resize(N.next_multiple_of(8) + 8, 0xff);
            let mut words = stored.as_chunks::<8>().0.iter();
            let next_word = || u64::from_le_bytes(*words.next().unwrap());
            let read = Text::<N>::from_words(text.len(), next_word).unwrap();
            assert_eq!(read, Text::new(text).unwrap());
            assert_eq!(read.padded()[text.len()..], vec![0; N - text.len()]);
        }
        for len in 0..=9 {
            let text = &"hällo world"[..len + usize::from(len == 2)];
            check::<9>(text);
            check::<16>(text);
            check::<100>(text);
        }
        check::<0>("");
        assert_eq!(Text::<9>::from_words(2, || 0xffc3), Err(Malformed));
    }

    #[test]
    fn text_is_cut_or_refused_at_its_length() {
        assert_eq!(Text::<3>::new("abcd"), Err(TextError::TooLong { len: 4, len_max: 3 }));
        assert_eq!(Text::<3>::from_utf8(&[0xff]), Err(TextError::NotUtf8));
        assert_eq!(Text::<3>::truncated("aéé").as_str(), "aé");
        let mut text = Text::<4>::EMPTY;
        assert!(write!(text, "{}-{}", 12, 3).is_ok());
        assert_eq!(text, "12-3");
        assert_eq!(text.push_str("x"), Err(TextError::TooLong { len: 5, len_max: 4 }));
        assert_eq!(format!("{text:>6}|{text:?}"), "  12-3|\"12-3\"");
        assert!(Text::<9>::new("b").unwrap() > Text::new("aé").unwrap());
    }
}
