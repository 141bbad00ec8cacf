//! What a disk of a test passes on to another one, in one line.

/// Implements the named methods of [`Disk`](ensilo_disk::Disk) by those of the disk that an expression yields. For a method of two paths
/// that is the disk of the first one.
///
/// # Examples
/// ```
/// use std::path::{Path, PathBuf};
/// use ensilo_disk::Disk;
/// use ensilo_test_disk::{SimulatedDisk, forward_disk};
///
/// /// A disk on which nothing can be removed.
/// #[derive(Debug)]
/// struct Permanent {
///     disk: SimulatedDisk,
/// }
///
/// impl Disk for Permanent {
///     forward_disk!(|self, path| self.disk; create, open, open_read, rename, remove_dir, list, create_dir_all, sync_dir);
///     forward_disk!(|self, path| self.disk; exists, free_bytes, place, lock, lock_shared);
///
///     fn remove(&self, _: &Path) -> std::io::Result<()> {
///         Err(std::io::ErrorKind::PermissionDenied.into())
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward_disk {
    (|$self:ident, $path:ident| $disk:expr; $($method:ident),+ $(,)?) => {
        $($crate::forward_disk!(@$method $self $path $disk);)+
    };
    (@create $self:ident $path:ident $disk:expr) => {
        fn create(
            &$self,
            $path: &::std::path::Path,
            preallocate_bytes: u64,
        ) -> ::std::io::Result<Box<dyn $crate::disk::File>> {
            $disk.create($path, preallocate_bytes)
        }
    };
    (@rename $self:ident $path:ident $disk:expr) => {
        fn rename(&$self, $path: &::std::path::Path, to: &::std::path::Path) -> ::std::io::Result<()> {
            $disk.rename($path, to)
        }
    };
    (@open $($rest:tt)+) => { $crate::forward_disk!(@@open Box<dyn $crate::disk::File>, $($rest)+); };
    (@open_read $($rest:tt)+) => { $crate::forward_disk!(@@open_read Box<dyn $crate::disk::File>, $($rest)+); };
    (@remove $($rest:tt)+) => { $crate::forward_disk!(@@remove (), $($rest)+); };
    (@remove_dir $($rest:tt)+) => { $crate::forward_disk!(@@remove_dir (), $($rest)+); };
    (@list $($rest:tt)+) => { $crate::forward_disk!(@@list Vec<$crate::disk::Listed>, $($rest)+); };
    (@create_dir_all $($rest:tt)+) => { $crate::forward_disk!(@@create_dir_all (), $($rest)+); };
    (@sync_dir $($rest:tt)+) => { $crate::forward_disk!(@@sync_dir (), $($rest)+); };
    (@exists $($rest:tt)+) => { $crate::forward_disk!(@@exists bool, $($rest)+); };
    (@free_bytes $($rest:tt)+) => { $crate::forward_disk!(@@free_bytes Option<u64>, $($rest)+); };
    (@place $($rest:tt)+) => { $crate::forward_disk!(@@place $crate::disk::Place, $($rest)+); };
    (@lock $($rest:tt)+) => { $crate::forward_disk!(@@lock Box<dyn $crate::disk::Lock>, $($rest)+); };
    (@lock_shared $($rest:tt)+) => { $crate::forward_disk!(@@lock_shared Box<dyn $crate::disk::Lock>, $($rest)+); };
    (@@$method:ident $result:ty, $self:ident $path:ident $disk:expr) => {
        fn $method(&$self, $path: &::std::path::Path) -> ::std::io::Result<$result> {
            $disk.$method($path)
        }
    };
}

/// Implements the named methods of [`File`](ensilo_disk::File) by those of the file that an expression yields, as [`forward_disk!`] does.
#[macro_export]
macro_rules! forward_file {
    (|$self:ident| $file:expr; $($method:ident),+ $(,)?) => {
        $($crate::forward_file!(@$method $self $file);)+
    };
    (@len_bytes $self:ident $file:expr) => {
        fn len_bytes(&$self) -> ::std::io::Result<u64> {
            $file.len_bytes()
        }
    };
    (@read_at $self:ident $file:expr) => {
        fn read_at(&$self, offset: u64, bytes: &mut [u8]) -> ::std::io::Result<()> {
            $file.read_at(offset, bytes)
        }
    };
    (@write_at $self:ident $file:expr) => {
        fn write_at(&$self, offset: u64, bytes: &[u8]) -> ::std::io::Result<()> {
            $file.write_at(offset, bytes)
        }
    };
    (@sync_data $self:ident $file:expr) => {
        fn sync_data(&$self) -> ::std::io::Result<()> {
            $file.sync_data()
        }
    };
    (@sync_all $self:ident $file:expr) => {
        fn sync_all(&$self) -> ::std::io::Result<()> {
            $file.sync_all()
        }
    };
    (@set_len $self:ident $file:expr) => {
        fn set_len(&$self, len_bytes: u64) -> ::std::io::Result<()> {
            $file.set_len(len_bytes)
        }
    };
}
