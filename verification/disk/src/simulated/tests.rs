#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;
mod model;
mod rules;
