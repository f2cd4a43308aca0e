//! Packages: what has to be made before them, and Debian packages of it by cargo-deb; and the programs as
//! static binaries.
//!
//! The command itself writes its manual pages and completions. What is in which package is said in
//! `[package.metadata.deb]` of `crates/cli` and of `crates/capi`.

use std::env::consts::ARCH;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use hourglass_skip::Requirement;

use crate::failure::{StepFailure, succeed};
use crate::workspace::{self, Workspace};

/// The most that a program may weigh as Cargo builds it.
const LARGEST: u64 = 25_000_000;

/// Shells and how their files are called where Debian's look for them.
const COMPLETIONS: &[(&str, &str)] =
    &[("bash", "hourglass"), ("zsh", "_hourglass"), ("fish", "hourglass.fish")];

/// The programs, with their packages; `hourglass paper` runs the second.
const PROGRAMS: [(&str, &str); 2] =
    [("hourglass", "hourglass-rt"), ("hourglass-paper", "hourglass-papers")];

const C_LIBRARY: &str = "hourglass-capi";

const DEBIAN: &[&[&str]] = &[
    &["--package", "hourglass-rt"],
    &["--package", "hourglass-capi", "--multiarch", "same"],
    &["--package", "hourglass-capi", "--multiarch", "same", "--variant", "dev"],
];

/// Builds the programs and the C library in release, makes manual pages, completions and the C files
/// under `release/package/` of the target folder, and of all that the Debian packages.
///
/// # Errors
/// `Broken` if something does not build or a program is too large, `Unable` without cargo-deb.
pub(crate) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    let packages = PROGRAMS.iter().map(|(_, package)| *package).chain([C_LIBRARY]);
    let packages = packages.flat_map(|name| ["--package", name]);
    run_command(workspace.cargo(&["build", "--release", "--locked"]).args(packages))?;
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
    changelog(workspace, &made)?;
    dependencies(workspace, &made)?;
    c_library(workspace, &release, &made)?;
    println!("made {}", made.display());
    debian(workspace)
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
    dependencies(workspace, &made)?;
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
    run_command(&mut workspace.cargo(&words))?;
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
    let entries = fs::read_dir(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    compress(entries.flatten().map(|entry| entry.path()))
}

/// As Debian wants manual pages and changelogs: without a name or a time in them.
fn compress(files: impl Iterator<Item = PathBuf>) -> Result<(), StepFailure> {
    run_command(Command::new("gzip").args(["-9", "-n"]).args(files))
}

fn changelog(workspace: &Workspace, made: &Path) -> Result<(), StepFailure> {
    let kept = workspace.root.join("packaging/debian/changelog");
    let copy = made.join("changelog.Debian");
    fs::copy(&kept, &copy).map_err(|e| StepFailure::file(&kept, &e))?;
    compress([copy].into_iter())
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

fn dependencies(workspace: &Workspace, made: &Path) -> Result<(), StepFailure> {
    let mut cargo = workspace.cargo(&["tree", "--edges", "normal", "--prefix", "none"]);
    cargo.args(PROGRAMS.iter().flat_map(|(_, package)| ["--package", package]));
    cargo.args(["--locked", "--format", "{p}: {l}"]);
    let output = cargo.output().map_err(|e| StepFailure::start("cargo", &e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(StepFailure::Broken(format!("cargo tree: {}", said.trim())));
    }
    let path = made.join("dependencies");
    let text = foreign(&String::from_utf8_lossy(&output.stdout));
    fs::write(&path, text).map_err(|e| StepFailure::file(&path, &e))
}

/// Each line of `cargo tree` once, in order, without our own, which have a path behind their version.
fn foreign(tree: &str) -> String {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let mut lines: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.contains("(/")).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn c_library(workspace: &Workspace, release: &Path, made: &Path) -> Result<(), StepFailure> {
    let mut install = Command::new(workspace.root.join("crates/capi/install.sh"));
    install.args(["--prefix", "/usr", "--libdir", &format!("lib/{ARCH}-linux-gnu")]);
    install.arg("--from").arg(release);
    run_command(install.arg("--destdir").arg(made.join("c")))?;
    // cargo-deb finds out what programs need, not what libraries do.
    let manifest = workspace.root.join("crates/capi/Cargo.toml");
    let said = fs::read_to_string(&manifest).map_err(|e| StepFailure::file(&manifest, &e))?;
    let library = release.join("libhourglass.so");
    let bytes = fs::read(&library).map_err(|e| StepFailure::file(&library, &e))?;
    let depends = format!("libc6 (>= {})", newest_libc(&bytes));
    if said.contains(&depends) {
        return Ok(());
    }
    Err(StepFailure::Broken(format!(
        "crates/capi/Cargo.toml: the library as built here needs {depends}"
    )))
}

/// The newest version of the C library whose symbols a library names (`GLIBC_2.35`).
fn newest_libc(library: &[u8]) -> String {
    const NAME: &[u8] = b"GLIBC_2.";
    let places = (0..library.len()).filter(|at| library[*at..].starts_with(NAME));
    let minors = places.map(|at| {
        let digits = library[at + NAME.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0_u32, |sum, digit| sum.saturating_mul(10) + u32::from(digit - b'0'))
    });
    format!("2.{}", minors.max().unwrap_or_default())
}

fn debian(workspace: &Workspace) -> Result<(), StepFailure> {
    if !workspace.has_tool("deb") {
        let what = "cargo-deb is missing: cargo install cargo-deb";
        return Err(StepFailure::Unable(Requirement::program("cargo-deb"), what.into()));
    }
    for package in DEBIAN {
        run_command(workspace.cargo(&["deb", "--no-build", "--no-strip"]).args(*package))?;
    }
    println!("made the packages in {}", workspace.target.join("debian").display());
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
    use std::os::unix::fs::PermissionsExt;

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

    #[test]
    fn the_newest_version_of_the_c_library_counts() {
        assert_eq!(newest_libc(b"\0GLIBC_2.4\0GLIBC_2.35\0GLIBC_2.2.5\0GLIBC_PRIVATE\0"), "2.35");
    }

    #[test]
    fn our_own_crates_are_no_dependencies() {
        let tree = "hourglass v0.1.0 (/a/crates/cli): MIT\nserde v1.0.2: MIT OR Apache-2.0\n\
                    clap v4.6.0: MIT\nserde v1.0.2: MIT OR Apache-2.0 (*)\n\
                    serde_derive v1.0.2 (proc-macro): MIT\n";
        let wanted = "clap v4.6.0: MIT\nserde v1.0.2: MIT OR Apache-2.0\n\
                      serde_derive v1.0.2 (proc-macro): MIT\n";
        assert_eq!(foreign(tree), wanted);
    }

    /// A folder in which the installation of the Debian package is tried, with commands that only say what they were
    /// asked for.
    struct Trial(PathBuf);

    impl Trial {
        /// `overridden`: an administrator has decided who may run the command.
        fn new(name: &str, mode: u32, overridden: bool) -> Trial {
            let root = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            let trial = Trial(root);
            // Of `hourglass`, and of no other program.
            let statoverride = match overridden {
                true => "case $2 in */hourglass) exit 0 ;; esac; exit 1",
                false => "exit 1",
            };
            let log = trial.0.join("log").display().to_string();
            for (tool, then) in [
                ("getent", "exit 1"),
                ("groupadd", ""),
                ("chown", ""),
                ("setcap", ""),
                ("dpkg-statoverride", statoverride),
            ] {
                let script = format!("#!/bin/sh\necho {tool} \"$@\" >> {log}\n{then}\n");
                trial.file(&format!("bin/{tool}"), &script, 0o755);
            }
            trial.file("usr/bin/hourglass", "", mode);
            trial.file("usr/bin/hourglass-paper", "", 0o755);
            trial
        }

        fn file(&self, name: &str, text: &str, mode: u32) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }

        /// Configures the package: who may run the command then, and what was done. Who may run it may run `hourglass-paper`.
        fn configure(&self) -> (u32, Vec<String>) {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/debian/postinst");
            let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.0.join("bin").display());
            let mut sh = Command::new("sh");
            sh.arg(script).arg("configure").env("DPKG_ROOT", &self.0).env("PATH", path);
            assert!(sh.status().unwrap().success());
            let mode = |name| fs::metadata(self.0.join(name)).unwrap().permissions().mode();
            let (mode, paper) = (mode("usr/bin/hourglass"), mode("usr/bin/hourglass-paper"));
            assert_eq!(mode, paper);
            let log = fs::read_to_string(self.0.join("log")).unwrap();
            (mode & 0o7777, log.lines().map(str::to_owned).collect())
        }
    }

    impl Drop for Trial {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// The bug: the capabilities were given to a command that everybody may run.
    #[test]
    fn the_debian_package_gives_capabilities_to_its_group_alone() {
        let trial = Trial::new("group", 0o755, false);
        let (mode, done) = trial.configure();
        assert_eq!(mode, 0o750);
        let place = |words: &str| done.iter().position(|line| line.starts_with(words));
        assert!(place("groupadd --system hourglass").is_some(), "{done:?}");
        let owned = place("chown root:hourglass ");
        assert!(owned.is_some(), "{done:?}");
        // A container may have none to give; a change of the owner takes them away.
        let given = place("setcap cap_sys_nice,cap_ipc_lock+ep ");
        assert!(given.is_none_or(|given| Some(given) > owned), "{done:?}");
        // `execve` takes those of `hourglass` away.
        let gifts = done.iter().filter(|line| line.starts_with("setcap cap_")).count();
        assert!(gifts == 0 || gifts == 2, "{done:?}");
        // An administrator lets everybody run it, or another group.
        let (mode, done) = Trial::new("everybody", 0o755, true).configure();
        assert_eq!(mode, 0o755);
        assert!(!done.iter().any(|line| line.starts_with("setcap cap_")), "{done:?}");
        let (mode, done) = Trial::new("audio", 0o2750, true).configure();
        assert_eq!(mode, 0o2750);
        assert!(!done.iter().any(|line| line.starts_with("chown root")), "{done:?}");
    }
}
