//! Small text files below a root, read with limits.
//!
//! The tree may be anything (a test's folder, a container that lies), so reading is bounded in
//! size, follows no `..`, and hands on no control characters that a terminal would obey.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flate2::read::GzDecoder;
use hourglass_documents::CpuSet;
use hourglass_documents::tuning::Access;

/// Most bytes of one file that are looked at. `/proc/cpuinfo` of a 512-CPU machine is longer, but
/// only its first processor is wanted.
const MOST_BYTES: u64 = 1 << 20;

/// Most characters of a one-line fact.
const MOST_CHARACTERS: usize = 256;

/// Most groups of 32 CPUs in a mask: the kernel's own limit is 8192 CPUs.
const MOST_GROUPS: u32 = 256;

/// Most names of one folder.
const MOST_NAMES: usize = 16_384;

/// `include/uapi/asm-generic/fcntl.h`, the same on x86 and ARM.
const O_NONBLOCK: i32 = 0o4000;

pub(super) const CPUS: &str = "sys/devices/system/cpu";

/// Where file systems of the kernel are mounted, the inner ones first, and what each always has.
const SYSTEMS: [(&str, &str); 5] = [
    ("sys/kernel/debug", "sys/kernel/debug/sched"),
    ("sys/kernel/tracing", "sys/kernel/tracing/current_tracer"),
    ("sys", "sys/devices/system/cpu"),
    ("proc", "proc/self/status"),
    ("dev", "dev/null"),
];

/// Files below a root.
#[derive(Clone, Debug)]
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    /// The files below `root`.
    pub(super) fn under_root(root: &Path) -> Files {
        Files { root: root.to_owned() }
    }

    /// Where `path` lies; `None` if it would lead out of the tree.
    fn locate(&self, path: &str) -> Option<PathBuf> {
        let inside = path.trim_start_matches('/');
        let climbs = inside.split('/').any(|part| part == "..");
        (!climbs && !inside.contains('\0')).then(|| self.root.join(inside))
    }

    /// The first [`MOST_BYTES`] of a file.
    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        self.without_waiting(path)?.take(MOST_BYTES).read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// A file open for reading, of which a read does not wait for what is not there yet, nor a FIFO for its writer.
    pub(super) fn without_waiting(&self, path: &str) -> Option<fs::File> {
        fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(self.locate(path)?).ok()
    }

    /// A file as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let content = self.bytes(path)?;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    /// The first [`MOST_BYTES`] of a file that gzip has packed, as text.
    pub(super) fn unpacked(&self, path: &str) -> Option<String> {
        let mut content = Vec::new();
        let packed = self.without_waiting(path)?.take(MOST_BYTES);
        GzDecoder::new(packed).take(MOST_BYTES).read_to_end(&mut content).ok()?;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    /// Whether a file or folder can be read, and if not, why.
    pub(super) fn access(&self, path: &str) -> Access {
        let Some(place) = self.locate(path) else {
            return Access::Missing;
        };
        let opened = match fs::metadata(&place) {
            Ok(found) if found.is_dir() => fs::read_dir(&place).map(drop),
            Ok(_) => fs::File::open(&place).and_then(|mut file| file.read(&mut [0]).map(drop)),
            Err(error) => Err(error),
        };
        match opened.map_err(|error| error.kind()) {
            Ok(()) => Access::Readable,
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) if self.is_mounted(path) => {
                Access::Missing
            }
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => Access::Unmounted,
            Err(_) => Access::Denied,
        }
    }

    /// Whether the file system to which `path` belongs is there: it then has the file or folder
    /// that no machine is without.
    fn is_mounted(&self, path: &str) -> bool {
        SYSTEMS
            .iter()
            .find(|(below, _)| path.trim_start_matches('/').starts_with(below))
            .is_none_or(|(_, always)| self.exists(always))
    }

    /// The first line of a file without blanks around it; `None` if that is empty.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        clean(text.lines().next()?)
    }

    pub(super) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// A file with 0 or 1, N or Y.
    pub(super) fn flag(&self, path: &str) -> Option<bool> {
        match self.text(path)?.trim() {
            "0" | "N" | "n" => Some(false),
            "1" | "Y" | "y" => Some(true),
            _ => None,
        }
    }

    /// A file with a list of CPUs. An empty one is the empty set.
    pub(super) fn cpus(&self, path: &str) -> Option<CpuSet> {
        cpu_list(&self.text(path)?)
    }

    /// The chosen word of a file like `always [madvise] never`, between `open` and `close`.
    pub(super) fn chosen(&self, path: &str, open: char, close: char) -> Option<String> {
        let line = self.line(path)?;
        let (_, rest) = line.split_once(open)?;
        let (word, _) = rest.split_once(close)?;
        clean(word)
    }

    /// The names in a folder, in ascending order; none if there is no such folder.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let Some(entries) = self.locate(path).and_then(|place| fs::read_dir(place).ok()) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .take(MOST_NAMES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.locate(path).is_some_and(|place| place.exists())
    }

    pub(super) fn cpu_folders(&self) -> CpuSet {
        self.names(CPUS).iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect()
    }
}

/// A set of CPUs as the kernel writes it in hexadecimal: `c`, or `ff,ffffffff` with 32 CPUs in
/// each group.
pub(super) fn cpu_mask(text: &str) -> Option<CpuSet> {
    const BITS: u32 = 32;
    let mut cpus = CpuSet::default();
    for (group, digits) in (0..MOST_GROUPS).zip(text.trim().rsplit(',')) {
        let bits = u32::from_str_radix(digits, 16).ok()?;
        let of_group = (0..BITS).filter(|bit| bits >> bit & 1 == 1);
        of_group.for_each(|bit| cpus.insert(group * BITS + bit));
    }
    Some(cpus)
}

/// `text` without blanks around it and without control characters, cut to a line's length; `None`
/// if nothing is left.
pub(super) fn clean(text: &str) -> Option<String> {
    let kept: String = text
        .trim()
        .chars()
        .filter(|character| !character.is_control())
        .take(MOST_CHARACTERS)
        .collect();
    (!kept.is_empty()).then_some(kept)
}

/// The value of the first line `key<separator>value` in `text`.
pub(super) fn field<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// A list of CPUs as the kernel writes it; an empty one is the empty set.
pub(super) fn cpu_list(text: &str) -> Option<CpuSet> {
    let list = match text.trim() {
        // Kernels built for nohz_full but booted without it print a null pointer.
        "" | "(null)" => return Some(CpuSet::default()),
        list => list,
    };
    // The kernel's numbers rise. A list that repeats numbers is forged, and could take for ever.
    let mut numbers = list.split([',', '-']).map(str::parse::<u32>);
    let rises = numbers
        .try_fold(None, |last, number| match number {
            Ok(number) if last.is_none_or(|last| last < number) => Some(Some(number)),
            _ => None,
        })
        .is_some();
    if rises { list.parse().ok() } else { None }
}
