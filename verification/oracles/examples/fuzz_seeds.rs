//! Writes what fuzzers begin with, made of files of databases: `fuzz_seeds TARGET_DIRECTORY
//! FILE_OR_DIRECTORY...`
//!
//! Each function of `ensilo_oracles` gets a directory of its name. See `cargo xtask fuzz`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let target = arguments.next().ok_or("usage: fuzz_seeds TARGET_DIRECTORY FILE_OR_DIRECTORY...")?;
    let mut files = Vec::new();
    arguments.try_for_each(|path| add_files(&path, &mut files))?;
    let mut number = 0;
    for file in files {
        for (function, seed) in ensilo_oracles::seeds(&fs::read(&file)?) {
            let directory = target.join(function);
            fs::create_dir_all(&directory)?;
            fs::write(directory.join(format!("seed-{number}")), seed)?;
            number += 1;
        }
    }
    println!("{number} seeds in {}", target.display());
    Ok(())
}

/// The files below a path.
fn add_files(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let mut entries = path.read_dir()?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| add_files(entry, files))
}
