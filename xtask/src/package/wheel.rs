//! The Python package for an index: a wheel of the release profile with a manylinux tag, and the source archive.
//!
//! The tag is the oldest that maturin's audit of the library's symbols allows (PEP 600), and `auditwheel` has to agree.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{cargo_home, notices, remapped, run_command, trial};
use crate::failure::StepFailure;
use crate::python::{Environment, only_file};
use crate::workspace::Workspace;

const ENVIRONMENT: &str = "wheel-environment";

const PACKAGES: &str = "maturin auditwheel";

const PACKAGE: &str = "hourglass-python";

/// Below `python/hourglass`, not kept by git.
const NOTICES: &str = "THIRD-PARTY-NOTICES.txt";

/// Builds both into `wheels/` of the target folder, and tries them: the wheel in an environment that has nothing else, and
/// the archive by building it there.
///
/// # Errors
/// `Broken` if something does not build, is not what an index takes or names a folder of this machine, `Unable` without
/// a Python or PyPI.
pub(crate) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    let python = Environment::make(workspace, ENVIRONMENT, PACKAGES)?;
    let out = workspace.target.join("wheels");
    let _ = fs::remove_dir_all(&out);
    let notice = workspace.root.join("python/hourglass").join(NOTICES);
    fs::write(&notice, notices::of(workspace, [PACKAGE].into_iter())?)
        .map_err(|e| StepFailure::file(&notice, &e))?;
    let (wheels, sources) = (out.join("wheel"), out.join("sdist"));
    let maturin = |words: &[&str], to: &Path| {
        let mut maturin = python.program("maturin");
        maturin.current_dir(workspace.root.join("python"));
        maturin.env("CARGO_ENCODED_RUSTFLAGS", remapped(workspace, &cargo_home()));
        maturin.env("CARGO_TARGET_DIR", &workspace.target).args(words).arg("--out").arg(to);
        maturin
    };
    run_command(&mut maturin(
        &["build", "--release", "--locked", "--compatibility", "pypi"],
        &wheels,
    ))?;
    let wheel = only_file(&wheels)?;
    is_manylinux(&wheel)?;
    run_command(python.program("auditwheel").arg("show").arg(&wheel))?;
    let unpacked = out.join("unpacked");
    let mut unpack = python.program("python");
    run_command(unpack.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
    trial::names_no_builder(workspace, &unpacked)?;
    fs::remove_dir_all(&unpacked).map_err(|e| StepFailure::file(&unpacked, &e))?;
    imports(workspace, &wheel, &[])?;
    run_command(&mut maturin(&["sdist"], &sources))?;
    // In the way that takes the least time: it is built to see that nothing is missing.
    let quick = [("MATURIN_PEP517_ARGS", "--profile dev"), ("CARGO_PROFILE_DEV_OPT_LEVEL", "0")];
    imports(workspace, &only_file(&sources)?, &quick)?;
    println!("made {}", out.display());
    Ok(())
}

/// What an index takes (PEP 600), and no tag of this machine alone.
fn is_manylinux(wheel: &Path) -> Result<(), StepFailure> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.contains("-manylinux_") {
        return Ok(());
    }
    Err(StepFailure::Broken(format!("{name} has no manylinux tag")))
}

/// Installs the file into an environment with nothing else, where it is imported and its clock read.
fn imports(workspace: &Workspace, file: &Path, build: &[(&str, &str)]) -> Result<(), StepFailure> {
    let folder = workspace.target.join("wheel-trial");
    run_command(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps"]).arg(file);
    pip.envs(build.iter().copied()).env("CARGO_TARGET_DIR", &workspace.target);
    run_command(&mut pip)?;
    let mut python = Command::new(folder.join("bin/python"));
    python.current_dir(&folder).args(["-c", "import hourglass; print(hourglass.clock.now_ns())"]);
    run_command(&mut python)?;
    fs::remove_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))
}
