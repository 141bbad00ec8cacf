//! Beginnings of ranges that give each instance about as many rows.
//!
//! They are chosen from a sample of all keys, of which so many first columns count: rows that have these in common are a *group*, which stays
//! together. Where there are fewer groups than instances, beginnings that the table had are taken as well, and one may be there several times: the
//! instances in between have no rows.

/// The most keys of a sample. Beyond that it has every second one, and so on.
const SAMPLE_MAX: usize = 1 << 16;

/// Every n-th of keys that come one after the other.
pub(super) struct Sample {
    keys: Vec<Vec<u8>>,
    seen: u64,
    step: u64,
}

impl Sample {
    pub(super) fn new() -> Self {
        Sample { keys: Vec::new(), seen: 0, step: 1 }
    }

    pub(super) fn add(&mut self, key: &[u8]) {
        if self.seen.is_multiple_of(self.step) {
            self.keys.push(key.to_vec());
        }
        self.seen += 1;
        if self.keys.len() == SAMPLE_MAX {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        let mut is_kept = false;
        self.keys.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
        self.step *= 2;
    }

    /// Returns the beginnings for so many instances; `None` if there is nothing to choose from. `former` are those that the table had.
    pub(super) fn choose(mut self, instances: usize, former: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
        self.keys.sort_unstable();
        let groups: Vec<&[Vec<u8>]> = self.keys.chunk_by(|first, second| first == second).collect();
        if instances == 1 {
            return Some(Vec::new());
        }
        if groups.len() >= instances {
            return Some(choose_of_groups(&groups, instances));
        }
        // The first group begins a range only where there is nothing else: an instance has no rows then.
        let is_alone = groups.len() == 1 && former.is_empty();
        let later = groups.iter().skip(usize::from(!is_alone)).map(|group| &group[0]);
        let mut candidates: Vec<&Vec<u8>> = later.chain(former).collect();
        candidates.sort_unstable();
        candidates.dedup();
        choose_of_candidates(&candidates, instances)
    }
}

/// Returns the beginnings of groups by which each instance has about as many keys, and none has no group.
fn choose_of_groups(groups: &[&[Vec<u8>]], instances: usize) -> Vec<Vec<u8>> {
    let total: usize = groups.iter().map(|group| group.len()).sum();
    let (mut chosen, mut before) = (Vec::new(), groups[0].len());
    for (at, group) in groups.iter().enumerate().skip(1) {
        let missing = instances - 1 - chosen.len();
        let is_share = before * instances >= total * (chosen.len() + 1);
        if missing > 0 && (is_share || groups.len() - at == missing) {
            chosen.push(group[0].clone());
        }
        before += group.len();
    }
    chosen
}

/// Returns some of the candidates, or all and the last one again and again.
fn choose_of_candidates(candidates: &[&Vec<u8>], instances: usize) -> Option<Vec<Vec<u8>>> {
    let last = candidates.len().checked_sub(1)?;
    let is_enough = candidates.len() >= instances;
    let number = |at: usize| if is_enough { at * candidates.len() / instances } else { (at - 1).min(last) };
    Some((1..instances).map(|at| candidates[number(at)].clone()).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(keys: impl IntoIterator<Item = u8>) -> Sample {
        let mut sample = Sample::new();
        keys.into_iter().for_each(|key| sample.add(&[key]));
        sample
    }

    #[test]
    fn each_instance_gets_as_many_keys() {
        assert_eq!(sample(0..90).choose(3, &[]), Some(vec![vec![30], vec![60]]));
        assert_eq!(sample(0..3).choose(3, &[]), Some(vec![vec![1], vec![2]]));
        assert_eq!(sample(0..3).choose(1, &[]), Some(vec![]));
    }

    #[test]
    fn groups_stay_together_and_no_instance_has_none() {
        let keys = [7; 90].into_iter().chain([1, 8, 9]);
        assert_eq!(sample(keys).choose(3, &[]), Some(vec![vec![8], vec![9]]));
    }

    #[test]
    fn former_beginnings_help_where_groups_are_few() {
        let former: Vec<Vec<u8>> = [10, 20, 30, 40].map(|key| vec![key]).to_vec();
        assert_eq!(sample([]).choose(3, &former), Some(vec![vec![20], vec![30]]));
        assert_eq!(sample([5, 15]).choose(4, &former[..1]), Some(vec![vec![10], vec![15], vec![15]]));
        assert_eq!(sample([5]).choose(3, &[]), Some(vec![vec![5], vec![5]]));
        assert_eq!(sample([]).choose(2, &[]), None);
        assert_eq!(sample([]).choose(1, &[]), Some(vec![]));
    }

    #[test]
    fn a_sample_has_a_bound_and_keys_from_everywhere() {
        let mut sample = Sample::new();
        let count = 5 * SAMPLE_MAX as u32;
        (0..count).for_each(|key| sample.add(&key.to_be_bytes()));
        assert!((SAMPLE_MAX / 2..SAMPLE_MAX).contains(&sample.keys.len()), "{}", sample.keys.len());
        let half = sample.choose(2, &[]).unwrap();
        let half = u32::from_be_bytes(half[0][..].try_into().unwrap());
        assert!(half.abs_diff(count / 2) < 100, "{half}");
    }

    proptest! {
        #[test]
        fn there_are_as_many_beginnings_as_needed_in_order(keys in any::<Vec<u8>>(), instances in 1usize..9, former in 0u8..9) {
            let former: Vec<Vec<u8>> = (0..former).map(|key| vec![key * 20]).collect();
            let groups: std::collections::BTreeSet<u8> = keys.iter().copied().collect();
            let Some(chosen) = sample(keys).choose(instances, &former) else {
                prop_assert!(former.is_empty() && groups.is_empty());
                return Ok(());
            };
            prop_assert_eq!(chosen.len() + 1, instances);
            prop_assert!(chosen.is_sorted());
            prop_assert!(groups.len() < instances || chosen.is_sorted_by(|first, second| first < second));
        }
    }
}
