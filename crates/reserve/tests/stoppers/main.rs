//! Stoppers on victims that spin and say when they last did. What this machine lacks is skipped, unless
//! `HOURGLASS_TEST_STOPPERS_REQUIRED` names it (a test bed does).

#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

mod siblings;
mod victims;

use hourglass_dice::{Dice, seed};
use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::smt::stopper::{
    CoRunners, StopTrialSetup, StopperKind, StopperRequest, choose, measure, open,
};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::cgroup::{Group, Hierarchy};
use hourglass_sys::heart_beat::HeartBeat;
use hourglass_sys::sched::{self, Attributes};
use victims::{PATIENCE, Role, need, opened, required, runs, silence, stands, until};

/// Kinds that stop processes by name.
const OF_PROCESSES: [StopperKind; 3] =
    [StopperKind::Cgroup2Freeze, StopperKind::Sigstop, StopperKind::Cgroup1Freezer];

fn victim() -> HeartBeat {
    let cpus = hourglass_sys::thread::affinity().unwrap();
    victims::on(*cpus.last().unwrap(), Attributes::Other(0))
}

/// Groups that a stopper of process `pid` has made and left.
fn left_by(pid: u32) -> Vec<PathBuf> {
    let name = format!("hourglass-{pid}-");
    let mut found = Vec::new();
    for hierarchy in Hierarchy::all().unwrap_or_default() {
        let Ok(home) = hierarchy.group_of(0) else { continue };
        let groups = home.groups().unwrap_or_default().into_iter();
        let paths = groups.map(|group| group.path().to_owned());
        found.extend(paths.filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with(&name))
        }));
    }
    found
}

#[test]
fn each_kind_stops_and_resumes_and_may_be_asked_twice() {
    let guardian = Guardian::start().unwrap();
    for kind in OF_PROCESSES {
        let victim = victim();
        let wanted = StopperRequest::processes([victim.pid()]);
        let Some(mut stopper) = opened(kind, &wanted, &guardian) else { continue };
        assert_eq!(stopper.name(), kind.name());
        assert!(!stopper.is_graded());
        runs(&victim);
        for _ in 0..2 {
            stopper.stop().unwrap();
            stopper.stop().unwrap();
            assert!(stands(&victim), "{kind}");
            stopper.resume().unwrap();
            stopper.resume().unwrap();
            runs(&victim);
        }
    }
}

/// Also where the group was made for it, and the victim goes back to where it was.
#[test]
fn who_is_stopped_runs_on_when_the_stopper_is_dropped() {
    let guardian = Guardian::start().unwrap();
    for kind in OF_PROCESSES {
        let victim = victim();
        let cgroup = format!("/proc/{}/cgroup", victim.pid());
        let before = std::fs::read_to_string(&cgroup).unwrap();
        let wanted = StopperRequest::processes([victim.pid()]);
        let Some(mut stopper) = opened(kind, &wanted, &guardian) else { continue };
        let inside = std::fs::read_to_string(&cgroup).unwrap();
        assert_eq!(inside == before, kind == StopperKind::Sigstop, "{kind}");
        stopper.stop().unwrap();
        assert!(stands(&victim), "{kind}");
        drop(stopper);
        runs(&victim);
        assert_eq!(std::fs::read_to_string(&cgroup).unwrap(), before, "{kind}");
    }
}

/// A shell that starts a process after the other, each of which appends to a file.
#[test]
fn children_that_come_later_are_stopped_too() {
    let guardian = Guardian::start().unwrap();
    for kind in OF_PROCESSES {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("hourglass-stopper-{}-{kind}", std::process::id()));
        let script = format!("while :; do (sleep 0.001; echo >>{}) & wait; done", file.display());
        let mut shell = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let length = || std::fs::metadata(&file).map_or(0, |file| file.len());
        let wanted = StopperRequest::processes([shell.id()]);
        if let Some(mut stopper) = opened(kind, &wanted, &guardian) {
            for _ in 0..5 {
                let before = length();
                until("the shell does nothing", || length() > before);
                stopper.stop().unwrap();
                // Version 1 may need a second order (a fork at the wrong moment).
                let mut last = length();
                until("one of them still runs", || {
                    std::thread::sleep(silence());
                    let now = length();
                    let same = now == last;
                    last = now;
                    same
                });
                stopper.resume().unwrap();
            }
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        std::thread::sleep(silence());
        let _ = std::fs::remove_file(&file);
    }
}

/// A group of its own for a test, removed at its end.
struct Home(Group);

impl Drop for Home {
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.0.remove().is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_named_group_is_stopped_as_it_is() {
    let guardian = Guardian::start().unwrap();
    for (kind, hierarchy) in [
        (StopperKind::Cgroup2Freeze, Hierarchy::unified()),
        (StopperKind::Cgroup1Freezer, Hierarchy::with("freezer")),
    ] {
        let name = format!("hourglass-test-{}-{kind}", std::process::id());
        let made = hierarchy.and_then(|hierarchy| hierarchy.group_of(0)?.make(&name));
        let home = match made {
            Ok(group) => Home(group),
            Err(error) => {
                skip(need(kind), format_args!("no group for {kind}: {error}"));
                continue;
            }
        };
        let path = home.0.path().to_owned();
        let victim = victim();
        home.0.take_process(victim.pid()).unwrap();
        let mut wanted = StopperRequest::processes([]);
        wanted.co_runners = CoRunners::Group(path.clone());
        for kind in [kind, StopperKind::Sigstop] {
            let Some(mut stopper) = opened(kind, &wanted, &guardian) else { continue };
            stopper.stop().unwrap();
            assert!(stands(&victim), "{kind}");
            drop(stopper);
            runs(&victim);
        }
        // A group that another program has frozen is not thawed.
        home.0.freeze().unwrap();
        until("it is not frozen", || home.0.frozen().unwrap());
        let refused = open(kind, &wanted, &guardian).map(drop).unwrap_err();
        assert!(refused.cause.contains("another program has frozen"), "{refused}");
        home.0.thaw().unwrap();
    }
}

#[test]
fn what_must_run_is_refused() {
    let guardian = Guardian::start().unwrap();
    let own = std::process::id();
    for kind in OF_PROCESSES {
        let refused =
            open(kind, &StopperRequest::processes([own]), &guardian).map(drop).unwrap_err();
        assert_eq!(refused.kind, kind);
        let mut everyone = StopperRequest::processes([]);
        everyone.co_runners = CoRunners::Everyone;
        assert!(open(kind, &everyone, &guardian).is_err(), "{kind}");
        // The group that this process is in; or its root, which cannot be frozen.
        let hierarchy = match kind {
            StopperKind::Cgroup1Freezer => Hierarchy::with("freezer"),
            _ => Hierarchy::unified(),
        };
        let Ok(group) = hierarchy.and_then(|hierarchy| hierarchy.group_of(0)) else { continue };
        let mut ours = everyone.clone();
        ours.co_runners = CoRunners::Group(group.path().to_owned());
        match kind {
            StopperKind::Sigstop => {}
            _ => assert!(open(kind, &ours, &guardian).is_err(), "{kind}"),
        }
    }
}

#[test]
fn who_is_slowed_gets_his_policy_back() {
    let guardian = Guardian::start().unwrap();
    for kind in OF_PROCESSES {
        let victim = victim();
        let policy = || sched::read(victim.pid()).unwrap();
        let mut wanted = StopperRequest::processes([victim.pid()]);
        wanted.graded = true;
        let Some(mut stopper) = opened(kind, &wanted, &guardian) else { continue };
        assert!(stopper.is_graded());
        assert_eq!(stopper.name(), kind.name());
        stopper.slow().unwrap();
        assert_eq!(policy(), Some(Attributes::Idle));
        runs(&victim);
        stopper.stop().unwrap();
        assert!(stands(&victim), "{kind}");
        stopper.slow().unwrap();
        runs(&victim);
        stopper.resume().unwrap();
        assert_eq!(policy(), Some(Attributes::Other(0)));
        stopper.slow().unwrap();
        drop(stopper);
        assert_eq!(policy(), Some(Attributes::Other(0)));
        runs(&victim);
    }
}

/// A measurement says when the victim last ran; what it takes is no test's to judge.
#[test]
fn measurements_and_the_choice() {
    let guardian = Guardian::start().unwrap();
    let setup = match StopTrialSetup::new(&hourglass_documents::CpuSet::default()) {
        Ok(setup) => StopTrialSetup { trials: 40, limit_ms: 20_000, ..setup },
        Err(reason) => return skip(Requirement::SECOND_CPU, reason),
    };
    assert_ne!(setup.controller, setup.victim);
    for kind in StopperKind::ALL {
        match measure(kind, &setup, &guardian) {
            Ok(measured) => {
                println!("{kind}: {measured:?}");
                assert_eq!(measured.stopper, kind);
                assert!(measured.p50_ns > 0 && measured.p50_ns <= measured.p99_ns);
                assert!(measured.p99_ns <= measured.p999_ns && measured.p999_ns <= measured.max_ns);
                assert!(measured.margin_ns() >= measured.p999_ns);
            }
            Err(reason) => {
                assert!(!required(kind), "{reason}");
                skip(need(kind), reason);
            }
        }
    }
    let victim = victim();
    let wanted = StopperRequest::processes([victim.pid()]);
    // SIGSTOP needs nothing of the machine.
    let mut chosen = choose(&StopperKind::ALL, &wanted, &setup, &guardian).unwrap();
    assert_eq!(chosen.stopper.name(), chosen.measured.stopper.name());
    assert_eq!(chosen.tried.len(), StopperKind::ALL.len());
    chosen.stopper.stop().unwrap();
    assert!(stands(&victim));
    drop(chosen);
    runs(&victim);
}

/// SIGKILL at random moments: the victim runs on, back where it was, and no group is left.
#[test]
fn who_is_stopped_by_a_killed_monitor_runs_on() {
    let mut dice = Dice::new(seed());
    let victim = victim();
    let cgroup = format!("/proc/{}/cgroup", victim.pid());
    let before = std::fs::read_to_string(&cgroup).unwrap();
    for round in 0..6 {
        let kind = OF_PROCESSES[round % 3];
        let Some(monitor) = Role::start(kind, victim.pid()) else { continue };
        std::thread::sleep(Duration::from_micros(dice.below(1 << 14)));
        let pid = monitor.kill();
        runs(&victim);
        until("groups are left behind", || left_by(pid).is_empty());
        until("the victim is elsewhere", || std::fs::read_to_string(&cgroup).unwrap() == before);
        // The victim is not stopped any more.
        runs(&victim);
    }
}
