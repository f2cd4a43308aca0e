//! All that CI runs, in the order in which it is cheapest to fail.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use hourglass_skip::Requirement;

use crate::bare;
use crate::bed;
use crate::failure::{StepFailure, succeed};
use crate::fuzz;
use crate::package;
use crate::provide;
use crate::python;
use crate::ratchets;
use crate::retry::{self, FailedTests};
use crate::skips::{self, Skips};
use crate::soak;
use crate::tidy;
use crate::workspace::Workspace;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beds {
    /// Where the machine can; a bed that it cannot boot is skipped, with the reason.
    WherePossible,
    Leave,
}

/// What else is promised to compile: `time`, `queue`, `clock` and what of `timer` there is for systems besides Linux;
/// and on another processor, with the C library of static programs, all that has code of its own for either.
const OTHER_SYSTEMS: [(&str, &[&str]); 3] = [
    ("aarch64-apple-darwin", &ELSEWHERE),
    ("x86_64-pc-windows-gnu", &ELSEWHERE),
    ("aarch64-unknown-linux-musl", &OF_A_PROCESSOR),
];

const OF_A_PROCESSOR: [&str; 10] = [
    "-p",
    "hourglass-sys",
    "-p",
    "hourglass-clock",
    "-p",
    "hourglass-timer",
    "-p",
    "hourglass-workload",
    "-p",
    "hourglass-witness",
];

const ELSEWHERE: [&str; 8] = [
    "-p",
    "hourglass-time",
    "-p",
    "hourglass-queue",
    "-p",
    "hourglass-clock",
    "-p",
    "hourglass-timer",
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    Passed,
    /// These failed or were skipped, and passed when they were run alone.
    Again(Vec<String>),
    Skipped(Requirement, String),
    Left(String),
}

struct Step<'a> {
    name: String,
    /// A step without which this one cannot be.
    after: Option<&'static str>,
    run: Box<dyn Fn() -> Result<StepOutcome, StepFailure> + 'a>,
}

impl<'a> Step<'a> {
    fn new(name: &str, run: impl Fn() -> Result<StepOutcome, StepFailure> + 'a) -> Step<'a> {
        Step { name: name.into(), after: None, run: Box::new(run) }
    }

    fn after(self, step: &'static str) -> Step<'a> {
        Step { after: Some(step), ..self }
    }
}

pub(crate) fn run(workspace: &Workspace, beds: Beds) -> Result<(), StepFailure> {
    provide::all(workspace, beds == Beds::WherePossible);
    // Mostly waiting for the network, which compiling does not.
    thread::scope(|scope| {
        scope.spawn(|| python::prepare(workspace));
        run_all("test", workspace, steps(workspace, beds))
    })
}

pub(crate) fn run_package(workspace: &Workspace, name: &str) -> Result<(), StepFailure> {
    let package = workspace.package(name)?;
    let package = package.as_str();
    let steps = vec![
        Step::new("format", || {
            tool(workspace, "fmt", &["--package", package, "--", "--check", "--color=never"])
        }),
        Step::new("clippy", || {
            tool(workspace, "clippy", &["-p", package, "--all-targets", "--", "-D", "warnings"])
        }),
        Step::new("tidy", || tidy::run(workspace).map(|()| StepOutcome::Passed)),
        Step::new("tests", || tests(workspace, &["-p", package])),
    ];
    run_all("test", workspace, steps)
}

pub(crate) fn run_slow(workspace: &Workspace) -> Result<(), StepFailure> {
    provide::all(workspace, true);
    run_all("slow", workspace, slow_steps(workspace))
}

/// Random sets whose simulation is compared with their bounds; a minute or two.
const SETS_EACH_WEEK: u64 = 50_000;

fn run_all(command: &str, workspace: &Workspace, steps: Vec<Step<'_>>) -> Result<(), StepFailure> {
    let mut summary = Vec::new();
    let mut failures: Vec<String> = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    let mut alone = Vec::new();
    let mut skipped_steps = 0;
    let skips = Skips::begin(workspace)?;
    for Step { name, after, run } in steps {
        let line = if let Some(missing) =
            after.filter(|step| failed.iter().any(|name| name == step))
        {
            skipped_steps += 1;
            failed.push(name.clone());
            format!("{name}: SKIPPED, needs step {missing}, which failed")
        } else {
            println!("==> {name}");
            let begin = Instant::now();
            let done = run();
            let took = seconds(begin.elapsed());
            match done {
                Ok(StepOutcome::Passed) => format!("{name}: passed, {took}"),
                Ok(StepOutcome::Again(tests)) => {
                    let many = tests.len();
                    alone.extend(tests);
                    format!("{name}: passed, {took}; only when run again alone: {many}")
                }
                Ok(StepOutcome::Left(why)) => format!("{name}: left out, {why}"),
                Ok(StepOutcome::Skipped(need, why)) | Err(StepFailure::Unable(need, why)) => {
                    skipped_steps += 1;
                    if need.is_met() == Some(true) {
                        failures.push(format!("{name}: skipped, though this machine has {need}"));
                    }
                    format!("{name}: SKIPPED, {took}; needs {need}: {why}")
                }
                Err(failure) => {
                    failures.push(format!("{name}: {failure}"));
                    failed.push(name.clone());
                    format!("{name}: FAILED, {took}")
                }
            }
        };
        println!("<== {line}");
        summary.push(line);
    }
    println!("\ncargo xtask {command}:");
    for line in summary {
        println!("  {line}");
    }
    println!("steps skipped: {skipped_steps}");
    let unexplained = retry::shown_and_unexplained(&alone);
    if let Err(failure) = skips.end() {
        failures.push(failure.to_string());
    }
    failures.extend(unexplained);
    if failures.is_empty() {
        println!("cargo xtask {command}: passed");
        return Ok(());
    }
    println!("cargo xtask {command}: FAILED");
    for failure in &failures {
        println!("  {failure}");
    }
    Err(StepFailure::Broken(format!("{} failed", failures.len())))
}

const BUILD: &str = "build";

fn steps(workspace: &Workspace, beds: Beds) -> Vec<Step<'_>> {
    let mut steps = vec![
        Step::new("format", || {
            tool(workspace, "fmt", &["--all", "--", "--check", "--color=never"])
        }),
        Step::new("clippy", || {
            tool(workspace, "clippy", &["--workspace", "--all-targets", "--", "-D", "warnings"])
        }),
        Step::new("other systems", || other_systems(workspace)),
        Step::new("tidy", || tidy::run(workspace).map(|()| StepOutcome::Passed)),
        Step::new(BUILD, || cargo(workspace, &["test", "--workspace", "--no-run", "--quiet"])),
        Step::new("tests", || tests(workspace, &["--workspace"])).after(BUILD),
        Step::new("documentation", || documentation(workspace)),
        Step::new("python", || python::run(workspace, &[])).after(BUILD),
    ];
    for (name, _) in
        bed::all().filter(|(name, _)| !bed::SLOW.contains(name) && !bed::ON_DEMAND.contains(name))
    {
        let step = Step::new(&format!("bed {name}"), move || match beds {
            Beds::Leave => Ok(StepOutcome::Left("--no-beds".into())),
            Beds::WherePossible => bed_twice(workspace, name),
        });
        steps.push(step.after(BUILD));
    }
    steps
}

/// The models of `proofs/protocols`, which is apart from the workspace.
fn protocols(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    let words = ["test", "--locked", "--quiet", "--manifest-path", "proofs/protocols/Cargo.toml"];
    let shown = format!("cargo {}", words.join(" "));
    println!("    {shown}");
    let mut cargo = workspace.cargo(&words);
    succeed(cargo.env("CARGO_TARGET_DIR", &workspace.target), &shown).map(|()| StepOutcome::Passed)
}

fn slow_steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = vec![
        Step::new("packages", || package::run(workspace).map(|()| StepOutcome::Passed)),
        Step::new("lintian", || package::lintian(workspace).map(|()| StepOutcome::Passed))
            .after("packages"),
        Step::new("reproduce", || ratchets::reproduce(workspace)).after("packages"),
        Step::new("bare", || bare::run(workspace)),
        Step::new("oldest Rust", || oldest_rust(workspace)),
        Step::new("dependencies", || ratchets::dependencies(workspace)),
        Step::new("advisories", || ratchets::advisories(workspace)),
        Step::new("interface", || ratchets::interface(workspace)),
        Step::new("miri", || ratchets::miri(workspace)),
        Step::new("wheel", || package::run_wheel(workspace).map(|()| StepOutcome::Passed)),
        Step::new("soak", || soak::run(workspace, SETS_EACH_WEEK).map(|()| StepOutcome::Passed)),
        Step::new("protocols", || protocols(workspace)),
        Step::new("faults", || soak::run_faults(workspace).map(|()| StepOutcome::Passed)),
        Step::new("fuzz", || {
            fuzz::run(workspace, fuzz::SECONDS, &[]).map(|()| StepOutcome::Passed)
        }),
        Step::new("fuzz by coverage", || {
            fuzz::coverage::run(workspace, fuzz::SECONDS, &[]).map(|()| StepOutcome::Passed)
        }),
    ];
    for name in bed::SLOW {
        steps.push(Step::new(&format!("bed {name}"), || bed_twice(workspace, name)));
    }
    steps
}

fn tests(workspace: &Workspace, packages: &[&str]) -> Result<StepOutcome, StepFailure> {
    let run = |selected: &[String], options: &[String]| {
        let mut words = vec!["test".to_owned()];
        words.extend(packages.iter().map(|word| (*word).to_owned()));
        words.extend_from_slice(selected);
        // Quiet for the harness only: cargo still names each test program.
        words.extend(["--no-fail-fast", "--", "--quiet"].map(str::to_owned));
        words.extend_from_slice(options);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown = format!("cargo {}", words.join(" "));
        println!("    {shown}");
        let mut command = workspace.cargo(&words);
        command.env(skips::VARIABLE, skips::file(workspace));
        retry::shown(&mut command).map(|(status, lines)| (status, lines, shown))
    };
    let (status, lines, shown) = run(&[], &[])?;
    let again = skipped_again(workspace)?;
    if status.success() {
        return Ok(if again.is_empty() { StepOutcome::Passed } else { StepOutcome::Again(again) });
    }
    let broken = || StepFailure::Broken(format!("`{shown}` failed ({status})"));
    let failed = retry::of_cargo(&lines).ok_or_else(broken)?;
    let mut names = again;
    for FailedTests { program, tests } in failed {
        let mut options = vec!["--test-threads=1".to_owned(), "--exact".to_owned()];
        options.extend(tests.iter().cloned());
        let (status, lines, _) = run(&program, &options)?;
        // A name that selects no test would pass, too.
        if !status.success() || retry::passed(&lines) < tests.len() {
            return Err(broken());
        }
        names.extend(tests.iter().map(|test| format!("{} {test}", program.join(" "))));
    }
    Ok(StepOutcome::Again(names))
}

/// Tests that were skipped for what this machine has, because others had it at the time, are run once more, each alone.
/// Those that ran then are named; those that were skipped again stay in the file.
fn skipped_again(workspace: &Workspace) -> Result<Vec<String>, StepFailure> {
    let file = skips::file(workspace);
    let all = skips::all(&file)?;
    let mistakes = skips::by_mistake(&all, &mut skips::Checks::default());
    let programs: BTreeSet<_> = mistakes
        .iter()
        .filter(|one| !one.program.is_empty() && !one.need.check.is_empty())
        .map(|one| (&one.program, &one.folder, &one.test))
        .collect();
    let (mut ran, mut kept) = (Vec::new(), all.clone());
    for (program, folder, test) in programs {
        println!("    {test} was skipped; alone: {program} --exact {test}");
        let mut alone = Command::new(program);
        alone.args(["--exact", test]).current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        // The same file, which has then what it lacks now.
        let before = skips::keep(&file, &[]);
        alone.env(skips::VARIABLE, &file);
        let (status, lines) = retry::shown(&mut alone)?;
        before?;
        let now = skips::all(&file)?;
        kept.retain(|one| one.test != *test);
        kept.extend(now.clone());
        // A name that is no test's (of a thread) selects none.
        if !status.success() || retry::passed(&lines) == 0 {
            kept.extend(all.iter().filter(|one| one.test == *test).cloned());
        } else if now.is_empty() {
            ran.push(test.clone());
        }
    }
    skips::keep(&file, &kept)?;
    Ok(ran)
}

fn bed_twice(workspace: &Workspace, name: &str) -> Result<StepOutcome, StepFailure> {
    match bed::run(workspace, name, None) {
        Err(StepFailure::Broken(why)) => {
            println!("    {why}; bed {name} is run once more");
            bed::run(workspace, name, None)
                .map(|()| StepOutcome::Again(vec![format!("bed {name}")]))
        }
        result => result.map(|()| StepOutcome::Passed),
    }
}

fn documentation(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    let words = ["doc", "--workspace", "--no-deps"];
    let shown = format!("cargo {}", words.join(" "));
    println!("    {shown}");
    let mut cargo = workspace.cargo(&words);
    succeed(cargo.env("RUSTDOCFLAGS", "-D warnings"), &shown).map(|()| StepOutcome::Passed)
}

fn other_systems(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    let targets = OTHER_SYSTEMS.map(|(target, _)| target);
    let added = Command::new("rustup").args(["target", "add"]).args(targets).status();
    if !added.is_ok_and(|status| status.success()) {
        let targets = targets.join(" ");
        let add = format!("rustup target add {targets}");
        let why = format!("`{add}` does not succeed");
        return Ok(StepOutcome::Skipped(Requirement::runs("rustup's targets", add), why));
    }
    for (target, crates) in OTHER_SYSTEMS {
        let check = [&["--target", target], crates, &["--", "-D", "warnings"]].concat();
        if let skipped @ StepOutcome::Skipped(..) = tool(workspace, "clippy", &check)? {
            return Ok(skipped);
        }
    }
    Ok(StepOutcome::Passed)
}

/// What is published compiles with the Rust that its manifest promises. The benchmarks are not published, and their
/// peers want a later one.
fn oldest_rust(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    let path = workspace.root.join("Cargo.toml");
    let manifest = std::fs::read_to_string(&path).map_err(|e| StepFailure::file(&path, &e))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \""));
    let version = version.and_then(|rest| rest.split('"').next());
    let version = version.ok_or_else(|| StepFailure::Broken("no rust-version".into()))?;
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", version, "--profile", "minimal", "--no-self-update"]);
    if !install.status().is_ok_and(|status| status.success()) {
        let has = format!("rustup run {version} rustc --version");
        let why = format!("Rust {version} cannot be installed");
        return Ok(StepOutcome::Skipped(Requirement::runs("the oldest Rust", has), why));
    }
    let mut check = Command::new("rustup");
    check.args(["run", version, "cargo", "check", "--locked", "--workspace"]);
    check.args(["--exclude", "hourglass-bench", "--target-dir"]);
    check.arg(workspace.target.join("oldest")).current_dir(&workspace.root);
    let shown = format!("cargo +{version} check --workspace --exclude hourglass-bench");
    println!("    {shown}");
    succeed(&mut check, &shown).map(|()| StepOutcome::Passed)
}

/// A cargo command that not every machine has.
fn tool(workspace: &Workspace, name: &str, arguments: &[&str]) -> Result<StepOutcome, StepFailure> {
    if !workspace.has_tool(name) {
        let need = Requirement::runs(name, format!("cargo {name} --version"));
        return Ok(StepOutcome::Skipped(need, format!("cargo {name} is not installed")));
    }
    cargo(workspace, &[&[name], arguments].concat())
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<StepOutcome, StepFailure> {
    let shown = format!("cargo {}", arguments.join(" "));
    println!("    {shown}");
    succeed(&mut workspace.cargo(arguments), &shown).map(|()| StepOutcome::Passed)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
