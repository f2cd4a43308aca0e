//! Selections on this machine, of processes made here.

use hourglass_skip::{Requirement, skip};

use super::*;
use crate::testing::Program;

fn chosen(selection: Selection, reserved: Option<Target>) -> Result<CoRunners, SelectionError> {
    Ok(select(&[selection], reserved, &CpuSet::default())?.wanted.co_runners)
}

#[test]
fn words_select() {
    assert_eq!("1234".parse(), Ok(Selection::Process(1234)));
    assert_eq!("session:7".parse(), Ok(Selection::Session(7)));
    assert_eq!("/batch".parse(), Ok(Selection::Group(PathBuf::from("/batch"))));
    for wrong in ["", "0", "-1", "batch", "session:", "session:x"] {
        let error = wrong.parse::<Selection>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("'{wrong}' is not a process or group")), "{error}");
    }
}

#[test]
fn named_processes_are_stopped_unless_they_must_run() {
    let (one, other) = (Program::sleeping(), Program::sleeping());
    let own = std::process::id();
    let select = |pid, reserved| chosen(Selection::Process(pid), reserved);
    assert_eq!(select(one.pid(), None), Ok(CoRunners::Processes(vec![one.pid()])));
    let reserved = Some(Target::Process(one.pid()));
    let refused = |pid, why| Err(SelectionError::MustRun(pid, why));
    assert_eq!(select(one.pid(), reserved.clone()), refused(one.pid(), ExemptReason::Reserved));
    assert!(select(other.pid(), reserved).is_ok());
    assert_eq!(select(own, None), refused(own, ExemptReason::Itself));
    assert_eq!(select(1, None), refused(1, ExemptReason::First));
    let parent = parent_of(own).unwrap();
    if parent > 1 {
        assert_eq!(select(parent, None), refused(parent, ExemptReason::Ancestor));
    }
    assert_eq!(select(u32::MAX >> 1, None), Err(SelectionError::NoProcess(u32::MAX >> 1)));
}

/// kthreadd is the kernel's; it is not to be seen in a container.
#[test]
fn kernel_threads_are_spared() {
    if std::fs::read_to_string("/proc/2/comm").ok().as_deref() != Some("kthreadd\n") {
        return skip(
            Requirement::runs("the host's processes", "grep -qx kthreadd /proc/2/comm"),
            "kernel threads are not visible (a PID namespace)",
        );
    }
    let refused = chosen(Selection::Process(2), None).unwrap_err();
    assert_eq!(refused, SelectionError::MustRun(2, ExemptReason::Kernel));
}

/// The session of this test holds the test itself and the shells that wait for it.
#[test]
fn a_session_leaves_out_who_must_run() {
    let (one, other) = (Program::sleeping(), Program::sleeping());
    let session = field_of(one.pid(), 3).unwrap();
    let reserved = Some(Target::Process(other.pid()));
    let selected = select(&[Selection::Session(session)], reserved, &CpuSet::default()).unwrap();
    let CoRunners::Processes(pids) = &selected.wanted.co_runners else { panic!("{selected:?}") };
    assert!(pids.contains(&one.pid()));
    let spared: BTreeMap<u32, ExemptReason> = selected.spared.into_iter().collect();
    assert_eq!(spared.get(&std::process::id()), Some(&ExemptReason::Itself));
    assert_eq!(spared.get(&other.pid()), Some(&ExemptReason::Reserved));
    assert!(spared.keys().all(|pid| !pids.contains(pid)));
}

/// A process that may not run on the given CPUs does no harm there.
#[test]
fn a_session_leaves_out_who_cannot_run_there() {
    let cpus = hourglass_sys::thread::affinity().unwrap();
    let (Some(first), Some(last)) = (cpus.first(), cpus.last()) else { return };
    if first == last {
        return skip(Requirement::SECOND_CPU, "one CPU only");
    }
    let (here, there) = (Program::sleeping(), Program::sleeping());
    hourglass_sys::thread::set_affinity_of(here.pid(), [*first]).unwrap();
    hourglass_sys::thread::set_affinity_of(there.pid(), [*last]).unwrap();
    let session = Selection::Session(field_of(here.pid(), 3).unwrap());
    let selected = select(&[session], None, &[*first].into_iter().collect()).unwrap();
    let CoRunners::Processes(pids) = &selected.wanted.co_runners else { panic!("{selected:?}") };
    assert!(pids.contains(&here.pid()) && !pids.contains(&there.pid()));
    assert!(selected.spared.contains(&(there.pid(), ExemptReason::Elsewhere)));
}

#[test]
fn groups_are_found_and_looked_through() {
    let nowhere = PathBuf::from("/no/such/group");
    let refused = chosen(Selection::Group(nowhere.clone()), None).unwrap_err();
    assert_eq!(refused, SelectionError::NoGroup(nowhere));
    let Ok(ours) = Hierarchy::unified().and_then(|hierarchy| hierarchy.group_of(0)) else {
        return skip(Requirement::CONTROL_GROUP_2, "no unified hierarchy of control groups");
    };
    let refused = chosen(Selection::Group(ours.path().to_owned()), None).unwrap_err();
    assert!(matches!(refused, SelectionError::InGroup { .. }), "{refused}");
}

/// Memory that the reserved work shares with a co-runner is reported.
#[test]
fn what_is_shared_is_reported() {
    let cpu = hourglass_sys::thread::affinity().unwrap()[0];
    let attributes = hourglass_sys::sched::Attributes::Other(0);
    let beat =
        hourglass_sys::heart_beat::HeartBeat::start(cpu, attributes, 20_000_000_000).unwrap();
    let select =
        |reserved| select(&[Selection::Process(beat.pid())], Some(reserved), &CpuSet::default());
    // It descends from the reserved work, and is part of it.
    let whole = select(Target::Process(std::process::id()));
    assert_eq!(whole, Err(SelectionError::MustRun(beat.pid(), ExemptReason::Reserved)));
    let selected = select(Target::Thread(hourglass_sys::thread::id())).unwrap();
    assert!(selected.shared.iter().any(|shared| shared.pid == beat.pid()), "{selected:?}");
}
