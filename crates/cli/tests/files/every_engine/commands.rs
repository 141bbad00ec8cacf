//! Commands on directories that `ensilo bench` has written.

use super::*;

fn database(directory: &TestDirectory) -> PathBuf {
    database_of(ENGINE, directory, &[])
}

fn first_log_file(database: &Path) -> PathBuf {
    let is_first = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        ["log-1-0-1-", "log-1-0-1."].iter().any(|first| name.starts_with(first))
    };
    log_files(database).into_iter().find(is_first).unwrap()
}

#[test]
fn a_sound_database_is_verified_shown_and_copied() {
    let directory = directory("sound");
    let database = database(&directory);
    assert!(expect_exit(0, &["verify"], &[&database]).contains("everything up to epoch"));
    assert!(expect_exit(0, &["checkpoint", "list"], &[&database]).contains("there is none"));
    assert!(expect_exit(0, &["checkpoint", "create"], &[&database]).contains("checkpoint 1:"));
    let listed = expect_exit(0, &["checkpoint", "list"], &[&database]);
    assert!(listed.contains("checkpoint 1:") && listed.contains(": 500 rows"), "{listed}");
    assert!(expect_exit(0, &["log", "verify"], &[&database]).contains("in order"));
    let copy = directory.join("copy");
    assert!(expect_exit(0, &["backup"], &[&database, &copy]).contains("everything up to epoch"));
    assert!(expect_exit(0, &["verify"], &[&copy]).contains("everything up to epoch"));
    assert!(expect_exit(1, &["backup"], &[&database, &copy]).contains("error"), "the target is not empty");
    assert!(
        expect_exit(1, &["repair", "--accept-loss-after-epoch", "5"], &[&database])
            .contains("nothing is damaged")
    );
}

#[test]
fn a_checkpoint_is_made_with_a_limited_memory() {
    let directory = directory("limited");
    let database = database(&directory);
    let limit = ["checkpoint", "create", "--memory-limit-mib", "8"];
    assert!(expect_exit(0, &limit, &[&database]).contains("checkpoint 1:"));
    assert!(expect_exit(0, &["checkpoint", "list"], &[&database]).contains(": 500 rows"));
    assert!(expect_exit(0, &["verify"], &[&database]).contains("everything up to epoch"));
    let too_low = ["checkpoint", "create", "--memory-limit-mib", "7"];
    assert!(expect_exit(2, &too_low, &[&database]).contains("7 is not in 8"));
}

#[test]
fn a_log_is_shown_write_by_write() {
    let directory = directory("shown");
    let database = database(&directory);
    let files = log_files(&database);
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let shown = expect_exit(0, &["log", "dump"], &files);
    for part in ["log file 1 of logger 0", "block of", "put ", "byte", "end"] {
        assert!(shown.contains(part), "{part}: {}", &shown[..shown.len().min(2_000)]);
    }
    let blocks = expect_exit(0, &["log", "dump", "--blocks"], &files);
    assert!(blocks.contains("block of") && !blocks.contains("put "));
    assert!(expect_exit(0, &["log", "dump"], &[&database.join("MANIFEST")]).contains("generation"));
}

#[test]
fn damage_is_found_named_and_given_up_only_on_request() {
    let directory = directory("damaged");
    let database = database(&directory);
    let file = first_log_file(&database);
    let mut bytes = fs::read(&file).unwrap();
    bytes[20_000] ^= 1;
    fs::write(&file, bytes).unwrap();
    let found = expect_exit(1, &["verify"], &[&database]);
    assert!(
        found.contains("damaged: ") && found.contains(file.file_name().unwrap().to_str().unwrap()),
        "{found}"
    );
    assert!(expect_exit(1, &["checkpoint", "create"], &[&database]).contains("byte"));
    let refused = expect_exit(1, &["repair", "--accept-loss-after-epoch", "1000000000"], &[&database]);
    let epoch = refused.split_once("after epoch ").unwrap().1;
    let epoch: String = epoch.chars().take_while(char::is_ascii_digit).collect();
    let repaired = expect_exit(0, &["repair", "--accept-loss-after-epoch", &epoch], &[&database]);
    assert!(repaired.contains("given up") && repaired.contains("before-repair-"), "{repaired}");
    let (_, counted) = repaired.split_once("of that could be read: ").unwrap();
    assert!(!counted.starts_with("0 transactions"), "{repaired}");
    assert!(expect_exit(0, &["repair", "--help"], &[]).contains("To undo a repair"));
    let verified = expect_exit(0, &["verify"], &[&database]);
    assert!(verified.contains(&format!("everything up to epoch {epoch} is there")), "{verified}");
    assert!(expect_exit(0, &["checkpoint", "create"], &[&database]).contains("checkpoint 1:"));
}

/// The number in front of `what` in a text.
fn number_before(text: &str, what: &str) -> u64 {
    let (before, _) = text.split_once(what).unwrap_or_else(|| panic!("{what}: {text}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_salvage_saves_what_is_readable_and_lists_the_rest() {
    let directory = directory("salvage");
    let database = directory.join("database");
    let rows = ["--records", "20000", "--mix", "rmw=100", "--workers", "1", "--prefault-mib", "0"];
    let short = ["--seconds", "0.2", "--warmup", "0", "--no-checkpoints", "--quiet", "--no-check"];
    expect_exit(
        0,
        &[&["bench", "ycsb"][..], &rows, &short, &["--engine", ENGINE, "--data-dir"]].concat(),
        &[&database],
    );
    expect_exit(0, &["checkpoint", "create"], &[&database]);
    let untouched = expect_exit(0, &["salvage"], &[&database, &directory.join("untouched")]);
    assert!(untouched.contains("nothing is lost") && !untouched.contains("damaged: "), "{untouched}");
    let parts = fs::read_dir(database.join("checkpoint-1")).unwrap().map(|entry| entry.unwrap().path());
    let part = parts.max_by_key(|part| fs::metadata(part).unwrap().len()).unwrap();
    let name = part.file_name().unwrap().to_str().unwrap().to_owned();
    let mut bytes = fs::read(&part).unwrap();
    // Behind the blocks with definitions.
    let at = bytes.len() - 1000;
    bytes[at] ^= 1;
    fs::write(&part, bytes).unwrap();
    // An opening, `verify` and `repair` name it, and what can be done.
    for command in [&["verify"][..], &["checkpoint", "create"], &["repair", "--accept-loss-after-epoch", "9"]]
    {
        let refused = expect_exit(1, command, &[&database]);
        assert!(refused.contains(&name) && refused.contains("ensilo salvage"), "{command:?}: {refused}");
    }
    let target = directory.join("saved");
    let saved = expect_exit(3, &["salvage"], &[&database, &target]);
    assert!(saved.contains("rows are lost") && !saved.contains("ensilo salvage"), "{saved}");
    let (lost, kept) = (number_before(&saved, " records in"), number_before(&saved, " rows saved, "));
    assert!(lost > 0 && kept > 0 && lost + kept == 20_000, "{saved}");
    assert!(saved.contains(&name) && saved.contains("(usertable)") && saved.contains("before "), "{saved}");
    assert!(expect_exit(0, &["verify"], &[&target]).contains("everything up to epoch"));
    expect_exit(0, &["checkpoint", "create"], &[&target]);
    assert!(expect_exit(0, &["checkpoint", "list"], &[&target]).contains(&format!(": {kept} rows")));
    assert!(expect_exit(1, &["salvage"], &[&database, &target]).contains("name another directory"));
    let help = expect_exit(0, &["salvage", "--help"], &[]);
    assert!(
        ["0 everything", "1 failed", "2 bad", "3 saved", "4 saved", "5 saved"]
            .iter()
            .all(|code| help.contains(code))
    );
}

#[test]
fn definitions_and_the_manifest_stand_twice() {
    let directory = directory("twice");
    let database = database(&directory);
    expect_exit(0, &["checkpoint", "create"], &[&database]);
    let listed = expect_exit(0, &["checkpoint", "list"], &[&database]);
    assert!(listed.contains("copies.ckpt: 1 rows that others have too"), "{listed}");
    let flip = |file: &Path, at: usize| {
        let mut bytes = fs::read(file).unwrap();
        bytes[at] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    let manifest = database.join("MANIFEST");
    flip(&manifest, 40);
    for command in [&["verify"][..], &["checkpoint", "create"], &["repair", "--accept-loss-after-epoch", "9"]]
    {
        let said = expect_exit(1, command, &[&database]);
        assert!(
            said.contains("MANIFEST") && said.contains("copy MANIFEST.copy to MANIFEST while nobody"),
            "{said}"
        );
    }
    let saved = expect_exit(5, &["salvage"], &[&database, &directory.join("by-copy")]);
    assert!(saved.contains("its copy was taken") && saved.contains("nothing is known to be lost"), "{saved}");
    assert!(!saved.contains("nothing is lost"), "{saved}");
    assert!(expect_exit(0, &["verify"], &[&directory.join("by-copy")]).contains("with 501 rows"));
    fs::copy(database.join("MANIFEST.copy"), &manifest).unwrap();
    assert!(expect_exit(0, &["verify"], &[&database]).contains("with 501 rows"));
    // A repair goes on without the second place.
    let backup = directory.join("backup");
    expect_exit(0, &["backup"], &[&database, &backup]);
    flip(&backup.join("checkpoint-1/copies.ckpt"), 4096 + 80);
    let said = expect_exit(1, &["verify"], &[&backup]);
    assert!(said.contains("copies.ckpt") && said.contains("go on without it by ensilo repair"), "{said}");
    let repaired = expect_exit(0, &["repair"], &[&backup]);
    assert!(repaired.contains("nothing is given up"), "{repaired}");
    assert!(expect_exit(0, &["verify"], &[&backup]).contains("with 501 rows"));
    // Each block with the definition, and then both.
    for (file, target, code) in [("part-0.ckpt", "one", 0), ("copies.ckpt", "both", 4)] {
        flip(&database.join("checkpoint-1").join(file), 4096 + 80);
        let said = expect_exit(1, &["verify"], &[&database]);
        assert!(said.contains(file) && said.contains("ensilo salvage"), "{said}");
        let target = directory.join(target);
        let saved = expect_exit(code, &["salvage"], &[&database, &target]);
        assert!(saved.contains(": 500 rows saved") && saved.contains("unreadable: 1 records in"), "{saved}");
        assert_eq!(saved.contains("(usertable)"), code == 0, "{saved}");
        assert_eq!(saved.contains("but its definition is lost"), code == 4, "{saved}");
        assert!(
            expect_exit(0, &["log", "dump"], &[&target.join("checkpoint-1/part-0.ckpt")]).contains("put ")
        );
    }
}

#[test]
fn a_cut_of_the_newest_log_file_is_found() {
    let directory = directory("cut");
    let database = database(&directory);
    let copy = directory.join("copy");
    expect_exit(0, &["backup"], &[&database, &copy]);
    assert!(expect_exit(0, &["log", "verify"], &[&copy]).contains("in order"), "a copy may be shorter");
    let is_open = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "open");
    let newest = log_files(&database).into_iter().filter(is_open);
    // The one behind it was made ahead, and has its full length.
    let newest = newest.min_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&newest).unwrap();
    file.set_len(file.metadata().unwrap().len() - 64).unwrap();
    for command in [&["verify"][..], &["log", "verify"], &["checkpoint", "create"]] {
        let found = expect_exit(1, command, &[&database]);
        let name = newest.file_name().unwrap().to_str().unwrap();
        assert!(found.contains("cut off") && found.contains(name), "{command:?}: {found}");
    }
    assert!(expect_exit(1, &["log", "dump", "--blocks"], &[&newest]).contains("cut off"));
}

/// Where in a log file the blocks begin that have more than two pages; how many there are is a matter of speed.
fn long_blocks(file: &Path) -> Vec<usize> {
    let shown = expect_exit(0, &["log", "dump", "--blocks"], &[file]);
    let mut blocks = Vec::new();
    for line in shown.lines().filter_map(|line| line.trim().strip_prefix("byte ")) {
        let Some((at, block)) = line.split_once(": block of ") else { continue };
        let (len, _) = block.split_once(" bytes").unwrap();
        if len.parse::<usize>().unwrap() > 2 * 4096 {
            blocks.push(at.parse().unwrap());
        }
    }
    blocks
}

#[test]
fn zeros_within_what_was_synced_are_damage() {
    let directory = directory("zeros");
    let database = database(&directory);
    let file = first_log_file(&database);
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let blocks = long_blocks(&file);
    // Damaged blocks that follow each other are one damage.
    assert!(blocks.len() >= 3, "{blocks:?}");
    let mut bytes = fs::read(&file).unwrap();
    for block in [blocks[0], blocks[2]] {
        bytes[block + 4096..block + 2 * 4096].fill(0);
    }
    fs::write(&file, bytes).unwrap();
    for arguments in [&["log", "verify"][..], &["verify"]] {
        let said = expect_exit(1, arguments, &[&database]);
        let is_damage = |line: &&str| line.starts_with("damaged:") && line.contains("checksum");
        let damages: Vec<&str> = said.lines().filter(is_damage).collect();
        assert!(
            damages.len() == 2 && damages.iter().all(|line| line.contains(&name)),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn the_log_is_verified_where_it_lies() {
    let directory = directory("elsewhere");
    let log = directory.join("disk");
    let path = database_of(ENGINE, &directory, &["--log-dir", log.to_str().unwrap()]);
    let verified = expect_exit(0, &["log", "verify"], &[&path]);
    assert!(verified.lines().all(|line| line.starts_with(log.to_str().unwrap())), "{verified}");
    assert!(verified.contains("log-1-0-1"), "{verified}");
    assert!(expect_exit(1, &["backup"], &[&path, &log.join("in")]).contains("keeps its log"));
    let manifest = path.join("MANIFEST");
    assert!(expect_exit(0, &["log", "verify"], &[&manifest]).contains("in order"));
    let shown = expect_exit(0, &["log", "dump"], &[&manifest]);
    assert!(
        shown.contains("logger 0: the log files from number 1 on") && !shown.contains("Some("),
        "{shown}"
    );
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[2] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    for (arguments, what) in [
        (&["log", "dump"][..], &manifest),
        (&["log", "verify"], &manifest),
        (&["checkpoint", "list"], &path),
        (&["checkpoint", "create"], &path),
        (&["verify"], &path),
    ] {
        let said = expect_exit(1, arguments, &[what]);
        assert!(said.contains("byte 0") && said.contains("does not begin as"), "{arguments:?}: {said}");
    }
    fs::remove_file(&manifest).unwrap();
    fs::create_dir_all(path.join("checkpoint-1")).unwrap();
    for arguments in [&["checkpoint", "list"][..], &["checkpoint", "create"], &["verify"]] {
        assert!(
            expect_exit(1, arguments, &[&path]).contains("MANIFEST: the file is missing"),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_checkpoint_is_made_after_a_recovery_that_is_shown() {
    let directory = directory("recovery");
    let database = database(&directory);
    let output = ensilo(&["checkpoint", "create", database.to_str().unwrap()]);
    let progress = text(&output.stderr);
    assert!(progress.starts_with("recovering: "), "{progress}");
    let parts: Vec<PathBuf> =
        contents(&database.join("checkpoint-1")).into_iter().map(|file| file.0).collect();
    let has_blocks =
        |path: &&PathBuf| expect_exit(0, &["log", "dump", "--blocks"], &[path]).contains("block of");
    let files = parts.len() + log_files(&database).iter().filter(has_blocks).count();
    assert!(expect_exit(0, &["verify"], &[&database]).contains(&format!("{files} files in order")));
    assert!(expect_exit(0, &["log", "verify"], &[&parts[0]]).contains("in order"));
    let shown = expect_exit(0, &["log", "dump", "--blocks"], &[&parts[0]]);
    assert!(shown.contains("ends the part") && !shown.contains("epoch"), "{shown}");
    let mut bytes = fs::read(&parts[0]).unwrap();
    bytes[4_200] ^= 1;
    fs::write(&parts[0], bytes).unwrap();
    let copy = directory.join("copy");
    let refused = expect_exit(1, &["backup"], &[&database, &copy]);
    assert!(refused.contains(parts[0].to_str().unwrap()) && !refused.contains("copy/"), "{refused}");
}
