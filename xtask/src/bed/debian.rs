//! Files of Debian packages, fetched without installing them and kept below `target/beds/`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::workspace::has_program;

/// The kernel of a package, or of the one that it depends on.
///
/// # Errors
/// It is not in the cache and cannot be fetched.
pub(super) fn kernel(package: &str, cache: &Path) -> Result<PathBuf, Failure> {
    let folder = unpacked(package, cache, concrete_kernel)?;
    let boot = folder.join("boot");
    let entries = fs::read_dir(&boot).map_err(|e| Failure::file(&boot, &e))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| file_name(path).starts_with("vmlinuz"))
        .ok_or_else(|| Failure::Unable(format!("no kernel in package {package}")))
}

/// A statically linked busybox.
///
/// # Errors
/// It is not in the cache and cannot be fetched.
pub(super) fn busybox(cache: &Path) -> Result<PathBuf, Failure> {
    let folder = unpacked("busybox-static", cache, |package| Ok(package.to_owned()))?;
    let places = ["bin/busybox", "usr/bin/busybox"];
    let mut found = places.iter().map(|place| folder.join(place));
    found
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::Unable("no busybox in package busybox-static".into()))
}

/// Installs packages, if this process may.
///
/// # Errors
/// It may not, or apt fails.
pub(super) fn install(packages: &[&str]) -> Result<(), Failure> {
    let list = packages.join(" ");
    if !has_program("apt-get") || !is_root() {
        let remedy = format!("install {list} (Debian: apt-get install {list}, as root)");
        return Err(Failure::Unable(format!("missing packages: {remedy}")));
    }
    println!("installing {list}");
    let arguments = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let arguments = [arguments.as_slice(), packages].concat();
    with_fresh_lists(|| output_of(&mut apt_get(&arguments)).map(drop))
}

/// The content of a package, fetched once.
fn unpacked(
    package: &str,
    cache: &Path,
    resolve: impl Fn(&str) -> Result<String, Failure>,
) -> Result<PathBuf, Failure> {
    let folder = cache.join("packages").join(package);
    if folder.is_dir() {
        return Ok(folder);
    }
    if !has_program("apt-get") || !has_program("dpkg-deb") {
        let what = format!("package {package} is taken from Debian, and apt-get is missing here");
        return Err(Failure::Unable(what));
    }
    // Unpacked beside its place and renamed, so that a broken download is not taken for a whole.
    let fresh = cache.join("packages").join(format!("{package}.part"));
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh).map_err(|e| Failure::file(&fresh, &e))?;
    with_fresh_lists(|| {
        let concrete = resolve(package)?;
        output_of(apt_get(&["download", &concrete]).current_dir(&fresh)).map(drop)
    })?;
    let files = fs::read_dir(&fresh).map_err(|e| Failure::file(&fresh, &e))?;
    let archive = files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| file_name(path).ends_with(".deb"))
        .ok_or_else(|| Failure::Unable(format!("apt-get download brought no {package}")))?;
    output_of(Command::new("dpkg-deb").arg("-x").args([&archive, &fresh]))?;
    fs::remove_file(&archive).map_err(|e| Failure::file(&archive, &e))?;
    fs::rename(&fresh, &folder).map_err(|e| Failure::file(&folder, &e))?;
    Ok(folder)
}

/// `linux-image-cloud-amd64` holds no kernel; it depends on the newest package that does.
fn concrete_kernel(package: &str) -> Result<String, Failure> {
    let text = output_of(Command::new("apt-cache").args(["depends", package]))?;
    let found = first_dependency(&text).unwrap_or(package);
    Ok(found.to_owned())
}

fn first_dependency(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim);
    let name = lines.find_map(|line| line.strip_prefix("Depends: "))?;
    // A package with a kernel in it depends on tools; only an empty one on another image.
    name.starts_with("linux-image-").then_some(name)
}

/// Tries; if that fails and this process may, refreshes apt's lists and tries once more: lists
/// that are missing or old name packages that the server no longer has.
fn with_fresh_lists(attempt: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
    match attempt() {
        Err(_) if is_root() => {
            output_of(&mut apt_get(&["update", "--quiet"]))?;
            attempt()
        }
        result => result,
    }
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    if is_root() {
        // Without this apt downloads as a user who may not write into our folder, and warns.
        command.args(["-o", "APT::Sandbox::User=root"]);
    }
    command
}

fn output_of(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| Failure::Unable(format!("{name}: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim().lines().last().unwrap_or("no message");
    Err(Failure::Unable(format!("{name} failed: {last}")))
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
        assert_eq!(first_dependency(empty), Some("linux-image-6.1.0-56-cloud-amd64"));
        let full = "linux-image-6.1.0-56-cloud-amd64\n  Depends: kmod\n  Depends: <initramfs>\n";
        assert_eq!(first_dependency(full), None);
    }
}
