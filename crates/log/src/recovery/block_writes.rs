//! What stands in the payload of a block: writes of transactions, or records of a checkpoint.

use ensilo_epoch::Epoch;

use super::corruption::CorruptionKind;
use crate::format::{
    BlockEnd, Change, Decoder, FileRole, Malformed, SealedHeader, Transactions, Write, epoch_of,
};

/// The writes in a block of a log file, or the records in one of a part of a checkpoint, each as the put that
/// it stands for. After an error there are no more.
pub(super) struct BlockWrites<'a> {
    payload: Payload<'a>,
    epochs: Option<(Epoch, Epoch)>,
}

enum Payload<'a> {
    Entries(Transactions<'a>),
    /// The table comes first.
    Records(Decoder<'a>, Option<u32>),
    /// The last block of a part.
    PartEnd,
}

impl<'a> BlockWrites<'a> {
    /// Reads the payload, as it was before compression, of a block in a file of this role.
    pub(super) fn new(role: FileRole, sealed: &SealedHeader, raw: &'a [u8]) -> BlockWrites<'a> {
        let payload = match role {
            FileRole::Log { .. } => Payload::Entries(Transactions::new(raw)),
            FileRole::Checkpoint { .. } if sealed.header.end == BlockEnd::None => {
                Payload::Records(Decoder::new(raw), None)
            }
            FileRole::Checkpoint { .. } => Payload::PartEnd,
        };
        BlockWrites { payload, epochs: sealed.header.epochs }
    }

    /// Returns the next one.
    #[inline]
    pub(super) fn next_write(&mut self) -> Result<Option<Write<'a>>, Malformed> {
        match &mut self.payload {
            Payload::Entries(transactions) => transactions.next_write(),
            Payload::Records(decoder, None) => {
                let table = decoder.varint_u32()?;
                self.payload = Payload::Records(decoder.clone(), Some(table));
                self.next_write()
            }
            Payload::Records(decoder, Some(_)) if decoder.is_empty() => Ok(None),
            Payload::Records(decoder, Some(table)) => read_record(decoder, *table).map(Some),
            Payload::PartEnd => Ok(None),
        }
    }

    /// Returns the next one, or what is wrong with it: also that the epoch of an entry does not lie within
    /// what the block says.
    #[inline]
    pub(super) fn next_checked(&mut self) -> Result<Option<Write<'a>>, CorruptionKind> {
        let write = self.next_write().map_err(CorruptionKind::Entry)?;
        let is_outside = |write: &Write<'_>| {
            let epoch = epoch_of(write.tid);
            self.epochs.is_none_or(|(first, last)| epoch < first || epoch > last)
        };
        if matches!(self.payload, Payload::Entries(_)) && write.as_ref().is_some_and(is_outside) {
            return Err(CorruptionKind::Epoch);
        }
        Ok(write)
    }
}

#[inline]
fn read_record<'a>(decoder: &mut Decoder<'a>, table: u32) -> Result<Write<'a>, Malformed> {
    let key_len = decoder.varint()?;
    let key = decoder.bytes(key_len)?;
    let tid = decoder.u64()?;
    let row_len = decoder.varint()?;
    Ok(Write { tid, table, key, change: Change::Put(decoder.bytes(row_len)?) })
}
