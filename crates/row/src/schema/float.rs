//! Floats of one width as bits of the other, without loss.
//!
//! A conversion of the processor makes every NaN a quiet one. The bits of a NaN count here (each is a key of its own), so
//! they are moved by hand: the fraction of an `f32` is the upper 23 of the 52 bits of an `f64`'s fraction.

/// The bits of a fraction that only the wide type has.
const EXTRA_BITS: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;

/// Returns the bits of the `f64` that is this number, or this NaN.
pub(super) fn widen(narrow: f32) -> u64 {
    if !narrow.is_nan() {
        return f64::from(narrow).to_bits();
    }
    let (sign, fraction) = (narrow.to_bits() >> 31, narrow.to_bits() << 9 >> 9);
    u64::from(sign) << 63 | f64::INFINITY.to_bits() | u64::from(fraction) << EXTRA_BITS
}

/// Returns the bits of the `f32` that is this number, or this NaN; `None` where there is none.
pub(super) fn narrow(wide: f64) -> Option<u32> {
    let narrow = if wide.is_nan() { narrow_nan(wide.to_bits()) } else { wide as f32 };
    (widen(narrow) == wide.to_bits()).then_some(narrow.to_bits())
}

/// Returns the NaN with the upper bits of this one's fraction, or an infinity where those are zero.
const fn narrow_nan(bits: u64) -> f32 {
    let (sign, fraction) = (bits >> 63 << 31, bits << 12 >> 12 >> EXTRA_BITS);
    f32::from_bits((sign | fraction) as u32 | f32::INFINITY.to_bits())
}
