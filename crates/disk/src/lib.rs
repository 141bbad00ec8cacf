//! Internal to `ensilo`, not to be used by itself: the seam between a database and its files.
//!
//! Whatever the database reads or writes goes through [`Disk`] and [`File`], so that a test can put a disk in their place that loses,
//! tears and reorders what was not synced. [`RealDisk`] is the files of the machine.
//!
//! An [`Appender`] writes a file from its beginning to its end in whole pages; a [`PageBuffer`] is memory for whole pages, and a
//! [`Checksum`] says whether what was read is what was written.
#![forbid(unsafe_code)]

#[cfg(not(all(unix, target_pointer_width = "64")))]
compile_error!(
    "ensilo runs on 64-bit Unix systems only: Linux, and with less speed others; see \"Systems\" in its documentation"
);

mod appender;
mod checksum;
mod disk;
mod page_buffer;
mod read_only;
mod real;

pub use appender::Appender;
pub use checksum::Checksum;
pub use disk::{Disk, File, Listed, Lock, LockHeld, Place, is_disk_full, is_out_of_handles, is_unreadable};
pub use page_buffer::{PAGE_BYTES, PageBuffer};
pub use read_only::ReadOnly;
pub use real::RealDisk;
