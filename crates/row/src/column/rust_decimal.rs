//! Decimals of the crate `rust_decimal`.
//!
//! # Layout
//! 16 bytes, big endian, whose order as bytes is that of the numbers. Each number but 0 is `sign * digits * 10^exponent` in one way
//! with 29 digits, the first of which is not 0; the exponent is -56 to 0.
//! ```text
//! bit 127          0 for a negative number, otherwise 1
//! bits 97 to 102   exponent + 56
//! bits 0 to 96     digits: 10^28 to 10^29 - 1
//! ```
//! Of a negative number, the 128 bits are those of its opposite, negated; 0 is bit 127 alone.

use rust_decimal::Decimal;

use super::stored_as::stored_as;

/// How many digits there are.
const DIGITS: u32 = 29;
const DIGITS_MIN: u128 = 10u128.pow(DIGITS - 1);
const DIGITS_BITS: u32 = 97;
const EXPONENT_MIN: i32 = -56;
const NOT_NEGATIVE: u128 = 1 << 127;
/// The most digits after the point.
const SCALE_MAX: u32 = 28;

stored_as! {
    /// Stored as `bytes(16)` in an encoding that has the order of the numbers (`docs/row-format.md`). All numbers are kept; zeros at the
    /// end after the point are not: `1.50` is read as `1.5`, which is equal. [`Decimal<SCALE>`](crate::Decimal) has half as many bytes,
    /// and a fixed number of digits after the point.
    Decimal as [u8; 16], |number| encode(number).to_be_bytes(), |bytes| decode(u128::from_be_bytes(bytes));
}

fn encode(number: Decimal) -> u128 {
    let magnitude = number.mantissa().unsigned_abs();
    if magnitude == 0 {
        return NOT_NEGATIVE;
    }
    let missing = DIGITS - 1 - magnitude.ilog10();
    let exponent = -(number.scale().cast_signed() + missing.cast_signed());
    let digits = magnitude * 10u128.pow(missing);
    let ordered = (exponent - EXPONENT_MIN) as u128 * (1 << DIGITS_BITS) + digits;
    if number.is_sign_negative() { NOT_NEGATIVE - ordered } else { NOT_NEGATIVE + ordered }
}

fn decode(bits: u128) -> Option<Decimal> {
    let (is_negative, ordered) = (bits < NOT_NEGATIVE, bits.abs_diff(NOT_NEGATIVE));
    if ordered == 0 {
        return Some(Decimal::ZERO);
    }
    let (exponent, digits) =
        ((ordered >> DIGITS_BITS) as i32 + EXPONENT_MIN, ordered & ((1 << DIGITS_BITS) - 1));
    if exponent > 0 || !(DIGITS_MIN..DIGITS_MIN * 10).contains(&digits) {
        return None;
    }
    let (magnitude, scale) = without_zeros(digits, exponent.unsigned_abs());
    if scale > SCALE_MAX || magnitude >> 96 != 0 {
        return None;
    }
    let parts = [magnitude, magnitude >> 32, magnitude >> 64].map(|part| part as u32);
    Some(Decimal::from_parts(parts[0], parts[1], parts[2], is_negative, scale))
}

/// Takes zeros from the end, at most as many as there are digits after the point.
fn without_zeros(mut digits: u128, mut scale: u32) -> (u128, u32) {
    // 28 zeros at most, as a sum of these.
    for zeros in [16, 8, 4, 2, 1] {
        let power = 10u128.pow(zeros);
        if scale >= zeros && digits.is_multiple_of(power) {
            digits /= power;
            scale -= zeros;
        }
    }
    (digits, scale)
}
