//! What the bytes of a value say, so that a lost update or a torn write can be found after the run.
//!
//! # Layout
//! ```text
//! 0..8   the counter: read-modify-writes of the record so far, or the mark of a blind update
//! 8..    the body: words that depend on key, counter and position; the last may be cut short
//! ```

/// The bit of a counter that a blind update sets: what it overwrote is not counted on.
pub const BLIND: u64 = 1 << 63;

/// The counter of a value.
#[inline]
pub fn counter(value: &[u8]) -> u64 {
    value.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Makes `value` the value of the record `key` with this counter.
#[inline]
pub fn fill(value: &mut [u8], key: u64, counter: u64) {
    let Some((head, body)) = value.split_first_chunk_mut::<8>() else { return };
    *head = counter.to_le_bytes();
    let mut word = first_word(key, counter);
    let (words, rest) = body.as_chunks_mut::<8>();
    for target in words {
        *target = word.to_le_bytes();
        word = next_word(word);
    }
    let cut = rest.len();
    rest.copy_from_slice(&word.to_le_bytes()[..cut]);
}

/// What the fields beside a value are: words that depend on its first sixteen bytes, hence on its counter and, of values that have a
/// body, on its key, and are spread over all numbers.
#[inline]
pub fn fields<const N: usize>(value: &[u8]) -> [u64; N] {
    let body =
        value.get(8..16).and_then(<[u8]>::first_chunk::<8>).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    std::array::from_fn(|at| first_word(body, counter(value).wrapping_add(at as u64 + 1)).rotate_left(17))
}

/// Whether `value` is what [`fill`] makes for its counter.
pub fn is_whole(value: &[u8], key: u64) -> bool {
    let Some((head, body)) = value.split_first_chunk::<8>() else { return false };
    let mut word = first_word(key, u64::from_le_bytes(*head));
    body.chunks(8).all(|part| {
        let expected = word.to_le_bytes();
        word = next_word(word);
        part == &expected[..part.len()]
    })
}

#[inline]
fn first_word(key: u64, counter: u64) -> u64 {
    (key ^ counter.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline]
fn next_word(word: u64) -> u64 {
    word.rotate_left(7).wrapping_add(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_value_is_whole_and_knows_its_counter() {
        for len in [8, 9, 15, 16, 100, 1_000] {
            let mut value = vec![0; len];
            fill(&mut value, 7, 42);
            assert!(is_whole(&value, 7), "{len}");
            assert_eq!(counter(&value), 42);
        }
    }

    #[test]
    fn a_torn_or_misplaced_value_is_not_whole() {
        let (mut old, mut new) = ([0; 100], [0; 100]);
        fill(&mut old, 7, 1);
        fill(&mut new, 7, 2);
        let mut torn = new;
        torn[96..].copy_from_slice(&old[96..]);
        assert!(!is_whole(&torn, 7));
        assert!(!is_whole(&new, 8));
        assert!(!is_whole(&[], 7));
    }
}
