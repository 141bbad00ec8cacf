//! A logger's side of the ring.
//!
//! Every logger reads the headers of all records, and takes those that lie in its chunks.

use std::ops::Range;
use std::sync::Arc;

use ensilo_epoch::Epoch;

use super::Ring;
use super::space::CHUNK_UNITS;
use crate::runtime::buffer::{HEADROOM, Taken};

/// No more than this is gathered in one piece, which may become a block of its own.
const PIECE_BYTES_MAX: usize = 512 << 10;

/// Memory that is kept for the next round.
const KEPT_BYTES: usize = 4 << 20;

/// What one logger takes from the ring.
#[derive(Debug)]
pub(crate) struct RingReader {
    ring: Arc<Ring>,
    logger: usize,
    /// It has finished all segments of earlier epochs.
    finished_before: Epoch,
    /// Segments that were taken from and are not finished, each with the end of its records.
    taken: Vec<(Epoch, u64)>,
    gathered: Gathered,
}

/// Payloads one after the other, in pieces with room for the header of a block before each.
#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    bytes: Range<usize>,
    transactions: u64,
}

impl RingReader {
    pub(crate) fn new(ring: Arc<Ring>, logger: usize) -> RingReader {
        let finished_before = Epoch::new(0);
        RingReader { ring, logger, finished_before, taken: Vec::new(), gathered: Gathered::default() }
    }

    /// Gathers this logger's transactions of all epochs before the complete frontier that it has not finished.
    pub(crate) fn gather(&mut self, frontier: Epoch) -> Vec<Taken<'_>> {
        let RingReader { ring, logger, finished_before, taken, gathered } = self;
        gathered.clear();
        taken.clear();
        ring.note_frontier(frontier);
        if !ring.is_pending() {
            return Vec::new();
        }
        let epochs = ring.entries.iter().filter_map(|entry| entry.open_epoch());
        for epoch in epochs.filter(|epoch| (*finished_before..frontier).contains(epoch)) {
            let Some(segment) = ring.entry(epoch).segment(epoch) else { continue };
            let add = |unit: u64, payload: &[u8]| {
                if (epoch.get() + unit / CHUNK_UNITS) % ring.loggers as u64 == *logger as u64 {
                    gathered.add(payload);
                }
            };
            // SAFETY: the frontier is behind the epoch, so that all places are filled (I2); nobody writes there
            // again before this logger has finished the segment.
            taken.push((epoch, unsafe { segment.read(epoch, ring.key, add) }));
        }
        gathered.frames()
    }

    /// What was gathered with this frontier was written.
    pub(crate) fn finish(&mut self, frontier: Epoch) {
        for (epoch, end) in self.taken.drain(..) {
            self.ring.finish(epoch, end);
        }
        self.finished_before = self.finished_before.max(frontier);
    }
}

impl Gathered {
    fn clear(&mut self) {
        self.pieces.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }

    fn add(&mut self, payload: &[u8]) {
        let fits = |piece: &&mut Piece| piece.bytes.len() + payload.len() <= PIECE_BYTES_MAX;
        if self.pieces.last_mut().filter(fits).is_none() {
            let from = self.bytes.len();
            self.bytes.resize(from + HEADROOM, 0);
            self.pieces.push(Piece { bytes: from..from + HEADROOM, transactions: 0 });
        }
        self.bytes.extend_from_slice(payload);
        if let Some(piece) = self.pieces.last_mut() {
            piece.bytes.end = self.bytes.len();
            piece.transactions += 1;
        }
    }

    fn frames(&mut self) -> Vec<Taken<'_>> {
        let mut rest = &mut self.bytes[..];
        let mut frames = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let (frame, others) = std::mem::take(&mut rest).split_at_mut(piece.bytes.len());
            rest = others;
            frames.push(Taken { frame, transactions: piece.transactions });
        }
        frames
    }
}
