//! A hourglass that runs where there is no C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::workspace::Workspace;

/// Named even though it is the host's own: with `--target`, cargo keeps the flags below away from
/// build scripts and procedural macros, which cannot be static.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Settings of the build. Symbols would only make the guest's memory fuller; what a whole-program
/// optimisation gains is nothing beside an emulated processor, and it takes minutes.
const SETTINGS: &[(&str, &str)] = &[
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("RUSTFLAGS", "-C target-feature=+crt-static"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
];

/// Builds the command for a guest, in a target folder of its own: the flags differ from the usual
/// build, and sharing would build everything twice each time.
///
/// # Errors
/// It does not build.
pub(super) fn build(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let mut cargo = cargo(workspace, &["build", "--release", "--quiet", "-p", "hourglass"]);
    let status = cargo.status().map_err(|e| Failure::Unable(format!("cargo: {e}")))?;
    if !status.success() {
        return Err(Failure::Broken("the static hourglass does not build".into()));
    }
    Ok(folder(workspace).join(TARGET).join("release/hourglass"))
}

/// A test program of the workspace that needs the guest's hardware.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) package: &'static str,
    /// Its file in `tests/`, and its name in the guest.
    pub(super) name: &'static str,
}

/// Builds a test program for a guest.
///
/// # Errors
/// It does not build.
pub(super) fn build_test(workspace: &Workspace, test: &Test) -> Result<PathBuf, Failure> {
    let words =
        ["test", "--release", "--quiet", "--no-run", "-p", test.package, "--test", test.name];
    let mut cargo = cargo(workspace, &words);
    cargo.arg("--message-format=json").stderr(Stdio::inherit());
    let output = cargo.output().map_err(|e| Failure::Unable(format!("cargo: {e}")))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    match executable(&messages, test.name) {
        Some(path) if output.status.success() => Ok(path),
        _ => Err(Failure::Broken(format!("the static test {} does not build", test.name))),
    }
}

/// Where cargo says that it put a test; without a parser of JSON, since the paths of a target
/// folder need no escapes.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    let named = format!("\"name\":\"{name}\"");
    let line = messages.lines().find(|l| l.contains(&named) && l.contains("\"executable\":\""))?;
    let (_, rest) = line.split_once("\"executable\":\"")?;
    rest.split_once('"').map(|(path, _)| PathBuf::from(path))
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("beds/static")
}

fn cargo(workspace: &Workspace, words: &[&str]) -> Command {
    let mut cargo = workspace.cargo(words);
    cargo.args(["--target", TARGET]).arg("--target-dir").arg(folder(workspace));
    cargo.envs(SETTINGS.iter().copied());
    cargo
}

/// A dynamic program would fail in the guest with a message that misleads ("not found").
///
/// # Errors
/// The program cannot be read, or asks for a dynamic loader.
pub(super) fn check_static(program: &Path) -> Result<(), Failure> {
    let bytes = fs::read(program).map_err(|e| Failure::file(program, &e))?;
    // A dynamic program names its loader near the beginning of the file.
    const HEAD: usize = 4096;
    let head = &bytes[..bytes.len().min(HEAD)];
    let has = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    if has(b"/ld-linux") || has(b"/ld-musl") {
        let name = program.display();
        return Err(Failure::Usage(format!("{name} is not statically linked")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_found_in_what_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other-1"}
{"reason":"compiler-artifact","target":{"name":"hpet_device"},"executable":"/t/hpet_device-2"}
{"reason":"build-finished","success":true}"#;
        let found = executable(messages, "hpet_device");
        assert_eq!(found, Some(PathBuf::from("/t/hpet_device-2")));
        assert_eq!(executable(messages, "device"), None);
    }
}
