use super::*;

fn options(shares: [f64; 5]) -> YcsbIslandsOptions {
    YcsbIslandsOptions {
        records: 1000,
        mix: Mix::new(&shares).unwrap(),
        distribution: Distribution::Uniform,
        theta: 0.99,
        operations: 1,
        scan_len_max: 10,
        multisite_percent: 0,
    }
}

#[test]
fn there_are_no_more_instances_than_have_a_record_each() {
    let options = YcsbIslandsOptions { records: 100, ..options([100.0, 0.0, 0.0, 0.0, 0.0]) };
    assert_eq!(options.sites_max(2), 100);
    let has_each = |instances| {
        (0..instances)
            .all(|instance| (0..options.records).any(|key| holder(key, instances) == u64::from(instance)))
    };
    let most = options.sites_max(70) as u16;
    assert!((2..70).contains(&most) && has_each(most) && !has_each(70), "{most}");
}

#[test]
fn a_lost_or_torn_record_is_found() {
    let found = |loaded, wrong| Found { loaded, wrong, ..Found::default() };
    let options = options([100.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(options.check_found(&found(1000, 0), 500), Ok(()));
    assert!(options.check_found(&found(999, 0), 500).is_err());
    assert!(options.check_found(&found(1000, 1), 500).is_err());
}

#[test]
fn a_lost_count_is_found_where_every_operation_counts() {
    let found = |counted, inserted| Found { loaded: 1000, counted, inserted, ..Found::default() };
    let options = options([0.0, 0.0, 60.0, 40.0, 0.0]);
    assert_eq!(options.check_found(&found(600, 400), 1000), Ok(()));
    assert!(options.check_found(&found(599, 400), 1000).is_err());
    assert!(options.check_found(&found(600, 401), 1000).is_err());
}

#[test]
fn of_a_mix_with_reads_chance_explains_some() {
    let found = |counted| Found { loaded: 1000, counted, ..Found::default() };
    let options = options([80.0, 0.0, 20.0, 0.0, 0.0]);
    for (counted, is_chance) in [(2000, true), (2200, true), (1800, true), (2500, false), (1500, false)] {
        assert_eq!(options.check_found(&found(counted), 10_000).is_ok(), is_chance, "{counted}");
    }
    let blind = Found { has_blind: true, ..found(0) };
    assert_eq!(options.check_found(&blind, 10_000), Ok(()));
}

#[test]
fn local_transactions_stay_at_their_instance() {
    let number = InstanceNumber { instance: 1, instances: 3 };
    for multisite_percent in [0, 100] {
        let options = YcsbIslandsOptions { multisite_percent, operations: 4, ..options([20.0; 5]) };
        let mut source = Source::new(options, (number, 2), SiteId { instance: 1, worker: 1 });
        let remote = (0..1000).filter(|_| !source.next().remote.is_empty()).count();
        assert_eq!(remote > 0, multisite_percent > 0, "{remote} of 1000");
    }
}

#[test]
fn scans_of_multisite_transactions_are_everywhere() {
    let spread = |shares, instances| options(shares).spread(instances);
    let scans = spread([0.0, 0.0, 0.0, 0.0, 100.0], 4);
    assert_eq!((scans.distributed, scans.others), (1.0, 3.0));
    let reads = spread([100.0, 0.0, 0.0, 0.0, 0.0], 4);
    assert_eq!((reads.distributed, reads.others), (0.75, 0.75));
    let alone = spread([0.0, 0.0, 0.0, 0.0, 100.0], 1);
    assert_eq!((alone.distributed, alone.others), (0.0, 0.0));
}

#[test]
fn the_latest_are_the_own_inserts_and_then_what_was_loaded() {
    let number = InstanceNumber { instance: 0, instances: 1 };
    let shares = [50.0, 0.0, 0.0, 50.0, 0.0];
    let options = YcsbIslandsOptions { distribution: Distribution::Latest, ..options(shares) };
    let mut source = Source::new(options, (number, 1), SiteId { instance: 0, worker: 0 });
    assert!((0..100).all(|_| source.existing() < 1000));
    for key in 1000..1100 {
        assert_eq!(source.key(INSERT, false), key);
    }
    let inserted = (0..1000).filter(|_| source.existing() >= 1000).count();
    assert!((500..1000).contains(&inserted), "{inserted} of 1000");
    assert_eq!(source.keys_to_insert.latest(0), Ok(1099));
    assert_eq!(source.keys_to_insert.latest(100), Err(0));
}
