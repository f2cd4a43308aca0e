//! Small text files of the kernel below a root.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hourglass_documents::CpuSet;

/// Most bytes of one file that are looked at: the scheduler's debug file of 512 CPUs is about a
/// megabyte.
const MOST_BYTES: u64 = 4 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Files(PathBuf);

impl Files {
    pub(crate) fn under_root(root: &Path) -> Files {
        Files(root.to_owned())
    }

    /// Where `path` lies; a leading slash is the root.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The first of `paths` that exists, or the last one.
    pub(crate) fn first(&self, paths: &[&str]) -> String {
        let there = paths.iter().find(|path| self.at(path).exists());
        there.or(paths.last()).copied().unwrap_or_default().to_owned()
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let mut text = String::new();
        let file = fs::File::open(self.at(path)).ok()?;
        file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }

    pub(crate) fn number<N: FromStr>(&self, path: &str) -> Option<N> {
        self.text(path)?.trim().parse().ok()
    }

    /// A file that holds a list of CPUs; an empty list is an empty set.
    pub(crate) fn cpus(&self, path: &str) -> Option<CpuSet> {
        match self.text(path)?.trim() {
            "" => Some(CpuSet::default()),
            list => list.parse().ok(),
        }
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub(crate) fn folders(&self, folder: &str) -> Vec<String> {
        let is_folder = |name: &String| self.at(&format!("{folder}/{name}")).is_dir();
        self.names(folder).into_iter().filter(is_folder).collect()
    }
}
