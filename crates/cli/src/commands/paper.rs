//! `paper`: another program, `hourglass-paper`, run as git and cargo run theirs.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;
use hourglass_terminal::paper::PROGRAM;

use crate::exit::Stop;
use crate::lab::hand_on;

/// Becomes that program, which gets these words: the one beside this program, else the one on the PATH.
///
/// # Errors
/// It is nowhere, or cannot be started.
pub(crate) fn paper(words: &[String]) -> Result<ExitCode> {
    let own = std::env::current_exe().ok();
    let beside = own.map(|own| own.with_file_name(PROGRAM)).filter(|program| program.is_file());
    let program = beside.as_deref().unwrap_or(Path::new(PROGRAM));
    // Returns only where it fails.
    let error = hand_on(Command::new(program).args(words)).exec();
    let line = match error.kind() {
        io::ErrorKind::NotFound if program == Path::new(PROGRAM) => format!(
            "paper: {PROGRAM} is neither in the folder of hourglass nor on the PATH; cargo install --path papers in the sources \
             makes it, and packages have it"
        ),
        _ => format!("paper: {} cannot be started: {error}", program.display()),
    };
    Err(Stop::machine(vec![line]).into())
}
