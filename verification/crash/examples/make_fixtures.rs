//! Makes the fixtures of the format version that this version writes: see `ensilo_crash::fixture`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;

use ensilo_crash::fixture::{Kind, make, stored};
use ensilo_log::FORMAT_VERSION;

fn main() -> Result<(), Box<dyn Error>> {
    for kind in Kind::ALL {
        let directory = stored::directory(FORMAT_VERSION, kind);
        stored::save(&make::disk(kind)?, Path::new(make::DIRECTORY), &directory)?;
        println!("{}", directory.display());
    }
    Ok(())
}
