//! What the steps need and a bare machine lacks: packages, parts of the toolchain, the kernel's trace.
//!
//! Owns: what is installed or mounted before the first step. Must not: fail a run; what stays missing is the condition
//! under which steps and tests are skipped.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hourglass_skip::Requirement;

use crate::bed::debian;
use crate::workspace::Workspace;

/// What the tests and steps call, the shell command that finds it, and the packages of Debian that have it; where the first
/// cannot be had, the next are tried.
const TOOLS: [(&str, &str, &[&[&str]]); 12] = [
    ("a C++ compiler", "command -v g++", &[&["g++"]]),
    ("the C library's headers", "test -e /usr/include/stdio.h", &[&["libc6-dev"]]),
    ("strip and nm", "command -v strip && command -v nm", &[&["binutils"]]),
    ("setcap", "command -v setcap", &[&["libcap2-bin"]]),
    ("cmake", "command -v cmake", &[&["cmake"]]),
    ("make", "command -v make", &[&["make"]]),
    ("pkg-config", "command -v pkg-config", &[&["pkg-config"]]),
    ("clang", "command -v clang++", &[&["clang"]]),
    ("rsvg-convert", "command -v rsvg-convert", &[&["librsvg2-bin"]]),
    ("Python's venv", VENV, &[&["python3-venv"]]),
    (
        "Chromium",
        "command -v chromium-headless-shell || command -v chromium",
        &[&["chromium-headless-shell", "fonts-dejavu-core"], &["chromium", "fonts-dejavu-core"]],
    ),
    QEMU,
];

/// Makes an environment: modules that can be imported do not yet make one.
pub(crate) const VENV: &str =
    "d=$(mktemp -d) && python3 -m venv \"$d/environment\"; made=$?; rm -r \"$d\"; exit $made";

const QEMU: (&str, &str, &[&[&str]]) =
    ("QEMU", "command -v qemu-system-x86_64", &[&["qemu-system-x86", "seabios"]]);

/// Installs what is missing where this user may, and says what stays missing.
pub(crate) fn all(workspace: &Workspace, beds: bool) {
    for (name, check, packages) in TOOLS.iter().filter(|tool| beds || tool.0 != QEMU.0) {
        let there = || Requirement::runs(name, *check).is_met() == Some(true);
        let mut why = String::new();
        let had = there()
            || packages.iter().any(|packages| match debian::install(packages) {
                Ok(()) => there(),
                Err(failure) => {
                    why = failure.to_string();
                    false
                }
            });
        if !had {
            println!("{name} is missing; what needs it will be skipped: {why}");
        }
    }
    sanitizers();
    for (name, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !workspace.has_tool(name) {
            let _ = Command::new("rustup").args(["component", "add", component]).status();
        }
    }
}

/// Those of clang are in a package with its version in the name.
fn sanitizers() {
    let version = Command::new("clang").arg("-dumpversion").output();
    let Ok(version) = version else { return };
    let version = String::from_utf8_lossy(&version.stdout);
    let Some(major) = version.split('.').next() else { return };
    if !Path::new(&format!("/usr/lib/llvm-{major}/lib/clang")).exists() {
        // Not Debian's, which brings its own.
        return;
    }
    let runtime = format!("ls /usr/lib/llvm-{major}/lib/clang/*/lib/linux/*asan*");
    if Requirement::runs("asan", runtime).is_met() == Some(false)
        && let Err(failure) = debian::install(&[&format!("libclang-rt-{major}-dev")])
    {
        println!("clang has no sanitizers; those of gcc are used: {failure}");
    }
}

/// Set in the process that has the kernel's trace mounted for itself.
const MOUNTED: &str = "HOURGLASS_XTASK_MOUNTED";

const TRACEFS: &str = "/sys/kernel/tracing";

/// Starts this program anew in a mount namespace with the kernel's trace, where it is not mounted and this user may do
/// that: with the last process of the run the mount is gone, however the run ends.
pub(crate) fn tracefs() {
    if Path::new(TRACEFS).join("trace").exists() || env::var_os(MOUNTED).is_some() {
        return;
    }
    let mount = ["mount", "-t", "tracefs", "nodev", TRACEFS];
    let mut attempt = Command::new("unshare");
    attempt.arg("--mount").args(mount).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(program) = env::current_exe() else { return };
    if !attempt.status().is_ok_and(|status| status.success()) {
        println!(
            "tracefs is not mounted, and this user may not mount it; what needs it will be skipped"
        );
        return;
    }
    println!("tracefs is mounted for this run, in a mount namespace of its own");
    let script = format!("{} && exec \"$@\"", mount.join(" "));
    let mut again = Command::new("unshare");
    again.args(["--mount", "sh", "-c", &script, "sh"]).arg(program).args(env::args_os().skip(1));
    let error = again.env(MOUNTED, "1").exec();
    println!("unshare: {error}; what needs tracefs will be skipped");
}
