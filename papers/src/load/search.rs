//! A recursive search through a tree of files, on the CPU that is measured (section 5.3).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hourglass_sys::lock::try_exclusive;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread::set_affinity;

/// The tree: folders, files in each, and bytes of a file; 32 MiB together. The paper's had 900 MB, which a
/// measurement should not need of a user's disk.
const FOLDERS: usize = 64;
const FILES: usize = 32;
const BYTES: usize = 16 << 10;

/// One folder in `REWRITTEN` is written anew in each round and brought to the disk, since files that are only
/// read come from memory.
const REWRITTEN: usize = 16;

/// What is searched for; it is in no file.
const NEEDLE: &[u8] = b"hourglass!";

/// How trees are called; behind it stand the process and a number.
const NAME: &str = "hourglass-search-";

/// For this time after it was made, a tree without a lock may still be about to be locked.
const YOUNG: Duration = Duration::from_secs(60);

/// A search that begins anew at its end, until this is dropped; then the tree is removed.
#[derive(Debug)]
pub struct SearchLoad {
    root: PathBuf,
    /// Locked for as long as the process lives, however it ends: the process that makes the next tree removes trees
    /// without a lock.
    _held: File,
    stop: Arc<AtomicBool>,
    searched: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl SearchLoad {
    /// Makes a tree below the folder for temporary files and searches it on `cpu`.
    ///
    /// # Errors
    /// The tree cannot be made; what there is of it is removed.
    pub fn onto(cpu: u32) -> io::Result<SearchLoad> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{NAME}{}-{number}", std::process::id());
        let home = std::env::temp_dir();
        remove_abandoned(&home, YOUNG);
        SearchLoad::below(&home.join(name), cpu)
    }

    fn below(root: &Path, cpu: u32) -> io::Result<SearchLoad> {
        fs::create_dir(root)?;
        let (stop, searched) = (Arc::default(), Arc::default());
        // From here on, dropping removes the tree.
        let mut load =
            SearchLoad { root: root.to_owned(), _held: hold(root)?, stop, searched, thread: None };
        for folder in 0..FOLDERS {
            write_folder(&load.root.join(folder.to_string()), false)?;
        }
        let (root, stop) = (load.root.clone(), Arc::clone(&load.stop));
        let searched = Arc::clone(&load.searched);
        let nice = i8::try_from(sched::nice()).unwrap_or(0);
        let life = move || {
            // Without its CPU or class it must not run: it would disturb something else.
            if sched::set(Attributes::Other(nice)).is_ok() && set_affinity([cpu]).is_ok() {
                search_on(&root, &stop, &searched);
            }
        };
        load.thread = Some(thread::Builder::new().name("load-search".to_owned()).spawn(life)?);
        Ok(load)
    }

    #[must_use]
    pub fn searched_files(&self) -> u64 {
        self.searched.load(Ordering::Acquire)
    }
}

impl Drop for SearchLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
        // What cannot be removed lies among temporary files.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Opens a tree that has just been made, and locks it where its file system has locks.
fn hold(root: &Path) -> io::Result<File> {
    let held = File::open(root).inspect_err(|_| drop(fs::remove_dir(root)))?;
    // Without locks it is as safe from others as its age makes it.
    let _ = try_exclusive(&held);
    Ok(held)
}

/// Removes trees of processes that were killed: our own trees without a lock.
fn remove_abandoned(home: &Path, young: Duration) {
    let Ok(own) = fs::metadata("/proc/self") else { return };
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME)) {
        let path = entry.path();
        // Not through a link.
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let age = found.modified().ok().and_then(|then| then.elapsed().ok());
        let is_old = age.is_some_and(|age| age >= young);
        if found.is_dir() && found.uid() == own.uid() && is_old {
            let free = File::open(&path).and_then(|tree| try_exclusive(&tree));
            if free.is_ok_and(|free| free) {
                // What cannot be removed lies among temporary files.
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

fn write_folder(folder: &Path, to_disk: bool) -> io::Result<()> {
    if !folder.is_dir() {
        fs::create_dir(folder)?;
    }
    let text: Vec<u8> = b"time is what is measured\n".iter().copied().cycle().take(BYTES).collect();
    for file in 0..FILES {
        let mut file = File::create(folder.join(file.to_string()))?;
        file.write_all(&text)?;
        if to_disk {
            file.sync_data()?;
        }
    }
    Ok(())
}

/// Searches until it is to end. A file that cannot be read is passed over.
fn search_on(root: &Path, stop: &AtomicBool, searched: &AtomicU64) {
    let mut contents = Vec::with_capacity(BYTES);
    let mut found = 0usize;
    for round in 0.. {
        for folder in 0..FOLDERS {
            let folder_path = root.join(folder.to_string());
            if folder % REWRITTEN == round % REWRITTEN {
                // A full disk makes the load lighter, and nothing else.
                let _ = write_folder(&folder_path, true);
            }
            let Ok(entries) = fs::read_dir(&folder_path) else { continue };
            for entry in entries.flatten() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                contents.clear();
                let read = File::open(entry.path()).and_then(|mut f| f.read_to_end(&mut contents));
                if read.is_ok() {
                    found += contents.windows(NEEDLE.len()).filter(|w| *w == NEEDLE).count();
                    searched.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
    }
    std::hint::black_box(found);
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use hourglass_sys::thread::affinity;

    use super::*;

    #[test]
    fn it_searches_and_removes_its_tree() {
        let cpu = affinity().unwrap().last().copied().unwrap();
        let load = SearchLoad::onto(cpu).unwrap();
        let root = load.root.clone();
        let begin = Instant::now();
        while load.searched_files() < 10 && begin.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(load.searched_files() >= 10 && root.is_dir());
        drop(load);
        assert!(!root.exists());
    }

    /// A process that was killed leaves its tree unlocked; the next one removes it, but no tree that is held,
    /// is young, or has another name.
    #[test]
    fn the_tree_of_a_killed_process_is_removed_by_the_next() {
        let home = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.join("0")).unwrap();
            path
        };
        let [left, held, other] =
            [format!("{NAME}1-0"), format!("{NAME}2-0"), "mine".to_owned()].map(|name| make(&name));
        let link = home.path().join(format!("{NAME}3-0"));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let holding = hold(&held).unwrap();
        remove_abandoned(home.path(), YOUNG);
        assert!(left.is_dir(), "it is young");
        remove_abandoned(home.path(), Duration::ZERO);
        assert!(!left.exists() && held.is_dir() && other.join("0").is_dir() && link.exists());
        drop(holding);
        remove_abandoned(home.path(), Duration::ZERO);
        assert!(!held.exists() && other.join("0").is_dir());
    }

    #[test]
    fn nothing_of_others_is_touched() {
        let home = tempfile::tempdir().unwrap();
        assert!(SearchLoad::below(home.path(), 0).is_err());
        assert!(home.path().is_dir());
    }
}
