//! The programs in `examples` run, with little to do.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::process::Command;

/// Runs an example, which Cargo has built beside the tests, and returns what it prints.
fn run(example: &str, arguments: &[&str]) -> String {
    let tests = std::env::current_exe().unwrap();
    let examples = tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    let output = Command::new(examples.join(example)).args(arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

#[test]
fn the_order_service_loses_nothing_and_goes_on_with_its_directory() {
    let directory: PathBuf = std::env::temp_dir().join(format!("ensilo-orders-{}", std::process::id()));
    for _ in 0..2 {
        let printed = run("order_service", &["800", directory.to_str().unwrap()]);
        assert!(printed.contains("nothing is lost"), "{printed}");
    }
    std::fs::remove_dir_all(directory).unwrap();
    assert!(run("order_service", &["800"]).contains("nothing is lost"));
}

#[test]
fn rows_are_imported_and_change_their_type() {
    let printed = run("import", &["20000"]);
    assert!(printed.contains("20000 rows"), "{printed}");
}

#[test]
fn jobs_are_done() {
    run("job_queue", &["2", "2", "500"]);
}

#[test]
fn what_small_databases_and_openings_cost_is_shown() {
    let place = std::env::temp_dir().join(format!("ensilo-examples-{}", std::process::id()));
    let (small, opening) = (place.join("small"), place.join("opening"));
    let printed = run("small", &[small.to_str().unwrap(), "2000"]);
    assert!(printed.contains("on the disk") && printed.contains("for an index"), "{printed}");
    let printed = run("opening", &["--gigabytes", "0.002", "--directory", opening.to_str().unwrap()]);
    assert!(printed.contains("silo: ") && printed.contains("ermia: "), "{printed}");
    std::fs::remove_dir_all(place).unwrap();
}
