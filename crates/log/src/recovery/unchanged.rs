//! Disks and files that are read alone: what changes something is refused.

use std::io;

/// The answer of a disk, or a file, to what would change it.
pub(super) fn changes_nothing() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}

/// The methods of a [`Disk`](ensilo_disk::Disk) that change something, refused.
macro_rules! refuse_changes_of_disk {
    () => {
        fn create(&self, _: &std::path::Path, _: u64) -> std::io::Result<Box<dyn ensilo_disk::File>> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn open(&self, path: &std::path::Path) -> std::io::Result<Box<dyn ensilo_disk::File>> {
            self.open_read(path)
        }

        fn rename(&self, _: &std::path::Path, _: &std::path::Path) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn remove(&self, _: &std::path::Path) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn remove_dir(&self, _: &std::path::Path) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn create_dir_all(&self, _: &std::path::Path) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn sync_dir(&self, _: &std::path::Path) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }
    };
}

/// The methods of a [`File`](ensilo_disk::File) that change something, refused.
macro_rules! refuse_changes_of_file {
    () => {
        fn write_at(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn sync_data(&self) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn sync_all(&self) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }

        fn set_len(&self, _: u64) -> std::io::Result<()> {
            Err($crate::recovery::unchanged::changes_nothing())
        }
    };
}

pub(super) use {refuse_changes_of_disk, refuse_changes_of_file};
