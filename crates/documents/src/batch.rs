//! The document `hourglass.batch/1`: one question about many files.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name and version of the document.
pub const BATCH_SCHEMA: &str = "hourglass.batch/1";

/// The answers of one command about many files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchDocument {
    /// Always [`BATCH_SCHEMA`].
    pub schema: String,
    /// The command that answered: `check` or `simulate`.
    pub command: String,
    /// The worst exit code of the files, which is the command's.
    pub exit_code: u8,
    /// One entry a file, in the order of the command line.
    pub files: Vec<BatchFile>,
}

/// The answer about one file. With `--jsonl` it is a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchFile {
    /// The file, as it was named.
    pub file: String,
    /// The exit code that the command has for this file alone.
    pub exit: u8,
    /// Why there is no document; null where there is one.
    pub error: Option<String>,
    /// The document of the command; null where the file cannot be read or used.
    pub document: Option<Value>,
}
