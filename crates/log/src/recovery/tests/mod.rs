#![allow(clippy::unwrap_used, reason = "tests")]

mod bad_sectors;
mod by_copy;
mod checkpoint_failures;
mod consequences;
mod damage;
mod diverged;
mod fuzzing;
mod history;
mod model;
mod names;
mod no_files;
mod others_directories;
mod ownership;
mod places;
mod recovery;
mod repair;
mod repair_failures;
mod repair_of_unsynced;
mod salvage;
mod several_damages;
mod taken_back;
mod tools;
mod transient_errors;
mod unfinished;
mod unread;
mod writer;
