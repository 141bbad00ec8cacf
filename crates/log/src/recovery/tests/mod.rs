#![allow(clippy::unwrap_used, reason = "tests")]

mod checkpoint_failures;
mod damage;
mod fuzzing;
mod history;
mod model;
mod names;
mod ownership;
mod recovery;
mod repair;
mod salvage;
mod tools;
mod writer;
