//! Keys by number.

/// A key type: numbers that sort like their bytes.
pub(crate) trait Key: Copy + Ord + Send + Sync + std::fmt::Debug + 'static {
    /// The key's bytes, for maps that take bytes.
    type Bytes: AsRef<[u8]> + Copy + Send;

    fn to_bytes(self) -> Self::Bytes;
}

impl Key for u64 {
    type Bytes = [u8; 8];

    #[inline]
    fn to_bytes(self) -> [u8; 8] {
        self.to_be_bytes()
    }
}

impl Key for [u64; 3] {
    type Bytes = [u8; 24];

    #[inline]
    fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (chunk, part) in bytes.chunks_exact_mut(8).zip(self) {
            chunk.copy_from_slice(&part.to_be_bytes());
        }
        bytes
    }
}

/// Which key has which number.
pub(crate) trait Keys: Send + Sync + Copy {
    type Key: Key;

    fn key(self, number: u64) -> Self::Key;
}

/// Numbers spread over the whole range, each once.
#[derive(Debug, Copy, Clone)]
pub(crate) struct Random;

impl Keys for Random {
    type Key = u64;

    #[inline]
    fn key(self, number: u64) -> u64 {
        spread(number)
    }
}

/// The numbers themselves.
#[derive(Debug, Copy, Clone)]
pub(crate) struct Sequential;

impl Keys for Sequential {
    type Key = u64;

    #[inline]
    fn key(self, number: u64) -> u64 {
        number
    }
}

/// Three parts, as in (warehouse, customer, order): about 1000 first parts, 10 keys to each pair of the first two.
#[derive(Debug, Copy, Clone)]
pub(crate) struct Composite {
    pub(crate) keys: u64,
}

impl Keys for Composite {
    type Key = [u64; 3];

    #[inline]
    fn key(self, number: u64) -> [u64; 3] {
        let spread = spread(number);
        let pair = spread % (self.keys / 10).max(1);
        [pair % 1000, pair / 1000, number]
    }
}

/// A bijection of the 64-bit numbers that looks random.
#[inline]
pub(crate) fn spread(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Numbers below a bound, one after the other, the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Numbers(spread(seed))
    }

    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let high = self.0 ^ (self.0 >> 29);
        ((u128::from(high) * u128::from(bound)) >> 64) as u64
    }
}
