//! What `ARCHITECTURE.md` says of the crates is what their manifests say.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Manifests that are not members of the workspace.
const OUTSIDE: [&str; 3] =
    ["evaluation/peers/Cargo.toml", "evaluation/index-peers/Cargo.toml", "verification/fuzz/Cargo.toml"];

/// Where a dependency is named: what the crate is built with, or what only its tests and models need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Build,
    Tests,
}

/// A crate as its manifest describes it.
#[derive(Debug)]
struct Crate {
    /// Relative to the repository.
    directory: String,
    dependencies: BTreeSet<(Use, String)>,
}

impl Crate {
    fn dependencies(&self, use_: Use) -> impl Iterator<Item = &String> {
        self.dependencies.iter().filter(move |(known, _)| *known == use_).map(|(_, name)| name)
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap()
}

/// All crates of the repository, by name.
fn crates() -> BTreeMap<String, Crate> {
    let mut crates = BTreeMap::new();
    for manifest in OUTSIDE.into_iter().chain(["Cargo.toml"]) {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
            .arg(repository().join(manifest))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        crates.extend(metadata["packages"].as_array().unwrap().iter().map(crate_of));
    }
    crates
}

fn crate_of(package: &Value) -> (String, Crate) {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let directory = manifest.parent().unwrap().strip_prefix(repository()).unwrap();
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let dependencies = dependencies.filter(|dependency| dependency["kind"] != "build").map(|dependency| {
        let target = dependency["target"].as_str().unwrap_or_default();
        let is_for_tests = dependency["kind"] == "dev" || ["cfg(loom)", "cfg(shuttle)"].contains(&target);
        let use_ = if is_for_tests { Use::Tests } else { Use::Build };
        (use_, dependency["name"].as_str().unwrap().to_owned())
    });
    let directory = directory.to_str().unwrap().to_owned();
    let name = package["name"].as_str().unwrap().to_owned();
    (name, Crate { directory, dependencies: dependencies.collect() })
}

/// The rows of the tables in the section of `ARCHITECTURE.md` with this heading, without head and rule, cell by cell.
fn rows_of(heading: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let level = heading.chars().take_while(|&sign| sign == '#').count();
    let is_next = |line: &&str| {
        let signs = line.chars().take_while(|&sign| sign == '#').count();
        signs == 0 || signs > level
    };
    let section = page.lines().skip_while(|line| *line != heading).skip(1).take_while(is_next);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut is_body = false;
    for line in section {
        match line.strip_prefix('|') {
            Some(rule) if rule.starts_with("---") => is_body = true,
            Some(row) if is_body => {
                rows.push(row.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect());
            }
            Some(_) => {}
            None => is_body = false,
        }
    }
    assert!(!rows.is_empty(), "no table under {heading:?}");
    rows
}

/// The words in a cell that are set as code.
fn names_in(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// `ensilo-log` for `log`; names that begin otherwise are whole.
fn whole_name(short: &str, crates: &BTreeMap<String, Crate>) -> String {
    let long = format!("ensilo-{short}");
    if crates.contains_key(&long) { long } else { short.to_owned() }
}

#[test]
fn every_crate_stands_in_its_wing_with_its_dependencies() {
    let crates = crates();
    let mut listed = BTreeSet::new();
    for (heading, wing) in [
        ("### The product: `crates/`", "crates/"),
        ("### What measures it: `evaluation/`", "evaluation/"),
        ("### What checks it: `verification/`", "verification/"),
    ] {
        for row in rows_of(heading) {
            let name = names_in(&row[0]).pop_first().unwrap();
            let known = crates.get(&name).unwrap_or_else(|| panic!("there is no crate {name}"));
            assert!(known.directory.starts_with(wing), "{name} lies in {}", known.directory);
            let said: BTreeSet<String> =
                names_in(&row[2]).iter().map(|short| whole_name(short, &crates)).collect();
            let found = known.dependencies(Use::Build).filter(|name| crates.contains_key(*name));
            assert_eq!(said, found.cloned().collect(), "what {name} depends on");
            assert!(listed.insert(name.clone()), "{name} stands there twice");
        }
    }
    let mut all: BTreeSet<String> = crates.into_keys().collect();
    assert!(all.remove("xtask"));
    assert_eq!(listed, all);
}

#[test]
fn the_library_is_built_from_the_product_alone() {
    let crates = crates();
    let (mut seen, mut pending) = (BTreeSet::new(), vec!["ensilo".to_owned()]);
    while let Some(name) = pending.pop() {
        let known = &crates[&name];
        assert!(known.directory.starts_with("crates/"), "the library is built with {}", known.directory);
        if seen.insert(name) {
            pending.extend(known.dependencies(Use::Build).filter(|name| crates.contains_key(*name)).cloned());
        }
    }
    assert!(seen.len() > 5, "{seen:?}");
}

#[test]
fn every_dependency_from_outside_has_its_reason() {
    let crates = crates();
    let mut found: BTreeMap<(Use, String), BTreeSet<String>> = BTreeMap::new();
    for (user, known) in &crates {
        for dependency in known.dependencies.iter().filter(|(_, name)| !crates.contains_key(name)) {
            found.entry(dependency.clone()).or_default().insert(user.clone());
        }
    }
    for row in rows_of("## Dependencies, and why") {
        let use_ = if row[1] == "tests only" { Use::Tests } else { Use::Build };
        let users: BTreeSet<String> =
            names_in(&row[1]).iter().map(|short| whole_name(short, &crates)).collect();
        for name in names_in(&row[0]) {
            let known = found.remove(&(use_, name.clone()));
            let known = known.unwrap_or_else(|| panic!("nothing is built with {name} as {use_:?}"));
            assert!(use_ == Use::Tests || known == users, "{name}: {known:?} use it, not {users:?}");
        }
    }
    // What a product is built with needs no other reason to stand in its tests.
    found.retain(|(use_, name), _| {
        *use_ == Use::Build
            || !crates.values().any(|known| known.dependencies(Use::Build).any(|it| it == name))
    });
    assert!(found.is_empty(), "without a row: {found:?}");
}
