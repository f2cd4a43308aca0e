//! The one entry for laptops and CI: `cargo xtask tidy`, `test`, `bed`, `python`.
//!
//! Owns: the order of checks, the rules of the house that no compiler knows, and guests in which
//! hardware is tested that the machine at hand lacks.
//! Must not: use Hourglass as a library, or be used by it; need more than the standard library and the reasons for skipped tests.

#![forbid(unsafe_code)]

mod bare;
mod bed;
mod book;
mod failure;
mod fuzz;
mod package;
mod provide;
mod python;
mod ratchets;
mod retry;
mod skips;
mod soak;
mod test;
mod tidy;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use failure::StepFailure;
use workspace::Workspace;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  tidy                       check the rules of the house: arrows, unsafe, sizes, leftovers
  test [--no-beds]           all that CI runs: format, lints, tidy, tests, beds
  test CRATE                 format, lints, tidy and tests for one package, by its folder's name or its own
  slow                       what takes minutes and rarely breaks, for each week and before a release: packages and
                             wheel, a release built twice, the oldest Rust, dependencies, interfaces, Miri, simulations
                             against bounds, slow beds
  bare                       `test --no-beds` as an ordinary user without procps, the kernel's trace and a network, as in a
                             bare image
  bed NAME [--binary PATH]   boot a guest and check hourglass in it; PATH is a hourglass (built
                             as for the tests when not given); `bed aarch64` runs tests instead
  bed utc | utc-ptp | utc-phc [--minutes N] [--record FILE]
                             UTC's bounds in a guest whose clock chronyd, ptp4l or phc2sys keeps, against this machine's
                             clock; FILE keeps the result as JSON
  bed --list                 the beds
  book                       the handbook's pages that are made from the code, and the book where mdbook is
                             installed
  package                    the command and the C library as Debian packages, with manual pages, completions and the
                             handbook; each is unpacked and tried, and looked at by lintian where it is
                             installed; needs cargo-deb
  package --static           the command as one static binary (musl) in an archive, with the same
  reproduce                  build what the packages have here, and a copy elsewhere with a home of Cargo of its own;
                             prints the hashes, which have to be the same
  wheel                      the Python package as a wheel in release, with a manylinux tag, and as a source archive that
                             is built once more; in target/wheels
  python [TEST...]           build the Python package, install it into an environment of its own, and run
                             its tests, or those of these files in python/tests
  fuzz [--minutes N] [TARGET...]
                             try whatever Hourglass reads with inputs changed at random, for N minutes (10) in
                             all; `cargo run -p hourglass-fuzz -- --list` names the targets
  fuzz --coverage [--minutes N] [TARGET...]
                             the same under libFuzzer, guided by coverage; inputs are collected in target/fuzz/corpus
  fuzz --minimise [TARGET...]
                             make of what was collected the corpus that is committed
  soak --hours N | --minutes N [--record FILE]
                             a clock, sleepers, timers, a witness, a recorder and a reservation together for that long,
                             watched by another process: none early, lost or outside its bound, and nothing that
                             grows; in a release build. FILE keeps the result as JSON
  soak [--sets N]            compare simulated responses with their bounds on N random sets, a
                             million if not said, in a release build

Exit codes: 0 done, 1 a check failed, 2 usage, 3 this machine cannot (it says why).
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if matches!(words.first(), Some(&("test" | "slow"))) {
        provide::tracefs();
    }
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(words: &[&str]) -> Result<(), StepFailure> {
    match words {
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["tidy"] => tidy::run(&Workspace::find()?),
        ["test"] => test::run(&Workspace::find()?, test::Beds::WherePossible),
        ["test", "--no-beds"] => test::run(&Workspace::find()?, test::Beds::Leave),
        ["test", name] if !name.starts_with('-') => test::run_package(&Workspace::find()?, name),
        ["slow"] => test::run_slow(&Workspace::find()?),
        ["bare"] => bare::run(&Workspace::find()?).and_then(|outcome| match outcome {
            test::StepOutcome::Skipped(need, why) => Err(StepFailure::Unable(need, why)),
            _ => Ok(()),
        }),
        ["book"] => book::run(&Workspace::find()?),
        ["package"] => package::run_and_look(&Workspace::find()?),
        ["reproduce"] => ratchets::reproduce(&Workspace::find()?).map(drop),
        ["wheel"] => package::run_wheel(&Workspace::find()?),
        ["package", "--static"] => package::run_static(&Workspace::find()?),
        ["soak"] => soak::run(&Workspace::find()?, soak::MANY),
        ["soak", "--sets", sets] => match sets.parse() {
            Ok(sets) if sets > 0 => soak::run(&Workspace::find()?, sets),
            _ => Err(StepFailure::Usage(format!("--sets: '{sets}' is no number above 0"))),
        },
        ["soak", unit @ ("--hours" | "--minutes"), number, rest @ ..] => {
            let seconds = if *unit == "--hours" { 3_600.0 } else { 60.0 };
            let record = match rest {
                [] => None,
                ["--record", path] => Some(Path::new(*path)),
                [word, ..] => {
                    let what =
                        format!("soak: '{word}': only --record FILE may follow {unit} {number}");
                    return Err(StepFailure::Usage(what));
                }
            };
            match number.parse::<f64>().map(|number| number * seconds) {
                Ok(length) if (soak::LEAST_S..=soak::MOST_S).contains(&length) => {
                    soak::run_together(&Workspace::find()?, length, record)
                }
                _ => Err(StepFailure::Usage(format!(
                    "{unit}: '{number}' is not a number from 20 seconds to 7 days"
                ))),
            }
        }
        ["fuzz", words @ ..] => dispatch_fuzz(&Workspace::find()?, words),
        ["python", tests @ ..] => python::run(&Workspace::find()?, tests).map(|_| ()),
        ["bed", "--list"] => {
            bed::list();
            Ok(())
        }
        ["bed", name, words @ ..] if bed::is_utc(name) => {
            dispatch_utc(&Workspace::find()?, name, words)
        }
        ["bed", name] => bed::run(&Workspace::find()?, name, None),
        ["bed", name, "--binary", path] => {
            bed::run(&Workspace::find()?, name, Some(PathBuf::from(path)))
        }
        _ => Err(StepFailure::Usage(format!("no such command\n\n{HELP}"))),
    }
}

fn dispatch_utc(workspace: &Workspace, name: &str, mut words: &[&str]) -> Result<(), StepFailure> {
    let (mut minutes, mut record, mut binary) = (bed::UTC_MINUTES, None, None);
    while let [option, value, rest @ ..] = words {
        match (*option, value.parse::<f64>()) {
            ("--minutes", Ok(number)) if (1.0..=10_080.0).contains(&number) => minutes = number,
            ("--record", _) => record = Some(Path::new(*value)),
            ("--binary", _) => binary = Some(PathBuf::from(value)),
            _ => break,
        }
        words = rest;
    }
    if let [word, ..] = words {
        let what = format!(
            "bed {name}: '{word}': only --minutes N (1 to 10080), --record FILE and --binary PATH may follow"
        );
        return Err(StepFailure::Usage(what));
    }
    bed::run_utc(workspace, name, binary, minutes, record)
}

fn dispatch_fuzz(workspace: &Workspace, words: &[&str]) -> Result<(), StepFailure> {
    match words {
        ["--coverage", "--minutes", minutes, targets @ ..] => {
            fuzz::coverage::run(workspace, seconds_of(minutes)?, targets)
        }
        ["--coverage", targets @ ..] => fuzz::coverage::run(workspace, fuzz::SECONDS, targets),
        ["--minimise", targets @ ..] => fuzz::coverage::minimise(workspace, targets),
        ["--minutes", minutes, targets @ ..] => fuzz::run(workspace, seconds_of(minutes)?, targets),
        targets => fuzz::run(workspace, fuzz::SECONDS, targets),
    }
}

fn seconds_of(minutes: &str) -> Result<u64, StepFailure> {
    match minutes.parse::<u64>() {
        Ok(minutes) if minutes > 0 => Ok(minutes.saturating_mul(60)),
        _ => Err(StepFailure::Usage(format!("--minutes: '{minutes}' is no number above 0"))),
    }
}
