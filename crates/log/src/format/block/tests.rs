use super::super::identity::{DatabaseId, FileIdentity, FileRole, OpeningId};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn file(sequence: u64) -> FileIdentity {
    let file = FileRole::Log { generation: 3, logger: 1, sequence };
    FileIdentity { database: DatabaseId(77), file, opening: OpeningId(4), epochs: EpochWidth::Bits44 }
}

fn headers() -> impl Strategy<Value = BlockHeader> {
    let end = prop_oneof![Just(BlockEnd::None), Just(BlockEnd::Seal), Just(BlockEnd::Closed)];
    let epoch = 1u64..(1 << 44) - 3;
    (0u64..1 << 20, 0u64..1 << 20, any::<bool>(), epoch.clone(), epoch.clone(), any::<bool>(), epoch, end)
        .prop_map(|(offset, unsynced, entries, first, mark, marked, durable, end)| BlockHeader {
            epochs: entries.then_some((Epoch::new(first), Epoch::new(first + 3))),
            mark: marked.then_some(Epoch::new(mark)),
            end,
            ..BlockHeader::new(offset, offset.saturating_sub(unsynced), Epoch::new(durable))
        })
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop_oneof![
        vec(vec(any::<u8>(), 0..100), 0..4),
        vec((any::<u8>(), 0usize..3000).prop_map(|(byte, len)| vec![byte; len]), 0..4),
    ]
}

fn seal(header: &BlockHeader, payload: &[Vec<u8>], compression: Compression) -> Vec<u8> {
    let pieces: Vec<&[u8]> = payload.iter().map(Vec::as_slice).collect();
    let mut out = vec![0xee; 16];
    BlockCodec::new(&file(1)).seal(&mut out, header, &pieces, compression);
    out.split_off(16)
}

proptest! {
    #[test]
    fn blocks_of_earlier_formats_have_numbers_of_40_bits(header in headers(), payload in payloads()) {
        let file = FileIdentity { epochs: EpochWidth::Bits40, ..file(1) };
        let codec = BlockCodec::new(&file);
        let pieces: Vec<&[u8]> = payload.iter().map(Vec::as_slice).collect();
        let mut bytes = Vec::new();
        codec.seal(&mut bytes, &header, &pieces, Compression::None);
        let (sealed, _) = codec.check(&bytes, header.offset).unwrap();
        let [first, last] = [|(first, _)| first, |(_, last)| last];
        let number_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let numbers = [32, 40, 48, 56].map(number_at);
        let epochs = |header: &BlockHeader| {
            let entries = header.epochs.unwrap_or_default();
            [first(entries), last(entries), header.mark.unwrap_or_default(), header.durable_epoch]
        };
        prop_assert_eq!(epochs(&header).map(|epoch| epoch.get() >> 4), numbers);
        let [first, last, mark, durable] = epochs(&sealed.header).map(Epoch::get);
        let end_of = |number: u64| if number == 0 { 0 } else { number << 4 | 15 };
        prop_assert_eq!([first, mark], [numbers[0] << 4, numbers[2] << 4]);
        prop_assert_eq!([last, durable], [end_of(numbers[1]), end_of(numbers[3])]);
        let claim = BlockClaim::read(bytes.first_chunk().unwrap()).unwrap();
        prop_assert_eq!(claim.last_entry(EpochWidth::Bits40).get(), last);
        bytes[62] = 1;
        codec.mend(&mut bytes);
        prop_assert_eq!(codec.check(&bytes, header.offset), Err(BlockError::Header));
    }

    #[test]
    fn blocks_come_back(header in headers(), payload in payloads(), compress: bool) {
        let compression = if compress { Compression::Lz4 } else { Compression::None };
        let mut bytes = seal(&header, &payload, compression);
        let len = bytes.len();
        bytes.extend([1, 2, 3]);
        let (sealed, place) = BlockCodec::new(&file(1)).check(&bytes, header.offset).unwrap();
        prop_assert_eq!(sealed.bytes(), len);
        prop_assert_eq!(sealed.header, header);
        let mut scratch = Vec::new();
        prop_assert_eq!(sealed.raw(&bytes[place], &mut scratch).unwrap(), payload.concat());
    }

    #[test]
    fn sealing_in_place_makes_the_same_block(header in headers(), payload in payloads()) {
        let mut block = vec![0xee; BLOCK_HEADER_BYTES];
        block.extend(payload.concat());
        BlockCodec::new(&file(1)).seal_in_place(&mut block, &header);
        prop_assert_eq!(block, seal(&header, &payload, Compression::None));
    }

    #[test]
    fn a_block_is_valid_only_where_it_was_written(header in headers(), payload in payloads()) {
        let bytes = seal(&header, &payload, Compression::None);
        prop_assert!(BlockCodec::new(&file(2)).check(&bytes, header.offset).is_err());
        prop_assert_eq!(BlockCodec::new(&file(1)).check(&bytes, header.offset + 8), Err(BlockError::Offset));
    }

    #[test]
    fn arbitrary_bytes_are_no_block(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(BlockCodec::new(&file(1)).check(&bytes, 0).is_err());
    }

    #[test]
    fn a_header_that_lies_is_survived(header in headers(), payload in payloads(), at in 8usize..64, value: u8) {
        // Whoever can compute a checksum may write any header: it must not make the reader panic.
        let mut bytes = seal(&header, &payload, Compression::Lz4);
        bytes[at] = value;
        let codec = BlockCodec::new(&file(1));
        let checksum = codec.checksum(&bytes);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        if let Ok((sealed, place)) = codec.check(&bytes, header.offset) {
            let _ = sealed.raw(&bytes[place], &mut Vec::new());
        }
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let header = BlockHeader {
        epochs: Some((Epoch::new(5), Epoch::new(6))),
        mark: Some(Epoch::new(7)),
        ..BlockHeader::new(4096, 4096, Epoch::new(4))
    };
    let codec = BlockCodec::new(&file(1));
    for compression in [Compression::None, Compression::Lz4] {
        let mut bytes =
            seal(&header, &[b"a payload, a payload, a payload and one more".to_vec()], compression);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(codec.check(&bytes, 4096).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..bytes.len() {
            assert_eq!(codec.check(&bytes[..len], 4096), Err(BlockError::Length));
        }
        assert!(codec.check(&bytes, 4096).is_ok());
    }
}

#[test]
fn a_reservation_stands_alone() {
    let codec = BlockCodec::new(&file(1));
    let reservation =
        BlockHeader { reserved_bytes: Some(1 << 50), ..BlockHeader::new(4096, 0, Epoch::new(4)) };
    let bytes = seal(&reservation, &[], Compression::None);
    assert_eq!(codec.check(&bytes, 4096).unwrap().0.header, reservation);
    let bytes = seal(&reservation, &[vec![1]], Compression::None);
    assert_eq!(codec.check(&bytes, 4096), Err(BlockError::Header));
    for header in [
        BlockHeader { mark: Some(Epoch::new(9)), ..reservation },
        BlockHeader { end: BlockEnd::Closed, ..reservation },
    ] {
        let bytes = seal(&header, &[], Compression::None);
        assert_eq!(codec.check(&bytes, 4096), Err(BlockError::Header));
    }
}

#[test]
fn what_is_too_far_to_be_said_is_not_claimed_to_be_synced() {
    let header = BlockHeader::new(1 << 40, 1 << 30, Epoch::new(4));
    let bytes = seal(&header, &[], Compression::None);
    let (sealed, _) = BlockCodec::new(&file(1)).check(&bytes, 1 << 40).unwrap();
    assert_eq!(sealed.header.synced_to, 0);
}

#[test]
fn nothing_is_not_the_compressed_form_of_something() {
    let codec = BlockCodec::new(&file(1));
    let mut bytes = seal(&BlockHeader::new(4096, 0, Epoch::new(4)), &[], Compression::None);
    bytes[12] = 200;
    bytes[16] |= COMPRESSED as u8;
    codec.mend(&mut bytes);
    assert_eq!(codec.check(&bytes, 4096), Err(BlockError::Header));
}

#[test]
fn zeros_are_told_from_damage() {
    assert_eq!(BlockCodec::new(&file(1)).check(&[0; 80], 0), Err(BlockError::Empty));
}
