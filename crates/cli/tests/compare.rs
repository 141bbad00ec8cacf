//! `ensilo compare`, with and without the other databases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{ensilo, text};

#[cfg(not(feature = "peers"))]
#[test]
fn a_program_without_other_databases_says_how_to_get_one_that_has_them() {
    assert!(text(&ensilo(&["--help"]).stdout).contains("compare"));
    for arguments in [&["compare"][..], &["compare", "--peers", "redb", "--runs", "3"]] {
        let output = ensilo(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(text(&output.stderr).contains("--features peers"), "{arguments:?}");
    }
}

#[cfg(feature = "peers")]
#[test]
fn what_was_measured_is_reported_and_kept() {
    let out = std::env::temp_dir().join(format!("ensilo-compare-cli-{}", std::process::id()));
    let out_text = out.to_str().unwrap();
    let sizes = "--records 100 --accounts 10 --seconds 0.05 --warmup 0.01 --runs 1 --workers 2 --quiet --out";
    let compare = |of: &str| {
        let arguments: Vec<&str> =
            ["compare"].into_iter().chain(of.split(' ')).chain(sizes.split(' ')).chain([out_text]).collect();
        let output = ensilo(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let told = compare("--peers ensilo,redb,redb --workloads transfer-zipf");
    assert!(told.contains("transfer-zipf, synced, redb") && told.contains("passed"), "{told}");
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(
        page.contains("transfer-zipf, synced, redb") && page.contains("ensilo compare --peers ensilo,redb")
    );
    let json = compare("--peers sqlite --workloads ycsb-f --sync off --format json");
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["runs"][0]["peer"], "sqlite");
    let kept = std::fs::read_to_string(out.join("compare.csv")).unwrap();
    assert_eq!(kept.lines().count(), 1 + 4 + 1, "the second comparison keeps the first's runs: {kept}");
    std::fs::remove_dir_all(out).unwrap();
    assert_eq!(ensilo(&["compare", "--peers", "oracle"]).status.code(), Some(2));
}

#[cfg(feature = "peers")]
#[test]
fn ensilo_is_compared_on_each_of_its_engines() {
    let out = std::env::temp_dir().join(format!("ensilo-compare-engines-{}", std::process::id()));
    let sizes = "--sync off --records 100 --accounts 10 --seconds 0.05 --warmup 0.01 --runs 1 --workers 2 --quiet --out";
    let compare = |of: &str| {
        let words = of.split(' ').chain(sizes.split(' ')).chain([out.to_str().unwrap()]);
        let output = ensilo(&["compare"].into_iter().chain(words).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let told = compare("--peers ensilo,redb --engine silo --engine ermia,silo --workloads transfer-uniform");
    let rows: Vec<&str> = told.lines().filter(|line| line.contains("transfer-uniform")).collect();
    assert_eq!(rows.len(), 3, "{told}");
    assert!(rows[0].contains("not synced, ensilo "), "{told}");
    assert!(rows[1].contains("not synced, Ensilo (ERMIA, serializable)"), "{told}");
    let told = compare("--peers ensilo --engine ermia --isolation snapshot --workloads ycsb-f");
    let row = told.lines().find(|line| line.contains("Ensilo (ERMIA, snapshot)")).unwrap_or_default();
    assert!(row.contains(" snapshot ") && row.contains("passed"), "{told}");
    let kept = std::fs::read_to_string(out.join("compare.csv")).unwrap();
    assert_eq!(kept.lines().count(), 1 + 3 + 1, "{kept}");
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("Ensilo (ERMIA, serializable)") && page.contains("Ensilo (ERMIA, snapshot)"));
    std::fs::remove_dir_all(out).unwrap();
}

#[cfg(feature = "peers")]
#[test]
fn engines_of_nothing_are_refused() {
    for arguments in [
        &["--isolation", "snapshot"][..],
        &["--engine", "silo", "--isolation", "snapshot"],
        &["--peers", "redb", "--engine", "ermia"],
        &["--engine", "innodb"],
    ] {
        let output = ensilo(&[&["compare"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[cfg(feature = "peers")]
#[test]
fn what_cannot_be_compared_is_told_before_any_run() {
    let without_server = ensilo(&["compare", "--peers", "postgresql"]);
    assert_eq!(without_server.status.code(), Some(2));
    assert!(without_server.stdout.is_empty() && text(&without_server.stderr).contains("--postgres"));
    let file = std::env::temp_dir().join(format!("ensilo-compare-file-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let nowhere = ensilo(&["compare", "--peers", "redb", "--out", file.join("out").to_str().unwrap()]);
    assert_eq!(nowhere.status.code(), Some(1));
    let told = text(&nowhere.stderr);
    assert!(nowhere.stdout.is_empty() && !told.lines().any(|line| line.starts_with("1/")), "{told}");
    std::fs::remove_file(file).unwrap();
}
