//! All that CI runs, in the order in which it is cheapest to fail.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::again::{self, Failed};
use crate::bed;
use crate::failure::Failure;
use crate::fuzz;
use crate::package;
use crate::python;
use crate::skips::{self, Skips};
use crate::soak;
use crate::tidy;
use crate::workspace::Workspace;

/// Whether guests are booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beds {
    /// Where the machine can; a bed that it cannot boot is skipped, with the reason.
    WherePossible,
    /// Not at all.
    Leave,
}

/// What else is promised to compile: `time`, `clock` and what of `timer` there is for systems besides Linux;
/// and with the C library of static programs all that calls one.
const OTHER_SYSTEMS: [(&str, &[&str]); 3] = [
    ("aarch64-apple-darwin", &ELSEWHERE),
    ("x86_64-pc-windows-gnu", &ELSEWHERE),
    ("aarch64-unknown-linux-musl", &["-p", "hourglass-sys"]),
];

/// What macOS and Windows have.
const ELSEWHERE: [&str; 6] =
    ["-p", "hourglass-time", "-p", "hourglass-clock", "-p", "hourglass-timer"];

/// How a step ended that did not fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Passed,
    /// These failed, and passed when they were run alone.
    Again(Vec<String>),
    Skipped(String),
}

type Step<'a> = (String, Box<dyn Fn() -> Result<Done, Failure> + 'a>);

/// Runs every step that each change is to pass.
///
/// # Errors
/// The failure of the first step that fails; those after it are not run.
pub(crate) fn run(workspace: &Workspace, beds: Beds) -> Result<(), Failure> {
    // Mostly waiting for the network, which compiling does not.
    thread::scope(|scope| {
        scope.spawn(|| python::prepare(workspace));
        run_all("test", workspace, steps(workspace, beds))
    })
}

/// Runs what takes minutes and rarely breaks: each week, and before a release.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_slow(workspace: &Workspace) -> Result<(), Failure> {
    run_all("slow", workspace, slow_steps(workspace))
}

/// Random sets whose simulation is compared with their bounds; a minute or two.
const SETS_EACH_WEEK: u64 = 50_000;

fn run_all(name: &str, workspace: &Workspace, steps: Vec<Step<'_>>) -> Result<(), Failure> {
    let mut summary = Vec::new();
    let mut alone = Vec::new();
    let skips = Skips::begin(workspace)?;
    let command = name;
    for (name, step) in steps {
        println!("==> {name}");
        let begin = Instant::now();
        let done = step();
        let took = seconds(begin.elapsed());
        let line = match done {
            Ok(Done::Passed) => format!("{name}: passed, {took}"),
            Ok(Done::Again(tests)) => {
                let line =
                    format!("{name}: passed, {took}; only when run again alone: {}", tests.len());
                alone.extend(tests);
                line
            }
            Ok(Done::Skipped(why)) => format!("{name}: SKIPPED, {why}"),
            Err(failure) => {
                println!("<== {name}: FAILED, {took}; later steps were not run");
                return Err(failure);
            }
        };
        println!("<== {line}");
        summary.push(line);
    }
    println!("\ncargo xtask {command}: passed");
    for line in summary {
        println!("  {line}");
    }
    println!("tests that passed only when run again alone: {}", alone.len());
    for test in alone {
        println!("  {test}");
    }
    skips.end(std::env::var_os("CI").is_some())
}

fn steps(workspace: &Workspace, beds: Beds) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = vec![
        (
            "format".into(),
            Box::new(|| tool(workspace, "fmt", &["--all", "--", "--check", "--color=never"])),
        ),
        (
            "clippy".into(),
            Box::new(|| {
                let checks = ["--workspace", "--all-targets", "--", "-D", "warnings"];
                tool(workspace, "clippy", &checks)
            }),
        ),
        ("other systems".into(), Box::new(|| other_systems(workspace))),
        ("tidy".into(), Box::new(|| tidy::run(workspace).map(|()| Done::Passed))),
        ("tests".into(), Box::new(|| tests(workspace))),
        ("documentation".into(), Box::new(|| documentation(workspace))),
        ("python".into(), Box::new(|| skip_if_unable(python::run(workspace, &[])))),
    ];
    for (name, _) in
        bed::all().filter(|(name, _)| !bed::SLOW.contains(name) && !bed::ON_DEMAND.contains(name))
    {
        steps.push((
            format!("bed {name}"),
            Box::new(move || match beds {
                Beds::Leave => Ok(Done::Skipped("--no-beds".into())),
                Beds::WherePossible => skip_if_unable(bed_twice(workspace, name)),
            }),
        ));
    }
    steps
}

fn slow_steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = vec![
        (
            "release build".into(),
            Box::new(|| {
                cargo(workspace, &["build", "--release", "--package", "hourglass-rt"])?;
                let command = workspace.target.join("release/hourglass");
                package::check_size(&command).map(|()| Done::Passed)
            }),
        ),
        ("soak".into(), Box::new(|| soak::run(workspace, SETS_EACH_WEEK).map(|()| Done::Passed))),
        (
            "fuzz".into(),
            Box::new(|| fuzz::run(workspace, fuzz::SECONDS, &[]).map(|()| Done::Passed)),
        ),
    ];
    for name in bed::SLOW {
        let step = || skip_if_unable(bed_twice(workspace, name));
        steps.push((format!("bed {name}"), Box::new(step)));
    }
    steps
}

/// All tests side by side; those that failed once more, alone.
fn tests(workspace: &Workspace) -> Result<Done, Failure> {
    let run = |selected: &[String], options: &[String]| {
        let mut words = vec!["test".to_owned(), "--workspace".to_owned()];
        words.extend_from_slice(selected);
        // Quiet for the harness only: cargo still names each test program.
        words.extend(["--no-fail-fast", "--", "--quiet"].map(str::to_owned));
        words.extend_from_slice(options);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown = format!("cargo {}", words.join(" "));
        println!("    {shown}");
        let mut command = workspace.cargo(&words);
        command.env(skips::VARIABLE, skips::file(workspace));
        again::shown(&mut command).map(|(status, lines)| (status, lines, shown))
    };
    let (status, lines, shown) = run(&[], &[])?;
    if status.success() {
        return Ok(Done::Passed);
    }
    let broken = || Failure::Broken(format!("`{shown}` failed ({status})"));
    let failed = again::of_cargo(&lines).ok_or_else(broken)?;
    let mut names = Vec::new();
    for Failed { program, tests } in failed {
        let mut options = vec!["--test-threads=1".to_owned(), "--exact".to_owned()];
        options.extend(tests.iter().cloned());
        let (status, lines, _) = run(&program, &options)?;
        // A name that selects no test would pass, too.
        if !status.success() || again::passed(&lines) < tests.len() {
            return Err(broken());
        }
        names.extend(tests.iter().map(|test| format!("{} {test}", program.join(" "))));
    }
    Ok(Done::Again(names))
}

/// A bed that failed is booted once more.
fn bed_twice(workspace: &Workspace, name: &str) -> Result<Done, Failure> {
    match bed::run(workspace, name, None) {
        Err(Failure::Broken(why)) => {
            println!("    {why}; bed {name} is run once more");
            bed::run(workspace, name, None).map(|()| Done::Again(vec![format!("bed {name}")]))
        }
        result => result.map(|()| Done::Passed),
    }
}

/// Whether rustdoc has nothing to say about any page.
fn documentation(workspace: &Workspace) -> Result<Done, Failure> {
    let words = ["doc", "--workspace", "--no-deps"];
    let shown = format!("cargo {}", words.join(" "));
    println!("    {shown}");
    let mut cargo = workspace.cargo(&words);
    passes(cargo.env("RUSTDOCFLAGS", "-D warnings"), &shown).map(|()| Done::Passed)
}

/// Whether the crates that promise it compile for other systems.
fn other_systems(workspace: &Workspace) -> Result<Done, Failure> {
    let targets = OTHER_SYSTEMS.map(|(target, _)| target);
    let added = Command::new("rustup").args(["target", "add"]).args(targets).status();
    if !added.is_ok_and(|status| status.success()) {
        let targets = targets.join(" ");
        return Ok(Done::Skipped(format!("`rustup target add {targets}` does not succeed")));
    }
    for (target, crates) in OTHER_SYSTEMS {
        let check = [&["--target", target], crates, &["--", "-D", "warnings"]].concat();
        if let Done::Skipped(why) = tool(workspace, "clippy", &check)? {
            return Ok(Done::Skipped(why));
        }
    }
    Ok(Done::Passed)
}

/// A cargo command that not every machine has.
fn tool(workspace: &Workspace, name: &str, arguments: &[&str]) -> Result<Done, Failure> {
    let answer = workspace.cargo(&[name, "--version"]).output();
    if !answer.is_ok_and(|output| output.status.success()) {
        return Ok(Done::Skipped(format!("cargo {name} is not installed")));
    }
    cargo(workspace, &[&[name], arguments].concat())
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<Done, Failure> {
    let shown = format!("cargo {}", arguments.join(" "));
    println!("    {shown}");
    passes(&mut workspace.cargo(arguments), &shown).map(|()| Done::Passed)
}

fn passes(command: &mut Command, shown: &str) -> Result<(), Failure> {
    let status = command.status().map_err(|e| Failure::Unable(format!("{shown}: {e}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Broken(format!("`{shown}` failed ({status})")))
    }
}

fn skip_if_unable(result: Result<Done, Failure>) -> Result<Done, Failure> {
    match result {
        Err(Failure::Unable(why)) => Ok(Done::Skipped(why)),
        result => result,
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_cannot_do_is_skipped_but_a_failure_stays_one() {
        let unable = Err(Failure::Unable("no qemu".into()));
        assert!(matches!(skip_if_unable(unable), Ok(Done::Skipped(why)) if why == "no qemu"));
        let broken = Err(Failure::Broken("late".into()));
        assert!(matches!(skip_if_unable(broken), Err(Failure::Broken(_))));
    }
}
