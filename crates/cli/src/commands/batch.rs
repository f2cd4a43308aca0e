//! One question about one file or many: `check` and `simulate`.
//!
//! Owns: the order of files, what an error in one of them means for the others, and the form of the answers. Must
//! not: know the question.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use hourglass_documents::batch::{BATCH_SCHEMA, BatchDocument, BatchFile};
use serde::Serialize;

use crate::exit::{self, MACHINE, SIGNALLED, Stop};
use crate::messages;
use crate::output;
use crate::settings::Settings;

/// How the answers are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) command: &'static str,
    /// `--jsonl`: a line a file.
    pub(crate) lines: bool,
    pub(crate) settings: Settings,
}

/// The answer about one file.
pub(crate) struct FileResult<D> {
    pub(crate) document: D,
    pub(crate) text: String,
    pub(crate) exit_code: u8,
    /// Why something beside the document failed, such as writing a folder; the exit code is its own then.
    pub(crate) failed: Option<Stop>,
}

const STANDARD_INPUT: &str = "-";

/// Asks about each file and prints: the command's own document for one file, a document of all for several, or lines.
/// An error in one file does not stop the others; a signal does.
///
/// # Errors
/// Writing fails. An error in the only file.
pub(crate) fn each<D: Serialize>(
    files: &[PathBuf],
    form: Form,
    mut ask: impl FnMut(&Path) -> Result<FileResult<D>>,
) -> Result<ExitCode> {
    if form.lines && form.settings.json {
        return Err(
            Stop::usage("--jsonl prints lines and --json one document: leave one out").into()
        );
    }
    if let ([file], false) = (files, form.lines) {
        return alone(ask(file)?, form);
    }
    if files.iter().filter(|file| file.as_os_str() == STANDARD_INPUT).count() > 1 {
        return Err(
            Stop::usage("duplicate -: the standard input can be read once; name it once").into()
        );
    }
    let mut entries = Vec::new();
    let mut worst = exit::YES;
    for (position, file) in files.iter().enumerate() {
        let answer = ask(file);
        let entry = entry(file, &answer, form)?;
        worst = worst.max(entry.exit);
        let ended = entry.exit >= SIGNALLED;
        print(position, entry, answer, form, &mut entries)?;
        if ended {
            break;
        }
    }
    if form.settings.json {
        output::json(&BatchDocument {
            schema: BATCH_SCHEMA.to_owned(),
            command: form.command.to_owned(),
            exit_code: worst,
            files: entries,
        })?;
    }
    Ok(ExitCode::from(worst))
}

/// One file: its document or text, and nothing around it.
fn alone<D: Serialize>(answer: FileResult<D>, form: Form) -> Result<ExitCode> {
    output::shown(&answer.document, |_, _| answer.text, form.settings)?;
    match answer.failed {
        Some(failed) => Err(failed.into()),
        None => Ok(ExitCode::from(answer.exit_code)),
    }
}

fn entry<D: Serialize>(
    file: &Path,
    answer: &Result<FileResult<D>>,
    form: Form,
) -> Result<BatchFile> {
    let wants_document = form.lines || form.settings.json;
    let mut entry = BatchFile {
        file: file.display().to_string(),
        exit: exit::YES,
        error: None,
        document: None,
    };
    match answer {
        Ok(answer) => {
            entry.exit = answer.exit_code;
            if wants_document {
                let document = serde_json::to_value(&answer.document);
                entry.document = Some(document.context("cannot write the document")?);
            }
            if let Some(failed) = &answer.failed {
                entry.error = Some(failed.to_string());
                entry.exit = entry.exit.max(failed.code());
            }
        }
        Err(error) => {
            let stop = error.downcast_ref::<Stop>();
            entry.error = Some(stop.map_or_else(|| format!("{error:#}"), ToString::to_string));
            entry.exit = stop.map_or(MACHINE, Stop::code);
        }
    }
    Ok(entry)
}

/// Prints an entry, or keeps it for the document of all.
fn print<D>(
    position: usize,
    entry: BatchFile,
    answer: Result<FileResult<D>>,
    form: Form,
    kept: &mut Vec<BatchFile>,
) -> Result<()> {
    if form.settings.json {
        kept.push(entry);
        return Ok(());
    }
    if form.lines {
        let mut out = io::stdout().lock();
        return serde_json::to_writer(&mut out, &entry)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
            .context("cannot write to stdout");
    }
    if let Ok(answer) = answer {
        let gap = if position == 0 { "" } else { "\n" };
        let name: String = entry
            .file
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        output::text(&format!("{gap}{name}:\n{}", answer.text))?;
    }
    if let Some(error) = &entry.error {
        messages::say(error);
    }
    Ok(())
}
