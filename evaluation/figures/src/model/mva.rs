//! Mean-value analysis: how fast customers go round in a closed network of queues.
//!
//! # Source
//! Reiser and Lavenberg, Mean-value analysis of closed multichain queuing networks, JACM 1980. It is exact for stations that serve one
//! customer at a time, after exponential times, first come first served. Service that always takes the same time makes for shorter queues,
//! so that this errs on the side of waiting.

/// Rounds that `customers` make in a unit of time, each of which spends `thinking` by itself and `demands` at the stations, where only one
/// at a time is served.
///
/// ```text
/// residence[i] = demand[i] * (1 + queue[i])      what an arrival finds there: the queue with one customer fewer
/// throughput   = customers / (thinking + sum of residence)
/// queue[i]     = throughput * residence[i]
/// ```
pub fn throughput(customers: usize, thinking: f64, demands: &[f64]) -> f64 {
    let mut queues = vec![0.0; demands.len()];
    let mut throughput = 0.0;
    for present in 1..=customers {
        let residences: Vec<f64> =
            demands.iter().zip(&queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
        throughput = present as f64 / (thinking + residences.iter().sum::<f64>());
        queues = residences.iter().map(|residence| throughput * residence).collect();
    }
    throughput
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(here: f64, expected: f64) {
        assert!((here - expected).abs() < 1e-9 * expected.abs(), "{here} instead of {expected}");
    }

    #[test]
    fn one_customer_never_waits() {
        assert_close(throughput(1, 7.0, &[2.0, 1.0]), 0.1);
    }

    #[test]
    fn nobody_waits_where_there_is_no_station() {
        assert_close(throughput(12, 4.0, &[]), 3.0);
    }

    #[test]
    fn without_thinking_a_single_station_is_always_busy() {
        for customers in [1, 2, 50] {
            assert_close(throughput(customers, 0.0, &[4.0]), 0.25);
        }
    }

    /// The closed form of balanced stations: n / (n + m - 1) of what one of them can do.
    #[test]
    fn equal_stations_share_the_customers() {
        assert_close(throughput(5, 0.0, &[2.0; 3]), 0.5 * 5.0 / 7.0);
    }

    /// The machine-repairman model. Its states can be summed up: with n customers, the chance that k of them are at the station is
    /// proportional to n! / (n - k)! (demand / thinking)^k.
    #[test]
    fn one_station_agrees_with_the_sum_over_its_states() {
        for (customers, thinking, demand) in [(2, 10.0, 1.0), (8, 10.0, 1.0), (32, 17.0, 0.9)] {
            let weights: Vec<f64> = (0..=customers)
                .scan(1.0, |weight, at| {
                    let this = *weight;
                    *weight *= (customers - at) as f64 * demand / thinking;
                    Some(this)
                })
                .collect();
            let is_busy = 1.0 - weights[0] / weights.iter().sum::<f64>();
            assert_close(throughput(customers, thinking, &[demand]), is_busy / demand);
        }
    }
}
