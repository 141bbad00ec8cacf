//! `ensilo log`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ensilo_log::{
    BlockEnd, Change, Corruption, CorruptionKind, Dumped, EpochWidth, FileHeader, FileRole, HeaderError,
    LogFileName, Manifest, OpenError, OpeningId, SealedHeader, Write,
};

use super::checkpoint::checkpoint_lines;
use super::output::{damaged, disk};
use crate::output::{Output, failed};

/// The commands of `ensilo log`.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Print what is in a log file, a checkpoint's part or a manifest. The database may be open.
    Dump(DumpArguments),
    /// Check every block of log files, each file by itself. The database may be open.
    Verify(VerifyArguments),
}

/// Arguments of `ensilo log dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
A line for each block and each write: kind, transaction (epoch.number), table, key and row in hexadecimal digits.
Epochs are shown as this version numbers them: one that an earlier version wrote, in a file of format 3 or earlier, is
shown as the first or the last of the sixteen that it has become. Names of files stay as they are.
Ends at the first place where there is no valid block.

Exit codes: 0 all that was written could be read; 1 there is damage, or it could not be read; 2 bad parameters.")]
pub(crate) struct DumpArguments {
    /// The files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Show blocks only, not what is in them
    #[arg(long)]
    blocks: bool,
}

/// Arguments of `ensilo log verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
A file that is complete (its name ends in .log) must be valid to its end. One that was being written (.open) may end
with a block that a crash has torn, but must be whole as far as it was synced, and as long as it was made, unless it
says that it was ended. Every damage is reported, also behind another one. Of a database, the files in all directories
that its manifest names are checked. Whether all files are there that must be is what `ensilo verify DIR` tells.

Exit codes: 0 all is in order; 1 there is damage, it could not be read, or there are no log files; 2 bad parameters.")]
pub(crate) struct VerifyArguments {
    /// Log files, directories of such, or databases
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
}

/// Prints or checks.
pub(crate) fn log(command: &LogCommand) -> ExitCode {
    match command {
        LogCommand::Dump(arguments) => dump(arguments),
        LogCommand::Verify(arguments) => verify(arguments),
    }
}

fn dump(arguments: &DumpArguments) -> ExitCode {
    let mut output = Output::new();
    let mut is_damaged = false;
    for path in &arguments.files {
        if path.is_dir() {
            drop(output);
            return failed(format_args!(
                "{} is a directory: name the log files, the parts of a checkpoint (.ckpt) or the MANIFEST in it",
                path.display()
            ));
        }
        output.line(format_args!("{}", path.display()));
        let mut role = None;
        let dumped = ensilo_log::dump(&*disk(), path, &mut |dumped| {
            is_damaged |= matches!(dumped, Dumped::Corruption { .. });
            if let Dumped::Header(header) = dumped {
                role = Some(header.identity.file);
            }
            let is_log = matches!(role, Some(FileRole::Log { .. }));
            show(&dumped, is_log, arguments.blocks, &mut output);
        });
        if let Err(error) = dumped {
            drop(output);
            return match error {
                OpenError::Corrupt(damage) if is_something_else(&damage) => failed(format_args!(
                    "{} is no log file, no checkpoint's part and no manifest",
                    path.display()
                )),
                error => failed(error),
            };
        }
    }
    if is_damaged { damaged() } else { ExitCode::SUCCESS }
}

fn show(dumped: &Dumped<'_>, is_log: bool, blocks_only: bool, output: &mut Output) {
    match dumped {
        Dumped::Manifest(manifest) => show_manifest(manifest, output),
        Dumped::Header(header) => output.line(format_args!("  {}", header_text(header))),
        Dumped::Block(block) => output.line(format_args!("  {}", block_text(block, is_log))),
        Dumped::Write(_) | Dumped::Record(_) if blocks_only => {}
        Dumped::Write(write) => output.line(format_args!("    {}", write_text(write))),
        Dumped::Record(record) => output.line(format_args!("    record {}", write_text(record))),
        Dumped::Corruption { offset, kind } => output.line(format_args!("  byte {offset}: damaged: {kind}")),
        Dumped::End { offset } => output.line(format_args!("  byte {offset}: end")),
        other => output.line(format_args!("  {other:?}")),
    }
}

fn show_manifest(manifest: &Manifest, output: &mut Output) {
    output.line(format_args!(
        "  manifest of database {}: generation {}{}, from epoch {} on; everything up to epoch {} was stored; the next checkpoint is {}",
        manifest.database,
        manifest.generation,
        by_opening(manifest.opening),
        manifest.first_epoch,
        manifest.durable_epoch,
        manifest.next_checkpoint
    ));
    if manifest.last_generation_of_40_bits > 0 {
        output.line(format_args!(
            "  generations up to {} are of an earlier version, each epoch of which is sixteen here",
            manifest.last_generation_of_40_bits
        ));
    }
    for (number, logger) in manifest.loggers.iter().enumerate() {
        let (directory, first) = (&logger.directory, logger.first_sequence);
        output.line(format_args!("  logger {number}: the log files from number {first} on in {directory}"));
    }
    for file in &manifest.earlier {
        let extent = match file.valid_bytes {
            Some(bytes) => format!("{bytes} bytes"),
            None => "all up to its seal".to_owned(),
        };
        let path = Path::new(&file.directory).join(file.name.to_string());
        output.line(format_args!(
            "  earlier log file {}{}: {extent}, up to epoch {}",
            path.display(),
            by_opening(file.opening),
            file.durable_epoch
        ));
    }
    for line in manifest.checkpoint.iter().flat_map(checkpoint_lines) {
        output.line(format_args!("  {line}"));
    }
}

/// Names the opening that wrote something, if that has a number.
fn by_opening(opening: OpeningId) -> String {
    if opening == OpeningId::default() { String::new() } else { format!(" by opening {opening}") }
}

fn header_text(header: &FileHeader) -> String {
    let FileHeader { identity, first_epoch, reserved_bytes } = header;
    let role = match identity.file {
        FileRole::Log { generation, logger, sequence } => {
            format!("log file {sequence} of logger {logger} in generation {generation}")
        }
        FileRole::Checkpoint { checkpoint, part } => format!("part {part} of checkpoint {checkpoint}"),
    };
    let mut text = format!("{role} of database {}{}", identity.database, by_opening(identity.opening));
    if matches!(identity.file, FileRole::Log { .. }) {
        let _ = write!(text, ", from epoch {first_epoch} on, made {reserved_bytes} bytes long");
        if identity.epochs == EpochWidth::Bits40 {
            text.push_str(", of an earlier version, each epoch of which is sixteen here");
        }
    }
    text
}

fn block_text(block: &SealedHeader, is_log: bool) -> String {
    let header = &block.header;
    let mut text = format!("byte {}: block of {} bytes", header.offset, block.payload_bytes);
    if block.compressed {
        let _ = write!(text, " ({} before compression)", block.raw_bytes);
    }
    if let Some((first, last)) = header.epochs {
        let _ = write!(text, ", epochs {first} to {last}");
    }
    if let Some(mark) = header.mark {
        let _ = write!(text, ", complete before epoch {mark}");
    }
    if is_log {
        let _ = write!(text, ", durable epoch {}, synced to byte {}", header.durable_epoch, header.synced_to);
    }
    if let Some(bytes) = header.reserved_bytes {
        let _ = write!(text, ", the file was made {bytes} bytes long");
    }
    text.push_str(match header.end {
        BlockEnd::None => "",
        BlockEnd::Seal => ", seals the file",
        BlockEnd::Closed => ", closes the log",
        BlockEnd::Part => ", ends the part",
    });
    text
}

fn write_text(write: &Write<'_>) -> String {
    let place = format!(
        "{}.{} table {} key {}",
        ensilo_log::epoch_of(write.tid),
        ensilo_log::sequence_of(write.tid),
        write.table,
        hexadecimal(write.key)
    );
    match &write.change {
        Change::Put(row) => format!("put {place} row {}", hexadecimal(row)),
        Change::Delete => format!("delete {place}"),
        Change::Patch(words) => {
            let words: Vec<_> = words.clone().map(|(at, word)| format!("{at}={word:016x}")).collect();
            format!("patch {place} words {}", words.join(" "))
        }
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn verify(arguments: &VerifyArguments) -> ExitCode {
    let mut output = Output::new();
    let mut is_in_order = true;
    for path in &arguments.paths {
        let files = match files_in(path) {
            Ok(files) => files,
            Err(error) => {
                is_in_order = false;
                failed(error);
                continue;
            }
        };
        for file in files {
            match verify_file(&file, &mut output) {
                Ok(is_sound) => is_in_order &= is_sound,
                Err(error) => {
                    is_in_order = false;
                    failed(error);
                }
            }
        }
    }
    if is_in_order { ExitCode::SUCCESS } else { damaged() }
}

/// A file to be verified.
struct LogFile {
    path: PathBuf,
    /// How much of it counts, if a manifest says so.
    valid_bytes: Option<u64>,
}

/// Checks a file, reports what is wrong, and returns whether it is in order.
fn verify_file(file: &LogFile, output: &mut Output) -> Result<bool, OpenError> {
    let named = file.path.display();
    let checked = if file.path.ends_with("MANIFEST") {
        ensilo_log::dump(&*disk(), &file.path, &mut |_| {}).map(|()| None)
    } else {
        ensilo_log::check_file(&*disk(), &file.path, file.valid_bytes).map(Some)
    };
    match checked {
        Ok(None) => output.line(format_args!("{named}: a manifest, in order")),
        Ok(Some(checked)) if checked.corruptions.is_empty() => {
            let counts =
                format!("{} blocks, {} writes, {} bytes", checked.blocks, checked.writes, checked.bytes);
            match checked.torn {
                None => output.line(format_args!("{named}: {counts}, in order")),
                Some((offset, damage)) => output.line(format_args!(
                    "{named}: {counts}, in order; from byte {offset} on as a crash may leave it: {damage}"
                )),
            }
        }
        Ok(Some(checked)) => {
            for (offset, kind) in &checked.corruptions {
                output.line(format_args!("damaged: {named}, byte {offset}: {kind}"));
            }
            return Ok(false);
        }
        Err(OpenError::Corrupt(damage)) if is_something_else(&damage) => {
            return Err(OpenError::Refused(format!("{named} is no file of a log")));
        }
        // What it means for a database cannot be known from one file.
        Err(OpenError::Corrupt(damage)) => {
            let offset = damage.offset.unwrap_or_default();
            output.line(format_args!("damaged: {named}, byte {offset}: {}", damage.kind));
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    Ok(true)
}

/// Returns whether neither the name nor the bytes of a file are those of one that belongs to a database.
fn is_something_else(damage: &Corruption) -> bool {
    let name = damage.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_ours = ["MANIFEST", "MANIFEST.copy"].contains(&name)
        || name.ends_with(".ckpt")
        || LogFileName::parse(name).is_some();
    let is_no_file = matches!(
        damage.kind,
        CorruptionKind::Header(HeaderError::Magic | HeaderError::Short) | CorruptionKind::Unopened { .. }
    );
    !is_ours && is_no_file
}

/// Lists a file; or the log files of a database, in the directories that its manifest names; or those of a
/// directory, and of the directory `log` in it. By name.
fn files_in(path: &Path) -> Result<Vec<LogFile>, OpenError> {
    if !path.is_dir() {
        return Ok(vec![LogFile { path: path.to_path_buf(), valid_bytes: None }]);
    }
    let mut files = match path.join("MANIFEST").exists() {
        true => files_of_database(path)?,
        false => {
            let directories = [path.to_path_buf(), path.join("log")];
            let there = directories.iter().filter(|directory| directory.is_dir());
            there.map(|directory| log_files(directory)).collect::<Result<Vec<_>, _>>()?.concat()
        }
    };
    if files.is_empty() {
        return Err(OpenError::Refused(format!("{} holds no log files", path.display())));
    }
    files.sort();
    let valid_bytes = |(_, path, valid_bytes)| LogFile { path, valid_bytes };
    Ok(files.into_iter().map(valid_bytes).collect())
}

/// The names of log files, where they lie, and how much of them counts if that is known.
type Files = Vec<(LogFileName, PathBuf, Option<u64>)>;

fn files_of_database(path: &Path) -> Result<Files, OpenError> {
    let manifest = ensilo_log::manifest_of(&*disk(), path)?;
    let mut files = Vec::new();
    for directory in manifest.log_directories() {
        for (name, file, _) in log_files(&path.join(directory))? {
            let entry =
                manifest.earlier.iter().find(|entry| entry.name == name && entry.directory == directory);
            files.push((name, file, entry.and_then(|entry| entry.valid_bytes)));
        }
    }
    Ok(files)
}

fn log_files(directory: &Path) -> Result<Files, OpenError> {
    let listed = disk().list(directory).map_err(|error| OpenError::Io {
        doing: "list",
        path: directory.to_path_buf(),
        error,
    })?;
    let names = listed.iter().filter_map(|entry| LogFileName::parse(&entry.name));
    Ok(names.map(|name| (name, directory.join(name.to_string()), None)).collect())
}
