//! Files of Debian packages, fetched without installing them and kept below `target/beds/`.
//!
//! Packages of other suites than this machine's come by lists of their own, also kept there, so that neither
//! apt's configuration nor its state is touched.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hourglass_skip::Requirement;

use crate::failure::StepFailure;
use crate::workspace::has_program;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Package {
    /// As apt has it: `NAME`, or `NAME:ARCHITECTURE` of a suite.
    pub(super) name: &'static str,
    /// The suite that has it; `None` for what this machine's apt is set to.
    pub(super) suite: Option<&'static str>,
}

pub(super) const CLOUD_KERNEL: Package = Package { name: "linux-image-cloud-amd64", suite: None };

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Ubuntu's suites that a bed asks for; all others are Debian's.
const OF_UBUNTU: [&str; 1] = ["resolute"];
const SERVER_OF_UBUNTU: &str = "http://archive.ubuntu.com/ubuntu";
const KEYRING_OF_UBUNTU: Package = Package { name: "ubuntu-keyring", suite: Some("trixie") };

pub(super) fn kernel(package: Package, cache: &Path) -> Result<PathBuf, StepFailure> {
    let folder = fetched(package, cache, concrete_kernel)?;
    let modules = folder.join("usr/lib/modules"); // since Linux 7.0
    let versions =
        fs::read_dir(modules).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let files = [folder.join("boot")].into_iter().chain(versions).flat_map(fs::read_dir).flatten();
    files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| file_name(path).starts_with("vmlinuz"))
        .ok_or_else(|| StepFailure::Broken(format!("no kernel in package {}", package.name)))
}

/// A module of the kernel in a package, which may be in any of its folders.
pub(super) fn module(package: Package, name: &str, cache: &Path) -> Result<PathBuf, StepFailure> {
    let mut folders = vec![fetched(package, cache, concrete_kernel)?];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if file_name(&path) == format!("{name}.ko") {
                return Ok(path);
            }
        }
    }
    Err(StepFailure::Broken(format!("no module {name} in package {}", package.name)))
}

pub(super) fn unpacked(package: Package, cache: &Path) -> Result<PathBuf, StepFailure> {
    fetched(package, cache, |_, name| Ok(name.to_owned()))
}

pub(super) const BUSYBOX: Package = Package { name: "busybox-static", suite: None };

pub(super) fn busybox(package: Package, cache: &Path) -> Result<PathBuf, StepFailure> {
    let folder = unpacked(package, cache)?;
    let places = ["bin/busybox", "usr/bin/busybox"];
    let mut found = places.iter().map(|place| folder.join(place));
    found
        .find(|path| path.is_file())
        .ok_or_else(|| StepFailure::Broken("no busybox in package busybox-static".into()))
}

pub(crate) fn install(packages: &[&str]) -> Result<(), StepFailure> {
    let list = packages.join(" ");
    if !has_program("apt-get") || !is_root() {
        let remedy = format!("install {list} (Debian: apt-get install {list}, as root)");
        return Err(unable(format!("missing packages: {remedy}")));
    }
    println!("installing {list}");
    let arguments = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let arguments = [arguments.as_slice(), packages].concat();
    let apt = AptClient::own();
    apt.with_fresh_lists(|| output_of(&mut apt.get(&arguments)).map(drop))
}

/// The content of a package, fetched once; `resolve` says which package that is in truth.
fn fetched(
    package: Package,
    cache: &Path,
    resolve: impl Fn(&AptClient, &str) -> Result<String, StepFailure>,
) -> Result<PathBuf, StepFailure> {
    let Package { name, suite } = package;
    let kept = suite.map_or(name.to_owned(), |suite| format!("{name}.{suite}"));
    let (name, architecture) = name.split_once(':').unwrap_or((name, ""));
    let folder = cache.join("packages").join(&kept);
    if folder.is_dir() {
        return Ok(folder);
    }
    if !has_program("apt-get") || !has_program("dpkg-deb") {
        let what = format!("package {name} is taken from Debian, and apt-get is missing here");
        return Err(unable(what));
    }
    // Unpacked beside its place and renamed, so that a broken download is not taken for a whole.
    let fresh = cache.join("packages").join(format!("{kept}.part"));
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh).map_err(|e| StepFailure::file(&fresh, &e))?;
    let apt = match suite {
        None => AptClient::own(),
        Some(suite) => AptClient::of(suite, architecture, cache)?,
    };
    let download = || {
        let concrete = resolve(&apt, name)?;
        output_of(apt.get(&["download", &concrete]).current_dir(&fresh)).map(drop)
    };
    apt.with_fresh_lists(download).map_err(|failure| match suite {
        None => failure,
        Some(suite) => {
            unable(format!("package {name} of the suite {suite} cannot be had: {failure}"))
        }
    })?;
    let files = fs::read_dir(&fresh).map_err(|e| StepFailure::file(&fresh, &e))?;
    let archive = files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| file_name(path).ends_with(".deb"))
        .ok_or_else(|| StepFailure::Broken(format!("apt-get download brought no {name}")))?;
    output_of(Command::new("dpkg-deb").arg("-x").args([&archive, &fresh]))?;
    fs::remove_file(&archive).map_err(|e| StepFailure::file(&archive, &e))?;
    fs::rename(&fresh, &folder).map_err(|e| StepFailure::file(&folder, &e))?;
    Ok(folder)
}

/// `linux-image-cloud-amd64` holds no kernel; it depends on the newest package that does, or on one that depends
/// on that.
fn concrete_kernel(apt: &AptClient, package: &str) -> Result<String, StepFailure> {
    const STEPS: usize = 2;
    let mut name = package.to_owned();
    for _ in 0..STEPS {
        let text = output_of(apt.cache().args(["depends", &name]))?;
        match kernel_dependency(&text) {
            Some(next) => name = next.to_owned(),
            None => break,
        }
    }
    Ok(name)
}

/// The package with the kernel's file in what `apt-cache depends` prints; a package that has the file itself depends on
/// tools only.
fn kernel_dependency(text: &str) -> Option<&str> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let is_kernel =
        |name: &&str| name.starts_with("linux-image-") || name.starts_with("linux-binary-");
    names.into_iter().find(is_kernel)
}

struct AptClient {
    /// Where the lists of a suite are, if they are not this machine's.
    root: Option<PathBuf>,
    /// Another architecture than this machine's; empty for none.
    architecture: String,
}

impl AptClient {
    fn own() -> AptClient {
        AptClient { root: None, architecture: String::new() }
    }

    fn of(suite: &str, architecture: &str, cache: &Path) -> Result<AptClient, StepFailure> {
        let (keyring, server) = if OF_UBUNTU.contains(&suite) {
            let keys = unpacked(KEYRING_OF_UBUNTU, cache)?.join("usr/share/keyrings");
            (keys.join("ubuntu-archive-keyring.gpg"), SERVER_OF_UBUNTU.to_owned())
        } else {
            (PathBuf::from(KEYRING), server()?)
        };
        if !keyring.is_file() {
            let what = format!("{} is missing (debian-archive-keyring)", keyring.display());
            return Err(unable(what));
        }
        let root = cache.join("apt").join(format!("{suite}{architecture}"));
        let source = format!("deb [signed-by={}] {server} {suite} main\n", keyring.display());
        for folder in ["lists/partial", "archives/partial"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
        }
        for (name, text) in [("status", ""), ("sources.list", &source)] {
            let file = root.join(name);
            fs::write(&file, text).map_err(|e| StepFailure::file(&file, &e))?;
        }
        Ok(AptClient { root: Some(root), architecture: architecture.to_owned() })
    }

    fn get(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if is_root() {
            // Without this apt downloads as a user who may not write into our folder, and warns.
            command.args(["-o", "APT::Sandbox::User=root"]);
        }
        command
    }

    fn cache(&self) -> Command {
        self.command("apt-cache")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let Some(root) = &self.root else { return command };
        let places = [
            ("Dir::State", ""),
            ("Dir::State::lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", ""),
            ("Dir::Etc::sourcelist", "sources.list"),
        ];
        for (option, place) in places {
            command.arg("-o").arg(format!("{option}={}", root.join(place).display()));
        }
        if !self.architecture.is_empty() {
            for key in ["APT::Architecture", "APT::Architectures"] {
                command.arg("-o").arg(format!("{key}={}", self.architecture));
            }
        }
        for option in [
            "Dir::Etc::sourceparts=-",
            "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        ] {
            command.args(["-o", option]);
        }
        command
    }

    /// Tries; if that fails and this process may, refreshes the lists and tries once more: lists that are missing
    /// or old name packages that the server no longer has.
    fn with_fresh_lists(
        &self,
        attempt: impl Fn() -> Result<(), StepFailure>,
    ) -> Result<(), StepFailure> {
        match attempt() {
            Err(_) if self.root.is_some() || is_root() => {
                output_of(&mut self.get(&["update", "--quiet"]))?;
                attempt()
            }
            result => result,
        }
    }
}

/// The server of Debian that this machine's apt uses.
fn server() -> Result<String, StepFailure> {
    let format = ["indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"];
    let known = output_of(Command::new("apt-get").args(format))?;
    let none = || unable("this machine's apt knows no server of Debian: add one".to_owned());
    debian_server(&known).map(str::to_owned).ok_or_else(none)
}

/// Security updates come from a place of their own.
fn debian_server(known: &str) -> Option<&str> {
    let servers = known.lines().filter_map(|line| line.strip_prefix("Debian "));
    servers.into_iter().find(|uri| !uri.contains("security"))
}

fn output_of(command: &mut Command) -> Result<String, StepFailure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| StepFailure::start(&name, &e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim().lines().last().unwrap_or("no message");
    Err(unable(format!("{name} failed: {last}")))
}

/// Packages cannot be had: another distribution, no network, or not root where root is needed.
fn unable(what: String) -> StepFailure {
    let check = "test $(id -u) = 0 && cd $(mktemp -d) && apt-get download busybox-static";
    StepFailure::Unable(Requirement::runs("Debian's packages, as root", check), what)
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_package_leads_to_its_kernel() {
        let empty = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n";
        assert_eq!(kernel_dependency(empty), Some("linux-image-6.1.0-56-cloud-amd64"));
        let full = "linux-image-6.1.0-56-cloud-amd64\n  Depends: kmod\n  Depends: <initramfs>\n";
        assert_eq!(kernel_dependency(full), None);
        // Since Linux 7.0 the image has no file either.
        let image = "linux-image-7.3.4+deb13-cloud-amd64\n  PreDepends: linux-base\n |Depends: dracut\n  \
                     Depends: linux-base-7.3.4+deb13-cloud-amd64\n  \
                     Depends: linux-binary-7.3.4+deb13-cloud-amd64\n";
        assert_eq!(kernel_dependency(image), Some("linux-binary-7.3.4+deb13-cloud-amd64"));
    }

    #[test]
    fn other_suites_come_from_the_same_server() {
        let known = "Docker http://example.org/docker/\nDebian http://mirror/debian-security/\n\
                     Debian http://mirror/debian/\n";
        assert_eq!(debian_server(known), Some("http://mirror/debian/"));
        assert_eq!(debian_server(""), None);
    }
}
