//! What the tests share: victims, whether they run, and a monitor that can be killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::smt::stopper::{CoRunners, Stopper, StopperKind, StopperRequest, open};
use hourglass_reserve::target::Target;
use hourglass_skip::{Requirement, skip};
use hourglass_sys::heart_beat::HeartBeat;
use hourglass_sys::sched::Attributes;

/// Nothing takes longer than this, however slow and busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than any victim lives that a test forgets, ns.
const LIFE_NS: u64 = 120_000_000_000;

/// A running victim beats at least once in this time, if it gets the CPU at all. An emulated machine gives its
/// processors turns of 100 ms each, and a bed says so.
pub(crate) fn silence() -> Duration {
    let said = std::env::var("HOURGLASS_TEST_SILENCE_MS").ok();
    Duration::from_millis(said.and_then(|ms| ms.parse().ok()).unwrap_or(50))
}

pub(crate) fn on(cpu: u32, attributes: Attributes) -> HeartBeat {
    let beat = HeartBeat::start(cpu, attributes, LIFE_NS).unwrap().begin();
    until("the victim does not run", || beat.last_ns() > 0);
    beat
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether it has stopped for good: what was ordered is done a little later.
pub(crate) fn stands(beat: &HeartBeat) -> bool {
    let begun = Instant::now();
    let mut last = beat.last_ns();
    while begun.elapsed() < PATIENCE {
        std::thread::sleep(silence());
        let now = beat.last_ns();
        if now == last {
            return true;
        }
        last = now;
    }
    false
}

pub(crate) fn runs(beat: &HeartBeat) {
    let last = beat.last_ns();
    until("the victim stands", || beat.last_ns() > last);
}

pub(crate) fn required(kind: StopperKind) -> bool {
    let named = std::env::var("HOURGLASS_TEST_STOPPERS_REQUIRED").unwrap_or_default();
    named.split(',').any(|name| name == kind.name())
}

/// The requirement of a way of stopping.
pub(crate) fn need(kind: StopperKind) -> Requirement {
    let freezer = "place=$(grep -m 1 ' cgroup [^ ]*freezer' /proc/mounts | cut -d ' ' -f 2) && test -n \"$place\" \
                   && mkdir $place/hourglass-skip-$$ && rmdir $place/hourglass-skip-$$";
    match kind {
        StopperKind::Cgroup2Freeze => Requirement::CONTROL_GROUP_2,
        StopperKind::Cgroup1Freezer => Requirement::runs("control groups' freezer", freezer),
        StopperKind::CoreCookie => Requirement::SIBLINGS,
        // Only to slow threads and bring them back takes a privilege.
        StopperKind::Sigstop => {
            Requirement::runs("leaving SCHED_IDLE", "chrt --idle 0 sh -c 'chrt --other --pid 0 $$'")
        }
    }
}

/// Opens one; `None`, with the reason printed, if this machine has it not.
pub(crate) fn opened(
    kind: StopperKind,
    wanted: &StopperRequest,
    guardian: &Guardian,
) -> Option<Box<dyn Stopper>> {
    match open(kind, wanted, guardian) {
        Ok(stopper) => Some(stopper),
        Err(reason) => {
            assert!(!required(kind), "{reason}");
            skip(need(kind), reason);
            None
        }
    }
}

/// The target of a cookie.
pub(crate) fn reserved(pid: u32) -> StopperRequest {
    let mut wanted = StopperRequest::processes([]);
    wanted.co_runners = CoRunners::Everyone;
    wanted.reserved = Some(Target::Process(pid));
    wanted
}

/// Another process, which stops and resumes for ever.
pub(crate) struct Role(Child);

const ROLE: &str = "HOURGLASS_TEST_STOPPER_ROLE";

impl Role {
    /// One that stops process `pid`, or gives it a cookie; `None`, with the reason printed, if this
    /// machine cannot.
    pub(crate) fn start(kind: StopperKind, pid: u32) -> Option<Role> {
        let mut monitor = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victims::role_of_a_monitor", "--nocapture", "--test-threads", "1"])
            .env(ROLE, format!("{kind} {pid}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(monitor.stdout.take().unwrap()).lines();
        let word = lines.map_while(Result::ok).find(|l| l == "open" || l.starts_with("none: "));
        let role = Role(monitor);
        match word.as_deref() {
            Some("open") => Some(role),
            word => {
                assert!(!required(kind), "{word:?}");
                skip(need(kind), format_args!("{word:?}"));
                None
            }
        }
    }

    /// Kills it; what it was called.
    pub(crate) fn kill(mut self) -> u32 {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        self.0.id()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other process's part: it stops and resumes the given processes for ever.
#[test]
fn role_of_a_monitor() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (kind, pid) = role.split_once(' ').unwrap();
    let (kind, pid) = (StopperKind::from_name(kind).unwrap(), pid.parse().unwrap());
    let guardian = Guardian::start().unwrap();
    let wanted = if kind == StopperKind::CoreCookie {
        reserved(pid)
    } else {
        StopperRequest::processes([pid])
    };
    match open(kind, &wanted, &guardian) {
        Ok(mut stopper) => {
            println!("\nopen");
            loop {
                stopper.stop().unwrap();
                std::thread::sleep(Duration::from_millis(3));
                stopper.resume().unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(reason) => println!("\nnone: {reason}"),
    }
}
