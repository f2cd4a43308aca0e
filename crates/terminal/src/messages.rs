//! Lines on stderr: errors, warnings, what was written.

use std::io::{self, Write};
use std::path::Path;

use hourglass_documents::document::{Premise, Warning};

/// Writes one line. What it quotes may come from a file: characters that would move the cursor
/// or break the line do not get through.
pub fn say(line: &str) {
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // A closed stderr leaves no place to report the error.
    let _ = writeln!(io::stderr(), "hourglass: {line}");
}

/// Writes that there is a new file or folder, unless it is to be quiet.
pub fn wrote(path: &Path, quiet: bool) {
    if !quiet {
        say(&format!("wrote {}", path.display()));
    }
}

/// Writes that what a measurement rests on did not hold, also where it is to be quiet; `which` names the run of several.
pub fn no_verdict(premise: &Premise, which: &str) {
    say(&format!("no verdict{which}: {}", premise.text));
}

/// Writes a warning with what mends it.
pub fn warn(warning: &Warning) {
    let Warning { text, remedy, .. } = warning;
    match remedy.as_str() {
        "" => say(&format!("warning: {text}")),
        remedy => say(&format!("warning: {text}; {remedy}")),
    }
}
