//! What `ensilo islands advise` shows.

use ensilo_islands::Latencies;
use ensilo_islands::advisor::{Costs, Prediction};
use ensilo_islands_bench::Assessment;

use crate::output::Output;

/// The widest bar, in characters.
const BAR_MAX: f64 = 40.0;

/// Sizes whose predictions differ by less are as good as each other: what is measured varies as much.
const CLOSE: f64 = 0.10;

/// So much more than the second best is sure.
const CLEAR: f64 = 0.25;

/// Shows how long messages take between cores.
pub(super) fn latencies(output: &mut Output, latencies: &Latencies) {
    for latency in latencies.classes() {
        let (measured, pairs) = (latency.measured, latency.pairs);
        let micros = latency.round_trip.as_secs_f64() * 1e6;
        output.line(format_args!(
            "A message and its answer take {micros:.2} us between {} ({measured} of {pairs} pairs measured).",
            latency.class
        ));
    }
}

/// Shows what transactions cost.
pub(super) fn costs(output: &mut Output, costs: &Costs, is_stored: bool) {
    output.line(format_args!(
        "A local transaction takes {:.2} us of a worker, {:.2} us more where all is shared; a participant {:.2} us, and the wait for its vote {:.2} us.",
        costs.local / 1e3,
        costs.sharing / 1e3,
        costs.part / 1e3,
        costs.wait / 1e3
    ));
    if is_stored {
        let storing = costs.storing;
        output.line(format_args!(
            "To be stored takes {:.2} us of a worker with one instance, and {:.2} us with one for each core; {:.2} us more where several take part.",
            storing.at_one / 1e3,
            storing.at_each / 1e3,
            storing.distributed / 1e3
        ));
    }
}

/// Shows what is expected of each size of islands, and what was measured.
pub(super) fn sizes(output: &mut Output, assessment: &Assessment) {
    let (predictions, measured) = (&assessment.predictions, assessment.measured.as_deref());
    let best = assessment.recommended();
    let most =
        predictions[best].throughput.max(measured.map_or(0.0, |all| all.iter().copied().fold(0.0, f64::max)));
    for (at, size) in predictions.iter().enumerate() {
        let recommended = if at == best { "  <- recommended" } else { "" };
        output.line(format_args!(
            "{}{recommended}",
            bar(&format!("{:>5} islands", size.instances), size.throughput, most)
        ));
        if let Some(measured) = measured {
            output.line(format_args!("{}", bar("     measured", measured[at], most)));
        }
    }
    output.line(format_args!("{}", how_sure(predictions, best)));
    if let Some((_, reached)) = assessment.verified() {
        output.line(format_args!(
            "The recommended size reaches {:.0} % of what the best one was measured with.",
            reached * 100.0
        ));
    }
}

fn bar(name: &str, throughput: f64, most: f64) -> String {
    let filled = "#".repeat((throughput / most * BAR_MAX).round() as usize);
    format!("{name}  {filled:<width$} {throughput:>10.0} a second", width = BAR_MAX as usize)
}

/// Says how much better the recommended size is than the next one.
fn how_sure(predictions: &[Prediction], best: usize) -> String {
    let others = predictions.iter().enumerate().filter(|(at, _)| *at != best);
    let second = others.map(|(_, size)| size.throughput).fold(0.0, f64::max);
    if predictions.len() == 1 {
        return "This machine has one size of islands only.".to_owned();
    }
    let lead = predictions[best].throughput / second - 1.0;
    let says = match lead {
        lead if lead < CLOSE => "either will do: measurements vary as much",
        lead if lead < CLEAR => "likely",
        _ => "sure",
    };
    format!("The next best size is predicted to reach {:.0} % of it: {says}.", 100.0 / (1.0 + lead))
}
