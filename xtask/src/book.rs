//! The handbook: the pages that are made from the code, and the book around them.

use std::process::Command;

use crate::failure::StepFailure;
use crate::workspace::{Workspace, has_program};

/// The tests that know what the command and the documents say, and write it where this is set.
const WRITE: &str = "HOURGLASS_BOOK";

/// Makes the generated pages, and the book with mdBook where it is installed.
///
/// # Errors
/// A page cannot be made, or mdBook fails.
pub(crate) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    let words = [
        "test",
        "-p",
        "hourglass-rt",
        "--test",
        "keys",
        "--test",
        "documents",
        "--",
        "the_reference_has",
    ];
    succeeds(workspace.cargo(&words).env(WRITE, "1"), "cargo test")?;
    println!("docs/src/reference: commands.md and keys.md are written");
    if !has_program("mdbook") {
        println!("mdbook is not installed, so that no book is made; cargo install mdbook --locked");
        return Ok(());
    }
    succeeds(
        Command::new("mdbook").args(["build", "docs"]).current_dir(&workspace.root),
        "mdbook build",
    )
}

fn succeeds(command: &mut Command, shown: &str) -> Result<(), StepFailure> {
    let status = command.status().map_err(|error| StepFailure::start(shown, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(StepFailure::Broken(format!("`{shown}` failed ({status})")))
    }
}
