//! A hourglass that runs where there is no C library.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::workspace::Workspace;

/// Named even though it is the host's own: with `--target`, cargo keeps the flags below away from
/// build scripts and procedural macros, which cannot be static.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Settings of the build. Symbols would only make the guest's memory fuller.
const SETTINGS: &[(&str, &str)] = &[
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
    let target = workspace.target.join("beds/static");
    let mut cargo = workspace.cargo(&["build", "--release", "--quiet", "-p", "hourglass"]);
    cargo.args(["--target", TARGET]).arg("--target-dir").arg(&target);
    cargo.envs(SETTINGS.iter().copied());
    let status = cargo.status().map_err(|e| Failure::Unable(format!("cargo: {e}")))?;
    if !status.success() {
        return Err(Failure::Broken("the static hourglass does not build".into()));
    }
    Ok(target.join(TARGET).join("release/hourglass"))
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
