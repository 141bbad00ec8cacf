//! Whole evaluations with a program that is none: it answers at once.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fake;
mod redraw;

use std::path::Path;

use ensilo_bench::driver::Interrupt;
use ensilo_figures::{Evaluation, FiguresError, Outcome, Overrides};
use fake::{Directory, Fake, all, evaluation, measured, report};

#[test]
fn everything_is_measured_drawn_and_judged() {
    let out = Directory::new("all");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let selected = all(&evaluation);
    let fake = Fake::new(measured);
    let ending = evaluation.run(&selected, &fake, &Interrupt::new(), true).unwrap();
    assert_eq!((ending.missing, ending.interrupted), (0, false));
    assert_eq!(fake.count(), evaluation.workload(&selected).done);
    let page = out.read("index.html");
    for experiment in evaluation.experiments() {
        let name = experiment.name;
        assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
        let runs: usize = experiment.series.iter().map(|series| series.points.len() * experiment.runs).sum();
        let mut table = csv::Reader::from_reader(std::io::Cursor::new(out.read(&format!("{name}.csv"))));
        assert_eq!(table.records().map(Result::unwrap).count(), runs, "{name}");
        for number in 1..=experiment.plots.len() {
            let svg = out.read(&format!("{name}-{number}.svg"));
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name} {number}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name} {number}");
            assert!(page.contains(svg.trim_end()), "{name} {number}");
        }
        assert!(ending.lines.iter().any(|line| line.contains(experiment.claims[0].text)), "{name}");
    }
}

#[test]
fn what_is_there_is_not_made_again() {
    let out = Directory::new("resume");
    let first = evaluation(&out.0, &Overrides::default(), "1");
    let selected = first.select(&["silo-10".to_owned()]).unwrap();
    let interrupt = Interrupt::new();
    // The third run is interrupted: what it has measured so far does not count.
    let stopped = Fake::new(|line| match line {
        line if line.contains("--seed 2") && !line.contains("--system") => {
            interrupt.raise();
            let mut report = report(line);
            report["interrupted"] = true.into();
            Outcome::Measured(report)
        }
        line => measured(line),
    });
    let ending = first.run(&selected, &stopped, &interrupt, true).unwrap();
    assert_eq!((stopped.count(), ending.interrupted), (3, true));
    assert_eq!((first.workload(&selected).runs, first.workload(&selected).done), (6, 2));
    assert!(out.read("index.html").contains("silo-10"));
    let rest = Fake::new(measured);
    first.run(&selected, &rest, &Interrupt::new(), true).unwrap();
    assert_eq!(rest.count(), 4);
    assert_eq!(first.to_do(&selected).count(), 0);
}

/// Runs silo-10 and tells how many single runs were made.
fn made(evaluation: &Evaluation) -> Result<usize, FiguresError> {
    let selected = evaluation.select(&["silo-10".to_owned()])?;
    let fake = Fake::new(measured);
    evaluation.run(&selected, &fake, &Interrupt::new(), true).map(|_| fake.count())
}

#[test]
fn results_of_another_program_or_other_parameters_are_replaced_only_when_the_user_says_so() {
    let out = Directory::new("outdated");
    let first = || evaluation(&out.0, &Overrides::default(), "1");
    assert_eq!(made(&first()).unwrap(), 6);
    let longer = Overrides { seconds: Some(3.0), ..Overrides::default() };
    for other in [("2", Overrides::default()), ("1", longer)] {
        let other = || evaluation(&out.0, &other.1, other.0);
        let workload = other().workload(&other().select(&["silo-10".to_owned()]).unwrap());
        assert_eq!((workload.runs, workload.done, workload.outdated), (6, 0, 6));
        let table = out.read("silo-10.csv");
        let refused = made(&other()).unwrap_err();
        assert!(matches!(refused, FiguresError::WouldReplace(..)));
        let told = refused.to_string();
        assert!(told.contains("silo-10: 6 runs") && told.contains("--replace"), "{told}");
        assert_eq!(out.read("silo-10.csv"), table, "nothing is touched");
        assert_eq!(made(&other().replacing(true)).unwrap(), 6);
        assert_eq!(out.read("silo-10.csv").lines().count(), 7);
        // Back to where it was, for the next one.
        made(&first().replacing(true)).unwrap();
    }
}

#[test]
fn fewer_or_more_repetitions_lose_nothing() {
    let out = Directory::new("repetitions");
    let with = |runs| evaluation(&out.0, &Overrides { runs: Some(runs), ..Overrides::default() }, "1");
    assert_eq!([made(&with(3)).unwrap(), made(&with(1)).unwrap(), made(&with(4)).unwrap()], [6, 0, 2]);
    assert_eq!(made(&with(2)).unwrap(), 0);
    assert_eq!(out.read("silo-10.csv").lines().count(), 1 + 8);
}

#[test]
fn experiments_of_other_sizes_and_programs_stay_on_the_page() {
    let out = Directory::new("beside");
    let run = |name: &str, seconds, program| {
        let overrides = Overrides { seconds: Some(seconds), ..Overrides::default() };
        let evaluation = evaluation(&out.0, &overrides, program);
        let selected = evaluation.select(&[name.to_owned()]).unwrap();
        evaluation.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    };
    run("silo-4", 2.0, "1");
    let table = out.read("silo-4.csv");
    run("silo-10", 0.5, "2");
    let page = out.read("index.html");
    assert!(page.contains("id=\"silo-4\"") && page.contains("id=\"silo-10\""));
    assert!(page.contains("2 s a run") && page.contains("0.5 s a run"));
    assert!(page.contains("(checksum 1)") && page.contains("(checksum 2)"));
    assert_eq!(out.read("silo-4.csv"), table);
    // The page can be made anew from the directory alone.
    std::fs::remove_file(out.0.join("index.html")).unwrap();
    ensilo_figures::write_results(&out.0).unwrap();
    assert_eq!(out.read("index.html"), page);
}

#[test]
fn a_directory_that_cannot_be_made_is_told_before_the_first_run() {
    let file = std::env::temp_dir().join(format!("ensilo-figures-file-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let evaluation = evaluation(&file.join("out"), &Overrides::default(), "1");
    let fake = Fake::new(measured);
    let error = evaluation.run(&all(&evaluation), &fake, &Interrupt::new(), true).unwrap_err();
    assert_eq!((fake.count(), matches!(error, FiguresError::File(..))), (0, true));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn an_experiment_that_is_named_twice_is_run_once() {
    let evaluation = evaluation(Path::new("unused"), &Overrides::default(), "1");
    let select = |names: &[&str]| {
        evaluation.select(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap()
    };
    assert_eq!(select(&["silo-10", "silo-4", "silo-10"]), select(&["silo-10", "silo-4"]));
}

#[test]
fn after_an_early_end_only_what_was_measured_is_told() {
    let out = Directory::new("early");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let interrupt = Interrupt::new();
    // All of the first experiment, and the first run of the second.
    let stopped = Fake::new(|line| {
        if line.contains("bench tpcc") {
            interrupt.raise();
        }
        measured(line)
    });
    let ending = evaluation.run(&all(&evaluation), &stopped, &interrupt, true).unwrap();
    assert!(ending.interrupted);
    let lines = ending.lines.join("\n");
    assert!(lines.contains("silo-4 (") && lines.contains("silo-5-6-7 ("), "{lines}");
    assert!(!lines.contains("silo-8") && !lines.contains("no number"), "{lines}");
    assert!(lines.contains("Key-Value outperforms MemSilo"), "{lines}");
    assert!(!lines.contains("Silo+tmpfs"), "{lines}");
}

#[test]
fn workers_beyond_the_processors_are_marked_on_every_axis() {
    let out = Directory::new("beyond");
    let overrides = Overrides { workers: Some(vec![8]), runs: Some(1), ..Overrides::default() };
    let evaluation = evaluation(&out.0, &overrides, "1");
    let names = ["silo-10", "silo-8", "silo-11-persistence", "silor-5"];
    let selected = evaluation.select(&names.map(str::to_owned)).unwrap();
    let ending = evaluation.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    for name in names {
        let text = out.read(&format!("{name}.csv"));
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let column = table.headers().unwrap().iter().position(|column| column == "beyond_cores").unwrap();
        assert!(table.records().all(|row| &row.unwrap()[column] == "true"), "{name}: {text}");
        for number in 1..=2 {
            let svg = out.read(&format!("{name}-{number}.svg"));
            let text: Vec<&str> = svg.lines().filter(|line| !line.starts_with('<')).collect();
            assert!(text.join(" ").contains("here, beyond 2 processors"), "{name} {number}");
        }
    }
    let claims: Vec<_> = ending.lines.iter().filter(|line| line.contains(": here ")).collect();
    assert!(!claims.is_empty());
    assert!(claims.iter().all(|line| line.contains("here no number: cannot be told")), "{claims:?}");
}

#[test]
fn latency_and_aborts_are_drawn_beside_the_papers() {
    let out = Directory::new("beside-paper");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let selected = evaluation.select(&["silo-5-6-7", "silo-10", "silo-8"].map(str::to_owned)).unwrap();
    evaluation.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    let latency = out.read("silo-5-6-7-5.svg");
    assert!(latency.contains("Silo+tmpfs, paper") && latency.contains("Silo, paper"));
    assert!(!latency.contains("MemSilo, paper"), "it has no log");
    assert!(out.read("silo-10-4.svg").contains("the paper"));
    assert!(out.read("silo-8-2.svg").contains("MemSilo+NoSS+Split, paper"));
}

#[test]
fn a_file_that_is_cut_short_counts_as_missing() {
    let out = Directory::new("torn");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let selected = evaluation.select(&["silo-10".to_owned()]).unwrap();
    evaluation.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    let file = out.0.join("runs/silo-10").read_dir().unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert_eq!(evaluation.to_do(&selected).count(), 1);
}

#[test]
fn a_system_that_the_program_does_not_know_does_not_stop_the_others() {
    let out = Directory::new("refused");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let selected = evaluation.select(&["silo-4".to_owned()]).unwrap();
    let fake = Fake::new(|line| {
        if line.contains("key-value") {
            Outcome::Refused("error: no such system".to_owned())
        } else if line.contains("global-tid") {
            Outcome::Failed("check 1 failed".to_owned())
        } else {
            measured(line)
        }
    });
    let ending = evaluation.run(&selected, &fake, &Interrupt::new(), true).unwrap();
    assert_eq!((fake.count(), ending.missing), (27, 18));
    let lines = ending.lines.join("\n");
    assert!(lines.contains("Key-Value: this program refuses 9 run(s): error: no such system"), "{lines}");
    assert!(lines.contains("MemSilo+GlobalTID: 9 run(s) failed: check 1 failed"), "{lines}");
    assert!(lines.contains("cannot be told"), "{lines}");
    let page = out.read("index.html");
    assert!(page.contains("error: no such system") && page.contains("<svg"));
    // A failure may pass, a refusal may be gone with the next try: both are tried again.
    assert_eq!(evaluation.to_do(&selected).count(), 18);
}

#[test]
fn a_page_holds_what_earlier_commands_have_measured() {
    let out = Directory::new("page");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    for name in ["silo-10", "silor-recovery"] {
        let selected = evaluation.select(&[name.to_owned()]).unwrap();
        evaluation.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    }
    let page = out.read("index.html");
    assert!(page.contains("id=\"silo-10\"") && page.contains("id=\"silor-recovery\""));
}

#[test]
fn unknown_experiments_are_refused() {
    let evaluation = evaluation(Path::new("unused"), &Overrides::default(), "1");
    let error = evaluation.select(&["silo-10".to_owned(), "silo-99".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("silo-99"), "{error}");
}
