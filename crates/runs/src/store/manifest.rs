//! `manifest.json`: written last, read first.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use flate2::Crc;
use hourglass_documents::manifest::{MANIFEST_SCHEMA, Manifest};
use serde_json::Value;

use crate::store::MANIFEST_FILE;
use crate::store::error::{OpenError, WriteError};
use crate::store::partial::{PartialFile, sync_folder};

/// The key of the checksum, the last one of the file.
const CHECKSUM: &str = "crc32";

/// Writes the manifest into `folder` under a temporary name and renames it.
pub(crate) fn write(folder: &Path, manifest: &Manifest) -> Result<(), WriteError> {
    if manifest.result.is_none() {
        return Err(WriteError::NoResult);
    }
    let mut text = serde_json::to_vec_pretty(manifest).map_err(WriteError::Manifest)?;
    // JSON has no infinity: such a number is written as null without complaint, and no reader
    // would take it. Better to hear of it now.
    serde_json::from_slice::<Manifest>(&text).map_err(WriteError::Manifest)?;
    let value: Value = serde_json::from_slice(&text).map_err(WriteError::Manifest)?;
    if text.ends_with(b"\n}") {
        text.truncate(text.len() - 2);
        text.extend(format!(",\n  \"{CHECKSUM}\": \"{}\"\n}}", checksum(value)).bytes());
    }
    text.push(b'\n');

    write_last(folder, MANIFEST_FILE, &text)
}

/// That of the values alone, whatever blanks and order the file has, so that other programs may write it again.
fn checksum(mut value: Value) -> String {
    value.as_object_mut().map(|object| object.remove(CHECKSUM));
    let mut crc = Crc::new();
    crc.update(value.to_string().as_bytes());
    format!("{:08x}", crc.sum())
}

/// Writes the file with which a folder is whole.
pub(super) fn write_last(folder: &Path, name: &str, text: &[u8]) -> Result<(), WriteError> {
    let path = folder.join(name);
    let failed = |error| WriteError::file(&path, error);
    let partial = PartialFile::create(folder, name).map_err(failed)?;
    partial.file().write_all(text).map_err(failed)?;
    partial.publish().map_err(failed)?;
    settled(folder, sync_folder(folder))
}

/// What holds of a whole folder once its names were to be brought to the disk.
fn settled(folder: &Path, synced: io::Result<()>) -> Result<(), WriteError> {
    synced.map_err(|error| WriteError::Whole {
        path: folder.to_path_buf(),
        doubt: "may be gone if the machine stops before the disk has its names",
        source: error.into(),
    })
}

pub(crate) fn read(path: &Path) -> Result<Manifest, OpenError> {
    let text =
        read_file(path).map_err(|source| OpenError::Io { path: path.to_path_buf(), source })?;
    let malformed = |error: serde_json::Error| OpenError::ManifestMalformed {
        path: path.to_path_buf(),
        line: error.line(),
        column: error.column(),
        reason: match error.is_eof() {
            true => format!("it is truncated ({}); copy it again", without_place(&error)),
            false => format!("{}; restore it, or measure again", without_place(&error)),
        },
    };
    // The version first: a manifest of another one may lack every other key.
    let value: Value = serde_json::from_slice(&text).map_err(malformed)?;
    let found = value.get("schema").and_then(Value::as_str).unwrap_or_default();
    if found != MANIFEST_SCHEMA {
        return Err(OpenError::ManifestVersion {
            path: path.to_path_buf(),
            found: found.to_owned(),
            wanted: MANIFEST_SCHEMA,
        });
    }
    let manifest: Manifest = serde_json::from_slice(&text).map_err(malformed)?;
    if manifest.result.is_none() {
        return Err(OpenError::NoResult(path.to_path_buf()));
    }
    // Earlier versions wrote none.
    match value.get(CHECKSUM).cloned() {
        Some(found) if found != checksum(value) => {
            Err(OpenError::ManifestChanged { path: path.to_path_buf(), key: CHECKSUM })
        }
        _ => Ok(manifest),
    }
}

/// What the file holds. A pipe or a device may never end.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    fs::read(path)
}

/// The text of an error without the place, which stands before the text in ours.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a folder that is whole and can be read it was said that the run was not kept.
    #[test]
    fn what_fails_behind_the_manifest_leaves_a_whole_folder() {
        let folder = Path::new("run");
        assert!(settled(folder, Ok(())).is_ok());
        let error = settled(folder, Err(io::Error::other("no answer"))).unwrap_err();
        let wanted = "run is whole, but may be gone if the machine stops before the disk has its \
                      names: no answer";
        assert_eq!(error.said_of("the run"), wanted);
        let refused = WriteError::file(folder, io::Error::other("no answer"));
        let wanted = "the run was not kept: run cannot be written: no answer";
        assert_eq!(refused.said_of("the run"), wanted);
    }
}
