//! `hourglass reserve`: exit codes, what goes where, signals, and that nothing stays behind.
//!
//! Where the machine grants no reservation, what needs one is skipped with a message.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use crate::calls::json;
use crate::{
    HOURGLASS, Killed, OWN, alone, code, document, is_refused, name_of, send, stderr, text,
    warning, within,
};
use hourglass_skip::{Requirement, skip};

mod changed;
#[cfg(target_arch = "x86_64")]
mod faults;
mod guardians;
mod killed;
mod means;
mod page;
mod several;

pub(crate) use killed::{files_left, groups_left};

/// Little enough that it fits beside what else is reserved.
const AMOUNT: &str = "1ms/20ms";

fn reserve(words: &[&str]) -> Output {
    Command::new(HOURGLASS).arg("reserve").args(words).output().unwrap()
}

/// What a reservation by `backend` needs of the machine.
fn need(backend: &str) -> Requirement {
    match backend {
        "deadline" => Requirement::DEADLINE_CLASS,
        "quota" => Requirement::CONTROL_GROUP,
        _ => Requirement::REAL_TIME,
    }
}

/// Whether this machine grants what a test needs; says why not.
pub(crate) fn granted(backend: &str) -> bool {
    let tried = reserve(&[AMOUNT, "--backend", backend, "--", "true"]);
    if code(&tried) == OWN {
        skip(need(backend), stderr(&tried).trim());
    }
    code(&tried) != OWN
}

/// The registry knew what is reserved, and nothing showed it.
#[test]
fn what_is_in_force_is_listed() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    let words = ["reserve", AMOUNT, "--backend", "user", "--", "sleep", "60"];
    let mut child = Command::new(HOURGLASS).args(words).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let listed = || -> Option<serde_json::Value> {
        let output = reserve(&["--list", "--json"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let document = document(&output);
        assert_eq!(document["schema"], "hourglass.reservations/1");
        let mut all = document["reservations"].as_array().unwrap().iter();
        all.find(|one| one["pid"] == pid).cloned()
    };
    let mut known = None;
    soon("it is listed", || {
        known = listed().filter(|one| one["periods"].as_u64() > Some(0));
        known.is_some()
    });
    let one = known.unwrap();
    let reserved = (one["budget_ns"].as_u64(), one["period_ns"].as_u64());
    assert_eq!(reserved, (Some(1_000_000), Some(20_000_000)));
    assert_eq!((&one["backend"], &one["kept"]), (&"user".into(), &true.into()), "{one}");
    let text = text(&reserve(&["--list"]).stdout);
    assert!(text.contains("1ms/20ms") && text.contains(&pid.to_string()), "{text}");
    send("-TERM", pid.into()).unwrap();
    child.wait().unwrap();
    assert!(listed().is_none());
}

#[test]
fn exit_codes_are_those_of_the_command_or_tell_why_there_is_none() {
    let _alone = alone();
    let one_line = |words: &[&str], wanted: i32, says: &str| {
        is_refused(&reserve(words), wanted, says, words);
    };
    one_line(&[AMOUNT, "--", "no-such-program"], 127, "no such program in PATH");
    one_line(&[AMOUNT, "--", "/no/such/program"], 127, "no such file");
    one_line(&[AMOUNT, "--", "/"], 126, "cannot be executed");
    one_line(&["9ms/8ms", "--", "true"], 2, "longer than its period");
    one_line(&["0ms/8ms", "--", "true"], 2, "above zero");
    one_line(&["3ms", "--", "true"], 2, "3.1ms/8ms");
    one_line(
        &["3ms/8ms", "--deadline", "2ms", "--", "true"],
        2,
        "shorter than the reserved amount",
    );
    one_line(&[AMOUNT], 2, "no target;");
    one_line(&[AMOUNT, "--smt", "sometimes", "--", "true"], 2, "monitor, disable and ignore");
    one_line(&[AMOUNT, "--smt", "monitor", "--", "true"], 2, "--cpu N");
    one_line(&[AMOUNT, "--pid", "4194304"], OWN, "no process 4194304");
    one_line(&[AMOUNT, "--pid", "1", "--thread", "2"], 2, "cannot be used with");
    one_line(&[AMOUNT, "--thread", "no such thread"], OWN, "no thread is called");
    let offline = reserve(&[AMOUNT, "--cpu", "4000", "--", "true"]);
    assert_eq!(code(&offline), OWN);
    assert!(stderr(&offline).contains("4000"), "{}", stderr(&offline));
    if !granted("auto") {
        return;
    }
    assert_eq!(code(&reserve(&[AMOUNT, "--", "sh", "-c", "exit 5"])), 5);
    assert_eq!(code(&reserve(&[AMOUNT, "--", "sh", "-c", "kill -9 $$"])), 128 + 9);
    // Also without the dashes, and with words that look like ours.
    let echo = reserve(&[AMOUNT, "echo", "--json", "--check"]);
    assert_eq!(String::from_utf8_lossy(&echo.stdout), "--json --check\n");
}

#[test]
fn the_commands_output_is_its_own() {
    let _alone = alone();
    if !granted("auto") {
        return;
    }
    let output = reserve(&[AMOUNT, "--", "echo", "hello"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
    assert!(stderr(&output).starts_with("1.00 ms every 20.0 ms for echo hello\n"));
    let quiet = reserve(&["-q", AMOUNT, "--", "echo", "hello"]);
    assert_eq!(stderr(&quiet), "");
    let output = reserve(&["--json", AMOUNT, "--", "sh", "-c", "exit 3"]);
    let document = document(&output);
    assert_eq!(document["schema"], "hourglass.reserve/1");
    assert_eq!(
        (&document["budget_ns"], &document["period_ns"]),
        (&1_000_000.into(), &20_000_000.into())
    );
    assert_eq!((&document["exit_code"], &document["interrupted"]), (&3.into(), &false.into()));
    assert_eq!(code(&output), 3);
}

/// What a command got is counted, period by period. A busy machine may leave periods uncounted, and what ended just now
/// may still have the bandwidth: the best of some tries counts.
#[test]
fn what_was_delivered_is_counted() {
    let _alone = alone();
    const TRIES: usize = 10;
    for backend in ["deadline", "user"] {
        if !granted(backend) {
            continue;
        }
        // Some tenths of a second of processor time, without a fork.
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let words = ["--json", "20ms/100ms", "--backend", backend, "--", "sh", "-c", busy];
        let enough = (0..TRIES).any(|_| {
            let output = reserve(&words);
            let document = document(&output);
            if document["refusals"][0]["id"] == "bandwidth" {
                std::thread::sleep(Duration::from_millis(300));
                return false;
            }
            assert_eq!(document["backend"], backend, "{document}");
            let periods = document["periods"].as_u64().unwrap();
            let supply = document["supply"].as_array().unwrap();
            let counted: u64 = supply.iter().map(|step| step["periods"].as_u64().unwrap()).sum();
            assert_eq!(counted, periods, "{document}");
            periods >= 2
        });
        assert!(enough, "{backend}");
    }
}

#[test]
fn a_check_starts_nothing_and_says_what_mends_it() {
    let output = reserve(&["3ms/8ms", "--check", "--json"]);
    let document = document(&output);
    let granted = !document["backend"].is_null();
    assert_eq!(code(&output), if granted { 0 } else { 1 });
    for refusal in document["refusals"].as_array().unwrap() {
        for key in ["backend", "id", "cause", "remedy"] {
            assert!(!refusal[key].as_str().unwrap().is_empty(), "{refusal}");
        }
    }
    // Hourglass paper, section 5.6.
    assert_eq!(document["suggested_budget_ns"], 3_100_000);
    let output = reserve(&["3ms/5s", "--check", "--backend", "deadline"]);
    let text = text(&output.stdout);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains("deadline: times") && text.contains("remedy: "), "{text}");
}

/// A process that is killed when the test is over, whatever became of it.
struct Running(Killed);

impl Running {
    fn start(command: &mut Command) -> Running {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Killed(command.spawn().unwrap()))
    }

    fn signal(&self, signal: &str) {
        self.0.signal(signal);
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn child(&mut self) -> &mut Child {
        &mut self.0.0
    }

    /// Reads the line "ready" from its stderr; what else it says must be read or kept.
    fn ready(&mut self) -> Option<BufReader<ChildStderr>> {
        let mut lines = BufReader::new(self.child().stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        (line == "ready\n").then_some(lines)
    }

    /// Its end, and the document that it wrote.
    fn end_with_document(mut self) -> (ExitStatus, serde_json::Value) {
        let document = self.child().stdout.take().unwrap();
        let (status, text) = self.end(document);
        (status, json(&text))
    }

    /// Stops all of its threads. On a busy machine some go on for milliseconds after the signal.
    fn stop(&self) {
        let pid = self.pid();
        self.signal("-STOP");
        soon("all of its threads stand", || {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
            let mut ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
            ids.all(|tid| state_and_policy(pid, tid).is_none_or(|(state, _)| state == 'T'))
        });
    }

    /// Its end, and what it wrote since the last line that was read.
    fn end(mut self, mut rest: impl Read) -> (ExitStatus, String) {
        let mut text = String::new();
        rest.read_to_string(&mut text).unwrap();
        (self.child().wait().unwrap(), text)
    }
}

fn kill(signal: &str, pid: u32) -> std::io::Result<()> {
    send(signal, pid.into())
}

fn soon(what: &str, done: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(30), done), "{what}");
}

#[test]
fn signals_are_passed_on_and_the_commands_answer_counts() {
    let _alone = alone();
    if !granted("auto") {
        return;
    }
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done";
    let mut command = Command::new(HOURGLASS);
    command.args(["reserve", "--json", AMOUNT, "--", "sh", "-c", script]);
    let mut running = Running::start(&mut command);
    // What the command prints goes to stderr beside a document.
    let _lines = running.ready().unwrap();
    running.signal("-TERM");
    let (status, document) = running.end_with_document();
    assert_eq!(status.code(), Some(9));
    assert_eq!((&document["exit_code"], &document["interrupted"]), (&9.into(), &true.into()));
}

/// Fields of `/proc/PID/task/TID/stat`: the state, and the policy (41, as proc(5) counts).
fn state_and_policy(pid: u32, tid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    // The state is field 3, so that 37 further is field 41.
    Some((state, fields.nth(37)?.parse().ok()?))
}

/// The policies of all threads of a process.
fn policies(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
        .filter_map(|tid| Some(state_and_policy(pid, tid)?.1))
        .collect()
}

const OTHER: u32 = 0;

#[test]
fn who_is_adopted_goes_on_when_the_reservation_ends() {
    let _alone = alone();
    if !granted("deadline") {
        return;
    }
    let other = Running::start(Command::new("sleep").arg("60"));
    let pid = other.pid();
    let words = ["reserve", AMOUNT, "--backend", "deadline", "--pid", &pid.to_string()];
    let mut running = Running::start(Command::new(HOURGLASS).args(words));
    soon("the reservation is made", || policies(pid) != [OTHER]);
    running.signal("-INT");
    let rest = running.child().stdout.take().unwrap();
    assert_eq!(running.end(rest).0.code(), Some(130));
    assert_eq!(policies(pid), [OTHER]);
    drop(other);
    // And the reservation ends with who has it. Ended before it was looked at again, it was not adopted.
    for patience_ms in [50, 200, 800] {
        let other = Running::start(Command::new("sleep").arg("60"));
        let pid = other.pid();
        let words = ["reserve", AMOUNT, "--backend", "deadline", "--thread", &pid.to_string()];
        let mut running = Running::start(Command::new(HOURGLASS).args(words));
        soon("the reservation is made", || policies(pid) != [OTHER]);
        std::thread::sleep(Duration::from_millis(patience_ms));
        other.signal("-TERM");
        let rest = running.child().stdout.take().unwrap();
        match running.end(rest).0.code() {
            Some(125) => {}
            code => return assert_eq!(code, Some(0)),
        }
    }
    panic!("it was never adopted");
}

/// Marks a process and all that it starts.
pub(crate) const MARK: &str = "HOURGLASS_TEST_MARK";

/// Processes with this mark in their environment.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|line| line == wanted.as_bytes())
        })
        .collect()
}

/// What a killed `reserve` may not leave: a stopped process, or one that is not timesharing.
pub(crate) fn left_behind(mark: &str) -> Vec<(u32, char, u32)> {
    let mut found = Vec::new();
    for pid in marked(mark) {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let Some(tid) = thread.file_name().to_str().and_then(|tid| tid.parse().ok()) else {
                continue;
            };
            match state_and_policy(pid, tid) {
                // Zombies have ended; another process reaps them.
                None | Some(('Z' | 'X', _)) => {}
                Some((state, policy)) if policy != OTHER || state == 'T' || is_frozen(pid) => {
                    found.push((tid, state, policy));
                }
                Some(_) => {}
            }
        }
    }
    found
}

/// Whether a control group of the process is frozen, by version 1, where the kernel says in what the process waits, or 2,
/// where it waits as for a signal and its group says so.
fn is_frozen(pid: u32) -> bool {
    let channel = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    channel.contains("refrigerator") || is_in_frozen_group(pid).unwrap_or(false)
}

fn is_in_frozen_group(pid: u32) -> Option<bool> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let unified = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mount = unified.split(' ').nth(4)?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let events = fs::read_to_string(format!("{mount}{group}/cgroup.events")).ok()?;
    Some(events.lines().any(|line| line == "frozen 1"))
}

/// A process that uses up a CPU until the test is over.
fn busy_on(cpu: u32) -> Option<Running> {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(Killed(child.ok()?));
    // taskset becomes the shell, or ends if there is no such CPU.
    std::thread::sleep(Duration::from_millis(50));
    fs::read_link(format!("/proc/{}/exe", running.pid())).ok()?;
    Some(running)
}

/// Whether a process is stopped: by a signal, or in a frozen group.
fn stands(pid: u32) -> bool {
    state_and_policy(pid, pid).is_some_and(|(state, _)| state == 'T') || is_frozen(pid)
}

/// Words that keep a busy process on CPU 1 from disturbing work on CPU 0.
fn beside(policy: &str, victim: &str, command: &str) -> Vec<String> {
    let words = "reserve --json 5ms/50ms --cpu 0 --interferes 1 --smt".split(' ');
    let words = words.chain([policy, "--stop", victim, "--", "sh", "-c", command]);
    words.map(str::to_owned).collect()
}

/// On CPUs that are no siblings the mechanism is the same: who was named is stopped and runs again.
#[test]
fn who_shares_the_cpu_is_stopped_and_runs_again() {
    let _alone = alone();
    let Some(victim) = busy_on(1) else {
        return skip(Requirement::SECOND_CPU, "there is no second CPU, or no taskset");
    };
    let pid = victim.pid().to_string();
    // Some periods of work: no co-runner is stopped for a target that sleeps.
    let script = "i=0; while [ $i -lt 120000 ]; do i=$((i+1)); done";
    for policy in ["disable", "monitor", "ignore"] {
        // A machine that keeps the monitor from its CPU for a period may let it miss them all.
        const TRIES: usize = 4;
        let mut stopped = false;
        for _ in 0..TRIES {
            let output =
                Command::new(HOURGLASS).args(beside(policy, &pid, script)).output().unwrap();
            if code(&output) == OWN {
                return skip(need("auto"), stderr(&output).trim());
            }
            assert_eq!(code(&output), 0, "{}", stderr(&output));
            let document = document(&output);
            let smt = &document["smt"];
            assert_eq!((&smt["policy"], &smt["shares"]), (&policy.into(), &vec![1].into()));
            assert_eq!(smt["stopper"].is_null(), policy == "ignore", "{smt}");
            soon("the victim runs again", || !stands(victim.pid()));
            stopped |= smt["stops"] != 0;
            if stopped {
                break;
            }
        }
        assert_eq!(stopped, policy != "ignore", "{policy}");
    }
}

/// The contract: one document on stdout and nothing else there, whatever the command prints.
#[test]
fn a_document_is_alone_on_stdout() {
    let _alone = alone();
    let words = ["reserve", "--json", "5ms/50ms", "--", "echo", "said by the command"];
    let output = Command::new(HOURGLASS).args(words).output().unwrap();
    if code(&output) == OWN {
        return skip(need("auto"), stderr(&output).trim());
    }
    let document = document(&output);
    assert_eq!(document["schema"], "hourglass.reserve/1");
    assert!(stderr(&output).contains("said by the command"));
}

/// The bug: a check said yes without asking for what keeps co-runners off.
#[test]
fn a_check_asks_what_the_run_would_ask() {
    let _alone = alone();
    let sharing = ["5ms/50ms", "--cpu", "0", "--smt", "monitor", "--interferes", "1"];
    if fs::metadata("/sys/devices/system/cpu/cpu1").is_err() {
        return skip(Requirement::SECOND_CPU, "there is no second CPU");
    }
    let victim = Running::start(Command::new("sleep").arg("60"));
    let pid = victim.pid().to_string();
    let asked: [(&[&str], &str); 5] = [
        (&["--stop", &pid], ""),
        (&["--stop", "4194304"], "no process 4194304"),
        (&["--stop", "1"], "the first process"),
        // No co-runner is named: then all are meant, which only cookies stop; and these do not reach beyond a core.
        (&[], "core_cookie: "),
        (&["--stop", &pid, "--stopper", "core_cookie"], "core_cookie: "),
    ];
    for (words, says) in asked {
        let words = [&sharing[..], words].concat();
        let run = reserve(&[&words[..], &["--", "true"]].concat());
        let check = reserve(&[&words[..], &["--check"]].concat());
        let text = text(&check.stdout);
        assert_eq!(code(&check) == 0, code(&run) != OWN, "{words:?}: {text}{}", stderr(&run));
        assert!(text.contains(says), "{words:?}: {text}");
        assert!(code(&check) == 0 || stderr(&run).contains(says), "{words:?}: {}", stderr(&run));
    }
}
