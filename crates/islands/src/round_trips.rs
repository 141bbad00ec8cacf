//! How long messages take through a channel, there and back.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::channel::{Channel, ChannelError};

/// Nanoseconds beyond which a round trip counts as one of these.
const NANOS_MAX: u64 = 10_000_000_000;

/// Three digits of the measured times are kept.
const DIGITS: u8 = 3;

/// Round trips that were measured.
#[derive(Clone, Debug)]
pub struct RoundTrips {
    elapsed: Duration,
    nanos: Histogram<u64>,
}

impl RoundTrips {
    /// Returns how many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// Returns how many there were for each second of the whole measurement, pauses among it.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.nanos.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the time within which this share of them, from 0 to 1, was over.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.nanos.value_at_quantile(share))
    }
}

/// Sends messages of so many bytes for this long, and waits for the answer to each before the next one. The other end
/// [answers](answer_all). With a pause before each, the other end sleeps.
///
/// # Errors
/// Those of the channel, [`ChannelError::TooLong`] among them; [`ChannelError::Nonsense`] when something else comes back.
pub fn measure_round_trips(
    channel: &mut dyn Channel,
    message_bytes: usize,
    duration: Duration,
    pause: Option<Duration>,
) -> Result<RoundTrips, ChannelError> {
    let Ok(mut nanos) = Histogram::new_with_bounds(1, NANOS_MAX, DIGITS) else {
        unreachable!("the bounds are those that the histogram allows");
    };
    let (message, mut answer) = (vec![0x5a; message_bytes], Vec::new());
    let start = Instant::now();
    let mut begin = start;
    while begin.duration_since(start) < duration {
        if let Some(pause) = pause {
            std::thread::sleep(pause);
            begin = Instant::now();
        }
        channel.send(&message, None)?;
        channel.receive(&mut answer, None)?;
        if answer != message {
            return Err(ChannelError::Nonsense("it is not what was sent there"));
        }
        let end = Instant::now();
        nanos.saturating_record(end.duration_since(begin).as_nanos() as u64);
        begin = end;
    }
    Ok(RoundTrips { elapsed: start.elapsed(), nanos })
}

/// Sends each message back, until the other end closes the channel.
///
/// # Errors
/// Those of the channel, but for its end.
pub fn answer_all(channel: &mut dyn Channel) -> Result<(), ChannelError> {
    let mut message = Vec::new();
    loop {
        match channel.receive(&mut message, None).and_then(|()| channel.send(&message, None)) {
            Ok(()) => {}
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::channel::{ChannelKind, connect};

    #[test]
    fn round_trips_are_counted_and_end_with_the_channel() {
        for kind in ChannelKind::all() {
            let (here, there) = UnixStream::pair().unwrap();
            let answering = std::thread::spawn(move || answer_all(&mut *connect(kind, there).unwrap()));
            let mut channel = connect(kind, here).unwrap();
            for pause in [None, Some(Duration::from_millis(1))] {
                let measured =
                    measure_round_trips(&mut *channel, 256, Duration::from_millis(20), pause).unwrap();
                assert!(measured.count() > 0 && measured.per_second() > 0.0);
                assert!(measured.quantile(0.5) <= measured.quantile(0.99));
            }
            let too_long = measure_round_trips(&mut *channel, 1 << 20, Duration::from_millis(1), None);
            assert!(matches!(too_long, Err(ChannelError::TooLong(_))));
            drop(channel);
            answering.join().unwrap().unwrap();
        }
    }
}
