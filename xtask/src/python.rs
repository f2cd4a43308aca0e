//! The Python package: built as a wheel, installed into an environment of its own, and tested there. And the proofs,
//! whose prover comes as a Python package.
//!
//! Owns: the environment and what is installed into it. Must not: know what the tests try; touch the
//! machine's own Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use hourglass_skip::Requirement;

use crate::bed::binary;
use crate::failure::{StepFailure, succeed};
use crate::provide;
use crate::retry;
use crate::skips;
use crate::test::StepOutcome;
use crate::workspace::{Workspace, with_default_signals};

/// The oldest Python that the package is for, as `pyproject.toml` says.
const OLDEST: (u32, u32) = (3, 10);

/// What builds the wheel, what runs the tests, what the tests hand results to, and what proves lemmas.
const PACKAGES: &str = "maturin pytest pytest-benchmark mypy numpy pandas polars matplotlib \
    z3-solver distributed ray duckdb pyyaml";

pub(crate) fn run(workspace: &Workspace, tests: &[&str]) -> Result<StepOutcome, StepFailure> {
    let python = Environment::make(workspace, "python-environment", PACKAGES)?;
    if tests.is_empty() {
        prove(workspace, &python)?;
    }
    let wheel = build(workspace, &python)?;
    let wheel = wheel.display().to_string();
    // No dependency is needed for the package itself, and its version stays while it changes.
    let install = ["install", "--quiet", "--no-deps", "--force-reinstall", &wheel];
    shown(python.program("pip").args(install), "pip install WHEEL")?;
    // Documents are compared with those of the command, which the tests before have built.
    let command = binary::build(workspace)?;
    let folder = workspace.root.join("python");
    let files = match tests {
        [] => vec![folder.join("tests").display().to_string()],
        named => {
            named.iter().map(|test| folder.join("tests").join(test).display().to_string()).collect()
        }
    };
    let pytest = |selected: &[String]| {
        let mut pytest = with_default_signals(python.path("pytest").as_os_str());
        pytest.env("HOURGLASS", &command).env(skips::VARIABLE, skips::file(workspace));
        // From another folder, or the package would be the one without its extension.
        pytest.current_dir(&workspace.target).env("PYTHONDONTWRITEBYTECODE", "1");
        pytest.args(["--quiet", "-ra", "-p", "no:cacheprovider", "--rootdir"]).arg(&folder);
        println!("    pytest {}", selected.join(" "));
        retry::shown(pytest.args(selected))
    };
    let (status, lines) = pytest(&files)?;
    if status.success() {
        return Ok(StepOutcome::Passed);
    }
    let broken = || StepFailure::Broken(format!("`pytest python/tests` failed ({status})"));
    let failed = retry::of_pytest(&lines).ok_or_else(broken)?;
    let failed: Vec<String> = failed.into_iter().flat_map(|program| program.tests).collect();
    let (status, _) = pytest(&failed)?;
    if status.success() { Ok(StepOutcome::Again(failed)) } else { Err(broken()) }
}

/// Makes the environment while other steps run; what goes wrong is said by [`run`], which tries again.
pub(crate) fn prepare(workspace: &Workspace) {
    let _ = Environment::make(workspace, "python-environment", PACKAGES);
}

static MAKING: Mutex<()> = Mutex::new(());

fn prove(workspace: &Workspace, python: &Environment) -> Result<(), StepFailure> {
    let script = workspace.root.join("proofs/timekeeping.py");
    shown(python.program("python").arg(script), "python proofs/timekeeping.py")
}

/// A Python with packages of its own.
pub(crate) struct Environment(PathBuf);

impl Environment {
    /// Makes it in a folder of the target folder, or takes what is there and whole.
    ///
    /// # Errors
    /// `Unable` without a Python that is new enough, its venv, or PyPI.
    pub(crate) fn make(
        workspace: &Workspace,
        folder: &str,
        packages: &str,
    ) -> Result<Environment, StepFailure> {
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let environment = Environment(workspace.target.join(folder));
        let finished = environment.0.join("complete");
        if fs::read_to_string(&finished).is_ok_and(|there| there == packages) {
            return Ok(environment);
        }
        is_new_enough()?;
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&environment.0);
        if !make.status().is_ok_and(|status| status.success()) {
            let text = "`python3 -m venv` does not succeed: apt-get install python3-venv";
            return Err(StepFailure::Unable(venv(), text.into()));
        }
        let install = ["install", "--quiet", "--disable-pip-version-check"];
        let installed = environment.program("pip").args(install).args(packages.split(' ')).status();
        if !installed.is_ok_and(|status| status.success()) {
            let text = format!("`pip install {packages}` does not succeed: is PyPI to be reached?");
            let check = "python3 -m pip download --no-deps --dest $(mktemp -d) six";
            return Err(StepFailure::Unable(Requirement::runs("PyPI", check), text));
        }
        fs::write(&finished, packages).map_err(|error| StepFailure::file(&finished, &error))?;
        Ok(environment)
    }

    pub(crate) fn program(&self, name: &str) -> Command {
        Command::new(self.path(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }
}

fn venv() -> Requirement {
    Requirement::runs("Python's venv", provide::VENV)
}

fn is_new_enough() -> Result<(), StepFailure> {
    let ask = "import sys; print(*sys.version_info[:2])";
    let answer = Command::new("python3").args(["-c", ask]).output();
    let said = answer.ok().filter(|output| output.status.success());
    let Some(said) = said else {
        let what = "python3 is not installed: apt-get install python3-venv";
        return Err(StepFailure::Unable(venv(), what.into()));
    };
    let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if version(&said).is_some_and(|found| found >= OLDEST) {
        return Ok(());
    }
    let (major, minor) = OLDEST;
    let check = format!("python3 -c 'import sys; sys.exit(sys.version_info < ({major}, {minor}))'");
    let what = format!("python3 is '{said}', the package is for {major}.{minor} and later");
    Err(StepFailure::Unable(Requirement::runs("a newer Python", check), what))
}

fn version(said: &str) -> Option<(u32, u32)> {
    let (major, minor) = said.split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The wheel, in the workspace's own folder.
///
/// What other packages are built with does not serve: alone, this one wants fewer features of what is
/// outside (`syn`, `bytes` and some more), and everything above these is compiled once more. So it is
/// compiled in the way that takes the least time. The tests from Python ask what functions do, not
/// how fast they are.
fn build(workspace: &Workspace, python: &Environment) -> Result<PathBuf, StepFailure> {
    let out = workspace.target.join("python-wheels");
    // Only the one that is built now is to be found there.
    let _ = fs::remove_dir_all(&out);
    let mut maturin = python.program("maturin");
    maturin.current_dir(workspace.root.join("python")).env("CARGO_TARGET_DIR", &workspace.target);
    maturin.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    maturin.args(["build", "--quiet", "--profile", "dev", "--locked", "--interpreter"]);
    maturin.arg(python.0.join("bin/python")).arg("--out").arg(&out);
    shown(&mut maturin, "maturin build --profile dev --locked")?;
    only_file(&out)
}

pub(crate) fn only_file(folder: &Path) -> Result<PathBuf, StepFailure> {
    let entries = fs::read_dir(folder).map_err(|error| StepFailure::file(folder, &error))?;
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    match <[PathBuf; 1]>::try_from(files) {
        Ok([wheel]) => Ok(wheel),
        Err(files) => {
            Err(StepFailure::Broken(format!("{} wheels were built, not one", files.len())))
        }
    }
}

fn shown(command: &mut Command, shown: &str) -> Result<(), StepFailure> {
    println!("    {shown}");
    succeed(command, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("3 9"), Some((3, 9)));
        assert!(version("3 9") < Some(OLDEST) && version("3 14") > Some(OLDEST));
        assert_eq!(version("3.11"), None);
    }
}
