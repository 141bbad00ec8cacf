use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::PUBLISHED;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(repository()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the packages of the workspace, as cargo describes them.
fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name_of(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

fn is_published(package: &Value) -> bool {
    // `null` is every registry, and an empty list none.
    package["publish"].is_null()
}

#[test]
fn the_list_is_what_the_manifests_allow() {
    let packages = packages();
    let mut allowed: Vec<&str> = packages.iter().filter(|it| is_published(it)).map(name_of).collect();
    let mut listed = PUBLISHED;
    allowed.sort_unstable();
    listed.sort_unstable();
    assert_eq!(allowed, listed);
}

#[test]
fn every_manifest_has_what_a_registry_asks_for() {
    for package in packages().iter().filter(|it| is_published(it)) {
        let name = name_of(package);
        for field in ["license", "repository", "rust_version"] {
            assert!(package[field].is_string(), "{name}: {field}");
        }
        let description = package["description"].as_str().unwrap();
        assert_eq!(
            description.starts_with("Internal to ensilo, "),
            name != "ensilo",
            "{name}: {description}"
        );
        let has_all = ["keywords", "categories"].iter().all(|it| !package[it].as_array().unwrap().is_empty());
        let is_presented = has_all && package["readme"].is_string();
        assert_eq!(is_presented, name == "ensilo", "{name}: internal crates are not to be found by a search");
    }
}

/// A user may be given any release of `ensilo` beside any other: what is internal has to be of the same one.
#[test]
fn published_crates_depend_on_each_other_at_exactly_their_version() {
    for package in packages().iter().filter(|it| is_published(it)) {
        let of_ours = package["dependencies"].as_array().unwrap().iter().filter(|it| it["path"].is_string());
        for dependency in of_ours {
            let (name, on) = (name_of(package), name_of(dependency));
            if PUBLISHED.contains(&on) && dependency["req"] != "*" {
                let version = format!("={}", package["version"].as_str().unwrap());
                assert_eq!(dependency["req"], version, "{name} on {on}");
            } else {
                // Without a version it is left out of the package, and with one the package could not be
                // built.
                assert_eq!(
                    (&dependency["req"], &dependency["kind"]),
                    (&"*".into(), &"dev".into()),
                    "{name} on {on}"
                );
            }
        }
    }
}

#[test]
fn every_package_holds_both_licences() {
    for name in PUBLISHED {
        let files = cargo(&["package", "--list", "--offline", "--allow-dirty", "-p", name]);
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(files.lines().any(|file| file == licence), "{name}: no {licence}");
        }
    }
    for package in packages().iter().filter(|it| is_published(it)) {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let (ours, whole) = (folder.join(licence), repository().join(licence));
            assert_eq!(std::fs::read(&ours).unwrap(), std::fs::read(whole).unwrap(), "{}", ours.display());
        }
    }
}

/// What a search in the registry and the first page of the documentation show.
#[test]
fn internal_crates_say_so_in_their_first_line() {
    for package in packages().iter().filter(|it| is_published(it) && name_of(it) != "ensilo") {
        let root = Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("src").join("lib.rs");
        let text = std::fs::read_to_string(&root).unwrap();
        assert!(
            text.starts_with("//! Internal to `ensilo`, not to be used by itself: "),
            "{}",
            root.display()
        );
    }
}

/// Returns whether more fields or variants of the type that is declared after `before` would break a program
/// that uses it.
fn is_closed(before: &[&str], declaration: &[&str]) -> bool {
    let attributes = before.iter().rev().take_while(|line| !line.is_empty() && !line.starts_with('}'));
    let is_open = attributes.into_iter().any(|line| *line == "#[non_exhaustive]");
    let is_enum = declaration[0].starts_with("pub enum ");
    let body = declaration[1..].iter().take_while(|line| **line != "}");
    let private = |line: &&&str| line.starts_with("    ") && !line.trim_start().starts_with(['/', '#']);
    let is_hidden = !is_enum && body.into_iter().filter(private).any(|line| !line.starts_with("    pub "));
    !is_open && !is_hidden
}

/// The public structs and enums in the files of a folder that can get no field or variant without breaking
/// programs.
fn closed_types(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            closed_types(&path, found);
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let name = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "));
                if let Some(name) =
                    name.filter(|_| line.ends_with('{') && is_closed(&lines[..at], &lines[at..]))
                {
                    found.push(name.split(|sign: char| !sign.is_alphanumeric()).next().unwrap().to_owned());
                }
            }
        }
    }
}

/// What is closed on purpose: what derive macros write down as constants, what cannot grow, and what is hidden.
const CLOSED: [&str; 11] = [
    "CarriedSequence",
    "ColumnSpec",
    "EncodedScan",
    "IndexDescription",
    "Layout",
    "LongValue",
    "Order",
    "RowChange",
    "RowDescription",
    "SequenceOf",
    "SequencePosition",
];

#[test]
fn public_types_can_grow() {
    let mut found = Vec::new();
    for folder in ["crates/ensilo/src", "crates/disk/src", "crates/row/src"] {
        closed_types(&repository().join(folder), &mut found);
    }
    found.sort_unstable();
    assert_eq!(found, CLOSED);
}

/// What an internal crate exports beyond what is named would be promised to users.
#[test]
fn no_crate_is_exported_as_a_whole() {
    let text = std::fs::read_to_string(repository().join("crates/ensilo/src/lib.rs")).unwrap();
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("pub use ensilo_")) {
        let is_list = line.contains("::") && !line.contains('*');
        assert!(is_list, "pub use ensilo_{line}");
    }
}
