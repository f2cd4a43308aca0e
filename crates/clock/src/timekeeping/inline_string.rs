//! Short texts without an allocation: for what readers may find out, also in a signal handler.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A text of at most `N` bytes, held in place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InlineString<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> InlineString<N> {
    /// The text, cut behind the last character that fits.
    #[must_use]
    pub fn new(text: &str) -> InlineString<N> {
        let length = (0..=N.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let length = length.unwrap_or(0);
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(&text.as_bytes()[..length]) {
            *to = *from;
        }
        InlineString { bytes, length }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or("")
    }

    /// The beginning of a small file, without the white space around it; `None` if it cannot be
    /// read. `path` is absolute, below `root`. Allocates nothing where `root` is `/`.
    pub(super) fn read(root: &Path, path: &str) -> Option<InlineString<N>> {
        let mut bytes = [0; N];
        let length = open(root, path)?.read(&mut bytes).ok()?;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        Some(InlineString::new(text.trim()))
    }
}

/// Opens a file below a root.
pub(super) fn open(root: &Path, path: &str) -> Option<File> {
    // The standard library keeps short paths on the stack.
    if root == Path::new("/") {
        return File::open(path).ok();
    }
    File::open(root.join(path.trim_start_matches('/'))).ok()
}

impl<const N: usize> From<&str> for InlineString<N> {
    fn from(text: &str) -> InlineString<N> {
        InlineString::new(text)
    }
}

impl<const N: usize> fmt::Display for InlineString<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for InlineString<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_between_characters() {
        assert_eq!(InlineString::<5>::new("tsc").as_str(), "tsc");
        assert_eq!(InlineString::<5>::new("abcdefg").as_str(), "abcde");
        assert_eq!(InlineString::<5>::new("abcdüg").as_str(), "abcd");
        assert_eq!(InlineString::<0>::new("ü").as_str(), "");
        assert_eq!(
            format!("{:>4} {:?}", InlineString::<5>::from("ü"), InlineString::<5>::from("a")),
            "   ü \"a\""
        );
    }

    #[test]
    fn a_file_is_read_below_its_root() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x"), " hpet\n").unwrap();
        let read = InlineString::<16>::read(folder.path(), "/x");
        assert_eq!(read, Some(InlineString::new("hpet")));
        assert_eq!(InlineString::<16>::read(folder.path(), "/y"), None);
        assert!(InlineString::<64>::read(Path::new("/"), "/proc/sys/kernel/ostype").is_some());
    }
}
