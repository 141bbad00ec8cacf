//! What the documents name is there.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The Markdown files of the repository's root and of `docs/`, with their texts.
fn documents() -> Vec<(PathBuf, String)> {
    let folders = [repository(), repository().join("docs")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let files = entries.map(|entry| entry.unwrap().path());
    let documents = files.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect()
}

/// The paths that a text sets as code: those that begin with a folder of the repository, up to a `*` or a `<`.
fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
    let is_path = |word: &&str| {
        ["crates/", "evaluation/", "verification/", "docs/", "xtask/"]
            .iter()
            .any(|folder| word.starts_with(folder))
    };
    words
        .filter(is_path)
        .map(|word| word.split(['*', '<', '{']).next().unwrap_or(word).trim_end_matches([',', ';', ':', '.']))
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut count = 0;
    let mut missing = Vec::new();
    for (document, text) in documents().iter().filter(|(path, _)| !path.ends_with("CHANGELOG.md")) {
        for path in paths_in(text) {
            count += 1;
            if !repository().join(path).exists() {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(count > 50, "{count} paths: are they still found?");
}

/// The modules that `docs/format.md` names without their folder.
#[test]
fn every_module_that_the_format_names_exists() {
    let text = std::fs::read_to_string(repository().join("docs/format.md")).unwrap();
    let folder = repository().join("crates/log/src");
    let modules = text.split('`').skip(1).step_by(2).filter(|word| {
        (word.starts_with("format/") || word.starts_with("recovery/")) && word.ends_with(".rs")
    });
    let modules: Vec<&str> = modules.collect();
    assert!(modules.len() > 5, "{modules:?}");
    for module in modules {
        assert!(folder.join(module).exists(), "{module}");
    }
}

#[test]
fn every_term_of_the_glossary_is_explained_once() {
    let text = std::fs::read_to_string(repository().join("docs/glossary.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| term"));
    let mut terms = std::collections::BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 3, "{row}");
        assert!(cells[1].len() > 10 && !cells[1].ends_with('.'), "{row}");
        assert!(terms.insert(cells[0].to_lowercase()), "twice: {}", cells[0]);
    }
    assert!(terms.len() > 60, "{}", terms.len());
}
