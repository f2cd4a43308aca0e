//! Protection from co-runners of the reserved processor: which they are, how they are stopped, how far the reserved
//! work is.

use hourglass_documents::Reservation;
use hourglass_documents::document::Warning;
use hourglass_documents::reserve::{ReserveDocument, ReserveRefusal, SmtReport};
use hourglass_sys::cgroup::{Group, Version};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread;
use hourglass_time::Span;

use super::additional::{self, AdditionalReservations};
use super::{CoRunnerSettings, SessionFailure, SessionRequest, SessionTarget, SiblingPolicy};
use crate::backend::members;
use crate::guardian::Guardian;
use crate::ownership::name_of;
use crate::progress::page::ProgressPage;
use crate::smt::co_runners::select;
use crate::smt::driver::{Driver, MonitorConfig};
use crate::smt::enforcer::MonitoredReservation;
use crate::smt::jobs::JobReservation;
use crate::smt::monitor::{JobCounts, MonitorSettings};
use crate::smt::stopper::{
    CoRunners, StopTrialSetup, Stopper, StopperKind, StopperRequest, check, choose,
};
use crate::smt::topology::{SharingCpus, Topology};
use crate::smt::watchdog_stopper::GuardedStopper;
use crate::target::Target;

mod cover;
pub(super) mod progress;
mod warnings;

pub(super) use cover::cover;
use cover::{checks, covered_by, promise, together};

/// How long a monitor may be silent while co-runners stand, beside two periods, ns.
const PATIENCE_NS: u64 = 500_000_000;

/// The threads that keep and watch a reservation take one part in this number of its budget, with room.
const OWN_PART: u64 = 100;

pub(super) struct Protection {
    driver: Driver,
    shares: Vec<u32>,
    against: Vec<String>,
    guardian: Guardian,
    trial_ns: Option<u64>,
    page: Option<ProgressPage>,
    /// Where it got lost on the way to the program, if that was seen.
    lost: Option<LostPage>,
}

impl Protection {
    /// Looks once, when the command runs, whether its processes still have their page under descriptor `handed`.
    pub(super) fn check_pages(&mut self, target: &Target, handed: Option<u32>) {
        let (Some(page), Some(descriptor), Target::Process(root)) = (&self.page, handed, target)
        else {
            return;
        };
        if page.was_opened() {
            return;
        }
        let closed = |pid: &u32| ProgressPage::is_held_by(*pid, descriptor) == Some(false);
        let lost = members::tree(*root).into_iter().find(closed);
        self.lost = lost.map(|pid| LostPage::by(pid, descriptor));
    }

    /// Ends it; all co-runners run again. Returns its report, the warnings, and the counts of the jobs of each
    /// reservation.
    pub(super) fn end(self) -> (SmtReport, Vec<Warning>, Vec<JobCounts>) {
        let (report, each) = self.driver.stop_each();
        let (broken, guarded) = (self.guardian.woken(), self.guardian.is_alive());
        let unbroken = broken == 0 && guarded;
        let smt = report.to_document(&self.shares);
        let protected = smt.protected && unbroken;
        let mut warnings = warnings::after(&report, broken, self.guardian.replaced(), guarded);
        let watched = self.page.as_ref().filter(|_| smt.jobs > 0 || self.lost.is_some());
        warnings.extend(
            watched.and_then(|page| warnings::no_progress_warning(page, self.lost.as_ref())),
        );
        let (against, stop_trial_ns) = (self.against, self.trial_ns);
        let page = self.page.as_ref().map(|page| warnings::page(page).to_owned());
        (SmtReport { protected, against, broken, stop_trial_ns, page, ..smt }, warnings, each)
    }
}

/// The warnings of a guardian that has no co-runners to let run again.
pub(super) fn of_the_guardian(guardian: &Guardian) -> Vec<Warning> {
    warnings::of_the_guardian(0, guardian.replaced(), guardian.is_alive())
}

/// A process that was to tell its progress, or to start one that does, and that has not got the page any more.
pub(super) struct LostPage {
    pid: u32,
    name: String,
    descriptor: u32,
}

impl LostPage {
    fn by(pid: u32, descriptor: u32) -> LostPage {
        LostPage { pid, name: name_of(pid), descriptor }
    }
}

fn against(siblings: &CoRunnerSettings) -> Vec<String> {
    match (siblings.policy, &siblings.stopped[..]) {
        (SiblingPolicy::Ignore, _) => Vec::new(),
        (_, []) => vec!["everybody".to_owned()],
        (_, named) => named.iter().map(ToString::to_string).collect(),
    }
}

/// The page on which the command tells its progress, where that is wanted.
pub(super) fn page(request: &SessionRequest) -> Result<Option<ProgressPage>, SessionFailure> {
    match (&request.siblings, &request.subject) {
        (Some(_), SessionTarget::Command(_)) => ProgressPage::create()
            .map(Some)
            .map_err(|error| SessionFailure::Siblings(error.to_string())),
        _ => Ok(None),
    }
}

pub(super) struct CoRunnerProtection<'a> {
    request: &'a SessionRequest,
    siblings: &'a CoRunnerSettings,
    shares: SharingCpus,
    stopper: Box<dyn Stopper>,
    stopping: StopTiming,
    guardian: Guardian,
    counters: Vec<progress::InstructionCounter>,
}

#[derive(Clone, Copy)]
struct StopTiming {
    /// From the order on, in 999 of 1,000 cases, and in all trials on the co-runners themselves.
    settle_ns: u64,
    /// Slack at which the order is given: the same, how late timers are, and what our own threads take
    /// of the reserved CPU.
    margin_ns: u64,
    /// Time that it took to stop the co-runners themselves at the start.
    trial_ns: Option<u64>,
}

/// The co-runners of the reserved processor, if that was requested and there are any, and how they are stopped, which
/// is measured here.
pub(super) fn sharing<'a>(
    request: &'a SessionRequest,
    targets: &[Target],
    guardian: &Guardian,
    document: &mut ReserveDocument,
) -> Result<Option<CoRunnerProtection<'a>>, SessionFailure> {
    let (Some(asked), Some(target)) = (&request.siblings, targets.first()) else { return Ok(None) };
    let counters = progress::counters(asked, targets.iter())?;
    let Some((siblings, shares)) = check_pages(request, target, document)? else { return Ok(None) };
    let (stopper, stopping) = stopper(request, siblings, targets, &shares, guardian, document)?;
    let guardian = guardian.clone();
    Ok(Some(CoRunnerProtection {
        request,
        siblings,
        shares,
        stopper,
        stopping,
        guardian,
        counters,
    }))
}

/// The CPUs that share the reserved processor, if that was requested and there are any; otherwise a warning is added.
pub(super) fn check_pages<'a>(
    request: &'a SessionRequest,
    target: &Target,
    document: &mut ReserveDocument,
) -> Result<Option<(&'a CoRunnerSettings, SharingCpus)>, SessionFailure> {
    let Some(siblings) = &request.siblings else { return Ok(None) };
    let cpu = reserved_cpu(request, target)?;
    let shares = Topology::default().shares(cpu, &siblings.interference).map_err(failed)?;
    if shares.is_shared() {
        return Ok(Some((siblings, shares)));
    }
    document.smt = Some(unshared_report(siblings));
    document.warnings.push(warnings::no_claim(&shares, siblings));
    Ok(None)
}

/// The reservation that the backend is asked for. Work beside co-runners takes more processor time than it has reserved
/// in single-thread time, and must not be throttled before it is done: it may take all until the deadline, since the
/// monitor sees to it that it does not need more. Nine tenths of the period at most, which leaves the machine
/// something.
pub(super) fn covering(
    asked: Reservation,
    sharing: Option<&CoRunnerProtection<'_>>,
) -> Reservation {
    sharing.map_or(asked, |sharing| cover(asked, sharing.policy(), sharing.stopping.margin_ns))
}

/// Whether the monitor sees to it that reservations do not run at the same time, and so within what one of them has
/// claimed.
pub(super) fn is_watched(sharing: Option<&CoRunnerProtection<'_>>) -> bool {
    sharing.is_some_and(|sharing| sharing.siblings.policy != SiblingPolicy::Ignore)
}

impl CoRunnerProtection<'_> {
    /// The policy by which is covered: several reservations are slowed by one another's waiting as well.
    fn policy(&self) -> SiblingPolicy {
        covered_by(self.request, self.siblings.policy)
    }
}

/// Says what the backend was asked for, if that is more than the budget.
pub(super) fn describe(document: &mut ReserveDocument, given: &Reservation) {
    if super::document::is_limit(document) {
        return;
    }
    let kept_ns = given.budget().nanos_or_zero();
    document.kept_ns = Some(kept_ns);
    if kept_ns > document.budget_ns {
        // In hundredths of a millisecond: the margin in it is measured, and has no more digits that say anything.
        let whole = if kept_ns > 100_000 { kept_ns / 10_000 * 10_000 } else { kept_ns };
        let covered = Span::saturating_from_nanos(whole);
        document.reason.push_str(&format!(
            "; {covered} of each period are kept for it, so that work slowed by a sibling is not \
             throttled before it is done"
        ));
    }
}

/// Starts the monitor for the target. It has proved that it runs when this returns.
pub(super) fn protect(
    mut sharing: CoRunnerProtection<'_>,
    target: &Target,
    page: Option<ProgressPage>,
    first_ns: Option<u64>,
    others: &AdditionalReservations<'_>,
) -> Result<Protection, SessionFailure> {
    let watched = watch(&mut sharing, target, page.as_ref(), first_ns, others)?;
    let CoRunnerProtection { request, siblings, shares, stopper, stopping, guardian, .. } = sharing;
    let StopTiming { settle_ns, margin_ns, trial_ns } = stopping;
    let slow_ns = siblings.graded.then(|| slowed_from(request));
    let (policy, alpha) = (siblings.policy, siblings.alpha);
    let settings = MonitorSettings {
        checks: checks(siblings),
        policy,
        alpha,
        margin_ns,
        stop_ns: settle_ns,
        slow_ns,
        ..MonitorSettings::default()
    };
    // The margin has the lateness of timers already.
    let cpus = shares.cpus.iter().collect();
    let plan = MonitorConfig { settings, cpus, timer_samples: 0, ..MonitorConfig::default() };
    let driver = Driver::start(plan, watched, stopper).map_err(failed)?;
    if let (Some(grid), Some(promised)) = (&page, driver.promised().first()) {
        grid.set_grid(promised.first_ns(), promised.period_ns());
    }
    let shares = shares.cpus.iter().collect();
    let against = against(siblings);
    Ok(Protection { driver, shares, against, guardian, trial_ns, page, lost: None })
}

/// Each reservation with its periods, its progress, and what holds it for another one's turn.
fn watch(
    sharing: &mut CoRunnerProtection<'_>,
    target: &Target,
    page: Option<&ProgressPage>,
    first_ns: Option<u64>,
    others: &AdditionalReservations<'_>,
) -> Result<Vec<MonitoredReservation>, SessionFailure> {
    let mut counters = std::mem::take(&mut sharing.counters).into_iter();
    let StopTiming { settle_ns, margin_ns, .. } = sharing.stopping;
    let policy = sharing.policy();
    let several = !sharing.request.additional.is_empty() && is_watched(Some(sharing));
    let gate =
        |target: &Target| several.then(|| additional::gate(target, &sharing.guardian)).transpose();
    // Periods are those of the backend, where it has any.
    let promised = |asked: Reservation, first_ns: Option<u64>| {
        let first_ns = first_ns.unwrap_or_else(|| now_ns(ClockId::Monotonic));
        JobReservation::new(&promise(asked, policy, margin_ns), first_ns)
    };
    let page = page.map(ProgressPage::try_clone).transpose().map_err(failed)?;
    let mut source = |target: &Target, page: Option<ProgressPage>| {
        let counted = counters.next().flatten();
        progress::source(target, page, counted, sharing.siblings, settle_ns)
    };
    let mut watched = vec![MonitoredReservation {
        reservation: promised(sharing.request.reservation, first_ns),
        progress: Box::new(source(target, page)?),
        gate: gate(target)?,
    }];
    for (also, target, first_ns) in others.watched() {
        watched.push(MonitoredReservation {
            reservation: promised(also.reservation, first_ns),
            progress: Box::new(progress::until_end(source(target, None)?, target)),
            gate: gate(target)?,
        });
    }
    Ok(watched)
}

fn failed(error: impl std::fmt::Display) -> SessionFailure {
    SessionFailure::Siblings(error.to_string())
}

/// A tenth of the slack that a period has.
fn slowed_from(request: &SessionRequest) -> u64 {
    let reservation = &request.reservation;
    let slack = reservation.deadline().nanos_or_zero() - reservation.budget().nanos_or_zero();
    slack / 10
}

fn reserved_cpu(request: &SessionRequest, target: &Target) -> Result<u32, SessionFailure> {
    if let Some(cpu) = request.cpu {
        return Ok(cpu);
    }
    match thread::affinity_of(target.id()).unwrap_or_default()[..] {
        [cpu] => Ok(cpu),
        _ => Err(SessionFailure::Words(
            "--smt: siblings are those of one CPU; say with --cpu N on which the work is to stay"
                .to_owned(),
        )),
    }
}

/// How co-runners are stopped, and what that takes at most, ns.
fn stopper(
    request: &SessionRequest,
    siblings: &CoRunnerSettings,
    targets: &[Target],
    shares: &SharingCpus,
    guardian: &Guardian,
    document: &mut ReserveDocument,
) -> Result<(Box<dyn Stopper>, StopTiming), SessionFailure> {
    if siblings.policy == SiblingPolicy::Ignore {
        return Ok((
            Box::new(NullStopper),
            StopTiming { settle_ns: 0, margin_ns: 0, trial_ns: None },
        ));
    }
    let wanted = co_runners(siblings, targets, shares, document)?;
    let kinds = kinds(siblings);
    let setup = StopTrialSetup::new(&shares.cpus).map_err(failed)?;
    let chosen = choose(&kinds, &wanted, &setup, guardian)
        .map_err(|why| failed(unnamed(siblings, why.to_string())))?;
    let own_ns = request.reservation.budget().nanos_or_zero() / OWN_PART;
    let stopping = StopTiming {
        settle_ns: chosen.stopping_ns(),
        margin_ns: match siblings.margin {
            // A margin that is given is kept: the caller knows the machine better than one measurement does.
            Some(margin) => margin.nanos_or_zero(),
            None => chosen.margin_ns().saturating_add(own_ns),
        },
        trial_ns: Some(chosen.set_ns),
    };
    let patience_ns =
        request.reservation.period().nanos_or_zero().saturating_mul(2).saturating_add(PATIENCE_NS);
    let stopper = GuardedStopper::with_heartbeat(chosen.stopper, guardian, patience_ns)
        .map_err(SessionFailure::system("the guardian does not answer"))?;
    Ok((Box::new(stopper), stopping))
}

pub(super) fn uncounted(why: &SessionFailure) -> ReserveRefusal {
    warnings::refusal("progress", &why.to_string())
}

/// Obstacles to stopping them, by the tests that a real stop makes; nothing is stopped.
pub(super) fn obstacles(
    request: &SessionRequest,
    siblings: &CoRunnerSettings,
    targets: &[Target],
    shares: &SharingCpus,
    document: &mut ReserveDocument,
) -> Vec<ReserveRefusal> {
    let cpus = shares.cpus.iter().collect();
    let monitor = Driver::check(&MonitorConfig { cpus, ..MonitorConfig::default() }).err();
    let monitor = monitor.map(|why| warnings::refusal("monitor", &why.to_string()));
    let mut refusals: Vec<ReserveRefusal> = monitor.into_iter().collect();
    refusals.extend(together(request, siblings).map(|why| warnings::refusal("sum", &why)));
    if siblings.policy == SiblingPolicy::Ignore {
        return refusals;
    }
    let wanted = match co_runners(siblings, targets, shares, document) {
        Ok(wanted) => wanted,
        Err(failure) => {
            refusals.push(warnings::refusal("co_runners", &failure.to_string()));
            return refusals;
        }
    };
    if let Err(why) = StopTrialSetup::new(&shares.cpus) {
        refusals.push(warnings::refusal("cpus", &why.to_string()));
    }
    let checked: Vec<_> = kinds(siblings).into_iter().map(|kind| check(kind, &wanted)).collect();
    if checked.iter().all(Result::is_err) {
        let each = checked.into_iter().filter_map(Result::err);
        refusals.extend(
            each.map(|why| warnings::refusal("stopper", &unnamed(siblings, why.to_string()))),
        );
    }
    refusals
}

fn kinds(siblings: &CoRunnerSettings) -> Vec<StopperKind> {
    match siblings.stopper {
        Some(kind) => vec![kind],
        // No co-runner is named, which means all.
        None if siblings.stopped.is_empty() => vec![StopperKind::CoreCookie],
        None => StopperKind::ALL.to_vec(),
    }
}

/// Completes a refusal if the user did not name processes to stop.
fn unnamed(siblings: &CoRunnerSettings, why: String) -> String {
    match &siblings.stopped[..] {
        [] => format!(
            "without --stop all work on those CPUs counts as co-runners, which only core scheduling excludes: {why}; name \
             co-runners with --stop"
        ),
        _ => why,
    }
}

/// The processes to stop: those that the user names, or all.
fn co_runners(
    siblings: &CoRunnerSettings,
    targets: &[Target],
    shares: &SharingCpus,
    document: &mut ReserveDocument,
) -> Result<StopperRequest, SessionFailure> {
    let reserved = targets.first().cloned();
    if siblings.stopped.is_empty() {
        let (co_runners, shares) = (CoRunners::Everyone, shares.cpus.clone());
        return Ok(StopperRequest { co_runners, reserved, shares, graded: siblings.graded });
    }
    let selected = select(&siblings.stopped, reserved, &shares.cpus).map_err(failed)?;
    let stopped = match &selected.wanted.co_runners {
        CoRunners::Processes(pids) => pids.iter().flat_map(|pid| members::tree(*pid)).collect(),
        CoRunners::Group(path) => members::processes_within(&Group::at(Version::V2, path.clone())),
        CoRunners::Everyone => Vec::new(),
    };
    for target in targets.iter().skip(1) {
        if stopped.contains(&target.id()) {
            return Err(additional::is_reserved(target.id()));
        }
    }
    document.warnings.extend(warnings::spared(&selected.spared));
    document.warnings.extend(selected.shared.iter().map(warnings::shared));
    Ok(StopperRequest { graded: siblings.graded, ..selected.wanted })
}

struct NullStopper;

impl Stopper for NullStopper {
    fn name(&self) -> &'static str {
        "none"
    }

    fn stop(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn resume(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The report where no CPU shares: nothing was watched, and nothing is claimed.
fn unshared_report(siblings: &CoRunnerSettings) -> SmtReport {
    SmtReport {
        policy: siblings.policy.name().to_owned(),
        progress: "none".to_owned(),
        ..SmtReport::default()
    }
}
