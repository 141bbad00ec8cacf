//! `ensilo log`.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ensilo_log::{BlockEnd, Change, Dumped, FileHeader, FileRole, Finding, LogFileName, SealedHeader, Write};

use super::output::{Output, damaged, disk, failed};

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
with a block that a crash has torn, but must be as long as it was made, unless it says that it was ended. Whether all files are there that must be is what `ensilo verify DIR` tells.

Exit codes: 0 all is in order; 1 there is damage, or it could not be read; 2 bad parameters.")]
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
        output.line(format_args!("{}", path.display()));
        let dumped = ensilo_log::dump(&*disk(), path, &mut |dumped| {
            is_damaged |= matches!(dumped, Dumped::Damage { .. });
            show(&dumped, arguments.blocks, &mut output);
        });
        if let Err(error) = dumped {
            drop(output);
            return failed(error);
        }
    }
    if is_damaged { damaged() } else { ExitCode::SUCCESS }
}

fn show(dumped: &Dumped<'_>, blocks_only: bool, output: &mut Output) {
    match dumped {
        Dumped::Manifest(manifest) => output.line(format_args!("{manifest:#?}")),
        Dumped::Header(header) => output.line(format_args!("  {}", header_text(header))),
        Dumped::Block(block) => output.line(format_args!("  {}", block_text(block))),
        Dumped::Write(_) | Dumped::Record(_) if blocks_only => {}
        Dumped::Write(write) => output.line(format_args!("    {}", write_text(write))),
        Dumped::Record(record) => output.line(format_args!("    record {}", write_text(record))),
        Dumped::Damage { offset, finding } => {
            output.line(format_args!("  byte {offset}: damaged: {finding}"))
        }
        Dumped::End { offset } => output.line(format_args!("  byte {offset}: end")),
        other => output.line(format_args!("  {other:?}")),
    }
}

fn header_text(header: &FileHeader) -> String {
    let FileHeader { identity, first_epoch, reserved_bytes } = header;
    let role = match identity.file {
        FileRole::Log { generation, logger, sequence } => {
            format!("log file {sequence} of logger {logger} in generation {generation}")
        }
        FileRole::Checkpoint { checkpoint, part } => format!("part {part} of checkpoint {checkpoint}"),
    };
    let mut text = format!("{role} of database {}, from epoch {first_epoch} on", identity.database);
    if *reserved_bytes > 0 {
        let _ = write!(text, ", made {reserved_bytes} bytes long");
    }
    text
}

fn block_text(block: &SealedHeader) -> String {
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
    let _ = write!(text, ", durable epoch {}, synced to byte {}", header.durable_epoch, header.synced_to);
    if let Some(bytes) = header.reserved_bytes {
        let _ = write!(text, ", the file was made {bytes} bytes long");
    }
    if header.end != BlockEnd::None {
        let _ = write!(text, ", the last ({:?})", header.end);
    }
    text
}

fn write_text(write: &Write<'_>) -> String {
    /// Below the epoch a TID has 21 bits of sequence and 3 of status.
    const SEQUENCE: std::ops::Range<u32> = 3..24;
    let sequence = write.tid >> SEQUENCE.start & ((1 << SEQUENCE.len()) - 1);
    let place = format!(
        "{}.{sequence} table {} key {}",
        ensilo_log::epoch_of(write.tid),
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

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn verify(arguments: &VerifyArguments) -> ExitCode {
    let mut output = Output::new();
    let mut is_damaged = false;
    for path in &arguments.paths {
        let files = match log_files(path) {
            Ok(files) => files,
            Err(error) => return failed(format_args!("cannot list {}: {error}", path.display())),
        };
        for file in files {
            match verify_file(&file, &mut output) {
                Ok(is_in_order) => is_damaged |= !is_in_order,
                Err(error) => {
                    is_damaged = true;
                    output.line(format_args!("damaged: {error}"));
                }
            }
        }
    }
    if is_damaged { damaged() } else { ExitCode::SUCCESS }
}

/// Whether a file is in order.
fn verify_file(path: &Path, output: &mut Output) -> Result<bool, ensilo_log::OpenError> {
    let (mut blocks, mut writes, mut end, mut wrong) = (0u64, 0u64, 0, None);
    let mut is_ended = false;
    ensilo_log::dump(&*disk(), path, &mut |dumped| match dumped {
        Dumped::Block(block) => {
            blocks += 1;
            is_ended |= block.header.end != BlockEnd::None;
        }
        Dumped::Write(_) | Dumped::Record(_) => writes += 1,
        Dumped::Damage { offset, finding } => (end, wrong) = (offset, Some(finding)),
        Dumped::End { offset } => end = offset,
        _ => {}
    })?;
    let is_open = path.extension().is_some_and(|extension| extension == "open");
    let named = path.display();
    match wrong {
        None if is_ended || is_open => {
            output.line(format_args!("{named}: {blocks} blocks, {writes} writes, {end} bytes, in order"));
            Ok(true)
        }
        None => {
            output.line(format_args!("damaged: {named}, byte {end}: the file ends too early"));
            Ok(false)
        }
        Some(finding) if is_open && !matches!(finding, Finding::Cut { .. }) => {
            output.line(format_args!(
                "{named}: {blocks} blocks, {writes} writes, {end} bytes, then as a crash may leave it: {finding}"
            ));
            Ok(true)
        }
        Some(finding) => {
            output.line(format_args!("damaged: {named}, byte {end}: {finding}"));
            Ok(false)
        }
    }
}

/// A file, or the log files of a directory and of the directory `log` in it, by name.
fn log_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for directory in [path.to_path_buf(), path.join("log")].iter().filter(|directory| directory.is_dir()) {
        for entry in directory.read_dir()? {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().and_then(LogFileName::parse) {
                files.push((name, directory.join(name.to_string())));
            }
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}
