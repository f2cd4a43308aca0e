//! Packages: what has to be made before them, and Debian packages of it by cargo-deb; and the programs as
//! static binaries.
//!
//! The command itself writes its manual pages and completions. What is in which package is said in
//! `[package.metadata.deb]` of `crates/cli` and of `crates/capi`. What is built here holds no path of the builder.

mod debian;
mod handbook;
mod notices;
mod trial;
mod wheel;

use std::env::{self, consts::ARCH};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use hourglass_skip::Requirement;

use crate::failure::{StepFailure, succeed};
use crate::workspace::{self, Workspace};

pub(crate) use debian::lintian;
pub(crate) use notices::cargo_home;
pub(crate) use wheel::run as run_wheel;

/// The most that a program may weigh as Cargo builds it.
const LARGEST: u64 = 25_000_000;

/// Shells and how their files are called where Debian's look for them.
const COMPLETIONS: &[(&str, &str)] =
    &[("bash", "hourglass"), ("zsh", "_hourglass"), ("fish", "hourglass.fish")];

/// The programs, with their packages; `hourglass paper` runs the second.
const PROGRAMS: [(&str, &str); 2] =
    [("hourglass", "hourglass-rt"), ("hourglass-paper", "hourglass-papers")];

const C_LIBRARY: &str = "hourglass-capi";

/// Builds the programs and the C library in release, makes manual pages, completions, the handbook and the C files
/// under `release/package/` of the target folder, and of all that the Debian packages, each of which is then
/// unpacked and tried.
///
/// # Errors
/// `Broken` if something does not build, a program is too large or a package does not work, `Unable` without
/// cargo-deb or a compiler.
pub(crate) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    build(workspace, &cargo_home())?;
    let release = workspace.target.join("release");
    for (program, _) in PROGRAMS {
        check_size(&release.join(program))?;
    }
    let made = release.join("package");
    if made.exists() {
        fs::remove_dir_all(&made).map_err(|e| StepFailure::file(&made, &e))?;
    }
    manual_pages(&release, &made)?;
    completions(&release, &made)?;
    let path = made.join("dependencies");
    fs::write(&path, notices::of(workspace, packages())?)
        .map_err(|e| StepFailure::file(&path, &e))?;
    handbook::lay_out(workspace, &made.join("doc"))?;
    debian::lay_out(workspace, &release, &made)?;
    println!("made {}", made.display());
    debian::build(workspace)?;
    trial::run(workspace)
}

/// The same, and lintian on what was made, where it is installed.
///
/// # Errors
/// As [`run`]; `Broken` if lintian says something.
pub(crate) fn run_and_look(workspace: &Workspace) -> Result<(), StepFailure> {
    run(workspace)?;
    match lintian(workspace) {
        Err(StepFailure::Unable(_, what)) => {
            println!("{what}; it has not looked at the packages");
            Ok(())
        }
        result => result,
    }
}

/// The Cargo packages of which the Debian packages are made.
fn packages() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|(_, package)| *package).chain([C_LIBRARY])
}

/// Builds the programs and the C library, with what Cargo fetched into `home`.
pub(crate) fn build(workspace: &Workspace, home: &Path) -> Result<(), StepFailure> {
    // The folders of registries are named in the options below.
    run_command(workspace.cargo(&["fetch", "--locked", "--quiet"]).env("CARGO_HOME", home))?;
    let mut command = release_build(workspace, home, &["build", "--release", "--locked"]);
    run_command(command.args(packages().flat_map(|name| ["--package", name])))
}

/// A command of cargo whose programs name no folder of this machine (messages of panics name sources).
fn release_build(workspace: &Workspace, home: &Path, words: &[&str]) -> Command {
    let mut cargo = workspace.cargo(words);
    cargo.env("CARGO_HOME", home).env("CARGO_TARGET_DIR", &workspace.target);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", remapped(workspace, home));
    cargo
}

/// The compiler's options, as `CARGO_ENCODED_RUSTFLAGS` has them: those that were asked for, and what the folders here
/// are called in what is built.
fn remapped(workspace: &Workspace, home: &Path) -> String {
    let asked = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_else(|_| {
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        flags.split_whitespace().collect::<Vec<_>>().join("\x1f")
    });
    let folders = builders_folders(workspace, home).into_iter();
    let ours =
        folders.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
    let flags = Some(asked).filter(|flags| !flags.is_empty()).into_iter().chain(ours);
    flags.collect::<Vec<_>>().join("\x1f")
}

/// Folders of this machine that the compiler would name, and the names that they get. The last that fits counts. Which
/// registry or mirror of it the sources came from is no matter.
fn builders_folders(workspace: &Workspace, home: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut folders = vec![
        (home.to_owned(), "/cargo"),
        (workspace.root.clone(), "/hourglass"),
        (workspace.target.clone(), "/hourglass/target"),
    ];
    let registries = fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    folders.extend(registries.map(|registry| (registry.path(), "/cargo/registry")));
    folders
}

pub(crate) fn run_static(workspace: &Workspace) -> Result<(), StepFailure> {
    let programs = PROGRAMS.iter().map(|(name, package)| static_of(workspace, name, package));
    let programs = programs.collect::<Result<Vec<_>, _>>()?;
    let release = workspace.target.join(musl()).join("release");
    let name = format!("hourglass-{}-{}", env!("CARGO_PKG_VERSION"), musl());
    let made = release.join(&name);
    if made.exists() {
        fs::remove_dir_all(&made).map_err(|e| StepFailure::file(&made, &e))?;
    }
    manual_pages(&release, &made)?;
    completions(&release, &made)?;
    let notices = notices::of(workspace, PROGRAMS.iter().map(|(_, package)| *package))?;
    let path = made.join("dependencies");
    fs::write(&path, notices).map_err(|e| StepFailure::file(&path, &e))?;
    for program in programs {
        copy(&program, &made)?;
    }
    for file in ["README.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&workspace.root.join(file), &made)?;
    }
    let archive = release.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "-czf"]).arg(&archive).arg("-C").arg(&release);
    run_command(tar.arg(&name))?;
    println!("made {}", archive.display());
    Ok(())
}

pub(crate) fn static_program(workspace: &Workspace) -> Result<PathBuf, StepFailure> {
    let (program, package) = PROGRAMS[0];
    static_of(workspace, program, package)
}

fn static_of(workspace: &Workspace, name: &str, package: &str) -> Result<PathBuf, StepFailure> {
    let target = musl();
    has_target(&target)?;
    let words = ["build", "--release", "--locked", "--package", package, "--target", &target];
    run_command(&mut release_build(workspace, &cargo_home(), &words))?;
    let program = workspace.target.join(&target).join("release").join(name);
    check_size(&program)?;
    is_static(&program)?;
    Ok(program)
}

fn musl() -> String {
    format!("{ARCH}-unknown-linux-musl")
}

fn has_target(target: &str) -> Result<(), StepFailure> {
    if workspace::has_standard_library(target) {
        return Ok(());
    }
    let need = Requirement::runs(target, format!("rustup target add {target}"));
    let what = format!("no libraries for {target}: rustup target add {target}");
    Err(StepFailure::Unable(need, what))
}

fn is_static(program: &Path) -> Result<(), StepFailure> {
    let bytes = fs::read(program).map_err(|e| StepFailure::file(program, &e))?;
    match wants_loader(&bytes) {
        Some(false) => Ok(()),
        _ => Err(StepFailure::Broken(format!("{} is no static program", program.display()))),
    }
}

/// Whether an ELF file of 64 bits names a loader (`PT_INTERP` in elf(5)); `None` if it is cut off.
fn wants_loader(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: usize = 3;
    let number = |at: usize, bytes: usize| {
        let found = elf.get(at..at.checked_add(bytes)?)?;
        Some(found.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let (headers, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kinds: Option<Vec<usize>> =
        (0..count).map(|header| number(headers + header * size, 4)).collect();
    Some(kinds?.contains(&PT_INTERP))
}

fn copy(file: &Path, into: &Path) -> Result<(), StepFailure> {
    let to = into.join(file.file_name().unwrap_or_default());
    fs::copy(file, to).map(drop).map_err(|e| StepFailure::file(file, &e))
}

/// What [`build`] makes, below the folder of the target.
pub(crate) fn built(workspace: &Workspace) -> [PathBuf; 4] {
    let release = workspace.target.join("release");
    ["hourglass", "hourglass-paper", "libhourglass.so", "libhourglass.a"]
        .map(|name| release.join(name))
}

pub(crate) fn check_size(program: &Path) -> Result<(), StepFailure> {
    let size = fs::metadata(program).map_err(|e| StepFailure::file(program, &e))?.len();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let (size_mb, largest_mb) = (megabytes(size), megabytes(LARGEST));
    println!("{}: {size_mb:.1} MB of at most {largest_mb:.1}", program.display());
    if size <= LARGEST {
        return Ok(());
    }
    Err(StepFailure::Broken(format!(
        "the program has {size_mb:.1} MB, more than {largest_mb:.1}: look what grew \
         (nm --size-sort of a build with CARGO_PROFILE_RELEASE_STRIP=none)"
    )))
}

fn manual_pages(release: &Path, made: &Path) -> Result<(), StepFailure> {
    let folder = folder(&made.join("man"))?;
    let mut command = Command::new(release.join("hourglass"));
    run_command(command.args(["man", "--quiet", "--dir"]).arg(&folder))?;
    compress_all(&folder)
}

fn compress_all(folder: &Path) -> Result<(), StepFailure> {
    let entries = fs::read_dir(folder).map_err(|e| StepFailure::file(folder, &e))?;
    compress(entries.flatten().map(|entry| entry.path()))
}

/// As Debian wants manual pages and changelogs: without a name or a time in them.
fn compress(files: impl Iterator<Item = PathBuf>) -> Result<(), StepFailure> {
    run_command(Command::new("gzip").args(["-9", "-n"]).args(files))
}

fn completions(release: &Path, made: &Path) -> Result<(), StepFailure> {
    let folder = folder(&made.join("completions"))?;
    for (shell, name) in COMPLETIONS {
        let path = folder.join(name);
        let file = File::create(&path).map_err(|e| StepFailure::file(&path, &e))?;
        let mut command = Command::new(release.join("hourglass"));
        run_command(command.args(["completions", shell]).stdout(file))?;
    }
    Ok(())
}

fn folder(path: &Path) -> Result<PathBuf, StepFailure> {
    fs::create_dir_all(path).map_err(|e| StepFailure::file(path, &e))?;
    Ok(path.to_owned())
}

fn run_command(command: &mut Command) -> Result<(), StepFailure> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let shown = words.join(" ");
    succeed(command, &shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_loader_differs_from_one_without() {
        let with = |kind: u8| {
            let mut elf = vec![0; 64 + 2 * 56];
            (elf[32], elf[54], elf[56]) = (64, 56, 2);
            elf[64 + 56] = kind;
            elf
        };
        assert_eq!(wants_loader(&with(3)), Some(true));
        assert_eq!(wants_loader(&with(1)), Some(false));
        assert_eq!(wants_loader(&with(1)[..100]), None);
        assert_eq!(wants_loader(&[]), None);
    }
}
