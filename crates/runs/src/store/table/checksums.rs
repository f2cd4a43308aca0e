//! What tells that the bytes of a table are those that were written.
//!
//! Owns: a CRC-32 for each row group, in the file's own description. Must not: decode anything.
//!
//! Pages of Parquet may have one, which the library checks and does not write. Files of other programs, and those of earlier
//! versions, have none.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use flate2::Crc;
use parquet::file::metadata::{KeyValue, ParquetMetaData};

/// The key in the description: for each row group, separated by commas, the checksum in hexadecimal digits, `@`, and where the
/// bytes end that it is of; they begin where those before end, the first at 0.
const KEY: &str = "hourglass.crc32";

/// Bytes read at a time.
const AT_ONCE: usize = 64 * 1024;

/// A file with the checksum of what was written since the last group.
pub(crate) struct ChecksummedFile<'a> {
    file: &'a File,
    crc: Crc,
}

impl<'a> ChecksummedFile<'a> {
    pub(crate) fn new(file: &'a File) -> ChecksummedFile<'a> {
        ChecksummedFile { file, crc: Crc::new() }
    }

    /// The group that ends here, as the description has it.
    pub(crate) fn end_group(&mut self, end: usize) -> String {
        let found = format!("{:08x}@{end}", self.crc.sum());
        self.crc.reset();
        found
    }
}

impl Write for ChecksummedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

pub(crate) fn described(groups: &[String]) -> KeyValue {
    KeyValue::new(KEY.to_owned(), groups.join(","))
}

/// For each row group the checksum and the end of its bytes; empty where the file has none.
#[derive(Debug, Default)]
pub(crate) struct Checksums(Vec<(u32, u64)>);

impl Checksums {
    /// # Errors
    /// They are not those of this file of `length` bytes, in a sentence.
    pub(crate) fn of(metadata: &ParquetMetaData, length: u64) -> Result<Checksums, String> {
        let entries = metadata.file_metadata().key_value_metadata();
        let entry = entries.into_iter().flatten().find(|entry| entry.key == KEY);
        let Some(text) = entry.and_then(|entry| entry.value.as_ref()) else {
            return Ok(Checksums::default());
        };
        let group = |text: &str| {
            let (crc, end) = text.split_once('@')?;
            Some((u32::from_str_radix(crc, 16).ok()?, end.parse().ok()?))
        };
        let texts = text.split(',').filter(|text| !text.is_empty());
        let found: Option<Vec<(u32, u64)>> = texts.map(group).collect();
        let is_sound = |found: &Vec<(u32, u64)>| {
            let ends = found.iter().map(|(_, end)| *end);
            found.len() == metadata.num_row_groups() && ends.chain([length]).is_sorted()
        };
        found
            .filter(is_sound)
            .map(Checksums)
            .ok_or_else(|| format!("its '{KEY}' is not of its row groups"))
    }

    /// Compares the bytes of a row group.
    ///
    /// # Errors
    /// They are not those that were written, or cannot be read.
    pub(crate) fn compare(&self, file: &File, group: usize) -> io::Result<()> {
        let Some((wanted, end)) = self.0.get(group) else { return Ok(()) };
        let mut at = group.checked_sub(1).map_or(0, |before| self.0[before].1);
        let (mut crc, mut bytes) = (Crc::new(), vec![0; AT_ONCE]);
        while at < *end {
            let most = usize::try_from(end - at).map_or(AT_ONCE, |left| left.min(AT_ONCE));
            let read = file.read_at(&mut bytes[..most], at)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            crc.update(&bytes[..read]);
            at += read as u64;
        }
        match crc.sum() == *wanted {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "row group {group} is not what was written: its checksum is {:08x}, not {wanted:08x}",
                crc.sum()
            ))),
        }
    }
}
