//! What `ensilo islands advise` shows.

use ensilo_islands::Latencies;
use ensilo_islands::advisor::Costs;
use ensilo_islands_bench::Assessment;

use crate::output::Output;

/// The widest bar, in characters.
const BAR_MAX: f64 = 40.0;

/// Sizes whose predictions differ by less are as good as each other: what is measured varies as much.
const CLOSE: f64 = 0.10;

/// So much more than the second best is sure.
const CLEAR: f64 = 0.25;

/// With more conflicts for each transaction than this, their number decides, and not what was measured of costs.
const MANY_CONFLICTS: f64 = 0.05;

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
    output.line(format_args!("{}", how_sure(assessment, best)));
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
fn how_sure(assessment: &Assessment, best: usize) -> String {
    let predictions = &assessment.predictions;
    let others = predictions.iter().enumerate().filter(|(at, _)| *at != best);
    let second = others.map(|(_, size)| size.throughput).fold(0.0, f64::max);
    if predictions.len() == 1 {
        return "This machine has one size of islands only.".to_owned();
    }
    let lead = predictions[best].throughput / second - 1.0;
    let says = match lead {
        lead if lead < CLOSE => "either will do: measurements vary as much",
        lead if lead < CLEAR => "likely",
        _ if doubt(assessment).is_some() => "likely",
        _ => "sure",
    };
    let but = doubt(assessment).map_or(String::new(), |doubt| format!("; but {doubt}"));
    format!("The next best size is predicted to reach {:.0} % of it: {says}{but}.", 100.0 / (1.0 + lead))
}

/// Returns why predictions may be far off, if there is a reason.
fn doubt(assessment: &Assessment) -> Option<String> {
    let Assessment { conflicts, unmeasured_cores, .. } = assessment;
    match (*conflicts > MANY_CONFLICTS, unmeasured_cores) {
        (true, _) => Some(format!(
            "few rows are wanted by many, with {:.0} conflicts and waits for each hundred transactions, which other sizes may have more or fewer of",
            conflicts * 100.0
        )),
        (false, 0) => None,
        (false, cores) => Some(format!("{cores} cores were not measured")),
    }
}

#[cfg(test)]
mod tests {
    use ensilo_islands::advisor::{Prediction, Storing};

    use super::*;

    #[test]
    fn nothing_is_sure_where_rows_are_contended_or_cores_were_not_measured() {
        let size = |throughput| Prediction { instances: 1, workers: 2, throughput };
        let costs = Costs { local: 1.0, sharing: 1.0, part: 1.0, wait: 1.0, storing: Storing::default() };
        let says = |conflicts, unmeasured_cores| {
            let predictions = vec![size(10.0), size(1.0)];
            how_sure(&Assessment { costs, predictions, measured: None, conflicts, unmeasured_cores }, 0)
        };
        assert!(says(0.01, 0).ends_with(": sure."), "{}", says(0.01, 0));
        let contended = says(2.0, 0);
        assert!(contended.contains("likely; but few rows are wanted by many, with 200 "), "{contended}");
        let described = says(0.0, 22);
        assert!(described.ends_with("likely; but 22 cores were not measured."), "{described}");
    }
}
