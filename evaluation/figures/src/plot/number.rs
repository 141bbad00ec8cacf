//! Numbers beside axes.

/// A number with three digits or so: 1.25M, 310k, 42, 0.07.
pub fn short_number(number: f64) -> String {
    let size = number.abs();
    let (scaled, suffix) = match size {
        1e9.. => (number / 1e9, "G"),
        1e6.. => (number / 1e6, "M"),
        1e3.. => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let decimals = match scaled.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{scaled:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

/// The end of an axis from 0 on which `most` has some room above it.
pub(super) fn axis_end(most: f64) -> f64 {
    if most > 0.0 && most.is_finite() { most * 1.1 } else { 1.0 }
}

/// Some five numbers from 0 to `most`, the same step apart.
pub(super) fn even_ticks(most: f64) -> Vec<f64> {
    let rough = (most / 6.1).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    let step = steps.into_iter().find(|&step| step >= rough).unwrap_or(rough);
    (0..).map(|at| f64::from(at) * step).take_while(|&tick| tick <= most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let told = [0.0, 0.071, 1.0, 42.5, 310_000.0, 1_250_000.0, 2e9, 700.0].map(short_number);
        assert_eq!(told, ["0", "0.07", "1", "42.5", "310k", "1.25M", "2G", "700"]);
    }

    #[test]
    fn ticks_are_few_and_even() {
        assert_eq!(even_ticks(10.1), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(even_ticks(0.0), [0.0]);
        for most in [0.3, 1.0, 7.0, 1e6, 2.5e9] {
            assert!((3..=8).contains(&even_ticks(most).len()), "{most}");
        }
    }

    #[test]
    fn an_axis_has_an_end() {
        assert!([0.0, -1.0, f64::NAN, f64::INFINITY].iter().all(|&most| axis_end(most) == 1.0));
        assert!(axis_end(5.0) > 5.0);
    }
}
