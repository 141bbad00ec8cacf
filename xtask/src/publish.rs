//! What is published, and how a change is held to that it can be.
//!
//! A user depends on `ensilo` alone. The crates beneath it are published because a registry knows no other
//! way to build it; they are pinned to its version, and their descriptions say that they are internal.
//! Everything else stays out of the registry.

use crate::step::{Need, Step};

/// The crates that are published, dependencies first.
pub(crate) const PUBLISHED: [&str; 13] = [
    "ensilo-sync",
    "ensilo-slab",
    "ensilo-disk",
    "ensilo-epoch",
    "ensilo-index",
    "ensilo-log",
    "ensilo-engine",
    "ensilo-txn",
    "ensilo-ermia",
    "ensilo-2pl",
    "ensilo-row",
    "ensilo-derive",
    "ensilo",
];

/// Returns the steps that check that the library does without its features and with them, that the packages can be made,
/// and that the oldest compiler of the manifests builds the library.
pub(crate) fn publishable() -> Vec<Step> {
    let packages: Vec<String> = PUBLISHED.iter().map(|name| format!("-p {name}")).collect();
    let minimum = env!("CARGO_PKG_RUST_VERSION");
    // What is packed is not built: cargo keeps the sources that it unpacks for that, and would build those of
    // an earlier run.
    vec![
        Step::cargo(
            "lints of the library without features",
            "clippy --profile quick -p ensilo -- -D warnings",
        ),
        Step::cargo("without lz4", "test --profile quick -p ensilo --test compression"),
        Step::cargo(
            "with Parquet",
            "test --profile quick --workspace --features ensilo-cli/parquet --test contents",
        ),
        Step::cargo(
            "packages",
            &format!("package --no-verify --offline --allow-dirty {}", packages.join(" ")),
        ),
        Step::cargo(&format!("Rust {minimum}"), &format!("+{minimum}.0 check -p ensilo --all-features"))
            .needs(Need::Toolchain(format!("{minimum}.0"))),
    ]
}

#[cfg(test)]
mod tests;
