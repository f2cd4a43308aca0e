//! A reserve kept by a thread of this program, for those to whom the deadline class does not apply:
//! a process with all its threads and descendants shares one budget, may fork, and stays on its CPU.
//!
//! While its budget lasts, the target has a real-time priority (`SCHED_FIFO`), the higher the shorter
//! its deadline. When the budget is used up, it goes on at timesharing priority (soft) or stands
//! (hard: its control group is frozen, or its processes get SIGSTOP) until the next period. This is
//! the reservation of Inoue et al., section 4.1, kept from outside the kernel.
//!
//! Members share the CPU as they do without a reserve: the keeper lets each run for about 3 ms before the next one
//! (`turn_scheduler`), and weighs nice values as the fair class does. Who wakes waits for its turn. A reserve of one thread
//! has no turns.
//!
//! What it does not do: a yield does not end the dispatch of a period. `sched_yield` of a thread that is alone at its
//! priority changes nothing that can be read (neither its state nor its counts of switches), so that only the kernel
//! sees it; in the deadline class it does end the period. A thread of this process that is done calls
//! [`EndPeriod::end`] instead.
//! A thread that sets a real-time policy itself has it until its next turn; a timesharing one, and its nice value, it
//! has again whenever it is not raised. Who leaves the CPUs of the reservation is brought back (`member_set/places.rs`). Threads that others put into
//! a real-time class above priority 88 are not in the account, but for those of the deadline class.
//!
//! Owns: [`User`]. `budget` and `turn_scheduler` decide, `enforcer` carries out, `member_set` knows the members.
//!
//! # How a reserve is kept from user space
//!
//! `reserve::backend::user` has a thread for each reservation, FIFO above all that it raises. `Budget` decides and
//! knows nothing but times: at each look it takes the processor time used so far, and answers with a level (raised,
//! lowered, suspended) and with the earliest time at which the budget can be used up, which is the next look. Hours of
//! it run on virtual time in tests. `MemberSet` knows the members: a control group where one can be made, since it
//! counts what has ended and catches what is forked, otherwise a walk through `/proc`. The kernel brings the processor
//! time of a running thread up to date at the tick only. So the thread looks from the CPU of the members, where they do
//! not run while it does; if they have several CPUs, it changes their priority by one and back, which has the same
//! effect. A period is missed if the members would have had their budget without the time in which they were denied a
//! CPU beyond what other reservations may take (`claims.rs`): who comes late in its period may have to wait for those.
//! `demand.rs` takes that time from the kernel's counts of waits, and never overestimates it.
//!
//! `escaped_threads.rs` looks from a timesharing thread whether members leave the control group, which ends what is promised.
//!
//! Members of one FIFO priority would run one after the other. So `turn_scheduler.rs` decides, by processor time and nice value, who
//! comes next, and `time_sharing.rs` carries that out after each slice by the two priorities of a reserve: who is raised goes
//! behind the others of its new priority, who is lowered before them. Members are lowered before they are frozen, since one
//! that holds the kernel's lock of control groups must come to release it. `backend/nested.rs` refuses a reservation inside
//! another one, or around one.
//!
//! A guardian that acts on the broken promise of one reservation changes the members of all; so each keeper asks at each look
//! whether one has acted, and gives its order again. While no guardian lives (`guardian_lost.rs`), a start waits for the next one,
//! and members that cannot be suspended are lowered.
//!
//! What a reservation changes is written down with the guardian before it is changed. The guardian is two processes that
//! put everything back when this one ends by whatever signal; they allocate no memory for it. A
//! normal end goes the same way. Other reservations of this kind are found in `/run/hourglass/claims` (`registry.rs`): a file
//! each, which root or its group makes and the holder locks, so that the kernel ends it with the process and says who that
//! is. An entry is made first and the others are read afterwards, so that of two at the same time at least one sees the
//! other; whether one more fits (`claims.rs`) is `sched`'s to say.
//!
//! Whose threads may be changed at all is said in one place (`reserve::ownership`), through which every change of another
//! process's thread goes: root changes all, everybody else those whose real, effective and saved user are their own.

mod admit;
mod budget;
mod change;
mod claims;
mod cpu_usage;
mod demand;
mod enforcer;
#[cfg(test)]
#[path = "tests/escaped.rs"]
mod escaped;
mod gap;
mod guardian_lost;
#[cfg(test)]
#[path = "tests/guardians.rs"]
mod guardians;
#[cfg(test)]
#[path = "tests/killed.rs"]
mod killed;
#[cfg(test)]
#[path = "tests/meddling.rs"]
mod meddling;
mod member_set;
mod member_state;
mod reach;
mod registry;
#[cfg(test)]
#[path = "tests/live.rs"]
mod tests;
mod time_sharing;
mod turn_scheduler;
mod unseen;
mod urgent;
mod written;

pub use self::claims::less_urgent;
use std::io;
use std::path::Path;

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;
use hourglass_time::Span;

pub(super) use self::admit::in_class_beside;
pub(crate) use self::admit::remove_claims;
use self::admit::{admit, refusal};
pub(crate) use self::admit::{check, check_above, check_present, in_force, unseen};
use self::budget::BudgetTerms;
pub(crate) use self::change::{alone, may_change};
use self::claims::{ReservationClaim, priority_for};
use self::enforcer::BudgetEnforcer;
pub(super) use self::enforcer::NAME as KEEPER;
pub use self::enforcer::{EndPeriod, EnforcerReport};
use self::member_set::{MemberSet, TeamPolicy};
pub(crate) use self::registry::StaleClaim;
use self::registry::{Registry, RegistryEntry};
use super::escaped_threads::EscapeMonitor;
use super::target_group::may_gather_thread;
use super::{
    AccuracyWarning, ActiveReservation, Backend, BackendKind, BackendRequest, members, nested,
};
use crate::admission::facts::AdmissionFacts;
use crate::admission::{self, Obstacle, Refusal};
use crate::guardian::{Guardian, GuardianUnavailable};
use crate::ownership::ESRCH;
use crate::supply::{Spent, Supply};
use crate::target::Target;

/// A warning names the left-out periods if they are more than one part in `TOLERATED_PART` of the others.
const TOLERATED_PART: u64 = 100;

/// Keeps reservations by a thread for each.
#[derive(Clone, Debug)]
pub struct User {
    guardian: Guardian,
    grouped: bool,
    claims: bool,
}

impl User {
    /// `guardian` records changes before they are made.
    #[must_use]
    pub fn new(guardian: Guardian) -> User {
        User { guardian, grouped: true, claims: true }
    }

    /// Makes no control groups: members are found in `/proc`, and stopped by signals.
    #[must_use]
    pub fn without_groups(self) -> User {
        User { grouped: false, ..self }
    }

    /// Claims no share of its CPUs: it runs within what another reservation of this process has claimed there, and the
    /// caller ensures that the two do not run at the same time.
    #[must_use]
    pub fn within(self) -> User {
        User { claims: false, ..self }
    }

    /// As [`Backend::reserve`], with the concrete type.
    ///
    /// # Errors
    /// As [`Backend::reserve`].
    pub fn keep(
        &self,
        target: &Target,
        request: &BackendRequest,
    ) -> Result<UserReservation, Refusal> {
        let first = target.id();
        let refused = |error: io::Error| explain(&error, target, request);
        admission::ownership(BackendKind::User, first)?;
        nested::refusal(BackendKind::User, target).map_or(Ok(()), Err)?;
        check_target(target, request)?;
        let cpus = cpus_of(target, request).map_err(refused)?;
        let share = ReservationClaim::new(&request.reservation, cpus.iter().copied().collect());
        // Written down first: of two at the same time at least one sees the other.
        let entry =
            self.claims.then(|| Registry::of_the_machine().enter(Some(&self.guardian), &share));
        let facts = AdmissionFacts::here(Some(first));
        check(request, &facts).into_iter().next().map_or(Ok(()), Err)?;
        if let Some(entry) = &entry {
            admit(&share, entry.others(), &facts)?;
        }
        let mut enforcer = BudgetEnforcer::start(&cpus).map_err(refused)?;
        let plan = TeamPolicy {
            priority: priority_for(share.deadline_ns),
            pin: request.cpu,
            cpus: cpus.clone(),
            freezes: request.reservation.strength() == ReservationKind::Hard,
            grouped: self.grouped,
            privileged: facts.sys_nice == Some(true) && facts.user_namespace != Some(true),
        };
        let team = MemberSet::assemble(&self.guardian, target, plan).map_err(refused)?;
        let leavers = team.group().map(|group| EscapeMonitor::watch(group, target));
        let grouped = team.group().is_some() || matches!(target, Target::Thread(_));
        let reservation = request.reservation;
        let cpus_at_once = match target {
            Target::Thread(_) => 1,
            Target::Process(_) => cpus.len() as u64,
        };
        let terms = BudgetTerms::new(&reservation, cpus_at_once);
        let pledge = self.guardian.pledge().map_err(refused)?;
        let mut class = Vec::new();
        if let Some(entry) = &entry {
            class = admit::class_above(&share);
            let (planned_ns, sharers) = admit::planned(entry, &class);
            enforcer.plan(planned_ns, sharers);
        }
        enforcer.enforce(team, terms, pledge, cpus.len() > 1).map_err(refused)?;
        Ok(UserReservation { leavers, enforcer, grouped, entry, class, reservation, cpus_at_once })
    }
}

impl Backend for User {
    fn kind(&self) -> BackendKind {
        BackendKind::User
    }

    fn guarantee(&self) -> bool {
        true
    }

    fn reserve(
        &self,
        target: &Target,
        request: &BackendRequest,
    ) -> Result<Box<dyn ActiveReservation>, Refusal> {
        self.keep(target, request)
            .map(|keeping| -> Box<dyn ActiveReservation> { Box::new(keeping) })
    }
}

/// A reservation of this kind in force.
#[derive(Debug)]
pub struct UserReservation {
    /// Before the enforcer, which removes the group: it looks a last time.
    leavers: Option<EscapeMonitor>,
    enforcer: BudgetEnforcer,
    grouped: bool,
    entry: Option<RegistryEntry>,
    /// Threads of the deadline class, as they were when a period was last missed, or at the begin.
    class: Vec<ReservationClaim>,
    reservation: Reservation,
    cpus_at_once: u64,
}

impl UserReservation {
    /// The latest report of the thread that keeps it.
    #[must_use]
    pub fn report(&self) -> EnforcerReport {
        self.enforcer.report()
    }

    /// A handle that ends the present period, for threads of this process that are done with their job.
    #[must_use]
    pub fn ender(&self) -> EndPeriod {
        self.enforcer.ender()
    }

    /// Whether the kernel keeps the members together, in a control group, or there is one only.
    /// Otherwise they are looked for in `/proc` once a period, and what a process used between the
    /// last look and its end is not seen.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        self.grouped
    }
}

impl ActiveReservation for UserReservation {
    fn supply(&mut self) -> Supply {
        self.enforcer.report().supply
    }

    fn spent(&mut self) -> Spent {
        self.report().spent
    }

    fn accuracy_warnings(&self) -> Vec<AccuracyWarning> {
        let report = self.report();
        let unseen = self.entry.as_ref().and_then(RegistryEntry::doubt);
        let outside = self.leavers.iter().flat_map(EscapeMonitor::doubts);
        let mut doubts: Vec<AccuracyWarning> =
            unseen.into_iter().chain(outside).chain(report.moved.doubt()).collect();
        if report.left_out > report.supply.periods / TOLERATED_PART {
            let left_out = report.left_out;
            let latest = Span::saturating_from_nanos(report.latest_ns / 1_000 * 1_000);
            doubts.push(AccuracyWarning {
                id: "periods-left-out",
                text: format!(
                    "periods that are not counted: {left_out}; the sample at their end came too late to show what was \
                     used before it (by up to {latest})"
                ),
                remedy: "run nothing above FIFO 95 on these CPUs; in a virtual machine, the host took them",
            });
        }
        if !self.grouped {
            doubts.push(AccuracyWarning {
                id: "members-searched",
                text: "no control group could be made: members are searched once a period, and CPU time of a \
                       process between the last sample and its end is not counted"
                    .to_owned(),
                remedy: "run it as root, or where cgroup version 2 is writable",
            });
        }
        if report.absent > 0 {
            doubts.push(AccuracyWarning {
                id: "keeper-absent",
                text: format!(
                    "the thread that enforces the reserve did not run for four periods, and 100 ms at least, {}: the work \
                     had time-sharing priority until it ran again, since its budget was not enforced",
                    if report.absent == 1 { "once".to_owned() } else { format!("{} times", report.absent) }
                ),
                remedy: "do not stop hourglass itself (Ctrl-Z does), and run nothing above FIFO 95 on these CPUs",
            });
        }
        if report.foreign > 0 {
            doubts.push(AccuracyWarning {
                id: "members-of-others",
                text: format!(
                    "members that belong to another user, as set-uid programs do, were not given the budget: up to {} \
                     at a time",
                    report.foreign
                ),
                remedy: "run it as root, whose reservations have all members",
            });
        }
        if let Some(fault) = report.fault {
            doubts.push(AccuracyWarning {
                id: "order-refused",
                text: format!(
                    "the kernel refused {} orders to raise, lower, suspend or resume, which were given \
                     again until it took them; the first time: {fault}",
                    report.refused
                ),
                remedy: "run it as root; members of other users are out of reach otherwise",
            });
        }
        doubts
    }

    fn outranked_by(&self) -> Vec<String> {
        if self.report().busy {
            return vec!["keeper-busy".to_owned()];
        }
        self.entry.as_ref().map_or_else(Vec::new, admit::above)
    }

    fn look(&mut self) {
        let Supply { periods, missed, .. } = self.supply();
        let Some(entry) = &mut self.entry else { return };
        if entry.missed() < missed {
            self.class = admit::class_above(entry.share());
        }
        let (planned_ns, sharers) = admit::planned(entry, &self.class);
        self.enforcer.plan(planned_ns, sharers);
        entry.tell(periods, missed);
    }

    fn change(&mut self, budget: Span, period: Span) -> Result<(), String> {
        self.change_to(budget, period)
    }

    fn first_ns(&self) -> Option<u64> {
        Some(self.enforcer.report().first_ns)
    }

    fn release(&mut self) -> io::Result<()> {
        self.leavers.iter_mut().for_each(EscapeMonitor::end);
        self.enforcer.end()
    }
}

/// The CPUs of a reservation: where its members may be.
///
/// # Errors
/// ESRCH if the target has ended.
pub(crate) fn cpus_of(target: &Target, request: &BackendRequest) -> io::Result<Vec<u32>> {
    if let Some(cpu) = request.cpu {
        return Ok(vec![cpu]);
    }
    let first = target.id();
    let mut cpus = thread::affinity_of(first)?;
    if let Target::Process(_) = target {
        // A thread that ends meanwhile needs no CPU.
        let threads = members::threads_in(target).into_iter();
        cpus.extend(threads.filter_map(|tid| thread::affinity_of(tid).ok()).flatten());
        cpus.sort_unstable();
        cpus.dedup();
    }
    Ok(cpus)
}

/// Refuses what stands in the way of a reservation for this target, whatever its CPUs have to give: what is in the deadline
/// class, and a thread that could not be suspended by itself. Changes nothing.
pub(crate) fn check_target(target: &Target, request: &BackendRequest) -> Result<(), Refusal> {
    let refused = |error: io::Error| explain(&error, target, request);
    check_suspendable(target)?;
    if let Some(Attributes::Deadline { .. }) = sched::read(target.id()).map_err(refused)? {
        return Err(in_the_class(target.id()));
    }
    let freezes = request.reservation.strength() == ReservationKind::Hard;
    match target {
        Target::Thread(tid) if freezes => {
            may_gather_thread(*tid).map_err(|_| refused(io::ErrorKind::Unsupported.into()))
        }
        _ => Ok(()),
    }
}

/// Refuses a process that has this one among its descendants, which would suspend its own keeper, and threads of the
/// kernel, which must not be suspended.
fn check_suspendable(target: &Target) -> Result<(), Refusal> {
    let first = target.id();
    if members::is_kernel_thread(first) {
        return Err(refusal(
            Obstacle::Missing,
            format!("{first} is a thread of the kernel"),
            "name a process of your own",
        ));
    }
    if matches!(target, Target::Process(_)) && members::tree(first).contains(&std::process::id()) {
        return Err(refusal(
            Obstacle::Missing,
            format!("this command runs inside process {first}, and would suspend itself with it"),
            "call it from another shell; or --thread TID for a single thread",
        ));
    }
    Ok(())
}

fn in_the_class(tid: u32) -> Refusal {
    refusal(
        Obstacle::Missing,
        format!("thread {tid} is in the deadline class already"),
        "end its reservation there first: sudo chrt --other -p 0 TID",
    )
}

/// Whether no process can be looked up, so that all seem to have ended.
fn no_proc() -> bool {
    !Path::new("/proc/self").exists()
}

fn explain(error: &io::Error, target: &Target, request: &BackendRequest) -> Refusal {
    if let Some(refusal) = admission::ownership_of(BackendKind::User, error) {
        return refusal;
    }
    if GuardianUnavailable::is_behind(error) {
        return guardian_lost::refusal();
    }
    let first = target.id();
    let errno = error.raw_os_error();
    let known = match (error.kind(), errno) {
        (io::ErrorKind::NotFound, _) | (_, Some(ESRCH)) if no_proc() => refusal(
            Obstacle::Missing,
            "there is no /proc, which lists processes".to_owned(),
            "mount -t proc proc /proc",
        ),
        (io::ErrorKind::NotFound, _) | (_, Some(ESRCH)) => refusal(
            Obstacle::Gone,
            format!("process {first} has ended"),
            "start it again, and reserve for its new number",
        ),
        (io::ErrorKind::TimedOut, _) => refusal(
            Obstacle::Bandwidth,
            "the thread that would keep the reserve did not get its CPU for 2 s: threads above FIFO \
             95 use all of it"
                .to_owned(),
            "take another CPU with --cpu, or end them",
        ),
        (io::ErrorKind::PermissionDenied, _) => {
            let facts = AdmissionFacts::here(Some(first));
            admission::user(request, &facts).into_iter().next().unwrap_or_else(|| {
                refusal(
                    Obstacle::Capability,
                    format!("the priority of process {first} cannot be changed: {error}"),
                    "sudo hourglass ...; in a container also --cap-add SYS_NICE --security-opt \
                     seccomp=unconfined",
                )
            })
        }
        (io::ErrorKind::Unsupported, _) => refusal(
            Obstacle::Missing,
            format!(
                "thread {first} alone cannot be suspended: that takes the freezer of cgroup version 1, and \
                 the right to make a group there"
            ),
            "--soft, or --pid for the whole process, or --backend deadline",
        ),
        _ => refusal(
            Obstacle::Missing,
            format!("a user-space reserve for process {first} cannot be kept: {error}"),
            "--backend deadline",
        ),
    };
    Refusal { errno, ..known }
}
