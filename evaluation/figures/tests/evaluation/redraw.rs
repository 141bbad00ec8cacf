//! Plots that are drawn anew from the tables of an evaluation.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ensilo_bench::driver::Interrupt;
use ensilo_figures::{FiguresError, Outcome, Overrides, redraw_results};

use crate::fake::{Directory, Fake, evaluation, measured};

/// The files of this extension in a directory, by name.
fn files(directory: &Path, extension: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|it| it == extension));
    files
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .collect()
}

/// A directory with the tables of one alone, each changed by a function of its name and text.
fn tables_of(from: &Directory, name: &str, change: impl Fn(&str, String) -> String) -> Directory {
    let to = Directory::new(name);
    fs::create_dir_all(&to.0).unwrap();
    for (file, text) in files(&from.0, "csv") {
        let text = change(&file, String::from_utf8(text).unwrap());
        fs::write(to.0.join(file), text).unwrap();
    }
    to
}

/// An evaluation of these experiments, and what it said at the end.
fn measured_in(name: &str, experiments: &[&str]) -> (Directory, Vec<String>) {
    run_in(name, experiments, measured)
}

/// The same, with runs that end so.
fn run_in(name: &str, experiments: &[&str], run: impl Fn(&str) -> Outcome) -> (Directory, Vec<String>) {
    let out = Directory::new(name);
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let names: Vec<String> = experiments.iter().map(|&name| name.to_owned()).collect();
    let selected = evaluation.select(&names).unwrap();
    let ending = evaluation.run(&selected, &Fake::new(run), &Interrupt::new(), true).unwrap();
    (out, ending.lines)
}

/// A table without these columns.
fn without(columns: &[&str], table: &str) -> String {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().unwrap().clone();
    let mut kept = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(header.clone()).chain(reader.records().map(Result::unwrap)) {
        let cells = header.iter().zip(&row).filter(|(column, _)| !columns.contains(column));
        kept.write_record(cells.map(|(_, cell)| cell)).unwrap();
    }
    String::from_utf8(kept.into_inner().unwrap()).unwrap()
}

#[test]
fn plots_and_rulings_from_tables_are_those_of_the_run() {
    let (out, lines) = measured_in("drawn", &["all"]);
    let copy = tables_of(&out, "redrawn", |_, text| text);
    let redrawn = redraw_results(&copy.0).unwrap();
    assert_eq!((redrawn.lines, redrawn.left), (lines, Vec::new()));
    let (drawn, again) = (files(&out.0, "svg"), files(&copy.0, "svg"));
    assert!(drawn.len() > 90 && redrawn.plots.len() == drawn.len());
    assert_eq!(drawn.keys().collect::<Vec<_>>(), again.keys().collect::<Vec<_>>());
    drawn.iter().for_each(|(name, svg)| assert!(again[name] == *svg, "{name}"));
    assert!(files(&copy.0, "new").is_empty(), "nothing is left beside");
}

#[test]
fn runs_that_failed_are_missing_in_what_is_drawn_anew_as_they_were_at_first() {
    // One series at its first place, and an experiment as a whole.
    let (out, lines) = run_in("failed", &["silo-4", "silo-10"], |line| {
        let is_first_of_baseline = line.contains("--system key-value ") && line.contains("--workers 1 ");
        let fails = is_first_of_baseline || line.contains("tpcc");
        if fails { Outcome::Failed("no such luck".to_owned()) } else { measured(line) }
    });
    assert_eq!(out.read("silo-10.csv").lines().count(), 1, "its runs have failed");
    let copy = tables_of(&out, "failed-again", |_, text| text);
    let redrawn = redraw_results(&copy.0).unwrap();
    assert!(!redrawn.lines.is_empty());
    redrawn.lines.iter().for_each(|line| assert!(lines.contains(line), "{line}: {lines:#?}"));
    let again = files(&copy.0, "svg");
    assert!(again.len() >= 2, "{:?}", again.keys());
    again.iter().for_each(|(name, svg)| assert!(out.read(name).as_bytes() == svg, "{name}"));
}

#[test]
fn what_old_tables_do_not_say_is_not_drawn() {
    let (out, _) = measured_in("newer", &["silo-4", "silor-1"]);
    let newer = [
        "transactions",
        "checkpoint_seconds",
        "in_parts_us",
        "measured_at",
        "program",
        "machine",
        "timeline",
    ];
    let copy = tables_of(&out, "older", |_, text| without(&newer, &text));
    let over_time = copy.0.join("silor-1-1.svg");
    fs::write(&over_time, "as it was").unwrap();
    let redrawn = redraw_results(&copy.0).unwrap();
    assert_eq!(redrawn.left, [1, 2].map(|number| copy.0.join(format!("silor-1-{number}.svg"))));
    assert_eq!(copy.read("silor-1-1.svg"), "as it was");
    assert!(!copy.0.join("silor-1-2.svg").exists());
    let notes = redrawn.notes();
    assert!(notes[0].ends_with("stays as it is") && notes[1].ends_with("figures for it"), "{notes:?}");
    assert_eq!(copy.read("silor-1-3.svg"), out.read("silor-1-3.svg"));
    // How many processors there were is known from neither captions nor rulings any more.
    assert!(copy.read("silo-4-1.svg").contains("here, beyond the processors"));
    let told = redrawn.lines.join("\n");
    assert!(told.contains("how many there were is not noted") && !told.contains("2 processors"), "{told}");
}

/// What drawing a table says that was changed so; no plot may have been touched.
fn refusal(out: &Directory, change: impl Fn(&str) -> String) -> String {
    let copy =
        tables_of(out, "damaged", |file, text| if file == "silo-4.csv" { change(&text) } else { text });
    fs::write(copy.0.join("silo-10-1.svg"), "as it was").unwrap();
    let error = redraw_results(&copy.0).unwrap_err();
    assert!(matches!(error, FiguresError::Table(..)), "{error}");
    let plots = files(&copy.0, "svg");
    assert_eq!((plots.len(), &plots["silo-10-1.svg"][..]), (1, &b"as it was"[..]));
    let told = error.to_string();
    assert!(told.contains("silo-4.csv") && told.contains("copy"), "{told}");
    told
}

#[test]
fn damaged_tables_are_refused_before_anything_is_drawn() {
    let (out, _) = measured_in("whole", &["silo-4", "silo-10"]);
    let says = |expected: &str, change: &dyn Fn(&str) -> String| {
        let told = refusal(&out, change);
        assert!(told.contains(expected), "{expected}: {told}");
    };
    says("cut short", &|text| text[..text.len() - 1].to_owned());
    says("cut short", &|text| text[..text.len() - 60].to_owned());
    says("cut short", &|_| String::new());
    says("found record with", &|text| format!("{text}silo-4,MemSilo\n"));
    says("unknown field `colour`", &|text| text.replacen("committed", "colour", 1));
    says("missing field `workers`", &|text| without(&["workers"], text));
    says("invalid float", &|text| text.replacen(",1001,", ",many,", 1));
    says("transactions_per_second is NaN", &|text| text.replacen(",1001,", ",NaN,", 1));
    says("no series Another", &|text| text.replacen(",MemSilo,", ",Another,", 1));
    says("is in it twice", &|text| format!("{text}{}\n", text.lines().nth(1).unwrap()));
    says("contradicts itself", &|text| text.replacen(",false,", ",true,", 1));
    says("different numbers of processors", &|text| text.replacen(", 2 processors", ", 3 processors", 1));
    says("contradicts itself or their machine", &|text| text.replace(", 2 processors", ", 4 processors"));
    says("runs of silo-10, and is named like those of silo-4", &|_| out.read("silo-10.csv"));
}

#[test]
fn a_directory_without_tables_has_nothing_to_draw() {
    let empty = Directory::new("no-tables");
    let error = redraw_results(&empty.0).unwrap_err();
    assert!(
        matches!(error, FiguresError::NothingToDraw(_)) && error.to_string().contains("--out"),
        "{error}"
    );
    assert!(!empty.0.exists());
}
