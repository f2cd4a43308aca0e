//! Programs for a guest: as `cargo test` builds them, with the libraries that they ask for.
//!
//! A build for guests alone would take minutes of every CI run; what the tests were run with is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use crate::failure::StepFailure;
use crate::workspace::Workspace;

/// A test of the command: cargo builds the command with it, and the same one as for all tests.
const BESIDE: &str = "command";

pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf, StepFailure> {
    Builder::NATIVE.build(workspace)
}

/// A test program of the workspace that needs the guest's hardware: its file in some crate's `tests/`,
/// and its name in the guest.
pub(super) type Test = &'static str;

/// How programs are built for the processor of a guest.
pub(super) struct Builder {
    /// Of cargo: the packages, and the target.
    pub(super) selected: &'static [&'static str],
    /// For cargo.
    pub(super) environment: &'static [(&'static str, &'static str)],
    pub(super) strip: &'static str,
    /// Where programs are kept, in the folder of beds.
    pub(super) folder: &'static str,
}

impl Builder {
    /// Of the whole workspace, or features of dependencies would differ and all be built again.
    pub(super) const NATIVE: Builder =
        Builder { selected: &["--workspace"], environment: &[], strip: "strip", folder: "bin" };

    pub(super) fn build(&self, workspace: &Workspace) -> Result<PathBuf, StepFailure> {
        self.program(workspace, &["--test", BESIDE], "hourglass")
    }

    pub(super) fn build_test(
        &self,
        workspace: &Workspace,
        test: Test,
    ) -> Result<PathBuf, StepFailure> {
        self.program(workspace, &["--test", test], test)
    }

    /// The unit tests of a library, by its name.
    pub(super) fn build_unit_tests(
        &self,
        workspace: &Workspace,
        library: Test,
    ) -> Result<PathBuf, StepFailure> {
        self.program(workspace, &["--lib"], library)
    }

    /// Builds tests and what belongs to them; a copy of one of the programs without symbols, which would only
    /// make the guest's memory fuller.
    fn program(
        &self,
        workspace: &Workspace,
        tests: &[&str],
        name: &str,
    ) -> Result<PathBuf, StepFailure> {
        let mut cargo = workspace.cargo(&["test", "--quiet", "--no-run"]);
        cargo.args(tests).args(self.selected).envs(self.environment.iter().copied());
        cargo.arg("--message-format=json").stderr(Stdio::inherit());
        let output = cargo.output().map_err(|e| StepFailure::start("cargo", &e))?;
        let messages = String::from_utf8_lossy(&output.stdout);
        let built = match executable(&messages, name) {
            Some(path) if output.status.success() => path,
            _ => return Err(StepFailure::Broken(format!("{name} does not build for a guest"))),
        };
        let folder = workspace.target.join("beds").join(self.folder);
        fs::create_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
        let stripped = folder.join(name);
        self.strip(&built, &stripped)?;
        Ok(stripped)
    }

    /// Another bed may read the earlier copy meanwhile: the new one takes its place when it is whole.
    pub(super) fn strip(&self, built: &Path, stripped: &Path) -> Result<(), StepFailure> {
        let fresh = stripped.with_extension(process::id().to_string());
        let status = Command::new(self.strip).arg("-o").arg(&fresh).arg(built).status();
        let status = status.map_err(|e| StepFailure::start(self.strip, &e))?;
        if !status.success() {
            return Err(StepFailure::Broken(format!("strip {}: {status}", built.display())));
        }
        fs::rename(&fresh, stripped).map_err(|e| StepFailure::file(stripped, &e))
    }
}

/// The program that was named, for a guest.
///
/// # Errors
/// It cannot be read, or is none of the guest's processor.
pub(super) fn given(program: PathBuf, is_arm: bool) -> Result<PathBuf, StepFailure> {
    let bytes = fs::read(&program).map_err(|e| StepFailure::file(&program, &e))?;
    let (machine, name) = if is_arm { (183u16, "aarch64") } else { (62, "x86-64") };
    if bytes.starts_with(b"\x7fELF") && bytes.get(18..20) == Some(&machine.to_le_bytes()) {
        return Ok(program);
    }
    let shown = program.display();
    Err(StepFailure::Usage(format!(
        "--binary {shown} is no program of Linux for the guest's {name}"
    )))
}

/// Where cargo says that it put a program; without a parser of JSON, since the paths of a target
/// folder need no escapes.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    let named = format!("\"name\":\"{name}\"");
    let line = messages.lines().find(|l| l.contains(&named) && l.contains("\"executable\":\""))?;
    let (_, rest) = line.split_once("\"executable\":\"")?;
    rest.split_once('"').map(|(path, _)| PathBuf::from(path))
}

/// The loader and the libraries that a program asks for, as this machine has them; none if it is
/// static. A guest without them would say that the program is not there.
///
/// # Errors
/// The program cannot be read, or a library is missing here too.
pub(super) fn libraries(program: &Path) -> Result<Vec<PathBuf>, StepFailure> {
    let bytes = fs::read(program).map_err(|e| StepFailure::file(program, &e))?;
    // A dynamic program names its loader near the beginning of the file.
    const HEAD: usize = 4096;
    let head = &bytes[..bytes.len().min(HEAD)];
    let has = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    if !has(b"/ld-linux") && !has(b"/ld-musl") {
        return Ok(Vec::new());
    }
    let output = Command::new("ldd").arg(program).output();
    let output = output.map_err(|e| StepFailure::start("ldd", &e))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || said.contains("not found") {
        let why = format!("ldd {}: {}", program.display(), said.trim());
        return Err(StepFailure::Broken(why));
    }
    Ok(files(&said))
}

/// Where a library of this machine is in a guest's second root, and the file that is put there: the C library's own from
/// the unpacked package `libc6`, others as this machine has them.
pub(super) fn in_second_root(library: &Path, libc: &Path) -> (PathBuf, PathBuf) {
    const ROOT: &str = "/libc";
    let name = library.file_name().unwrap_or_default();
    let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
    let mut packaged = folders.iter().map(|folder| libc.join(folder).join(name));
    let file = packaged.find(|file| file.is_file()).unwrap_or_else(|| library.to_owned());
    (Path::new(ROOT).join(library.strip_prefix("/").unwrap_or(library)), file)
}

/// The files in what `ldd` prints: `name => /path (address)`, and `/path (address)` for the loader.
/// What the kernel brings has no path.
fn files(said: &str) -> Vec<PathBuf> {
    let words = said.lines().filter_map(|line| {
        let line = line.split_once(" => ").map_or(line, |(_, path)| path);
        line.split_whitespace().next()
    });
    words.filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_what_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other-1"}
{"reason":"compiler-artifact","target":{"name":"hpet_device"},"executable":"/t/hpet_device-2"}
{"reason":"build-finished","success":true}"#;
        let found = executable(messages, "hpet_device");
        assert_eq!(found, Some(PathBuf::from("/t/hpet_device-2")));
        assert_eq!(executable(messages, "device"), None);
    }

    #[test]
    fn libraries_are_found_in_what_ldd_says() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 \
                    (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let wanted = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(files(said), wanted.map(PathBuf::from));
        assert!(files("\tstatically linked\n").is_empty());
    }
}
