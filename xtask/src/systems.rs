//! Systems and processors other than the one that a change is tested on.

use crate::step::{Need, Step};

/// Returns the steps that check the library for systems that no test runs on, that it refuses those that it
/// cannot run on, and that its tests pass on the portable paths as well.
pub(crate) fn systems() -> Vec<Step> {
    let check = |target: &'static str| {
        Step::cargo(target, &format!("check -p ensilo --target {target}")).needs(Need::Target(target))
    };
    let portable = |name: &str, tests: &str| {
        Step::cargo(name, &format!("test --profile quick {tests}")).model("ensilo_portable")
    };
    vec![
        check("aarch64-unknown-linux-gnu"),
        check("x86_64-apple-darwin"),
        check("x86_64-unknown-freebsd"),
        check("x86_64-pc-windows-gnu").fails_with("ensilo runs on 64-bit Unix systems only"),
        portable("portable paths", "-p ensilo-sync -p ensilo-slab -p ensilo-epoch -p ensilo-index"),
        portable("portable paths: checked histories", "-p ensilo-check --test stress")
            .env("ENSILO_STRESS_SECONDS", "5"),
    ]
}
