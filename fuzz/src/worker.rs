//! What a worker does: one target, inputs one after the other, each written down before it is tried.
//!
//! A panic ends the worker, a hang and a limit of memory are seen from outside; the file says with which input.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Mutator, Target};

/// Inputs that are kept because their answers were new.
const KEPT: usize = 2_000;

/// Bytes before the input in the file: how many inputs there were, and how long this one is.
const HEAD: usize = 16;

pub fn work(target: &Target, seed: u64, time: Duration, current: &Path) -> io::Result<u64> {
    let mut file = CurrentInput { file: File::create(current)?, tried: 0 };
    let mut body = (target.start)();
    let mut inputs = inputs(target)?;
    let mut answers = BTreeSet::new();
    for input in &inputs {
        file.note(input)?;
        answers.insert(body(input));
    }
    let mut changer = Mutator::new(seed, target.name);
    let end = Instant::now() + time;
    while Instant::now() < end {
        // The newest are the least tried.
        let at = match changer.next_below(2) {
            0 => changer.next_below(inputs.len()),
            _ => inputs.len() - 1 - changer.next_below(inputs.len().min(16)),
        };
        let other = changer.next_below(inputs.len());
        let input = changer.changed(&inputs[at], &inputs[other]);
        file.note(&input)?;
        if answers.insert(body(&input)) {
            if inputs.len() < KEPT {
                inputs.push(input);
            } else {
                inputs[at] = input;
            }
        }
    }
    println!("{}: {} inputs, {} answers", target.name, file.tried, answers.len());
    Ok(file.tried)
}

struct CurrentInput {
    file: File,
    tried: u64,
}

impl CurrentInput {
    fn note(&mut self, input: &[u8]) -> io::Result<()> {
        self.tried += 1;
        let mut bytes = Vec::with_capacity(HEAD + input.len());
        bytes.extend(self.tried.to_le_bytes());
        bytes.extend((input.len() as u64).to_le_bytes());
        bytes.extend(input);
        self.file.write_all_at(&bytes, 0)
    }
}

/// How many inputs a worker has tried by now, and the one at which it is.
///
/// # Errors
/// The file cannot be read, or is not one of a worker.
pub fn current(path: &Path) -> io::Result<(u64, Vec<u8>)> {
    let bytes = fs::read(path)?;
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let none = || io::Error::new(io::ErrorKind::InvalidData, "no input is noted there");
    let (tried, length) = word(0).zip(word(8)).ok_or_else(none)?;
    let input = bytes.get(HEAD..HEAD + length as usize).ok_or_else(none)?;
    Ok((tried, input.to_vec()))
}

/// The corpus of a target and its examples; at least one, which may be empty.
///
/// # Errors
/// A file cannot be read, or is not what [`keep`] writes.
pub fn inputs(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let folder = folder_of(target);
    let mut inputs = (target.examples)();
    if folder.is_dir() {
        let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        let mut files: Vec<PathBuf> = entries.iter().map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            let bytes = fs::read(&file)?;
            if file.ends_with(FOUND) {
                let texts: Vec<String> = serde_json::from_slice(&bytes)?;
                inputs.extend(texts.into_iter().map(String::into_bytes));
            } else {
                inputs.push(bytes);
            }
        }
    }
    if inputs.is_empty() {
        inputs.push(Vec::new());
    }
    Ok(inputs)
}

/// Inputs of a target that a coverage-guided run found: an array of texts.
const FOUND: &str = "found.json";

/// What the texts of a target may have in all, bytes.
const MOST_KEPT: usize = 6_000;

fn folder_of(target: &Target) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).join(target.name)
}

/// Writes the texts among the files of a folder into the corpus of a target, the smallest first, up to 6,000
/// bytes; returns how many.
///
/// # Errors
/// A file cannot be read or written.
pub fn keep(target: &Target, folder: &Path) -> io::Result<usize> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        // What is no text is no source that could be read in a repository.
        texts.extend(String::from_utf8(fs::read(entry?.path())?).ok());
    }
    texts.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    texts.dedup();
    let mut total = 0;
    texts.retain(|text| {
        total += text.len();
        !text.is_empty() && total <= MOST_KEPT
    });
    if !texts.is_empty() {
        let to = folder_of(target);
        fs::create_dir_all(&to)?;
        fs::write(to.join(FOUND), serde_json::to_string_pretty(&texts)? + "\n")?;
    }
    Ok(texts.len())
}
