//! `hourglass reserve` and its guardian under `ptrace`: killed at each of their system calls, and of which one fails.

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_dice::{Dice, seed};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::call_faults::{self, CHANGES_NOTHING, CallFault, FaultedProgram};

use super::killed::Ending;
use super::*;
use crate::calls::faults::{is_of_the_runtime, of_calls, sample};

const SIGABRT: i32 = 6;
const LIMIT: Duration = Duration::from_secs(30);

/// Kills for each backend and process, of those that are possible.
const SAMPLE: usize = 3;

/// The command goes on after the reservation was killed, and uses up whatever it is given; or it ends.
const SCRIPTS: [&str; 2] =
    ["ulimit -t 1; sleep 0.05; exit 7", "ulimit -t 1; (while :; do :; done) & while :; do :; done"];

struct Killing {
    backend: &'static str,
    script: &'static str,
}

impl Killing {
    fn run(&self, mark: &str, fault: CallFault) -> std::io::Result<FaultedProgram> {
        self.run_saying(mark, fault, Stdio::null())
    }

    fn run_saying(
        &self,
        mark: &str,
        fault: CallFault,
        stderr: Stdio,
    ) -> std::io::Result<FaultedProgram> {
        let words = ["reserve", AMOUNT, "--backend", self.backend, "--", "sh", "-c", self.script];
        let mut command = Command::new(HOURGLASS);
        let quiet = command.args(words).env(MARK, mark);
        quiet.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        call_faults::run(quiet, fault, LIMIT)
    }
}

/// What is there of a reservation that was killed, until nothing is or the limit has passed.
fn stays_behind(mark: &str, maker: u32, limit: Duration) -> String {
    let mut left = String::new();
    within(limit, || {
        let raised = left_behind(mark);
        let (groups, files) = (groups_left(maker), files_left(maker));
        let none = raised.is_empty() && groups.is_empty() && files.is_empty();
        left = if none { String::new() } else { format!("{raised:?} {groups:?} {files:?}") };
        none
    });
    left
}

/// A new mark for each round.
fn mark() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{}-fault-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A process of a reservation that is killed, and what may not stay behind afterwards.
fn kill_one(killing: &Killing, process: usize, nth: usize) -> Option<String> {
    let mark = mark();
    let _ended = Ending(mark.clone());
    let fault = CallFault::Killed { process, nth };
    let killed = killing.run(&mark, fault).unwrap();
    let left = match (killed.status.code(), process) {
        _ if killed.is_late => "it hangs".into(),
        // A guardian is replaced; a command is ended by its own killer.
        (code, 1..) if !matches!(code, Some(7 | 125 | 126 | 137)) => format!("{:?}", killed.status),
        _ => stays_behind(&mark, killed.pids[0], Duration::from_secs(8)),
    };
    let call = killed.calls.last().map(|call| call.number);
    (!left.is_empty()).then(|| format!("{} {fault:?} at call {call:?}: {left}", killing.backend))
}

/// As [`kill_one`] for the command alone, with guardians that are stopped, or are killed as well: `--clean` mends that.
fn kill_with_guardians(killing: &Killing, nth: usize) -> Option<String> {
    let mark = mark();
    let _ended = Ending(mark.clone());
    let killed = killing.run(&mark, CallFault::KilledAlone { nth }).unwrap();
    let guardians =
        || killed.pids.iter().filter(|pid| name_of(**pid).starts_with("hourglass-guard"));
    if nth.is_multiple_of(3) {
        guardians().for_each(|pid| kill("-KILL", *pid).unwrap_or_default());
        soon("the guardians are gone", || guardians().next().is_none());
    }
    let cleaned = reserve(&["--clean"]);
    let left = stays_behind(&mark, killed.pids[0], Duration::from_secs(8));
    let of = |what: &str| format!("{} {nth}: {what}: {}", killing.backend, stderr(&cleaned));
    (killed.is_late || !left.is_empty()).then(|| of(&left))
}

/// The command alone is killed, then a guardian while it puts back: its partner does the rest. Or each guardian is killed
/// then, and `--clean` does it. Whether a guardian was killed, and what stayed behind.
fn kill_while_putting_back(killing: &Killing, fault: CallFault) -> (bool, Option<String>) {
    let mark = mark();
    let _ended = Ending(mark.clone());
    let killed = killing.run(&mark, fault).unwrap();
    let all = matches!(fault, CallFault::AllKilled { .. });
    let cleaned = if all { stderr(&reserve(&["--clean"])) } else { String::new() };
    let left = if killed.is_late {
        "it hangs".into()
    } else {
        stays_behind(&mark, killed.pids[0], Duration::from_secs(8))
    };
    let call = killed.calls.last().map(|call| call.number);
    let of = || format!("{} {fault:?} at call {call:?}: {left} {cleaned}", killing.backend);
    (killed.is_hit, (!left.is_empty()).then(of))
}

/// The calls that change something of those that guardians make which outlive the command, killed at its call `killed`:
/// their places among all of them, or among those of each.
fn calls_of_orphans(killing: &Killing, killed: usize, all: bool) -> Vec<usize> {
    let mark = mark();
    let _ended = Ending(mark.clone());
    let whole = killing.run(&mark, CallFault::Orphaned { killed, others: usize::MAX - 1 }).unwrap();
    let own = whole.calls.iter().enumerate().filter(|(_, call)| call.process == 0).nth(killed);
    let begin = own.map_or(whole.calls.len(), |(place, _)| place + 1);
    let mut begun = vec![0; whole.pids.len()];
    let mut places = Vec::new();
    for call in whole.calls[begin..].iter().filter(|call| call.process != 0) {
        let place = if all { begun[call.process] } else { begun.iter().sum() };
        begun[call.process] += 1;
        if !CHANGES_NOTHING.contains(&call.number) {
            places.push(place);
        }
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// Tries what `each` does with some of the calls that a reservation makes and that change something, for each backend and
/// process; it tells what is wrong.
fn at_calls(mut each: impl FnMut(&'static str, usize, usize) -> Option<String>) {
    let _alone = alone();
    let seed = seed();
    let mut dice = Dice::new(seed);
    let mut wrong = Vec::new();
    for backend in ["user", "quota", "deadline"] {
        if !granted(backend) {
            continue;
        }
        let whole = match (Killing { backend, script: SCRIPTS[0] }).run(&mark(), CallFault::None) {
            Ok(whole) => whole,
            Err(error) => return skip(Requirement::program("strace"), error),
        };
        assert_eq!(whole.status.code(), Some(7), "{backend}: {whole:?}");
        for process in 0..whole.pids.len() {
            let calls = whole.calls.iter().filter(|call| call.process == process).enumerate();
            let changing = calls.filter(|(_, call)| !CHANGES_NOTHING.contains(&call.number));
            for nth in sample(&mut dice, changing.map(|(nth, _)| nth).collect(), SAMPLE) {
                wrong.extend(each(backend, process, nth).inspect(|text| println!("{text}")));
            }
        }
    }
    assert!(wrong.is_empty(), "seed {seed}: {}\n{}", wrong.len(), wrong.join("\n"));
}

/// No kill of the command alone, nor of a guardian, leaves a thread raised, a control group, a claim or a record.
#[test]
fn killed_at_any_call_it_leaves_nothing_behind() {
    at_calls(|backend, process, nth| {
        // Who is not killed goes on, and ends at some time.
        let script = SCRIPTS[if process == 0 { nth % 2 } else { 0 }];
        kill_one(&Killing { backend, script }, process, nth)
    });
}

/// What guardians cannot undo, since they are stopped or dead, `--clean` does.
#[test]
fn killed_with_its_guardians_it_is_cleaned_up() {
    at_calls(|backend, process, nth| {
        let killing = Killing { backend, script: SCRIPTS[nth % 2] };
        (process == 0).then(|| kill_with_guardians(&killing, nth)).flatten()
    });
}

/// What a guardian leaves that is killed while it puts back, its partner puts back; what both leave, `--clean` does.
#[test]
fn killed_with_a_guardian_that_puts_back_it_leaves_nothing_behind() {
    let mut dice = Dice::new(seed());
    let (mut tried, mut hit) = (0, 0);
    at_calls(|backend, process, killed| {
        let killing = Killing { backend, script: SCRIPTS[killed % 2] };
        let mut wrong = Vec::new();
        for all in [false, true].into_iter().filter(|_| process == 0) {
            let places = calls_of_orphans(&killing, killed, all);
            for place in sample(&mut dice, places, SAMPLE) {
                let fault = if all {
                    CallFault::AllKilled { killed, own: place }
                } else {
                    CallFault::Orphaned { killed, others: place }
                };
                let (is_hit, left) = kill_while_putting_back(&killing, fault);
                (tried, hit) = (tried + 1, hit + usize::from(is_hit));
                wrong.extend(left);
            }
        }
        println!("{backend}: {hit} of {tried} kills of guardians");
        (!wrong.is_empty()).then(|| wrong.join("\n"))
    });
    // The order in which they make their calls is not always the same.
    assert!(hit >= tried / 2, "{hit} of {tried}");
}

/// After a call that fails, the reservation is refused with its reason, or is whole; afterwards nothing of it is left.
#[test]
fn with_a_call_that_fails_it_leaves_nothing_behind() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    let seed = seed();
    let killing = Killing { backend: "user", script: SCRIPTS[0] };
    let whole = match killing.run(&mark(), CallFault::None) {
        Ok(whole) => whole,
        Err(error) => return skip(Requirement::program("strace"), error),
    };
    let mut wrong = Vec::new();
    for failing in sample(&mut Dice::new(seed), of_calls(&whole.calls), 4 * SAMPLE) {
        let mark = mark();
        let _ended = Ending(mark.clone());
        let said = std::env::temp_dir().join(format!("hourglass-{mark}"));
        let stderr = fs::File::create(&said).unwrap();
        let failed = killing.run_saying(&mark, failing.fault(), stderr.into()).unwrap();
        let stderr = String::from_utf8_lossy(&fs::read(&said).unwrap()).into_owned();
        fs::remove_file(&said).unwrap();
        // What could not be removed is removed by `--clean`.
        if matches!(failing.name, "unlink" | "rmdir") {
            reserve(&["--clean"]);
        }
        let left = || stays_behind(&mark, failed.pids[0], Duration::from_secs(8));
        let aborted = failed.status.signal() == Some(SIGABRT);
        let no_memory = failing.is_of_memory() && aborted && is_of_the_runtime(&stderr);
        let left = match failed.status.code() {
            _ if failed.is_late => "it hangs".into(),
            // The shell ends with 2 or 126 where a call of its own fails before it is its own program.
            Some(2 | 3 | 7 | 125 | 126 | 127) => left(),
            // Rust's allocator has no other answer, and says so.
            None if no_memory => left(),
            _ => format!("{:?}: {stderr}", failed.status),
        };
        if !left.is_empty() {
            wrong.push(format!("{failing}: {left}"));
            println!("{failing}: {left}");
        }
    }
    assert!(wrong.is_empty(), "seed {seed}: {}\n{}", wrong.len(), wrong.join("\n"));
}
