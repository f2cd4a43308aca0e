//! What must not get worse between two versions: licences and advisories of dependencies, the interface of what is
//! published, code that Miri accepts, a release that anybody can build again.
//!
//! Owns: how these tools are called, with versions that fit. Must not: install but through rustup.

mod reproduce;

use std::env;
use std::process::Command;

use hourglass_skip::Requirement;

use crate::failure::{StepFailure, succeed};
use crate::test::StepOutcome;
use crate::workspace::Workspace;

pub(crate) use reproduce::run as reproduce;

const DENY: &str = "cargo install cargo-deny --locked --version 0.20.2";
const SEMVER_CHECKS: &str = "cargo install cargo-semver-checks --locked --version 0.51.0";

fn wants(workspace: &Workspace, tool: &str, install: &str) -> Result<(), StepFailure> {
    if workspace.has_tool(tool) {
        return Ok(());
    }
    let need = Requirement::runs(&format!("cargo-{tool}"), format!("cargo {tool} --version"));
    Err(StepFailure::Unable(need, format!("cargo-{tool} is missing: {install}")))
}

fn cargo(workspace: &Workspace, words: &[&str]) -> Result<StepOutcome, StepFailure> {
    let shown = format!("cargo {}", words.join(" "));
    println!("    {shown}");
    succeed(&mut workspace.cargo(words), &shown).map(|()| StepOutcome::Passed)
}

/// Licences, duplicates and sources of all dependencies, as `deny.toml` has them.
pub(crate) fn dependencies(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    wants(workspace, "deny", DENY)?;
    cargo(
        workspace,
        &["deny", "--locked", "check", "-D", "warnings", "licenses", "bans", "sources"],
    )
}

/// Known defects of dependencies, from RustSec's database, which is on GitHub.
pub(crate) fn advisories(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    wants(workspace, "deny", DENY)?;
    let fetch = ["deny", "--locked", "fetch", "db"];
    if !workspace.cargo(&fetch).status().is_ok_and(|status| status.success()) {
        let need = Requirement::runs("RustSec's advisories", format!("cargo {}", fetch.join(" ")));
        return Ok(StepOutcome::Skipped(need, "the database cannot be fetched".into()));
    }
    cargo(workspace, &["deny", "--locked", "check", "advisories"])
}

/// Packages without an interface for Rust programs: it is for C, Python, or nobody.
const WITHOUT_INTERFACE: [&str; 7] = ["bench", "capi", "dice", "fuzz", "python", "skip", "rt"];

const BASELINE: &str = "HOURGLASS_BASELINE";

/// Whether the crates that are published can take the place of those of the newest release, as their versions say.
pub(crate) fn interface(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    const NEWEST: &str = "git describe --tags --match 'v[0-9]*' --abbrev=0";
    let baseline = match env::var(BASELINE) {
        Ok(revision) => revision,
        Err(_) => {
            let mut newest = Command::new("sh");
            newest.args(["-c", NEWEST]).current_dir(&workspace.root);
            let said = newest.output().map_err(|e| StepFailure::start("git", &e))?;
            String::from_utf8_lossy(&said.stdout).trim().to_owned()
        }
    };
    if baseline.is_empty() {
        let need = Requirement::runs("a release", NEWEST);
        let why = format!("nothing was released yet ({BASELINE}=REVISION compares with that one)");
        return Ok(StepOutcome::Skipped(need, why));
    }
    wants(workspace, "semver-checks", SEMVER_CHECKS)?;
    let excluded = WITHOUT_INTERFACE.map(|name| format!("--exclude=hourglass-{name}"));
    let mut words =
        vec!["semver-checks", "--workspace", "--exclude=xtask", "--baseline-rev", &baseline];
    words.extend(excluded.iter().map(String::as_str));
    cargo(workspace, &words)
}

/// Packages and those of their unit tests that Miri, an interpreter that sees undefined behaviour, runs in a minute or two; all
/// without a name. Most others draw thousands of sets or samples.
#[rustfmt::skip]
const MIRI: [(&str, &[&str]); 4] = [
    ("hourglass-time", &[]),
    ("hourglass-tasks", &[
        "fraction::", "from_model::", "millionths::", "decimal::", "program::", "rt_app::", "spelling::",
    ]),
    ("hourglass-sched", &[
        "blocking::tests", "catalogue::tests", "catalogue::terms", "whole_budgets::", "cpa::events", "edf::suspension",
        "global::assign", "recurrence::",
    ]),
    ("hourglass-trace", &[
        "indications::", "live_cause::", "log2_buckets::", "cause::simulated", "verdict::", "evidence::",
        "cost::", "cpu_share::", "deadlines::", "document::", "interrupts::", "quantum::", "job::", "run_comparison::",
        "mean::", "ratio::", "share::", "wakeup::",
    ]),
];

pub(crate) fn miri(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", "nightly", "--profile", "minimal", "--no-self-update"]);
    install.args(["--component", "miri", "--component", "rust-src"]);
    const HAS: &str = "rustup run nightly cargo miri --version";
    let has = Requirement::runs("Miri", HAS);
    if has.is_met() != Some(true) && !install.status().is_ok_and(|status| status.success()) {
        return Ok(StepOutcome::Skipped(has, "rustup cannot install it".into()));
    }
    for (package, tests) in MIRI {
        let mut miri = Command::new("rustup");
        miri.args(["run", "nightly", "cargo", "miri", "test", "--locked", "--lib", "-p", package]);
        miri.arg("--").args(tests);
        miri.env("MIRIFLAGS", "-Zmiri-disable-isolation").current_dir(&workspace.root);
        miri.env("CARGO_TARGET_DIR", workspace.target.join("miri"));
        let shown = format!("cargo +nightly miri test --lib -p {package}");
        println!("    {shown}");
        succeed(&mut miri, &shown)?;
    }
    Ok(StepOutcome::Passed)
}
