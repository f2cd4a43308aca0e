//! The targets under libFuzzer, guided by coverage, and the corpus that stays.
//!
//! Owns: the compiler's options, folders of inputs, what of them is committed. Must not: be part of a daily build.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{LEAST_SECONDS, seed};
use crate::failure::{StepFailure, succeed};
use crate::workspace::Workspace;

/// As cargo-fuzz sets them, without a sanitizer: that needs no nightly compiler.
const OPTIONS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions=on",
];

/// Where inputs are collected between runs on one machine, and findings kept.
fn work(workspace: &Workspace) -> PathBuf {
    workspace.target.join("fuzz")
}

fn build(workspace: &Workspace) -> Result<PathBuf, StepFailure> {
    // With a target, so that build scripts and macros go without those options.
    let target = format!("{ARCH}-unknown-linux-gnu");
    let folder = workspace.target.join("coverage");
    let words = ["build", "--quiet", "-p", "hourglass-fuzz", "--no-default-features"];
    let more = ["--features", "coverage", "--bin", "hourglass-fuzz-coverage", "--target", &target];
    let mut cargo = workspace.cargo(&[&words[..], &more[..]].concat());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", OPTIONS.join("\x1f")).env("CARGO_TARGET_DIR", &folder);
    succeed(&mut cargo, "cargo build -p hourglass-fuzz --features coverage")?;
    Ok(folder.join(target).join("debug/hourglass-fuzz-coverage"))
}

fn names(program: &Path, asked: &[&str]) -> Result<Vec<String>, StepFailure> {
    if !asked.is_empty() {
        return Ok(asked.iter().map(|name| (*name).to_owned()).collect());
    }
    let said = Command::new(program).env("HOURGLASS_FUZZ_EXAMPLES", "").output();
    let said = said.map_err(|e| StepFailure::file(program, &e))?;
    Ok(String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect())
}

fn folder(path: PathBuf) -> Result<PathBuf, StepFailure> {
    fs::create_dir_all(&path).map_err(|e| StepFailure::file(&path, &e))?;
    Ok(path)
}

fn command(program: &Path, name: &str, folders: &[&Path], options: &[String]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", "7200"]).arg(program).args(options).args(folders);
    command.args(["-timeout=20", "-rss_limit_mb=2048", "-max_len=65536", "-verbosity=0"]);
    command.env("HOURGLASS_FUZZ_TARGET", name);
    command
}

/// Runs the targets one after the other, each for its share of the time.
///
/// # Errors
/// Something was found, or nothing can be built.
pub(crate) fn run(
    workspace: &Workspace,
    seconds: u64,
    targets: &[&str],
) -> Result<(), StepFailure> {
    let program = build(workspace)?;
    let names = names(&program, targets)?;
    let each = (seconds / names.len().max(1) as u64).max(LEAST_SECONDS);
    let seed = seed();
    let mut found = Vec::new();
    for name in &names {
        let collected = folder(work(workspace).join("corpus").join(name))?;
        let findings = work(workspace).join(format!("{name}-"));
        let options = [
            format!("-max_total_time={each}"),
            format!("-seed={seed}"),
            format!("-artifact_prefix={}", findings.display()),
        ];
        let mut command = command(&program, name, &[&collected], &options);
        command.env("HOURGLASS_FUZZ_EXAMPLES", &collected);
        println!("{name}: {each} s, seed {seed}");
        if succeed(&mut command, name).is_err() {
            println!(
                "{name}: found; cargo run -p hourglass-fuzz -- --try {name} {}...",
                findings.display()
            );
            found.push(name.as_str());
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(StepFailure::Broken(format!("something was found by {}", found.join(", "))))
}

/// Makes of what was collected the corpus that is committed: of each target the inputs that together reach what all
/// reach, as `hourglass_fuzz::worker::keep` does.
///
/// # Errors
/// Nothing can be built, or a file cannot be written.
pub(crate) fn minimise(workspace: &Workspace, targets: &[&str]) -> Result<(), StepFailure> {
    let program = build(workspace)?;
    for name in names(&program, targets)? {
        let collected = folder(work(workspace).join("corpus").join(&name))?;
        let few = work(workspace).join("few");
        if few.exists() {
            fs::remove_dir_all(&few).map_err(|e| StepFailure::file(&few, &e))?;
        }
        let few = folder(few)?;
        let options = ["-set_cover_merge=1".to_owned()];
        let mut merge = command(&program, &name, &[&few, &collected], &options);
        succeed(merge.env("HOURGLASS_FUZZ_EXAMPLES", &collected), &name)?;
        let mut keep = command(&program, &name, &[], &[]);
        succeed(keep.env("HOURGLASS_FUZZ_KEEP", &few), &name)?;
    }
    Ok(())
}
