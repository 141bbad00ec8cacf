//! Hands the compiler's version and the profile to the report, so that a figure says what was measured.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let profile = std::env::var("PROFILE").unwrap_or_else(|_| "unknown".to_owned());
    let target = std::env::var("TARGET").unwrap_or_else(|_| "unknown".to_owned());
    println!("cargo::rustc-env=ENSILO_BUILD_PROFILE={profile}");
    println!("cargo::rustc-env=ENSILO_BUILD_TARGET={target}");
    println!("cargo::rustc-env=ENSILO_BUILD_RUSTC={}", rustc_version());
}

fn rustc_version() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |version| version.trim().to_owned())
}
