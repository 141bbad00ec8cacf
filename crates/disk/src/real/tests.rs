#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{FREED_AT_ONCE_BYTES, RealDisk, RealLock, keep, open_to_read, write_zeros};
use crate::appender::Appender;
use crate::disk::{Disk, LockHeld};
use crate::page_buffer::{PAGE_BYTES, PageBuffer};

/// A directory of its own in the system's place for such, removed with the value.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> TemporaryDirectory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ensilo-disk-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        TemporaryDirectory(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_created_file_has_its_length_and_reads_zeros() {
    let dir = TemporaryDirectory::new();
    let file = RealDisk.create(&dir.join("a"), 10_000).unwrap();
    assert_eq!(file.len_bytes().unwrap(), 10_000);
    let mut bytes = [1; 10_000];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 10_000]);
    assert_eq!(RealDisk.create(&dir.join("a"), 0).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn zeros_are_written_where_space_cannot_be_reserved() {
    let dir = TemporaryDirectory::new();
    let file = fs::OpenOptions::new().create_new(true).write(true).open(dir.join("a")).unwrap();
    write_zeros(&file, 0..200_001).unwrap();
    assert_eq!(fs::read(dir.join("a")).unwrap(), vec![0; 200_001]);
}

#[test]
fn a_file_that_cannot_be_allocated_is_not_left_behind() {
    let dir = TemporaryDirectory::new();
    RealDisk.create(&dir.join("a"), 1 << 60).unwrap_err();
    assert!(!RealDisk.exists(&dir.join("a")).unwrap());
}

#[test]
fn what_is_written_is_read_back() {
    let dir = TemporaryDirectory::new();
    let file = RealDisk.create(&dir.join("a"), 0).unwrap();
    file.write_at(3, b"abc").unwrap();
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    let again = RealDisk.open(&dir.join("a")).unwrap();
    let mut bytes = [1; 6];
    again.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\0\0\0abc");
    assert_eq!(again.read_at(1, &mut bytes).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    again.set_len(4).unwrap();
    assert_eq!(file.len_bytes().unwrap(), 4);
}

#[test]
fn pages_and_other_bytes_of_a_file_are_written_in_turn() {
    let dir = TemporaryDirectory::new();
    let path = dir.join("a");
    let file = RealDisk.create(&path, 10_000).unwrap();
    file.write_at(0, &[1; 4096]).unwrap();
    let mut appender = Appender::new(file, 4096);
    let mut expected = vec![1; 4096];
    for (number, len) in (2u8..).zip([10, 4096, 5, 12_000, 8192 - 17, 3]) {
        appender.append(&vec![number; len]).unwrap();
        expected.extend(vec![number; len]);
        appender.sync_data().unwrap();
        assert!(fs::read(&path).unwrap().starts_with(&expected));
    }
    appender.trim().unwrap();
    appender.sync_all().unwrap();
    RealDisk.open(&path).unwrap().write_at(7, b"abc").unwrap();
    expected[7..10].copy_from_slice(b"abc");
    assert_eq!(fs::read(&path).unwrap(), expected);
}

#[test]
fn pages_and_other_bytes_of_a_file_are_read_alike() {
    const LEN: usize = 3 * PAGE_BYTES + 100;
    let directory = TemporaryDirectory::new();
    let path = directory.join("file");
    let written: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
    fs::write(&path, &written).unwrap();
    let file = RealDisk.open(&path).unwrap();
    let mut read = PageBuffer::default();
    // Whole pages, some of a page, more than a page from within one, all.
    for (offset, len) in
        [(0, 2 * PAGE_BYTES), (PAGE_BYTES, 17), (5, PAGE_BYTES), (PAGE_BYTES, LEN - PAGE_BYTES)]
    {
        read.resize(len).unwrap();
        file.read_at(offset as u64, &mut read).unwrap();
        assert_eq!(read[..], written[offset..offset + len], "{len} from {offset}");
    }
    // Whole pages of memory, of which the file has less than the last one.
    read.resize(2 * PAGE_BYTES).unwrap();
    let error = file.read_at(2 * PAGE_BYTES as u64, &mut read).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_file_that_may_only_be_read_is_read_and_left_as_it_is() {
    let directory = TemporaryDirectory::new();
    let path = directory.join("file");
    let written: Vec<u8> = (0..3 * PAGE_BYTES).map(|at| (at % 251) as u8).collect();
    fs::write(&path, &written).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let file = RealDisk.open_read(&path).unwrap();
    let mut pages = PageBuffer::default();
    pages.resize(2 * PAGE_BYTES).unwrap();
    file.read_at(0, &mut pages).unwrap();
    assert_eq!(pages[..], written[..2 * PAGE_BYTES]);
    let mut bytes = [0; 17];
    file.read_at(5, &mut bytes).unwrap();
    assert_eq!(bytes, written[5..22]);
    pages.fill(0);
    for refused in [
        file.write_at(0, &pages),
        file.write_at(5, b"abc"),
        file.set_len(0),
        file.sync_data(),
        file.sync_all(),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    assert_eq!(fs::read(&path).unwrap(), written);
    assert_eq!(RealDisk.open_read(&directory.join("missing")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_stays_in_the_cache_takes_one_handle() {
    let directory = TemporaryDirectory::new();
    let path = directory.join("file");
    let handles = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        all.filter(|entry| {
            fs::read_link(entry.as_ref().unwrap().path()).is_ok_and(|to| to == path.canonicalize().unwrap())
        })
        .count()
    };
    let created = RealDisk.create_cached(&path).unwrap();
    let mut pages = PageBuffer::default();
    pages.resize(PAGE_BYTES).unwrap();
    pages.fill(7);
    created.write_at(0, &pages).unwrap();
    assert_eq!(handles(), 1);
    let opened = RealDisk.open_cached(&path).unwrap();
    drop(created);
    pages.fill(0);
    opened.read_at(0, &mut pages).unwrap();
    assert!(pages.iter().all(|&byte| byte == 7));
    assert_eq!(handles(), 1);
    assert_eq!(opened.write_at(0, &pages).unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn what_is_no_directory_holds_nothing() {
    let dir = TemporaryDirectory::new();
    drop(RealDisk.create(&dir.join("a"), 0).unwrap());
    assert!(!RealDisk.exists(&dir.join("a/b")).unwrap());
}

#[test]
fn names_are_listed_renamed_and_removed() {
    let dir = TemporaryDirectory::new();
    RealDisk.create_dir_all(&dir.join("x/y")).unwrap();
    RealDisk.create_dir_all(&dir.join("x/y")).unwrap();
    drop(RealDisk.create(&dir.join("b"), 7).unwrap());
    drop(RealDisk.create(&dir.join("a"), 5).unwrap());
    RealDisk.rename(&dir.join("b"), &dir.join("a")).unwrap();
    RealDisk.sync_dir(&dir.0).unwrap();
    let listed = RealDisk.list(&dir.0).unwrap();
    let listed: Vec<_> = listed.iter().map(|l| (l.name.as_str(), l.len_bytes, l.is_dir)).collect();
    assert_eq!(listed, [("a", 7, false), ("x", 0, true)]);
    assert_eq!(RealDisk.remove_dir(&dir.join("x")).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    RealDisk.remove_dir(&dir.join("x/y")).unwrap();
    RealDisk.remove(&dir.join("a")).unwrap();
    assert_eq!(RealDisk.remove(&dir.join("a")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(RealDisk.open(&dir.join("a")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(RealDisk.list(&dir.join("a")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_removed_file_gives_its_place_back_unless_it_has_another_name() {
    let dir = TemporaryDirectory::new();
    let len_bytes = 2 * FREED_AT_ONCE_BYTES + 5;
    for name in ["alone", "shared"] {
        drop(RealDisk.create(&dir.join(name), len_bytes).unwrap());
    }
    let alone = fs::File::open(dir.join("alone")).unwrap();
    RealDisk.remove(&dir.join("alone")).unwrap();
    assert_eq!(alone.metadata().unwrap().len(), 5, "the last piece goes with the last one that has it open");
    fs::hard_link(dir.join("shared"), dir.join("other name")).unwrap();
    RealDisk.remove(&dir.join("shared")).unwrap();
    assert_eq!(fs::metadata(dir.join("other name")).unwrap().len(), len_bytes);
}

#[test]
fn a_removed_file_can_be_read_as_long_as_somebody_keeps_it() {
    let dir = TemporaryDirectory::new();
    let (path, len_bytes) = (dir.join("kept"), 2 * FREED_AT_ONCE_BYTES);
    let written = RealDisk.create(&path, len_bytes).unwrap();
    written.write_at(len_bytes - 4, b"last").unwrap();
    drop(written);
    let kept = RealDisk.open_kept(&path).unwrap();
    RealDisk.remove(&path).unwrap();
    let mut last = [0; 4];
    kept.read_at(len_bytes - 4, &mut last).unwrap();
    assert_eq!(&last, b"last");
    assert_eq!(RealDisk.open_kept(&path).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_kept_takes_one_handle_until_pages_of_it_are_read() {
    let dir = TemporaryDirectory::new();
    let path = dir.join("file");
    fs::write(&path, vec![7; PAGE_BYTES]).unwrap();
    let kept = RealDisk.open_kept(&path).unwrap();
    let handles = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        let is_it = |link: &PathBuf| link.to_string_lossy().starts_with(&*path.to_string_lossy());
        all.filter(|entry| fs::read_link(entry.as_ref().unwrap().path()).is_ok_and(|link| is_it(&link)))
            .count()
    };
    kept.read_at(0, &mut [0; 3]).unwrap();
    assert_eq!(handles(), 1);
    RealDisk.remove(&path).unwrap();
    let mut pages = PageBuffer::default();
    pages.resize(PAGE_BYTES).unwrap();
    kept.read_at(0, &mut pages).unwrap();
    assert!(pages.iter().all(|&byte| byte == 7));
    assert!((1..=2).contains(&handles()), "the second one where the file system reads past the cache");
}

#[test]
fn a_file_that_was_removed_is_not_there_for_those_that_would_keep_it() {
    let dir = TemporaryDirectory::new();
    let path = dir.join("a");
    fs::write(&path, "bytes").unwrap();
    let removing = fs::File::open(&path).unwrap();
    let opened = open_to_read(&path).unwrap();
    keep(&opened, &path).unwrap();
    fs::remove_file(&path).unwrap();
    removing.try_lock_shared().unwrap();
    let is_gone = || keep(&opened, &path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    assert!(is_gone());
    drop(removing);
    assert!(is_gone(), "it may be cut already");
    fs::write(&path, "others").unwrap();
    assert!(is_gone(), "that is another one");
}

#[test]
fn a_lock_of_somebody_else_s_hides_no_file() {
    let dir = TemporaryDirectory::new();
    fs::write(dir.join("a"), "bytes").unwrap();
    let locked = fs::File::open(dir.join("a")).unwrap();
    locked.lock().unwrap();
    let mut bytes = [0; 5];
    RealDisk.open_kept(&dir.join("a")).unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"bytes");
}

#[test]
#[cfg(target_os = "linux")]
fn the_holder_of_a_lock_is_found_by_its_place() {
    let locks = "1: POSIX  ADVISORY  WRITE 7 08:01:99 0 EOF\n\
                 2: FLOCK  ADVISORY  READ 8 08:01:99 0 EOF\n\
                 3: FLOCK  ADVISORY  WRITE 9 08:02:99 0 EOF\n\
                 3: -> FLOCK  ADVISORY  WRITE 6 08:01:99 0 EOF\n\
                 4: FLOCK  ADVISORY  WRITE 10 103:0b:99 0 EOF\n\
                 5: FLOCK  ADVISORY  WRITE 0 08:03:99 0 EOF\n";
    let holder = |major, minor, inode, named| {
        let place = crate::Place::of_inode(inode).on_device(rustix::fs::makedev(major, minor));
        super::whole_lock(locks, place, named)
    };
    assert_eq!(holder(8, 1, 99, None), None, "a share, another kind of lock, and one that is waited for");
    assert_eq!(holder(8, 2, 99, Some(4)), Some(Some(9)), "whoever the file names");
    assert_eq!(holder(0x103, 11, 99, None), Some(Some(10)));
    assert_eq!(holder(8, 3, 99, None), Some(None), "a process that is not seen here");
    assert_eq!(holder(0, 40, 99, Some(9)), Some(Some(9)), "the file system shows another device");
    assert_eq!(holder(0, 40, 99, Some(4)), None);
    assert_eq!(holder(8, 2, 98, Some(9)), None);
}

#[test]
#[cfg(target_os = "linux")]
fn who_holds_a_lock_is_known_without_it() {
    let dir = TemporaryDirectory::new();
    let path = dir.join("LOCK");
    assert_eq!(RealDisk.lock_holder(&path), None);
    let lock = RealDisk.lock(&path).unwrap();
    assert_eq!(RealDisk.lock_holder(&path), Some(LockHeld::by(Some(std::process::id()))));
    drop(lock);
    assert_eq!(RealDisk.lock_holder(&path), None, "its last holder is named in the file");
    let _share = RealDisk.lock_shared(&path).unwrap();
    assert_eq!(RealDisk.lock_holder(&path), None, "a share is no lock");
}

#[test]
fn a_lock_ends_with_its_value_although_a_copy_of_its_description_is_open() {
    let dir = TemporaryDirectory::new();
    let path = dir.join("LOCK");
    let file = fs::OpenOptions::new().create_new(true).write(true).open(&path).unwrap();
    file.try_lock().unwrap();
    // As in a child that is being started by another thread.
    let copy = file.try_clone().unwrap();
    drop(RealLock { file: Some(file), directory: None });
    RealDisk.lock(&path).unwrap();
    drop(copy);
}

#[test]
fn the_empty_path_is_the_current_directory() {
    RealDisk.sync_dir(Path::new("")).unwrap();
    assert!(RealDisk.exists(Path::new("")).unwrap());
    assert!(!RealDisk.list(Path::new("")).unwrap().is_empty());
}

#[test]
fn a_second_lock_is_refused_within_one_process_and_says_who_holds_it() {
    let dir = TemporaryDirectory::new();
    let lock = RealDisk.lock(&dir.join("LOCK")).unwrap();
    let error = RealDisk.lock(&dir.join("LOCK")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(lock);
    RealDisk.lock(&dir.join("LOCK")).unwrap();
}

#[test]
fn a_share_of_a_lock_changes_nothing_and_keeps_out_only_who_wants_it_all() {
    let dir = TemporaryDirectory::new();
    let path = dir.join("LOCK");
    let without_file = RealDisk.lock_shared(&path).unwrap();
    assert!(!path.exists());
    assert!(LockHeld::of(&RealDisk.lock(&path).unwrap_err()).is_some(), "the directory is shared");
    drop(without_file);
    let process = |error| LockHeld::of(&error).unwrap().process;
    let lock = RealDisk.lock(&path).unwrap();
    assert_eq!(process(RealDisk.lock_shared(&path).unwrap_err()), Some(std::process::id()));
    drop(lock);
    fs::write(&path, "1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let one = RealDisk.lock_shared(&path).unwrap();
    let other = RealDisk.lock_shared(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"1\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(
        process(RealDisk.lock(&path).unwrap_err()),
        None,
        "the number in the file is of an earlier time"
    );
    drop(one);
    RealDisk.lock(&path).unwrap_err();
    drop(other);
    RealDisk.lock(&path).unwrap();
}

#[test]
fn a_reservation_makes_a_file_longer_and_never_shorter() {
    let dir = TemporaryDirectory::new();
    let file = RealDisk.create(&dir.join("a"), 8192).unwrap();
    file.write_at(0, &[7; 100]).unwrap();
    for (wanted, found) in [(100, 8192), (8192, 8192), (20_000, 20_000), (1, 20_000)] {
        file.reserve(wanted).unwrap();
        assert_eq!(file.len_bytes().unwrap(), found, "{wanted}");
    }
    let mut bytes = [1; 200];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!((&bytes[..100], &bytes[100..]), (&[7; 100][..], &[0; 100][..]));
}

#[test]
fn the_free_bytes_of_a_directory_are_known() {
    let dir = TemporaryDirectory::new();
    assert!(RealDisk.free_bytes(&dir.0).unwrap().is_some());
    assert!(RealDisk.free_bytes(&dir.join("missing")).is_err());
}

#[test]
fn a_lock_holds_although_its_file_is_removed() {
    let dir = TemporaryDirectory::new();
    let path = dir.join("LOCK");
    let lock = RealDisk.lock(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(RealDisk.lock(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(RealDisk.lock_shared(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(lock);
    RealDisk.lock(&path).unwrap();
}

#[test]
fn a_link_is_listed_as_what_it_leads_to_and_one_that_leads_nowhere_by_its_name() {
    let dir = TemporaryDirectory::new();
    drop(RealDisk.create(&dir.join("file"), 7).unwrap());
    RealDisk.create_dir_all(&dir.join("inner")).unwrap();
    let link = |to: &str, name: &str| symlink(to, dir.join(name)).unwrap();
    link("file", "to-file");
    link("inner", "to-inner");
    link("missing", "to-nothing");
    link("file/within", "to-nothing-either");
    link("to-itself", "to-itself");
    let listed = RealDisk.list(&dir.0).unwrap();
    let listed: Vec<_> = listed.iter().map(|l| (l.name.as_str(), l.len_bytes, l.is_file, l.is_dir)).collect();
    assert_eq!(
        listed,
        [
            ("file", 7, true, false),
            ("inner", 0, false, true),
            ("to-file", 7, true, false),
            ("to-inner", 0, false, true),
            ("to-itself", 0, false, false),
            ("to-nothing", 0, false, false),
            ("to-nothing-either", 0, false, false),
        ]
    );
    for name in ["to-nothing", "to-nothing-either", "to-itself"] {
        assert!(!RealDisk.exists(&dir.join(name)).unwrap(), "{name}");
        RealDisk.remove(&dir.join(name)).unwrap();
    }
    assert_eq!(RealDisk.list(&dir.0).unwrap().len(), 4);
}

#[test]
#[cfg(not(target_vendor = "apple"))]
fn what_is_no_file_is_refused_at_once_and_by_name() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let dir = TemporaryDirectory::new();
    mkfifoat(CWD, dir.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
    symlink("pipe", dir.join("to-pipe")).unwrap();
    symlink("/dev/zero", dir.join("to-device")).unwrap();
    for name in ["pipe", "socket", "to-pipe", "to-device"] {
        let path = dir.join(name);
        let errors = [
            RealDisk.open(&path).unwrap_err(),
            RealDisk.open_read(&path).unwrap_err(),
            RealDisk.lock(&path).unwrap_err(),
            RealDisk.lock_shared(&path).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
            assert!(error.to_string().contains("no file"), "{name}: {error}");
        }
    }
    // As the directory of a lock file: the lock is not waited for either.
    for lock in [RealDisk.lock(&dir.join("pipe/LOCK")), RealDisk.lock_shared(&dir.join("pipe/LOCK"))] {
        assert_eq!(lock.unwrap_err().kind(), ErrorKind::NotADirectory);
    }
    let listed = RealDisk.list(&dir.0).unwrap();
    assert!(listed.iter().all(|entry| !entry.is_file && !entry.is_dir), "{listed:?}");
}

#[test]
fn a_directory_is_no_file() {
    let dir = TemporaryDirectory::new();
    for error in [RealDisk.open(&dir.0).unwrap_err(), RealDisk.open_read(&dir.0).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
    }
}

#[test]
fn a_lock_makes_no_file_where_a_link_leads() {
    let dir = TemporaryDirectory::new();
    RealDisk.create_dir_all(&dir.join("inner")).unwrap();
    symlink("../elsewhere", dir.join("inner/LOCK")).unwrap();
    assert_eq!(RealDisk.lock(&dir.join("inner/LOCK")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(RealDisk.list(&dir.0).unwrap().len(), 1, "nothing was made elsewhere");
    fs::write(dir.join("elsewhere"), b"").unwrap();
    let _lock = RealDisk.lock(&dir.join("inner/LOCK")).unwrap();
}
