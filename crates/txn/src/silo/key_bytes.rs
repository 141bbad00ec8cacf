//! Keys that are kept beyond their transactions.

/// A key that is kept beyond its transaction: short ones without an allocation.
#[derive(Debug)]
pub(super) enum KeyBytes {
    Short(u8, [u8; KeyBytes::SHORT_MAX]),
    Long(Box<[u8]>),
}

impl KeyBytes {
    const SHORT_MAX: usize = 22;

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            KeyBytes::Short(len, bytes) => &bytes[..usize::from(*len)],
            KeyBytes::Long(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for KeyBytes {
    fn from(key: &[u8]) -> Self {
        if key.len() > KeyBytes::SHORT_MAX {
            return KeyBytes::Long(key.into());
        }
        let mut bytes = [0; KeyBytes::SHORT_MAX];
        bytes[..key.len()].copy_from_slice(key);
        KeyBytes::Short(key.len() as u8, bytes)
    }
}
