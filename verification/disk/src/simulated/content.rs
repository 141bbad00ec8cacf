//! The bytes of a file, in chunks that copies share until one of them writes.

use std::sync::Arc;

const CHUNK_BYTES: usize = 4096;

type Chunk = [u8; CHUNK_BYTES];

/// Bytes that are cheap to copy.
///
/// # Invariants
/// - `I1` A missing chunk, and whatever lies past the last one, is zeros. So a file that is only long takes no memory.
/// - `I2` The bytes of a chunk past the length are zeros, so that a longer length shows zeros.
#[derive(Clone, Default)]
pub(super) struct Content {
    len_bytes: u64,
    chunks: Arc<Vec<Option<Arc<Chunk>>>>,
}

impl Content {
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Fills `bytes` from `offset` on; zeros past the length.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) {
        for piece in pieces(offset, bytes.len()) {
            let target = &mut bytes[piece.place..piece.place + piece.len];
            match self.chunks.get(piece.chunk) {
                Some(Some(chunk)) => target.copy_from_slice(&chunk[piece.start..piece.start + piece.len]),
                _ => target.fill(0),
            }
        }
    }

    /// Puts `bytes` at `offset`, and makes the file longer if it ends before.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let chunks = Arc::make_mut(&mut self.chunks);
        for piece in pieces(offset, bytes.len()) {
            if chunks.len() <= piece.chunk {
                chunks.resize(piece.chunk + 1, None);
            }
            let chunk = chunks[piece.chunk].get_or_insert_with(|| Arc::new([0; CHUNK_BYTES]));
            Arc::make_mut(chunk)[piece.start..piece.start + piece.len]
                .copy_from_slice(&bytes[piece.place..piece.place + piece.len]);
        }
        self.len_bytes = self.len_bytes.max(offset + bytes.len() as u64);
    }

    pub(super) fn set_len(&mut self, len_bytes: u64) {
        if len_bytes < self.len_bytes {
            self.forget_from(len_bytes);
        }
        self.len_bytes = len_bytes;
    }

    /// Keeps `I2` when the length falls to `len_bytes`.
    fn forget_from(&mut self, len_bytes: u64) {
        let (chunk, start) = split(len_bytes);
        if self.chunks.len() <= chunk {
            return;
        }
        let chunks = Arc::make_mut(&mut self.chunks);
        chunks.truncate(chunk + 1);
        match &mut chunks[chunk] {
            Some(last) if start > 0 => Arc::make_mut(last)[start..].fill(0),
            last => *last = None,
        }
    }
}

/// A part of a range of bytes that lies in one chunk.
struct Piece {
    chunk: usize,
    /// Where it begins in the chunk.
    start: usize,
    /// Where it begins in the range.
    place: usize,
    len: usize,
}

fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut place = 0;
    std::iter::from_fn(move || {
        if place == len {
            return None;
        }
        let (chunk, start) = split(offset + place as u64);
        let piece = Piece { chunk, start, place, len: (CHUNK_BYTES - start).min(len - place) };
        place += piece.len;
        Some(piece)
    })
}

/// Returns the chunk that an offset lies in, and the place within it.
fn split(offset: u64) -> (usize, usize) {
    let offset = usize::try_from(offset).expect("a simulated file fits the memory");
    (offset / CHUNK_BYTES, offset % CHUNK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, Content};

    #[test]
    fn what_was_cut_off_reads_as_zeros_when_the_file_grows_again() {
        for len_bytes in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
            let mut content = Content::default();
            content.write(0, &[1; 4 * CHUNK_BYTES]);
            let copy = content.clone();
            content.set_len(len_bytes as u64);
            content.set_len(5 * CHUNK_BYTES as u64);
            let mut bytes = [2; 5 * CHUNK_BYTES];
            content.read(0, &mut bytes);
            assert!(bytes[..len_bytes].iter().all(|&byte| byte == 1));
            assert!(bytes[len_bytes..].iter().all(|&byte| byte == 0));
            copy.read(0, &mut bytes);
            assert!(bytes[..4 * CHUNK_BYTES].iter().all(|&byte| byte == 1), "copies do not see it");
        }
    }
}
