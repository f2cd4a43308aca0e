//! The Debian packages: what is laid out for them, cargo-deb, and what lintian says of them.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hourglass_skip::Requirement;

use super::{compress, compress_all, run_command};
use crate::failure::StepFailure;
use crate::workspace::{Workspace, has_program};

const DEBIAN: &[&[&str]] = &[
    &["--package", "hourglass-rt"],
    &["--package", "hourglass-capi", "--multiarch", "same"],
    &["--package", "hourglass-capi", "--multiarch", "same", "--variant", "dev"],
];

/// The version that these packages were tried with.
const INSTALL: &str = "cargo install cargo-deb --locked --version 3.8.0";

fn cargo_deb() -> Requirement {
    Requirement::runs("cargo-deb", "cargo deb --version")
}

/// Lays out the C library as it is installed, and what Debian wants of every package.
pub(super) fn lay_out(
    workspace: &Workspace,
    release: &Path,
    made: &Path,
) -> Result<(), StepFailure> {
    changelogs(workspace, made)?;
    let libdir = format!("lib/{ARCH}-linux-gnu");
    let mut install = Command::new(workspace.root.join("crates/capi/install.sh"));
    install.args(["--prefix", "/usr", "--libdir", &libdir]);
    install.arg("--from").arg(release);
    run_command(install.arg("--destdir").arg(made.join("c")))?;
    // cargo-deb puts the folder of the architecture into the paths of libraries itself.
    let (from, to) = (made.join("c/usr").join(libdir), made.join("c/lib"));
    fs::rename(&from, &to).map_err(|e| StepFailure::file(&from, &e))?;
    compress_all(&made.join("c/usr/share/man/man3"))?;
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

/// Ours and Debian's, by the names that Debian has for them.
fn changelogs(workspace: &Workspace, made: &Path) -> Result<(), StepFailure> {
    let files = [("CHANGELOG.md", "changelog"), ("packaging/debian/changelog", "changelog.Debian")];
    for (kept, name) in files {
        let kept = workspace.root.join(kept);
        fs::copy(&kept, made.join(name)).map_err(|e| StepFailure::file(&kept, &e))?;
    }
    compress(files.iter().map(|(_, name)| made.join(name)))
}

pub(super) fn build(workspace: &Workspace) -> Result<(), StepFailure> {
    if !workspace.has_tool("deb") {
        let what = format!("cargo-deb is missing: {INSTALL}");
        return Err(StepFailure::Unable(cargo_deb(), what));
    }
    let folder = folder(workspace);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    }
    for package in DEBIAN {
        run_command(workspace.cargo(&["deb", "--no-build", "--no-strip"]).args(*package))?;
    }
    complete(workspace)?;
    println!("made the packages in {}", folder.display());
    Ok(())
}

/// Puts into the package of the shared library what cargo-deb cannot: who needs it (deb-shlibs(5)), for packages that
/// are linked with it, and that the loader is to learn of it, which the package of the headers must not ask for.
fn complete(workspace: &Workspace) -> Result<(), StepFailure> {
    let packages = built(workspace)?;
    let library = packages.iter().find(|path| path.to_string_lossy().contains("libhourglass1_"));
    let Some(library) = library else {
        return Err(StepFailure::Broken("cargo-deb made no libhourglass1".to_owned()));
    };
    let unpacked = workspace.target.join("debian/libhourglass1");
    run_command(Command::new("dpkg-deb").arg("-R").arg(library).arg(&unpacked))?;
    for name in ["shlibs", "triggers"] {
        let kept = workspace.root.join("packaging/debian").join(format!("libhourglass1.{name}"));
        let to = unpacked.join("DEBIAN").join(name);
        fs::copy(&kept, to).map_err(|e| StepFailure::file(&kept, &e))?;
    }
    let mut pack = Command::new("dpkg-deb");
    run_command(pack.args(["--root-owner-group", "-b"]).arg(&unpacked).arg(library))?;
    fs::remove_dir_all(&unpacked).map_err(|e| StepFailure::file(&unpacked, &e))
}

/// Where the packages are.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("debian")
}

/// The packages that were built, in the order of their names.
///
/// # Errors
/// `Unable` if there are none.
pub(super) fn built(workspace: &Workspace) -> Result<Vec<PathBuf>, StepFailure> {
    let entries = fs::read_dir(folder(workspace)).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect();
    files.sort();
    if files.is_empty() {
        let what = "there are no Debian packages: cargo xtask package makes them";
        return Err(StepFailure::Unable(cargo_deb(), what.into()));
    }
    Ok(files)
}

/// Has lintian look at the packages; what it says is either mended or overridden, with a reason.
///
/// # Errors
/// `Broken` if it says something, `Unable` without it or without packages.
pub(crate) fn lintian(workspace: &Workspace) -> Result<(), StepFailure> {
    let packages = built(workspace)?;
    if !has_program("lintian") {
        let what = "lintian is missing: apt-get install lintian";
        return Err(StepFailure::Unable(Requirement::program("lintian"), what.into()));
    }
    let mut lintian = Command::new("lintian");
    run_command(lintian.args(["--fail-on", "error,warning"]).args(packages))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_newest_version_of_the_c_library_counts() {
        assert_eq!(newest_libc(b"\0GLIBC_2.4\0GLIBC_2.35\0GLIBC_2.2.5\0GLIBC_PRIVATE\0"), "2.35");
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
