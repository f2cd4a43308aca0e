//! The file that says what is to be put back when maker and guardians were all killed.
//!
//! A copy of the table's slots in a folder of the user ([`crate::runtime_folder`]), each written before the change that
//! it undoes. A process that may still undo them holds a lock on the file (`fcntl(2)`, which ends with its process and
//! is not inherited); it is removed when nothing is left to be put back. [`super::clean`] reads what stays.
//!
//! Words of 64 bits in the machine's byte order: a head of [`HEAD`], then for each slot a sum over what is written
//! there, 0 for nothing, and the words themselves. A slot that was being written when its writer was killed has a wrong
//! sum; then the change had not been made.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::undo::{TaskIdentity, UndoWords, WORDS};
use crate::{checked, file_limit, runtime_folder};

/// The folder of records, inside that of the user.
pub(super) const FOLDER: &str = "undo";

/// Words of the head.
const HEAD: usize = 16;
/// Words of a slot.
const STRIDE: usize = 1 + WORDS;
const WORD: usize = size_of::<u64>();

/// The first words of the head.
const MAGIC: u64 = u64::from_le_bytes(*b"hgundo\0\0");
const FORMAT: u64 = 2 << 32 | WORDS as u64;

/// A name that is not yet a record's.
pub(super) const UNFINISHED: char = '.';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// The boot of the machine, as the kernel names it.
    boot: [u64; 2],
    /// The number space in which processes are named.
    pids: u64,
    /// The process that made the changes.
    pub(super) maker: TaskIdentity,
    pub(super) name: [u8; 16],
}

/// How a record relates to the machine as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordMatch {
    /// Its numbers of processes are those of this process.
    Here,
    /// They are those of another PID namespace.
    ElsewhereNamed,
    /// It was made before the machine started.
    Before,
}

impl RecordHeader {
    fn own() -> io::Result<RecordHeader> {
        let comm = std::fs::read("/proc/self/comm").unwrap_or_default();
        let mut name = [0; 16];
        let letters = comm.iter().take_while(|byte| **byte != b'\n').take(15);
        name.iter_mut().zip(letters).for_each(|(place, byte)| *place = *byte);
        let pids = std::fs::metadata("/proc/self/ns/pid")?.ino();
        Ok(RecordHeader {
            boot: boot()?,
            pids,
            maker: TaskIdentity::of_task(std::process::id())?,
            name,
        })
    }

    fn words(&self) -> [u64; HEAD] {
        let mut words = [0; HEAD];
        let name = |at: usize| {
            let mut piece = [0; WORD];
            piece.copy_from_slice(&self.name[at..at + WORD]);
            u64::from_ne_bytes(piece)
        };
        let known = [
            MAGIC,
            FORMAT,
            self.boot[0],
            self.boot[1],
            self.pids,
            u64::from(self.maker.id),
            self.maker.started,
            name(0),
            name(WORD),
        ];
        words[..known.len()].copy_from_slice(&known);
        words
    }

    fn read(words: &[u64; HEAD]) -> Option<RecordHeader> {
        let [magic, format, boot0, boot1, pids, id, started, name0, name1, ..] = *words;
        if (magic, format) != (MAGIC, FORMAT) {
            return None;
        }
        let mut name = [0; 16];
        name[..WORD].copy_from_slice(&name0.to_ne_bytes());
        name[WORD..].copy_from_slice(&name1.to_ne_bytes());
        let maker = TaskIdentity { id: u32::try_from(id).ok()?, started };
        Some(RecordHeader { boot: [boot0, boot1], pids, maker, name })
    }

    pub(super) fn place(&self) -> RecordMatch {
        match RecordHeader::own() {
            Ok(own) if own.boot != self.boot => RecordMatch::Before,
            Ok(own) if own.pids == self.pids => RecordMatch::Here,
            _ => RecordMatch::ElsewhereNamed,
        }
    }
}

/// The boot that this is, 128 bits.
fn boot() -> io::Result<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let half = |part: Option<&str>| part.and_then(|part| u64::from_str_radix(part, 16).ok());
    half(digits.get(..16)).zip(half(digits.get(16..32))).map_or_else(
        || Err(io::ErrorKind::InvalidData.into()),
        |(first, second)| Ok([first, second]),
    )
}

/// A record that this process writes, or one that it found.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: CString,
}

impl Record {
    /// Makes one for this process, locked. It may have no name before [`Record::appear`].
    ///
    /// # Errors
    /// There is no folder that belongs to the user alone; no room; files may not be that large (`RLIMIT_FSIZE`).
    pub(super) fn create() -> io::Result<Record> {
        Record::create_in(&runtime_folder::private(FOLDER)?)
    }

    pub(super) fn create_in(folder: &Path) -> io::Result<Record> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let head = RecordHeader::own()?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", head.maker.id, head.maker.started);
        let (hidden, shown) = (folder.join(format!("{UNFINISHED}{name}")), folder.join(name));
        let path = CString::new(shown.as_os_str().as_bytes())?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        if let Ok(file) = options.custom_flags(libc::O_TMPFILE).open(folder) {
            let record = Record { file, path };
            record.hold()?;
            record.write(bytes(&head.words()), 0)?;
            return Ok(record);
        }
        // A file system without nameless files.
        options.create(true).truncate(true);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&hidden)?;
        let record = Record { file, path };
        // It is not taken for a stale one: it gets its name when it is whole and locked.
        let whole = record.hold().and_then(|()| {
            record.write(bytes(&head.words()), 0)?;
            std::fs::rename(&hidden, &shown)
        });
        whole.inspect_err(|_| drop(std::fs::remove_file(&hidden)))?;
        Ok(record)
    }

    /// Gives it its name, once there is who removes it: what is killed before leaves no file.
    pub(super) fn appear(&self) {
        let Ok(own) = CString::new(format!("/proc/self/fd/{}", self.descriptor())) else { return };
        let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
        // Refused where it has its name already, or without /proc; then `--clean` has less to go by.
        // SAFETY: both paths are terminated strings.
        unsafe { libc::linkat(here, own.as_ptr(), here, self.path.as_ptr(), follow) };
    }

    /// Opens one that may be stale: a regular file of this user that no other user can write.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn open(path: &Path) -> io::Result<Record> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        let ours = found.uid() == runtime_folder::user() && found.mode() & 0o022 == 0;
        if !found.is_file() || !ours {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Record { file, path: CString::new(path.as_os_str().as_bytes())? })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Says that this process may still put back what stands there. Takes no memory.
    pub(super) fn hold(&self) -> io::Result<()> {
        self.lock(libc::F_RDLCK)
    }

    /// Whether all who could put it back are gone; if so, others are kept off from here on.
    pub(super) fn take_over(&self) -> bool {
        self.lock(libc::F_WRLCK).is_ok() && self.file.metadata().is_ok_and(|file| file.nlink() > 0)
    }

    fn lock(&self, kind: libc::c_int) -> io::Result<()> {
        let whole = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        // SAFETY: the kernel reads a live local.
        checked(unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETLK, &raw const whole) })
            .map(drop)
    }

    /// Writes a slot.
    ///
    /// # Errors
    /// No room; the file may not be that large (`RLIMIT_FSIZE`).
    pub(super) fn fill(&self, index: usize, written: &UndoWords) -> io::Result<()> {
        let mut words = [0; STRIDE];
        words[0] = sum(written);
        words[1..].copy_from_slice(written);
        self.write(bytes(&words), position(index))
    }

    /// Frees a slot. Takes no memory.
    pub(super) fn clear(&self, index: usize) {
        // An action that stays there is undone again, which changes nothing.
        let _ = self.write(&[0; WORD], position(index));
    }

    /// Writes no further than this process may, so that no signal ends it.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        file_limit::allows(at + bytes.len() as u64)?;
        self.file.write_all_at(bytes, at)
    }

    /// The words of a slot.
    pub(super) fn read(&self, index: usize) -> Option<UndoWords> {
        let mut found = [0; STRIDE * WORD];
        self.file.read_exact_at(&mut found, position(index)).ok()?;
        let words: [u64; STRIDE] = words(&found);
        let mut written = [0; WORDS];
        written.copy_from_slice(&words[1..]);
        (words[0] != 0 && words[0] == sum(&written)).then_some(written)
    }

    pub(super) fn head(&self) -> Option<RecordHeader> {
        let mut found = [0; HEAD * WORD];
        self.file.read_exact_at(&mut found, 0).ok()?;
        RecordHeader::read(&words(&found))
    }

    /// Removes the file. Takes no memory.
    pub(super) fn remove(&self) {
        remove(&self.path);
    }
}

fn remove(path: &CStr) {
    // SAFETY: the path is a terminated string.
    unsafe { libc::unlink(path.as_ptr()) };
}

fn position(index: usize) -> u64 {
    ((HEAD + index * STRIDE) * WORD) as u64
}

/// FNV-1a over words, never zero: what tells a whole slot from one that was being written.
fn sum(written: &UndoWords) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    written.iter().fold(BASIS, |sum, word| (sum ^ word).wrapping_mul(PRIME)) | 1
}

/// The words as they lie in memory.
fn bytes<const N: usize>(words: &[u64; N]) -> &[u8] {
    // SAFETY: every byte of a word is a valid byte, and the slice lives as long as the words.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), N * WORD) }
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, piece) in words.iter_mut().zip(bytes.chunks_exact(WORD)) {
        let mut whole = [0; WORD];
        whole.copy_from_slice(piece);
        *word = u64::from_ne_bytes(whole);
    }
    words
}
