//! When rows expire: the column that says it, and what its numbers mean.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ensilo_log::call_foreign;
use ensilo_row::Timestamp;

use crate::error::Name;
use crate::options::require;
use crate::{Error, Result};

/// What the numbers of a column count, from 1970-01-01 00:00 UTC on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeUnit {
    /// Days: the dates of `chrono`, `jiff` and `time`.
    Days,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds: a [`Timestamp`](crate::Timestamp), which needs no unit.
    Microseconds,
    /// Nanoseconds: the points in time of `chrono`, `jiff` and `time`.
    Nanoseconds,
}

impl TimeUnit {
    /// Returns how many whole units there are in so many microseconds.
    const fn count(self, micros: i128) -> i128 {
        match self {
            TimeUnit::Nanoseconds => micros * 1000,
            TimeUnit::Microseconds => micros,
            TimeUnit::Milliseconds => micros.div_euclid(1000),
            TimeUnit::Seconds => micros.div_euclid(1_000_000),
            TimeUnit::Days => micros.div_euclid(86_400_000_000),
        }
    }
}

/// When the rows of a table expire. [`Database::expire_rows`](crate::generic::Database::expire_rows) takes it.
///
/// ```
/// use std::time::Duration;
/// use ensilo::{ExpiryOptions, TimeUnit};
///
/// // At the time that a `Timestamp` in the column `expires` names.
/// let at_a_time = ExpiryOptions::new("expires");
/// // Thirty days after the second that an integer in the column `created` names.
/// let month = Duration::from_secs(30 * 86_400);
/// let after_a_month = ExpiryOptions::new("created").unit(TimeUnit::Seconds).after(month);
/// # drop((at_a_time, after_a_month));
/// ```
#[derive(Clone, Debug)]
#[must_use = "options remove nothing by themselves"]
pub struct ExpiryOptions {
    pub(super) column: String,
    unit: Option<TimeUnit>,
    after: Duration,
    pub(super) check_interval: Duration,
    clock: Clock,
}

impl ExpiryOptions {
    /// Lets rows expire when the time in this column has passed. A row whose column is null never does.
    ///
    /// The column is a [`Timestamp`](crate::Timestamp) or an integer of any type with a [unit](Self::unit). It is the first column of an index, or
    /// of the primary key, in ascending or descending order, so that rows which have expired are found without a look at the others.
    pub fn new(column: impl Into<String>) -> Self {
        ExpiryOptions {
            column: column.into(),
            unit: None,
            after: Duration::ZERO,
            check_interval: Duration::from_secs(1),
            clock: Clock(Arc::new(Timestamp::now)),
        }
    }

    /// Sets what the integers of the column count. There is no default: seconds that were taken for nanoseconds would all have passed.
    ///
    /// Points in time of the crates `chrono`, `jiff` and `time` are stored as [`TimeUnit::Nanoseconds`], and their dates as [`TimeUnit::Days`]; a date
    /// has passed when it begins, in UTC.
    pub fn unit(mut self, unit: TimeUnit) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Sets for how long rows live on after the time in the column, which then says since when they have been there, or when they were
    /// used last. By default they expire at that time.
    pub fn after(mut self, duration: Duration) -> Self {
        self.after = duration;
        self
    }

    /// Sets how long after one look for rows that have expired the next one begins, at least 1 ms, by default a second. A look that finds
    /// none costs a few microseconds, and counts as a commit in [`Statistics::commits`](crate::Statistics::commits).
    ///
    /// The first look begins at once. After `Duration::MAX` there is no other, and only
    /// [`Expiry::remove_now`](crate::generic::Expiry::remove_now) removes what expires later.
    pub fn check_interval(mut self, interval: Duration) -> Self {
        self.check_interval = interval;
        self
    }

    /// Sets what says how late it is, by default [`Timestamp::now`](crate::Timestamp::now). For tests: rows then expire when the test says so.
    /// The times at which the database looks for them are not those of this clock.
    ///
    /// Closing the database waits for a call of the clock, and drops it. A handle to the database in the clock keeps the database open: with it the last
    /// one never goes, so that only [`Database::close`](crate::generic::Database::close) closes it.
    pub fn clock(mut self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Clock(Arc::new(now));
        self
    }

    /// # Errors
    /// [`Error::InvalidOption`].
    pub(super) fn check(&self) -> Result<()> {
        require(self.check_interval >= Duration::from_millis(1), "check_interval", "at least 1 ms")
    }

    /// Returns the last time that rows which have expired may have, in microseconds.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when the program's clock has panicked.
    pub(super) fn last_expired_micros(&self) -> Result<i128> {
        let mut now = None;
        call_foreign(|| now = Some((self.clock.0)()));
        let now =
            now.ok_or_else(|| Error::InvalidOption(Name::new("the clock for rows that expire panicked")))?;
        // Rounded up, so that no row goes too early. A duration has 2^64 seconds at most.
        let after = self.after.as_nanos().div_ceil(1000);
        Ok(i128::from(now.micros()) - after.cast_signed())
    }

    /// Returns how many whole units of the column so many microseconds are, if its unit was said.
    pub(super) fn count(&self, micros: i128) -> Option<i128> {
        self.unit.map(|unit| unit.count(micros))
    }

    /// Returns whether the unit is that of a timestamp.
    pub(super) fn fits_timestamps(&self) -> bool {
        self.unit.is_none_or(|unit| unit == TimeUnit::Microseconds)
    }
}

/// What says how late it is.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
