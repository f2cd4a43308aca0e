//! Where the workspace lies, and the cargo that works in it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::StepFailure;

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Finds the workspace: cargo says where this package lies; without cargo, the nearest folder
    /// upwards whose `Cargo.toml` has a `[workspace]`.
    ///
    /// # Errors
    /// There is no workspace here.
    pub(crate) fn find() -> Result<Workspace, StepFailure> {
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(package) => PathBuf::from(package),
            None => env::current_dir().map_err(|e| StepFailure::file(Path::new("."), &e))?,
        };
        let root = start
            .ancestors()
            .find(|folder| is_root(folder))
            .ok_or_else(|| StepFailure::Usage("run this inside the workspace".into()))?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Ok(Workspace { root, target })
    }

    pub(crate) fn package(&self, name: &str) -> Result<String, StepFailure> {
        let folders = [self.root.join("crates").join(name), self.root.join(name)];
        let named = folders.iter().find_map(|folder| {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
            let value = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
            Some(value.trim_end_matches('"').to_owned())
        });
        let known = |package: &String| {
            let answer = self.cargo(&["pkgid", "-p", package]).output();
            answer.is_ok_and(|output| output.status.success())
        };
        named.or_else(|| Some(name.to_owned()).filter(known)).ok_or_else(|| {
            StepFailure::Usage(format!(
                "'{name}' is no package; take a folder of crates/, or a package's name"
            ))
        })
    }

    /// Whether `cargo NAME` is there.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        let answer = self.cargo(&[name, "--version"]).output();
        answer.is_ok_and(|output| output.status.success())
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = with_default_signals(&program);
        command.args(arguments).current_dir(&self.root);
        // Where nothing is built a second time, what would make that fast costs a tenth of the first.
        if env::var_os("CI").is_some() && env::var_os("CARGO_INCREMENTAL").is_none() {
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }
}

/// A command that starts `program` with the default action of every signal, where `env` can do that. A
/// script in the background ignores SIGINT, hourglass leaves ignored what was, and tests of Ctrl-C would wait
/// for ever.
pub(crate) fn with_default_signals(program: &OsStr) -> Command {
    const OPTION: &str = "--default-signal";
    let able = Command::new("env").args([OPTION, "true"]).stderr(Stdio::null()).status();
    if !able.is_ok_and(|status| status.success()) {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.arg(OPTION).arg(program);
    command
}

fn is_root(folder: &Path) -> bool {
    fs::read_to_string(folder.join("Cargo.toml"))
        .is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
}

pub(crate) fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

pub(crate) fn has_standard_library(target: &str) -> bool {
    let words = ["--print", "target-libdir", "--target", target];
    Command::new("rustc").args(words).output().is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
    })
}
