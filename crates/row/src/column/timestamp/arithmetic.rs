//! Sums of times and durations, and differences of times.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use super::Timestamp;

impl Timestamp {
    /// Returns the time that is so much later, or `None` if the type does not have it. What the duration has below a microsecond is cut off.
    #[must_use]
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        self.0.checked_add_unsigned(whole_micros(duration)?).map(Self)
    }

    /// Returns the time that is so much earlier, or `None` if the type does not have it. What the duration has below a microsecond is cut off.
    #[must_use]
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        self.0.checked_sub_unsigned(whole_micros(duration)?).map(Self)
    }

    /// Returns how much time has passed since an earlier time, or `None` if that is a later one.
    #[must_use]
    pub fn checked_duration_since(self, earlier: Self) -> Option<Duration> {
        (earlier <= self).then(|| Duration::from_micros(self.0.abs_diff(earlier.0)))
    }

    /// Returns how much time has passed since an earlier time, or zero if that is a later one. Times that are read from the system's clock
    /// may run backwards.
    #[must_use]
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }
}

fn whole_micros(duration: Duration) -> Option<u64> {
    u64::try_from(duration.as_micros()).ok()
}

/// The time that is so much later.
///
/// # Panics
/// If the type does not have it: see [`Timestamp::checked_add`].
impl Add<Duration> for Timestamp {
    type Output = Self;

    #[track_caller]
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).expect("overflow when adding a duration to a timestamp")
    }
}

/// As by `+`, with its panic.
impl AddAssign<Duration> for Timestamp {
    #[track_caller]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// The time that is so much earlier.
///
/// # Panics
/// If the type does not have it: see [`Timestamp::checked_sub`].
impl Sub<Duration> for Timestamp {
    type Output = Self;

    #[track_caller]
    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration).expect("overflow when subtracting a duration from a timestamp")
    }
}

/// As by `-`, with its panic.
impl SubAssign<Duration> for Timestamp {
    #[track_caller]
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// How much time has passed since an earlier time.
///
/// # Panics
/// If that is a later one: see [`Timestamp::checked_duration_since`] and [`Timestamp::saturating_duration_since`].
impl Sub for Timestamp {
    type Output = Duration;

    #[track_caller]
    fn sub(self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).expect("the timestamp that is subtracted is the later one")
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    const MIN: Timestamp = Timestamp::MIN;
    const MAX: Timestamp = Timestamp::MAX;
    const TICK: Duration = Duration::from_micros(1);
    /// From the first time to the last one.
    const ALL: Duration = Duration::from_micros(u64::MAX);

    #[test]
    fn a_time_moves_by_the_whole_microseconds_of_a_duration() {
        for (duration, micros) in [
            (Duration::ZERO, 0),
            (TICK, 1),
            (Duration::from_nanos(2999), 2),
            (Duration::from_secs(3), 3_000_000),
        ] {
            for start in [-2, 0, 7] {
                let time = Timestamp(start);
                assert_eq!(time + duration, Timestamp(start + micros));
                assert_eq!(time - duration, Timestamp(start - micros));
                let (mut later, mut earlier) = (time, time);
                later += duration;
                earlier -= duration;
                assert_eq!((later - time, time - earlier), (micros as u32 * TICK, micros as u32 * TICK));
            }
        }
    }

    #[test]
    fn sums_end_where_the_type_ends() {
        assert_eq!((MIN + ALL, MAX - ALL), (MAX, MIN));
        assert_eq!(MAX - MIN, ALL);
        for duration in [TICK, ALL, ALL + TICK, Duration::MAX] {
            assert_eq!((MAX.checked_add(duration), MIN.checked_sub(duration)), (None, None), "{duration:?}");
        }
        assert_eq!(Timestamp(-1).checked_add(ALL), None);
        assert_eq!(MAX.checked_add(Duration::from_nanos(999)), Some(MAX));
    }

    #[test]
    fn a_difference_is_that_to_an_earlier_time() {
        let (earlier, later) = (Timestamp(-5), Timestamp(8));
        assert_eq!(later.checked_duration_since(earlier), Some(13 * TICK));
        assert_eq!(earlier.checked_duration_since(earlier), Some(Duration::ZERO));
        assert_eq!(earlier.checked_duration_since(later), None);
        assert_eq!(later.saturating_duration_since(earlier), 13 * TICK);
        assert_eq!(earlier.saturating_duration_since(later), Duration::ZERO);
    }

    #[test]
    fn operators_panic_where_the_type_does_not_have_the_outcome() {
        assert!(catch_unwind(|| MAX + TICK).is_err());
        assert!(catch_unwind(|| MIN - TICK).is_err());
        assert!(catch_unwind(|| MIN - MAX).is_err());
    }
}
