//! How numbered things are divided: among instances, and within an instance among its workers.

use std::ops::Range;

use ensilo_islands::advisor::Spread;

/// Divides `count` things into runs that are as long as each other, or longer by one, and returns that of one holder.
pub(crate) fn share(count: u64, holder: u64, holders: u64) -> Range<u64> {
    count * holder / holders..count * (holder + 1) / holders
}

/// Returns who has a thing.
pub(crate) fn holder(count: u64, thing: u64, holders: u64) -> u64 {
    // The last one whose share begins at the thing or before.
    let guess = (thing * holders / count).min(holders - 1);
    if share(count, guess, holders).end <= thing { guess + 1 } else { guess }
}

/// Returns how transactions spread that have one thing beside their own, any other one of `count`, which are divided among instances.
pub(crate) fn spread_of_one(count: u64, instances: u16) -> Spread {
    let (count, instances) = (count as f64, f64::from(instances));
    let elsewhere = if count > 1.0 { (count - count / instances) / (count - 1.0) } else { 0.0 };
    Spread { distributed: elsewhere, others: elsewhere, hottest: 1.0 / instances }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_has_the_holder_whose_share_it_is_in() {
        for count in 1..40 {
            for holders in 1..=count {
                let mut next = 0;
                for of in 0..holders {
                    let share = share(count, of, holders);
                    assert_eq!(share.start, next);
                    next = share.end;
                    share.for_each(|thing| {
                        assert_eq!(holder(count, thing, holders), of, "{thing} of {count}")
                    });
                }
                assert_eq!(next, count);
            }
        }
    }
}
