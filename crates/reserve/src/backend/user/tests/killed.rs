//! A process that keeps a reserve is killed: what its guardian puts back. Where no reserve can be had, the tests say
//! that they were skipped.

use std::process::Command;
use std::time::Duration;

use hourglass_skip::{Requirement, skip};
use hourglass_sys::cgroup::Hierarchy;
use hourglass_sys::clock::cpu_time::ProcessTime;

use super::tests::{alone, kept, last_cpu, request, situation, user_with};
use super::*;
use crate::backend::members;
use crate::testing::{Program, soon};

/// Environment variables of the process that is to be killed: the target that it reserves for, and where it makes
/// groups.
const FOR: &str = "HOURGLASS_TEST_RESERVE_FOR";
const GROUPED: &str = "HOURGLASS_TEST_RESERVE_GROUPED";

/// The body of that process; for other callers it does nothing.
#[test]
#[ignore = "runs in a process that another test starts and kills"]
fn holds_a_reserve_until_it_is_killed() {
    let Some(pid) = std::env::var(FOR).ok().and_then(|pid| pid.parse().ok()) else { return };
    let user = user_with(std::env::var_os(GROUPED).is_some());
    let request = request(ReservationKind::Hard, Some(last_cpu()));
    if let Some(keeping) = kept(|| user.keep(&Target::Process(pid), &request)) {
        println!("reserved");
        std::thread::sleep(Duration::from_secs(20));
        drop(keeping);
    }
}

/// A process that keeps a reserve for `pid`, and has said so; `None` where none can be had.
fn killable(pid: u32, grouped: bool) -> Option<Program> {
    use std::io::{BufRead, BufReader};
    let name = "backend::user::killed::holds_a_reserve_until_it_is_killed";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(FOR, pid.to_string());
    if grouped {
        command.env(GROUPED, "1");
    }
    let mut keeper = Program(command.stdout(std::process::Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(keeper.0.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok).find(|line| {
        line.contains("reserved") || line.contains("skipped") || line.contains("test result")
    });
    let reserved = said.is_some_and(|line| line.contains("reserved"));
    if !reserved {
        skip(Requirement::REAL_TIME, "no reservation could be had");
    }
    reserved.then_some(keeper)
}

/// The keeper is killed at some moment of a period: no process stays stopped, raised, pinned or in a group, and the
/// group is removed.
#[test]
fn the_keeper_of_a_reserve_may_be_killed() {
    let _alone = alone();
    for (grouped, moment_us) in [(true, 0), (true, 3_100), (false, 1_300), (false, 5_700)] {
        let program = Program::shell("while :; do (:); done & while :; do :; done");
        let pid = program.pid();
        std::thread::sleep(Duration::from_millis(20));
        let before = situation(pid);
        let Some(mut keeper) = killable(pid, grouped) else { return };
        std::thread::sleep(Duration::from_millis(30) + Duration::from_micros(moment_us));
        keeper.0.kill().unwrap();
        keeper.0.wait().unwrap();
        let put_back = || {
            let urgent = |tid: u32| {
                matches!(
                    sched::read(tid),
                    Ok(Some(Attributes::Fifo(_) | Attributes::RoundRobin(_)))
                )
            };
            let mut tree = members::tree(pid).into_iter().flat_map(members::threads_of);
            situation(pid) == before
                && !tree.any(|tid| urgent(tid) || members::state_of(tid) == Some('T'))
        };
        soon(&format!("put back: grouped {grouped}, {moment_us} us, {before:?}"), put_back);
        // It still runs, and at its own pace.
        let clock = ProcessTime::for_task(pid);
        let used = clock.read_ns().unwrap();
        soon("it runs", || clock.read_ns().unwrap() > used);
    }
}

/// The keeper is killed while the program has groups of its own inside its group, and a process that left it before it
/// was found: no group is left, and no process is raised or pinned.
#[test]
fn a_killed_keeper_leaves_no_group_and_no_stray() {
    let _alone = alone();
    let Ok(unified) = Hierarchy::unified() else {
        return skip(Requirement::CONTROL_GROUP_2, "control groups of version 2 are not mounted");
    };
    let mount = unified.mount().display();
    // Its group, when it has one; a process in a group two below it, and one that leaves as soon as it is born.
    let script = format!(
        "until grep -q hourglass- /proc/self/cgroup; do sleep 0.01; done; \
         own={mount}$(sed -n s/^0:://p /proc/self/cgroup); mkdir -p $own/one/two; \
         sh -c \"echo 0 > $own/one/two/cgroup.procs; exec sleep 100\" & \
         while :; do sh -c \"echo 0 > {mount}/cgroup.procs; exec sleep 100\" & sleep 0.05; done"
    );
    let program = Program::shell(&script);
    let pid = program.pid();
    let before = situation(pid);
    let Some(mut keeper) = killable(pid, true) else { return };
    let own = format!("hourglass-{}-", keeper.pid());
    let groups = || {
        let groups = unified.group_of(0).unwrap().groups().unwrap_or_default().into_iter();
        let paths = groups.map(|group| group.path().to_owned());
        let ours = |path: &std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&own))
        };
        paths.filter(ours).collect::<Vec<_>>()
    };
    let nested = || groups().iter().any(|group| group.join("one/two").exists());
    soon("the program makes groups", || nested() && members::tree(pid).len() > 3);
    keeper.0.kill().unwrap();
    keeper.0.wait().unwrap();
    let clean = || {
        // One that ended meanwhile is neither raised nor pinned.
        let usual = |pid: u32| {
            sched::read(pid).ok().is_none_or(|policy| policy == before.0)
                && thread::affinity_of(pid).ok().is_none_or(|cpus| cpus == before.1)
        };
        groups().is_empty() && situation(pid) == before && members::tree(pid).into_iter().all(usual)
    };
    soon(&format!("no group is left, and all is as {before:?}"), clean);
}

/// The bug: a process that went into a group below the reserve's after the guardian had emptied that one kept the group,
/// and was not found. This program does so all the time, and goes out again.
#[test]
fn a_killed_keeper_leaves_no_group_to_who_goes_back_into_it() {
    let Ok(unified) = Hierarchy::unified() else {
        return skip(Requirement::CONTROL_GROUP_2, "control groups of version 2 are not mounted");
    };
    goes_back(&unified, "..");
}

/// Raised, and outside of all groups of the reserve when the guardian lowers those inside, it is lowered once the group
/// is removed: where it goes back meanwhile as well.
#[test]
fn who_goes_back_raised_is_lowered() {
    const ROUNDS: u32 = 6;
    let Ok(unified) = Hierarchy::unified() else {
        return skip(Requirement::CONTROL_GROUP_2, "control groups of version 2 are not mounted");
    };
    let top = unified.mount().display().to_string();
    for _ in 0..ROUNDS {
        goes_back(&unified, &top);
    }
}

/// Of a program that goes into a group below the reserve's and out of it, into the group `out`, until the keeper was
/// killed. Its child stays inside: a reservation that finds nobody there ends.
fn goes_back(unified: &Hierarchy, out: &str) {
    let _alone = alone();
    let script = format!(
        "until grep -q hourglass- /proc/self/cgroup; do sleep 0.01; done; \
         own={}$(sed -n s/^0:://p /proc/self/cgroup); mkdir -p $own/one/two; cd $own/one/two; \
         sleep 100 & \
         while echo 0 > cgroup.procs; do echo 0 > {out}/cgroup.procs; done 2> /dev/null; exec sleep 100",
        unified.mount().display()
    );
    let program = Program::shell(&script);
    let pid = program.pid();
    let before = situation(pid);
    let Some(mut keeper) = killable(pid, true) else { return };
    let is_inside = || unified.group_of(pid).is_ok_and(|group| group.path().ends_with("one/two"));
    soon("it goes in and out", is_inside);
    let group = unified.group_of(0).unwrap().path().join(format!("hourglass-{}-0", keeper.pid()));
    assert!(group.exists(), "{}", group.display());
    keeper.0.kill().unwrap();
    keeper.0.wait().unwrap();
    let clean = || !group.exists() && situation(pid) == before;
    soon(&format!("no group is left, and it is as {before:?}"), clean);
}
