#![allow(clippy::unwrap_used, reason = "tests")]

mod rules;
