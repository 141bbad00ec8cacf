//! Random numbers for workloads: small, fast, the same on every machine for the same seed.

mod generator;
mod zipfian;

pub use generator::Random;
pub use zipfian::{Scatter, Zipfian};
