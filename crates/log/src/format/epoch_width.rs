//! How wide the numbers of epochs are in a file, and what those of earlier formats stand for.
//!
//! Formats 1 to 3 have epochs of 40 bits, and 21 bits of a TID are its sequence; from format 4 on 44 and 17. A
//! TID is the same integer in all of them, so that versions keep their order: what was the epoch `e` of 40
//! bits are the sixteen epochs from `16 e` to `16 e + 15`, in which the transactions of `e` lie by the high
//! bits of their sequences. They count all or none, as those of one epoch do.
//!
//! So a number of 40 bits is read as the first of its sixteen epochs where it says where something begins, or
//! what something lies before ([`EpochWidth::first`]), and as the last one where it says up to where something
//! reaches ([`EpochWidth::last`]). Either is written again as the same number ([`EpochWidth::number`]). This
//! is the one place that knows it; beyond the readers of files all epochs are of 44 bits.

use ensilo_epoch::Epoch;

/// Every epoch is before this one: a TID has no room for more.
pub(crate) const EPOCH_END: Epoch = Epoch::new(Epoch::LAST.get() + 1);

/// The first format with epochs of 44 bits.
const FIRST_FORMAT_OF_44_BITS: u32 = 4;

/// The width of the numbers of epochs in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EpochWidth {
    /// 40 bits, in files of formats 1 to 3.
    Bits40,
    /// 44 bits: a number is the epoch.
    #[default]
    Bits44,
}

impl EpochWidth {
    /// Returns the width in what is written in this format.
    #[must_use]
    pub(crate) const fn of_format(format: u32) -> EpochWidth {
        if format < FIRST_FORMAT_OF_44_BITS { EpochWidth::Bits40 } else { EpochWidth::Bits44 }
    }

    /// Returns the first epoch that a number stands for, unless it is none of this width.
    #[must_use]
    pub(crate) fn first(self, number: u64) -> Option<Epoch> {
        let end = EPOCH_END.get() >> self.missing_bits();
        (number < end).then(|| Epoch::new(number << self.missing_bits()))
    }

    /// Returns the last epoch that a number stands for, unless it is none of this width. 0 stands for "none",
    /// and stays 0.
    #[must_use]
    pub(crate) fn last(self, number: u64) -> Option<Epoch> {
        let first = self.first(number)?;
        let others = if number == 0 { 0 } else { (1 << self.missing_bits()) - 1 };
        Some(Epoch::new(first.get() + others))
    }

    /// Returns the number that stands for this epoch.
    #[must_use]
    pub(crate) const fn number(self, epoch: Epoch) -> u64 {
        epoch.get() >> self.missing_bits()
    }

    /// Returns the epochs, the first and the last one, that the number of this epoch stands for.
    #[must_use]
    pub(crate) fn all_with(self, epoch: Epoch) -> (Epoch, Epoch) {
        let first = self.number(epoch) << self.missing_bits();
        (Epoch::new(first), Epoch::new(first + ((1 << self.missing_bits()) - 1)))
    }

    /// How many bits fewer than an epoch a number has.
    const fn missing_bits(self) -> u32 {
        match self {
            EpochWidth::Bits40 => Epoch::BITS - 40,
            EpochWidth::Bits44 => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_stands_for_the_epochs_of_the_tids_that_have_it(number in 1u64..1 << 40, below in 0u64..1 << 24) {
            let width = EpochWidth::Bits40;
            let (first, last) = (width.first(number).unwrap(), width.last(number).unwrap());
            let tid = number << 24 | below;
            let epoch = super::super::epoch_of(tid);
            prop_assert!(first <= epoch && epoch <= last, "{epoch} in {first} to {last}");
            prop_assert_eq!([first, epoch, last].map(|epoch| width.number(epoch)), [number; 3]);
            prop_assert_eq!(width.last(number - 1).unwrap().get().max(15) + 1, first.get());
            prop_assert_eq!(width.all_with(epoch), (first, last));
        }

        #[test]
        fn a_number_of_44_bits_is_its_epoch(number in 0..EPOCH_END.get()) {
            let (width, epoch) = (EpochWidth::Bits44, Epoch::new(number));
            prop_assert_eq!((width.first(number), width.last(number)), (Some(epoch), Some(epoch)));
            prop_assert_eq!((width.number(epoch), width.all_with(epoch)), (number, (epoch, epoch)));
        }
    }

    #[test]
    fn numbers_end_with_the_epochs() {
        assert_eq!(EpochWidth::Bits40.last((1 << 40) - 1), Some(Epoch::LAST));
        assert_eq!(EpochWidth::Bits44.last((1 << 44) - 1), Some(Epoch::LAST));
        for (width, end) in [(EpochWidth::Bits40, 1 << 40), (EpochWidth::Bits44, 1 << 44)] {
            for number in [end, u64::MAX] {
                assert_eq!((width.first(number), width.last(number)), (None, None));
            }
            assert_eq!((width.first(0), width.last(0)), (Some(Epoch::new(0)), Some(Epoch::new(0))));
        }
    }
}
