//! Commands for developers of Ensilo.
fn main() {}
