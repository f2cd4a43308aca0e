//! `manifest.json`: written last, read first.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use hourglass_model::manifest::{MANIFEST_SCHEMA, Manifest};
use serde_json::Value;

use crate::MANIFEST_FILE;
use crate::error::{OpenError, WriteError};
use crate::partial::PartialFile;

/// Writes the manifest into `folder` under a temporary name and renames it.
pub(crate) fn write(folder: &Path, manifest: &Manifest) -> Result<(), WriteError> {
    if manifest.result.is_none() {
        return Err(WriteError::NoResult);
    }
    let mut text = serde_json::to_vec_pretty(manifest).map_err(WriteError::Manifest)?;
    // JSON has no infinity: such a number is written as null without complaint, and no reader
    // would take it. Better to hear of it now.
    serde_json::from_slice::<Manifest>(&text).map_err(WriteError::Manifest)?;
    text.push(b'\n');

    let path = folder.join(MANIFEST_FILE);
    let failed = |error| WriteError::file(&path, error);
    let partial = PartialFile::create(folder, MANIFEST_FILE).map_err(failed)?;
    let mut writer = BufWriter::new(partial.file());
    writer.write_all(&text).and_then(|()| writer.flush()).map_err(failed)?;
    partial.commit().map_err(failed)
}

/// Reads the manifest at `path`.
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
    Ok(manifest)
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
