//! Whether a release can be built again, bit for bit, elsewhere.
//!
//! Owns: a copy of the sources in another folder, another home of Cargo, and the comparison. Must not: build otherwise
//! than packages are built.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::{StepFailure, succeed};
use crate::package;
use crate::test::StepOutcome;
use crate::workspace::Workspace;

/// Builds as for packages, here and of a copy elsewhere with a target folder and a home of Cargo of its own, and compares.
///
/// # Errors
/// `Broken` if something does not build, or differs.
pub(crate) fn run(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    let folder = workspace.target.join("reproduce");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    }
    let root = folder.join("another/place/of/the-sources");
    let copy = Workspace { target: folder.join("built"), root };
    let home = folder.join("home");
    copy_sources(workspace, &copy.root)?;
    package::build(workspace, &package::cargo_home())?;
    copy_fetched(&package::cargo_home(), &home)?;
    package::build(&copy, &home)?;
    let mut differing = Vec::new();
    for (here, there) in package::built(workspace).iter().zip(package::built(&copy)) {
        let read = |path: &Path| fs::read(path).map_err(|e| StepFailure::file(path, &e));
        if read(here)? != read(&there)? {
            differing.push(format!("{} and {}", here.display(), there.display()));
        }
        succeed(Command::new("sha256sum").args([here, &there]), "sha256sum")?;
    }
    if !differing.is_empty() {
        let differing = differing.join(", ");
        let what = format!("two builds differ: {differing}; diffoscope shows where");
        return Err(StepFailure::Broken(what));
    }
    fs::remove_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    Ok(StepOutcome::Passed)
}

/// What git knows and what it does not ignore, as it is now.
fn copy_sources(workspace: &Workspace, to: &Path) -> Result<(), StepFailure> {
    fs::create_dir_all(to).map_err(|e| StepFailure::file(to, &e))?;
    let script = "git ls-files -z --cached --others --exclude-standard --deduplicate | \
                  tar --null --files-from=- --create | tar --extract --directory \"$1\"";
    let mut copy = Command::new("sh");
    copy.args(["-ec", script, "sh"]).arg(to).current_dir(&workspace.root).stdin(Stdio::null());
    succeed(&mut copy, "git ls-files | tar")
}

/// Archives of crates and the list of them, so that nothing is fetched twice; the sources are unpacked anew.
fn copy_fetched(from: &Path, to: &Path) -> Result<(), StepFailure> {
    let registry = to.join("registry");
    fs::create_dir_all(&registry).map_err(|e| StepFailure::file(&registry, &e))?;
    let fetched = ["registry/index", "registry/cache"].map(|name| from.join(name));
    succeed(Command::new("cp").arg("-r").args(fetched).arg(&registry), "cp -r registry")?;
    for name in ["config.toml", "config"] {
        let file = from.join(name);
        if file.is_file() {
            fs::copy(&file, to.join(name)).map_err(|e| StepFailure::file(&file, &e))?;
        }
    }
    Ok(())
}
