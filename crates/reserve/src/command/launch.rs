//! Starting a program so that it waits until it has its reservation.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hourglass_sys::process::{Child, Gated, Program};

/// Where programs are when `PATH` does not say, as `execvp(3)` has it.
const USUAL: &str = "/bin:/usr/bin";
/// Mode bits of the right to execute: of owner, group and others.
const EXECUTABLE: u32 = 0o111;

fn executable(file: &str, why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::PermissionDenied => format!("if it is a program: chmod +x {file}"),
        _ => "name a program, or a script that begins with #! and its interpreter".to_owned(),
    }
}

/// Why a program does not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is no such program.
    #[error("{0}: no such program in PATH; give its path, or install it")]
    NotFound(String),
    /// There is no such file.
    #[error("{0}: no such file")]
    NoFile(String),
    /// It cannot be executed.
    #[error("{file}: cannot be executed: {source}; {}", executable(file, source))]
    NotExecutable {
        /// Path of the program.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// This process cannot start any.
    #[error("{file}: cannot be started: {source}")]
    NoProcess {
        /// Path of the program.
        file: String,
        /// Why.
        source: io::Error,
    },
}

impl LaunchError {
    /// The exit code that shells have for it; `None` if it is no fault of the program.
    pub fn exit_code(&self) -> Option<u8> {
        match self {
            LaunchError::NotFound(_) | LaunchError::NoFile(_) => Some(127),
            LaunchError::NotExecutable { .. } => Some(126),
            LaunchError::NoProcess { .. } => None,
        }
    }
}

/// A program that exists, with its arguments and additions to the environment of this process.
#[derive(Debug)]
pub struct Launch {
    name: String,
    program: Program,
}

impl Launch {
    /// Looks for the program that `words` begin with, as a shell would, and adds `environment` to
    /// that of this process. Nothing is started.
    ///
    /// # Errors
    /// There is no such program, or it may not be executed.
    pub fn find(
        words: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> Result<Launch, LaunchError> {
        let first = words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL.into());
        let files = files(first, &path)?;
        let name = first.to_string_lossy().into_owned();
        let program = Program::new(
            files.into_iter().map(|file| file.into_os_string().into_vec()),
            words.iter().map(|word| word.as_bytes().to_vec()),
            with_added(environment),
        )
        .map_err(|source| LaunchError::NotExecutable { file: name.clone(), source })?;
        Ok(Launch { name, program })
    }

    /// Sends its output to this process's stderr: the stdout is for something else.
    #[must_use]
    pub fn printing_aside(self) -> Launch {
        Launch { program: self.program.printing_aside(), ..self }
    }

    /// It is a helper of this process: see [`Program::helping`].
    #[must_use]
    pub fn helping(self) -> Launch {
        Launch { program: self.program.helping(), ..self }
    }

    /// It inherits this descriptor, under the same number.
    pub(crate) fn handing_down(self, descriptor: OwnedFd) -> Launch {
        Launch { program: self.program.handing_down(descriptor), ..self }
    }

    /// Starts it as a process that waits at its gate. Signals act on it as if the starter of this process had
    /// started it.
    ///
    /// # Errors
    /// No descriptors, memory or processes left.
    pub fn start(&self) -> Result<Gated, LaunchError> {
        Gated::start(&self.program)
            .map_err(|source| LaunchError::NoProcess { file: self.name.clone(), source })
    }

    /// Opens the gate of a process that [`Launch::start`] made.
    ///
    /// # Errors
    /// The kernel does not execute it.
    pub fn open(&self, gated: Gated) -> Result<Child, LaunchError> {
        gated
            .open()
            .map_err(|source| LaunchError::NotExecutable { file: self.name.clone(), source })
    }
}

/// The environment of this process, in which some names have other values.
fn with_added(added: &[(OsString, OsString)]) -> Vec<Vec<u8>> {
    let own = std::env::vars_os().filter(|(name, _)| added.iter().all(|(other, _)| other != name));
    let line =
        |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    own.chain(added.iter().cloned()).map(line).collect()
}

/// The files that may be meant by the first word, in the order in which they are tried.
fn files(first: &OsStr, path: &OsStr) -> Result<Vec<PathBuf>, LaunchError> {
    let name = || first.to_string_lossy().into_owned();
    let whole = first.as_bytes().contains(&b'/');
    let candidates: Vec<PathBuf> = if whole {
        vec![PathBuf::from(first)]
    } else if first.is_empty() {
        Vec::new()
    } else {
        std::env::split_paths(path).map(|folder| Path::new(".").join(folder).join(first)).collect()
    };
    let found: Vec<(PathBuf, fs::Metadata)> = candidates
        .into_iter()
        .filter_map(|file| fs::metadata(&file).ok().map(|metadata| (file, metadata)))
        .filter(|(_, metadata)| whole || metadata.is_file())
        .collect();
    let Some((first_found, metadata)) = found.first() else {
        return Err(if whole {
            LaunchError::NoFile(name())
        } else {
            LaunchError::NotFound(name())
        });
    };
    let refused = |kind: io::ErrorKind| LaunchError::NotExecutable {
        file: first_found.strip_prefix(".").unwrap_or(first_found).display().to_string(),
        source: kind.into(),
    };
    if metadata.is_dir() {
        return Err(refused(io::ErrorKind::IsADirectory));
    }
    let runs = |metadata: &fs::Metadata| metadata.permissions().mode() & EXECUTABLE != 0;
    if !found.iter().any(|(_, metadata)| runs(metadata)) {
        return Err(refused(io::ErrorKind::PermissionDenied));
    }
    Ok(found.into_iter().filter(|(_, metadata)| runs(metadata)).map(|(file, _)| file).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_sys::process::ExitStatus;
    use tempfile::TempDir;

    fn file(folder: &TempDir, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let [one, two] = [(); 2].map(|()| TempDir::new().unwrap());
        file(&one, "tool", "", 0o644);
        let right = file(&two, "tool", "", 0o755);
        file(&one, "plain", "", 0o644);
        let path = format!("/nowhere::{}:{}", one.path().display(), two.path().display());
        let found = |name: &str| files(name.as_ref(), path.as_ref());
        // One that may not be executed does not hide one that may.
        assert_eq!(found("tool").unwrap(), [right]);
        let code = |name: &str| found(name).unwrap_err().exit_code();
        assert_eq!(code("plain"), Some(126));
        assert_eq!(code("absent"), Some(127));
        assert_eq!(code(""), Some(127));
        assert_eq!(code("/nowhere/tool"), Some(127));
        assert_eq!(code("/"), Some(126));
    }

    #[test]
    fn the_environment_is_added_to_and_a_script_without_a_shell_runs() {
        let folder = TempDir::new().unwrap();
        let script = file(&folder, "script", "exit $ASKED\n", 0o755);
        let launch = Launch::find(&[script.into()], &[("ASKED".into(), "5".into())]).unwrap();
        let child = launch.open(launch.start().unwrap()).unwrap();
        assert_eq!(child.wait().unwrap(), ExitStatus::Exited(5));
    }
}
