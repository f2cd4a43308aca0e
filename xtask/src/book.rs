//! The handbook: the pages that are made from the code, and the book around them.

use std::fs;
use std::process::Command;

use crate::failure::{StepFailure, succeed};
use crate::workspace::{Workspace, has_program};

/// The tests that know what the command and the documents say, and write it where this is set.
const WRITE: &str = "HOURGLASS_BOOK";

const PAGES: [&str; 3] = ["commands.md", "tasks.md", "keys.md"];

pub(crate) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    pages(workspace)?;
    if !has_program("mdbook") {
        println!("mdbook is not installed, so that no book is made; cargo install mdbook --locked");
        return Ok(());
    }
    succeed(
        Command::new("mdbook").args(["build", "docs"]).current_dir(&workspace.root),
        "mdbook build",
    )
}

/// Writes the pages that are made from the code, beside the others.
///
/// # Errors
/// `Broken` if a test fails or writes none.
pub(crate) fn pages(workspace: &Workspace) -> Result<(), StepFailure> {
    let pages = PAGES.map(|page| workspace.root.join("docs/src/reference").join(page));
    for page in &pages {
        // One that is not made anew is not taken for one that was.
        let _ = fs::remove_file(page);
    }
    let words = ["test", "-p", "hourglass-rt", "--test", "command", "--", "the_reference_has"];
    succeed(workspace.cargo(&words).env(WRITE, "1"), "cargo test")?;
    if let Some(missing) = pages.iter().find(|page| !page.exists()) {
        return Err(StepFailure::Broken(format!("no test wrote {}", missing.display())));
    }
    println!("docs/src/reference: {} are written", PAGES.join(", "));
    Ok(())
}
