use super::*;

fn model() -> Model {
    Model::new(&Counts::read(None, None).unwrap())
}

#[test]
fn the_fitted_curve_goes_through_its_point_and_no_other_is_fitted() {
    let model = model();
    let fitted: Vec<_> = model.checks.iter().filter(|check| check.fitted_at.is_some()).collect();
    assert_eq!(fitted.len(), 1);
    let (paper, predicted) =
        fitted[0].points.iter().find(|(paper, _)| paper.x as usize == FITTED_AT).unwrap();
    assert!((predicted / paper.throughput - 1.0).abs() < 1e-6);
    assert!(fitted[0].errors().all(|(workers, _)| workers != FITTED_AT && workers > 1));
}

#[test]
fn a_check_tells_how_far_it_is_off() {
    let point = PaperPoint::of_throughput;
    let check = Check {
        name: String::new(),
        series: "",
        points: vec![(point(1.0, 5.0), 5.0), (point(2.0, 10.0), 11.0), (point(4.0, 20.0), 14.0)],
        predicted: Vec::new(),
        fitted_at: None,
    };
    let (mean, worst) = check.mean_and_worst();
    assert!((mean - 0.2).abs() < 1e-9 && (worst - 0.3).abs() < 1e-9);
    // The worst is one of -30 %: its amount stands there, without a sign that it does not have.
    let row = &rendering::check_rows(&[check])[0];
    assert_eq!(row[1..], ["given", "+10.0 %", "-30.0 %", "20.0 %", "30.0 %"]);
}

/// The reason why Silo has no such counter: its line bounds what many workers get done.
#[test]
fn a_global_tid_costs_many_workers_much_and_one_nothing() {
    let predictions = model().predictions;
    let of = |system: &str| {
        let is = |one: &&Prediction| (&*one.workload, &*one.system) == ("ycsb", system);
        predictions.iter().find(is).unwrap()
    };
    let (plain, global) = (of("ensilo"), of("global-tid"));
    assert_eq!((plain.demand.hot_lines, global.demand.hot_lines), (0, 1));
    assert!((global.demand.hot_fetches - 0.2).abs() < 0.02);
    let gain = |one: &Prediction| one.points.last().unwrap().1 / one.points[0].1;
    assert!(gain(plain) > 60.0 && gain(global) < 0.95 * gain(plain));
}

#[test]
fn files_and_page_have_every_curve() {
    let model = model();
    let directory = std::env::temp_dir().join(format!("ensilo-model-{}", std::process::id()));
    let files = model.write(&directory).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(files.len(), 5);
    assert_eq!(read("model.csv").lines().count(), 1 + model.predictions.len() * WORKERS.len());
    assert_eq!(read("model-check.csv").lines().count(), 1 + model.checks.len() * 9);
    assert!(read("model-check.svg").contains("MemSilo+GlobalTID, paper"));
    assert_eq!(section_in(&directory).unwrap().plots.len(), 3);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_page_names_the_machine_of_its_costs() {
    let directory = std::env::temp_dir().join(format!("ensilo-model-costs-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let machine = || section_in(&directory).unwrap().facts[0].1.clone();
    assert!(machine().contains("AMD EPYC"), "{}", machine());
    let costs = directory.join("own.csv");
    std::fs::write(&costs, "workload,system,instructions,alone_ns\nycsb,ensilo,1500,500\n").unwrap();
    keep_counts(&directory, None, Some(&costs)).unwrap();
    let own = section_in(&directory).unwrap();
    assert!(own.facts[0].1.contains("model-costs.csv"), "{:?}", own.facts);
    let rows = own.table.unwrap().rows;
    assert_eq!((rows.len(), rows[0][1].as_str()), (1, "500"));
    keep_counts(&directory, None, None).unwrap();
    assert!(machine().contains("AMD EPYC"));
    std::fs::remove_dir_all(&directory).unwrap();
}
