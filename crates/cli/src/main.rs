//! The program `ensilo`.
fn main() {}
