//! What the tests of several commands share.
#![allow(dead_code, reason = "every file of tests uses a part of it")]

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A new directory, which is removed with the value.
pub(crate) struct TestDirectory(PathBuf);

impl TestDirectory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ensilo-cli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        TestDirectory(path)
    }
}

impl Deref for TestDirectory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the program to its end.
pub(crate) fn ensilo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ensilo")).args(arguments).output().unwrap()
}

/// Runs the program, which must end with this exit code, and returns what it wrote.
pub(crate) fn expect_exit(code: i32, arguments: &[&str], paths: &[&Path]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ensilo")).args(arguments).args(paths).output().unwrap();
    let text = text(&[output.stdout, output.stderr].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
