//! CPU quota of a control group (`cpu.max`, or `cpu.cfs_quota_us` of version 1): a cap for all that is in it, and no
//! guarantee, since no thread is raised.
//!
//! Owns: where such a group can be made, its two numbers, what `cpu.stat` reports of it. Must not: enable a controller
//! for a part of the machine that is not its own.

use std::io;

use hourglass_sys::cgroup::{Group, Hierarchy, Version};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread;

use super::escaped_threads::EscapeMonitor;
use super::target_group::{TargetGroup, make, unless_gone};
use super::{AccuracyWarning, ActiveReservation, Backend, BackendKind, BackendRequest, members};
use crate::admission::{self, AdmissionFacts, Obstacle, Refusal};
use crate::guardian::{Guardian, TaskIdentity, UndoAction, UndoGuard};
use crate::ownership;
use crate::supply::{Spent, Supply};
use crate::target::Target;

/// What the kernel takes for a period and for a quota, us (`kernel/sched/core.c`: `min_cfs_quota_period`,
/// `max_cfs_quota_period`).
const SHORTEST_US: u64 = 1_000;
const LONGEST_US: u64 = 1_000_000;

/// Caps groups.
#[derive(Clone, Debug)]
pub struct Quota {
    guardian: Guardian,
}

impl Quota {
    /// `guardian` records changes before they are made.
    #[must_use]
    pub fn new(guardian: Guardian) -> Quota {
        Quota { guardian }
    }
}

impl Backend for Quota {
    fn kind(&self) -> BackendKind {
        BackendKind::Quota
    }

    fn guarantee(&self) -> bool {
        false
    }

    fn reserve(
        &self,
        target: &Target,
        request: &BackendRequest,
    ) -> Result<Box<dyn ActiveReservation>, Refusal> {
        let facts = AdmissionFacts::here(Some(target.id()));
        admission::ownership(BackendKind::Quota, target.id())?;
        check(target, request, &facts).into_iter().next().map_or(Ok(()), Err)?;
        let refused = |error: io::Error| explain(&error, target);
        let target = whole(target);
        let place = QuotaGroupPath::of(&target).map_err(refused)?;
        Ok(Box::new(CpuQuota::begin(&self.guardian, &target, &place, request)?))
    }
}

/// The obstacles to a cap on `target`; empty if none is visible. Reserves nothing.
#[must_use]
pub fn check(target: &Target, request: &BackendRequest, facts: &AdmissionFacts) -> Vec<Refusal> {
    let place = QuotaGroupPath::of(&whole(target)).and_then(|place| place.may_be_used());
    let place = place.err().map(|error| explain(&error, target));
    times(request).into_iter().chain(cpu(request, facts)).chain(place).collect()
}

/// The CPU asked for is there, and may be used by the target.
fn cpu(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let (cause, remedy) = admission::not_permitted(request, facts)?;
    Some(refusal(Obstacle::Cpu, cause, &remedy))
}

/// A thread that is alone in its process is the process.
fn whole(target: &Target) -> Target {
    match target {
        Target::Thread(tid) if members::threads_of(*tid).len() == 1 => Target::Process(*tid),
        target => target.clone(),
    }
}

#[derive(Debug)]
struct QuotaGroupPath {
    parent: Group,
    home: Group,
}

impl QuotaGroupPath {
    fn of(target: &Target) -> io::Result<QuotaGroupPath> {
        let hierarchy = Hierarchy::with("cpu")?;
        let home = hierarchy.group_of(target.id())?;
        if hierarchy.version() == Version::V1 {
            return Ok(QuotaGroupPath { parent: home.clone(), home });
        }
        if matches!(target, Target::Thread(_)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // A group with processes of its own has no children with controllers: then beside it.
        let gives = |group: &Group| {
            let given = group.read("cgroup.subtree_control");
            given.is_ok_and(|text| text.split_ascii_whitespace().any(|name| name == "cpu"))
        };
        let beside = home.parent().filter(|_| home.path() != hierarchy.mount());
        let parent = [Some(home.clone()), beside].into_iter().flatten().find(gives);
        let parent = parent.ok_or(io::ErrorKind::NotFound)?;
        Ok(QuotaGroupPath { parent, home })
    }

    /// Whether processes may be moved there and back; who may do that may make a group as well, where the system is
    /// set up as it should be.
    fn may_be_used(&self) -> io::Result<()> {
        [&self.parent, &self.home].iter().try_for_each(|group| group.open("cgroup.procs").map(drop))
    }
}

/// A cap in force. Dropping it puts everything back, in the order of the fields.
#[derive(Debug)]
struct CpuQuota {
    /// Before the group: it looks a last time.
    leavers: Option<EscapeMonitor>,
    pinned: Vec<UndoGuard>,
    gathered: Option<TargetGroup>,
    supply: Supply,
    spent: Spent,
    begun_ns: u64,
}

impl CpuQuota {
    fn begin(
        guardian: &Guardian,
        target: &Target,
        place: &QuotaGroupPath,
        request: &BackendRequest,
    ) -> Result<CpuQuota, Refusal> {
        let refused = |error: io::Error| explain(&error, target);
        let by_thread = matches!(target, Target::Thread(_));
        let gathered = make(guardian, &place.parent, &place.home, by_thread).map_err(refused)?;
        let group = gathered.group.clone();
        limit(&group, request).map_err(refused)?;
        let mut capped = CpuQuota {
            leavers: None,
            pinned: Vec::new(),
            gathered: Some(gathered),
            supply: Supply::default(),
            spent: Spent::default(),
            begun_ns: now_ns(ClockId::Monotonic),
        };
        if let Some(cpu) = request.cpu {
            // Before it moves, so that what it forks meanwhile inherits.
            for tid in members::threads_in(target) {
                match unless_gone(capped.pin(guardian, tid, cpu)) {
                    // Nor is it moved into the group.
                    Err(error) if ownership::foreign(&error).is_some() => {}
                    pinned => pinned.map_err(|error| not_pinned(&error, target, cpu))?,
                }
            }
        }
        let taken = capped.gathered.as_ref().map_or(Ok(()), |gathered| gathered.take(target));
        taken.map_err(refused)?;
        capped.leavers = Some(EscapeMonitor::watch(&group, target));
        Ok(capped)
    }

    fn pin(&mut self, guardian: &Guardian, tid: u32, cpu: u32) -> io::Result<()> {
        let cpus = Some(thread::affinity_of(tid)?);
        let undo =
            UndoAction::Thread { thread: TaskIdentity::of_task(tid)?, attributes: None, cpus };
        self.pinned.push(guardian.keep(&undo)?);
        ownership::pin(tid, &[cpu])
    }
}

fn limit(group: &Group, request: &BackendRequest) -> io::Result<()> {
    let (budget, period) = microseconds(request);
    match group.version() {
        Version::V2 => group.write("cpu.max", &format!("{budget} {period}")),
        Version::V1 => {
            group.write("cpu.cfs_period_us", &period.to_string())?;
            group.write("cpu.cfs_quota_us", &budget.to_string())
        }
    }
}

/// Budget and period; a limit is rounded down.
fn microseconds(request: &BackendRequest) -> (u64, u64) {
    let reservation = &request.reservation;
    (reservation.budget().nanos_or_zero() / 1_000, reservation.period().nanos_or_zero() / 1_000)
}

/// The kernel's counts of a group. It counts only periods in which the group ran, and does not report what each of them
/// was given.
fn read_supply(group: &Group) -> io::Result<(Supply, Option<u64>)> {
    let text = group.read("cpu.stat")?;
    let used_us = number_in(&text, "usage_usec");
    Ok((read(&text, group.version()), used_us.map(|us| us.saturating_mul(1_000))))
}

fn number_in(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, number) = line.split_once(' ')?;
        (name == key).then(|| number.trim().parse().ok())?
    })
}

fn read(text: &str, version: Version) -> Supply {
    let number = |key: &str| number_in(text, key);
    let throttled_ns = match version {
        Version::V2 => number("throttled_usec").map(|us| us.saturating_mul(1_000)),
        Version::V1 => number("throttled_time"),
    };
    Supply {
        periods: number("nr_periods").unwrap_or(0),
        overruns: number("nr_throttled").unwrap_or(0),
        throttled_ns,
        ..Supply::default()
    }
}

impl ActiveReservation for CpuQuota {
    fn supply(&mut self) -> Supply {
        if let Some((supply, used_ns)) =
            self.gathered.as_ref().and_then(|own| read_supply(&own.group).ok())
        {
            self.supply = supply;
            let wall_ns = now_ns(ClockId::Monotonic).saturating_sub(self.begun_ns);
            self.spent = Spent { used_ns, wall_ns, ..Spent::default() };
        }
        self.supply.clone()
    }

    fn spent(&mut self) -> Spent {
        self.spent
    }

    fn accuracy_warnings(&self) -> Vec<AccuracyWarning> {
        self.leavers.as_ref().map(EscapeMonitor::doubts).unwrap_or_default()
    }

    fn release(&mut self) -> io::Result<()> {
        self.supply();
        self.leavers.iter_mut().for_each(EscapeMonitor::end);
        let mut done = Ok(());
        for kept in self.pinned.drain(..) {
            done = done.and(kept.undo());
        }
        done.and(self.gathered.take().map_or(Ok(()), TargetGroup::dissolve))
    }
}

fn refusal(id: Obstacle, cause: String, remedy: &str) -> Refusal {
    Refusal { backend: BackendKind::Quota, id, errno: None, cause, remedy: remedy.to_owned() }
}

fn times(request: &BackendRequest) -> Option<Refusal> {
    let (budget, period) = microseconds(request);
    if budget >= SHORTEST_US && (SHORTEST_US..=LONGEST_US).contains(&period) {
        return None;
    }
    let reservation = &request.reservation;
    Some(refusal(
        Obstacle::Times,
        format!(
            "a quota of {} in every {} is not taken by the kernel",
            reservation.budget(),
            reservation.period()
        ),
        "choose a budget of at least 1ms and a period from 1ms to 1s",
    ))
}

/// The cause of the kernel's answer to a CPU: EINVAL is about that, and not about the group.
fn not_pinned(error: &io::Error, target: &Target, cpu: u32) -> Refusal {
    if error.kind() != io::ErrorKind::InvalidInput {
        return explain(error, target);
    }
    let cause = format!("process {} may not run on CPU {cpu}: {error}", target.id());
    let known =
        refusal(Obstacle::Cpu, cause, "take a CPU of /sys/devices/system/cpu/online with --cpu");
    Refusal { errno: error.raw_os_error(), ..known }
}

fn explain(error: &io::Error, target: &Target) -> Refusal {
    let id = target.id();
    let errno = error.raw_os_error();
    let gone = errno == Some(ownership::ESRCH) || members::state_of(id).is_none();
    let known = match error.kind() {
        _ if gone => refusal(
            Obstacle::Gone,
            format!("process {id} has ended"),
            "start it again, and reserve for its new number",
        ),
        io::ErrorKind::NotFound => refusal(
            Obstacle::Missing,
            "no control group has the cpu controller for its children".to_owned(),
            "on a machine with systemd: systemd-run --scope -p CPUQuota=38% -- hourglass ...; else as \
             root: echo +cpu > /sys/fs/cgroup/cgroup.subtree_control",
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => refusal(
            Obstacle::Capability,
            format!("no control group can be made: {error}"),
            "sudo hourglass ...; in a container: --privileged; or systemd-run --scope -p CPUQuota=38% \
             -- COMMAND",
        ),
        io::ErrorKind::Unsupported => refusal(
            Obstacle::Missing,
            format!("a quota for thread {id} alone takes cgroup version 1"),
            "--pid for its whole process",
        ),
        io::ErrorKind::InvalidInput => refusal(
            Obstacle::GroupBudget,
            format!(
                "process {id} has real-time threads, which a group without real-time time does not take"
            ),
            "give them a time-sharing policy first: sudo chrt --other -p 0 TID",
        ),
        _ => refusal(
            Obstacle::Missing,
            format!("a quota for process {id} cannot be set: {error}"),
            "--backend user",
        ),
    };
    Refusal { errno, ..known }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Program};
    use hourglass_skip::{Requirement, skip};

    fn request(budget_us: i64, period_us: i64) -> BackendRequest {
        let cpu = thread::affinity().unwrap().last().copied();
        BackendRequest { cpu, ..testing::request(budget_us, period_us) }
    }

    /// Documentation/admin-guide/cgroup-v2.rst and Documentation/scheduler/sched-bwc.rst: keys and units.
    #[test]
    fn both_versions_of_the_statistics_are_read() {
        let second = "usage_usec 9\nnr_periods 40\nnr_throttled 7\nthrottled_usec 1500\n";
        let first = "nr_periods 40\nnr_throttled 7\nthrottled_time 1500000\nnr_bursts 0\n";
        let expected =
            Supply { periods: 40, overruns: 7, throttled_ns: Some(1_500_000), ..Supply::default() };
        assert_eq!(read(second, Version::V2), expected);
        assert_eq!(read(first, Version::V1), expected);
        assert_eq!(read("", Version::V1).throttled_ns, None);
    }

    /// cgroup-v2.rst: `$MAX $PERIOD` in microseconds. sched-bwc.rst: two files in version 1.
    #[test]
    fn each_version_is_given_its_two_numbers() {
        let folder = tempfile::TempDir::new().unwrap();
        let folder = folder.path();
        for name in ["cpu.max", "cpu.cfs_period_us", "cpu.cfs_quota_us"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        for version in [Version::V1, Version::V2] {
            limit(&Group::at(version, folder), &request(3_100, 8_000)).unwrap();
        }
        let group = Group::at(Version::V2, folder);
        let texts = ["cpu.max", "cpu.cfs_period_us", "cpu.cfs_quota_us"].map(|f| group.read(f));
        assert_eq!(texts.map(Result::unwrap), ["3100 8000", "8000", "3100"]);
    }

    #[test]
    fn times_outside_the_kernels_range_are_refused() {
        let own = Target::Process(std::process::id());
        for (budget, period) in [(999, 10_000), (5_000, 1_000_001), (500, 900)] {
            let refusals = check(&own, &request(budget, period), &AdmissionFacts::here(None));
            assert_eq!(refusals.first().map(|refusal| refusal.id), Some(Obstacle::Times));
        }
    }

    /// The bug: the check said yes to a CPU that is not there, and the refusal spoke of real-time threads.
    #[test]
    fn a_cpu_that_is_not_there_is_refused_as_one() {
        let offline = BackendRequest { cpu: Some(8_000), ..request(2_000, 10_000) };
        let own = Target::Process(std::process::id());
        let checked = check(&own, &offline, &AdmissionFacts::here(None));
        assert_eq!(checked.first().map(|refusal| refusal.id), Some(Obstacle::Cpu));
        let child = Program::sleeping();
        let target = Target::Process(child.pid());
        let refused = Quota::new(Guardian::start().unwrap()).reserve(&target, &offline);
        let pinned = not_pinned(&io::ErrorKind::InvalidInput.into(), &target, 8_000);
        assert_eq!(refused.unwrap_err(), checked[0]);
        assert_eq!(pinned.id, Obstacle::Cpu);
        assert!(pinned.cause.contains("CPU 8000"), "{pinned}");
    }

    /// A spinning program is throttled, and afterwards is where it was.
    #[test]
    fn a_capped_program_is_throttled() {
        let child = Program::shell("while :; do :; done");
        let target = Target::Process(child.pid());
        let situation = || {
            let group = Hierarchy::with("cpu").and_then(|cpu| cpu.group_of(child.pid()));
            (group.ok().map(|group| group.path().to_owned()), thread::affinity_of(child.pid()).ok())
        };
        let before = situation();
        let quota = Quota::new(Guardian::start().unwrap());
        let reserved = quota.reserve(&target, &request(2_000, 10_000));
        let outcome = reserved.map(|mut capped| {
            let inside = situation();
            // The time is counted when it is over.
            testing::soon("it is throttled", || capped.supply().throttled_ns != Some(0));
            let released = capped.release();
            (inside, released, capped.supply())
        });
        let after = situation();
        match outcome {
            Ok((inside, released, supply)) => {
                released.unwrap();
                assert!(inside != before);
                assert!(supply.overruns > 0 && supply.periods >= supply.overruns, "{supply:?}");
                assert!(supply.throttled_ns > Some(0), "{supply:?}");
            }
            Err(refusal) => {
                let known = [Obstacle::Missing, Obstacle::Capability];
                assert!(known.contains(&refusal.id), "{refusal}");
                skip(Requirement::CONTROL_GROUP, refusal);
            }
        }
        assert_eq!(after, before);
    }
}
