//! Protection from those who share the reserved processor: who they are, how they are stopped, how
//! far the reserved work is.

use hourglass_model::Reservation;
use hourglass_model::document::Warning;
use hourglass_model::reserve::{ReserveDocument, ReserveRefusal, SmtReport};
use hourglass_reserve::backend::members;
use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::progress::ProgressSource;
use hourglass_reserve::progress::cpu_time::CpuTime;
use hourglass_reserve::progress::instructions::ByInstructions;
use hourglass_reserve::progress::largest::Largest;
use hourglass_reserve::progress::page::Page;
use hourglass_reserve::progress::resting::Resting;
use hourglass_reserve::progress::word::Word;
use hourglass_reserve::smt::dead_man::DeadMan;
use hourglass_reserve::smt::driver::{Driver, Plan};
use hourglass_reserve::smt::enforcer::Watched;
use hourglass_reserve::smt::jobs::Promised;
use hourglass_reserve::smt::monitor::{REST_PART, Settings};
use hourglass_reserve::smt::sharers::select;
use hourglass_reserve::smt::stopper::{CoRunners, Kind, Setup, Stopper, Wanted, check, choose};
use hourglass_reserve::smt::topology::{Shares, Topology};
use hourglass_reserve::target::Target;
use hourglass_sys::clock::others::{ProcessTime, ThreadTime};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::instructions::Instructions;
use hourglass_sys::task_clock::TaskClock;
use hourglass_sys::thread;
use hourglass_time::Span;

use super::session::threads_of;
use super::{Failure, Request, SiblingPolicy, Siblings, Subject};

mod told;

/// How long a monitor may be silent while co-runners stand, beside two periods, ns.
const PATIENCE_NS: u64 = 500_000_000;

/// What the threads that keep and watch a reservation take of the reserved CPU, with room: this part of
/// the budget.
const OWN_PART: u64 = 100;

/// A protection in force.
pub(super) struct Protection {
    driver: Driver,
    shares: Vec<u32>,
    /// Who is kept off.
    against: Vec<String>,
    guardian: Guardian,
    trial_ns: Option<u64>,
}

impl Protection {
    /// Ends it; everybody runs again. What it did, and what a reader must know of it.
    pub(super) fn end(self) -> (SmtReport, Vec<Warning>) {
        let report = self.driver.stop();
        let broken = self.guardian.woken();
        let unbroken = broken == 0 && self.guardian.lives();
        let smt = report.to_document(&self.shares);
        let protected = smt.protected && unbroken;
        let warnings = told::after(&report, &self.guardian);
        let (against, stop_trial_ns) = (self.against, self.trial_ns);
        (SmtReport { protected, against, broken, stop_trial_ns, ..smt }, warnings)
    }
}

/// Who is kept off, by name.
fn against(siblings: &Siblings) -> Vec<String> {
    match (siblings.policy, &siblings.stopped[..]) {
        (SiblingPolicy::Ignore, _) => Vec::new(),
        (_, []) => vec!["everybody".to_owned()],
        (_, named) => named.iter().map(ToString::to_string).collect(),
    }
}

/// The page on which the command tells its progress, where that is wanted.
pub(super) fn page(request: &Request) -> Result<Option<Page>, Failure> {
    match (&request.siblings, &request.subject) {
        (Some(_), Subject::Command(_)) => {
            Page::create().map(Some).map_err(|error| Failure::Siblings(error.to_string()))
        }
        _ => Ok(None),
    }
}

/// Somebody shares the reserved processor.
pub(super) struct Sharing<'a> {
    request: &'a Request,
    siblings: &'a Siblings,
    shares: Shares,
    /// Stops them.
    stopper: Box<dyn Stopper>,
    stopping: Stopping,
    guardian: Guardian,
}

/// What stopping takes, ns.
#[derive(Clone, Copy)]
struct Stopping {
    /// From the order on, in 999 of 1,000 cases, and in all trials on the co-runners themselves.
    settle_ns: u64,
    /// Slack at which the order is given: the same, how late timers are, and what our own threads take
    /// of the reserved CPU.
    margin_ns: u64,
    /// What it took to stop the co-runners themselves at the start.
    trial_ns: Option<u64>,
}

/// Who shares the reserved processor, if that is asked and somebody does, and how they are stopped,
/// which is measured here.
pub(super) fn sharing<'a>(
    request: &'a Request,
    target: &Target,
    guardian: &Guardian,
    document: &mut ReserveDocument,
) -> Result<Option<Sharing<'a>>, Failure> {
    let Some((siblings, shares)) = look(request, target, document)? else { return Ok(None) };
    let (stopper, stopping) = stopper(request, siblings, target, &shares, guardian, document)?;
    let guardian = guardian.clone();
    Ok(Some(Sharing { request, siblings, shares, stopper, stopping, guardian }))
}

/// Who shares the reserved processor, if that is asked and somebody does; that nobody does is told.
pub(super) fn look<'a>(
    request: &'a Request,
    target: &Target,
    document: &mut ReserveDocument,
) -> Result<Option<(&'a Siblings, Shares)>, Failure> {
    let Some(siblings) = &request.siblings else { return Ok(None) };
    let cpu = reserved_cpu(request, target)?;
    let shares = Topology::default().shares(cpu, &siblings.interference).map_err(failed)?;
    if shares.any() {
        return Ok(Some((siblings, shares)));
    }
    document.smt = Some(nobody_shares(siblings));
    document.warnings.push(told::no_claim(&shares, siblings));
    Ok(None)
}

/// What the backend is asked for. Work beside co-runners takes more processor time than it has reserved
/// in single-thread time, and must not be throttled before it is done: it may take all until the
/// deadline, since the monitor sees to it that it does not need more. Nine tenths of the period at most,
/// which leaves the machine something.
pub(super) fn covering(request: &Request, sharing: Option<&Sharing<'_>>) -> Reservation {
    let asked = request.reservation;
    sharing
        .map_or(asked, |sharing| cover(asked, sharing.siblings.policy, sharing.stopping.margin_ns))
}

/// The same where stopping takes `margin_ns`.
pub(super) fn cover(asked: Reservation, policy: SiblingPolicy, margin_ns: u64) -> Reservation {
    let span = |ns: u64| Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX));
    let most = asked.deadline().min(span(asked.period().nanos_or_zero() / 10 * 9));
    let wanted = match policy {
        SiblingPolicy::Monitor => most,
        // They slow it while they are being stopped, and when it goes on after a sleep.
        SiblingPolicy::Disable => {
            let unseen_ns = asked.period().nanos_or_zero() / REST_PART;
            span(asked.budget().nanos_or_zero().saturating_add(margin_ns).saturating_add(unseen_ns))
        }
        SiblingPolicy::Ignore => return asked,
    };
    let covered = wanted.min(most).max(asked.budget());
    // These are within what the reservation has already.
    Reservation::new(covered, asked.period(), asked.strength())
        .and_then(|reservation| reservation.with_deadline(asked.deadline()))
        .unwrap_or(asked)
}

/// Says what the backend was asked for, if that is more than the budget.
pub(super) fn describe(document: &mut ReserveDocument, given: &Reservation) {
    let kept_ns = given.budget().nanos_or_zero();
    document.kept_ns = Some(kept_ns);
    if kept_ns > document.budget_ns {
        // In hundredths of a millisecond: the margin in it is measured, and has no more digits that say anything.
        let whole = if kept_ns > 100_000 { kept_ns / 10_000 * 10_000 } else { kept_ns };
        let covered = Span::from_nanos(i64::try_from(whole).unwrap_or(i64::MAX));
        document.reason.push_str(&format!(
            "; {covered} of each period are kept for it, so that work slowed by a sibling is not \
             throttled before it is done"
        ));
    }
}

/// Starts the monitor for the target. It has proved that it runs when this returns.
pub(super) fn protect(
    sharing: Sharing<'_>,
    target: &Target,
    page: Option<Page>,
    first_ns: Option<u64>,
) -> Result<Protection, Failure> {
    let promise = promise(&sharing);
    let Sharing { request, siblings, shares, stopper, stopping, guardian } = sharing;
    let Stopping { settle_ns, margin_ns, trial_ns } = stopping;
    let grid = page.as_ref().map(|page| Page::open(&page.path())).transpose().map_err(failed)?;
    let slow_ns = siblings.graded.then(|| slowed_from(request));
    let (policy, alpha) = (siblings.policy, siblings.alpha);
    let settings =
        Settings { policy, alpha, margin_ns, stop_ns: settle_ns, slow_ns, ..Settings::default() };
    // The margin has the lateness of timers already.
    let cpus = shares.others.iter().collect();
    let plan = Plan { settings, cpus, timer_samples: 0, ..Plan::default() };
    let progress = progress(target, page, siblings, settle_ns);
    // Periods are those of the backend, where it has any.
    let first_ns = first_ns.unwrap_or_else(|| now_ns(ClockId::Monotonic));
    let promised = Promised::new(&promise, first_ns);
    let watched = vec![Watched { promised, progress, gate: None }];
    let driver = Driver::start(plan, watched, stopper).map_err(failed)?;
    if let (Some(grid), [promised]) = (grid, driver.promised()) {
        grid.set_grid(promised.first_ns(), promised.period_ns());
    }
    let shares = shares.others.iter().collect();
    Ok(Protection { driver, shares, against: against(siblings), guardian, trial_ns })
}

/// What the monitor sees to: the budget, in time for what the backend keeps for it.
fn promise(sharing: &Sharing<'_>) -> Reservation {
    let asked = sharing.request.reservation;
    let covered = covering(sharing.request, Some(sharing)).budget();
    match sharing.siblings.policy {
        SiblingPolicy::Monitor => asked.with_deadline(covered).unwrap_or(asked),
        SiblingPolicy::Disable | SiblingPolicy::Ignore => asked,
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Siblings(error.to_string())
}

/// A tenth of the slack that a period has.
fn slowed_from(request: &Request) -> u64 {
    let reservation = &request.reservation;
    let slack = reservation.deadline().nanos_or_zero() - reservation.budget().nanos_or_zero();
    slack / 10
}

/// The one CPU on which the work is.
fn reserved_cpu(request: &Request, target: &Target) -> Result<u32, Failure> {
    if let Some(cpu) = request.cpu {
        return Ok(cpu);
    }
    let (Target::Thread(id) | Target::Process(id)) = target;
    match thread::affinity_of(*id).unwrap_or_default()[..] {
        [cpu] => Ok(cpu),
        _ => Err(Failure::Words(
            "--smt: siblings are those of one CPU; say with --cpu N on which the work is to stay"
                .to_owned(),
        )),
    }
}

/// How co-runners are stopped, and what that takes at most, ns.
fn stopper(
    request: &Request,
    siblings: &Siblings,
    target: &Target,
    shares: &Shares,
    guardian: &Guardian,
    document: &mut ReserveDocument,
) -> Result<(Box<dyn Stopper>, Stopping), Failure> {
    if siblings.policy == SiblingPolicy::Ignore {
        return Ok((Box::new(Nobody), Stopping { settle_ns: 0, margin_ns: 0, trial_ns: None }));
    }
    let wanted = co_runners(siblings, target, shares, document)?;
    let kinds = kinds(siblings);
    let setup = Setup::new(&shares.others).map_err(failed)?;
    let chosen = choose(&kinds, &wanted, &setup, guardian)
        .map_err(|why| failed(unnamed(siblings, why.to_string())))?;
    let own_ns = request.reservation.budget().nanos_or_zero() / OWN_PART;
    let stopping = Stopping {
        settle_ns: chosen.stopping_ns(),
        margin_ns: chosen.margin_ns().saturating_add(own_ns),
        trial_ns: Some(chosen.set_ns),
    };
    let patience_ns =
        request.reservation.period().nanos_or_zero().saturating_mul(2).saturating_add(PATIENCE_NS);
    let stopper = DeadMan::new(chosen.stopper, guardian, patience_ns)
        .map_err(Failure::system("the guardian does not answer"))?;
    Ok((Box::new(stopper), stopping))
}

/// What would be in the way of stopping them, by the same tests as when they are stopped; nobody is.
pub(super) fn obstacles(
    siblings: &Siblings,
    target: &Target,
    shares: &Shares,
    document: &mut ReserveDocument,
) -> Vec<ReserveRefusal> {
    let cpus = shares.others.iter().collect();
    let monitor = Driver::check(&Plan { cpus, ..Plan::default() }).err();
    let monitor = monitor.map(|why| told::refusal("monitor", &why.to_string()));
    let mut refusals: Vec<ReserveRefusal> = monitor.into_iter().collect();
    if siblings.policy == SiblingPolicy::Ignore {
        return refusals;
    }
    let wanted = match co_runners(siblings, target, shares, document) {
        Ok(wanted) => wanted,
        Err(failure) => {
            refusals.push(told::refusal("co_runners", &failure.to_string()));
            return refusals;
        }
    };
    if let Err(why) = Setup::new(&shares.others) {
        refusals.push(told::refusal("cpus", &why.to_string()));
    }
    let checked: Vec<_> = kinds(siblings).into_iter().map(|kind| check(kind, &wanted)).collect();
    if checked.iter().all(Result::is_err) {
        let each = checked.into_iter().filter_map(Result::err);
        refusals
            .extend(each.map(|why| told::refusal("stopper", &unnamed(siblings, why.to_string()))));
    }
    refusals
}

/// The ways of stopping that may be taken.
fn kinds(siblings: &Siblings) -> Vec<Kind> {
    match siblings.stopper {
        Some(kind) => vec![kind],
        // Nobody is named, which is everybody.
        None if siblings.stopped.is_empty() => vec![Kind::CoreCookie],
        None => Kind::ALL.to_vec(),
    }
}

/// What a refusal lacks that does not say who is to be stopped.
fn unnamed(siblings: &Siblings, why: String) -> String {
    match &siblings.stopped[..] {
        [] => format!(
            "without --stop everybody on those CPUs is meant, whom only core scheduling keeps off: {why}; name \
             co-runners with --stop"
        ),
        _ => why,
    }
}

/// Whom to stop: those that the user names, or everybody.
fn co_runners(
    siblings: &Siblings,
    target: &Target,
    shares: &Shares,
    document: &mut ReserveDocument,
) -> Result<Wanted, Failure> {
    let reserved = Some(target.clone());
    if siblings.stopped.is_empty() {
        let (co_runners, shares) = (CoRunners::Everyone, shares.others.clone());
        return Ok(Wanted { co_runners, reserved, shares, graded: siblings.graded });
    }
    let selected = select(&siblings.stopped, reserved, &shares.others).map_err(failed)?;
    document.warnings.extend(told::spared(&selected.spared));
    document.warnings.extend(selected.shared.iter().map(told::shared));
    Ok(Wanted { graded: siblings.graded, ..selected.wanted })
}

/// The word that a program may write, its instructions where the processor counts them, and its
/// processor time, of which only what is proven counts.
fn progress(
    target: &Target,
    page: Option<Page>,
    siblings: &Siblings,
    settle_ns: u64,
) -> Box<dyn ProgressSource> {
    let mut sources: Vec<Box<dyn ProgressSource>> = Vec::new();
    let page = page.or_else(|| match target {
        // One that tells its progress already.
        Target::Process(pid) => Page::of_process(*pid).ok(),
        Target::Thread(_) => None,
    });
    sources.extend(page.map(|page| -> Box<dyn ProgressSource> { Box::new(Word::new(page)) }));
    if let Target::Thread(tid) = target
        && let Ok(counter) = Instructions::open(*tid)
    {
        let source = ByInstructions::new(counter, time_of(target), None, settle_ns);
        sources.push(Box::new(source));
    }
    sources.push(Box::new(CpuTime::new(time_of(target), siblings.alpha, settle_ns)));
    let first = sources.remove(0);
    let all: Box<dyn ProgressSource> =
        if sources.is_empty() { first } else { Box::new(Largest::of(first, sources)) };
    Box::new(Resting::new(all, time_of(target), wanting(target)))
}

/// Whether any thread of the target runs or waits for a processor.
fn wanting(target: &Target) -> impl FnMut() -> Option<bool> + Send + use<> {
    let target = target.clone();
    move || {
        let threads = match target {
            Target::Thread(tid) => vec![tid],
            Target::Process(pid) => members::tree(pid).into_iter().flat_map(threads_of).collect(),
        };
        let states: Vec<char> = threads.into_iter().filter_map(members::state_of).collect();
        // Nobody is left: then nothing is known. A thread in a wait that nothing interrupts has asked for it.
        (!states.is_empty()).then(|| states.contains(&'R'))
    }
}

/// The processor time of the target, exact where the kernel lets it be watched; else up to a tick
/// old, which is never too much.
fn time_of(target: &Target) -> Box<dyn FnMut() -> Option<u64> + Send> {
    let (threads, with_children) = match target {
        Target::Thread(tid) => (vec![*tid], false),
        Target::Process(pid) => (threads_of(*pid), true),
    };
    let clocks: Result<Vec<_>, _> =
        threads.iter().map(|tid| TaskClock::open(*tid, with_children)).collect();
    match (clocks, target) {
        (Ok(clocks), _) if !clocks.is_empty() => {
            Box::new(move || clocks.iter().map(|clock| clock.read_ns().ok()).sum())
        }
        (_, Target::Process(pid)) => {
            let clock = ProcessTime::of(*pid);
            Box::new(move || clock.read_ns().ok())
        }
        (_, Target::Thread(tid)) => match ThreadTime::of(*tid) {
            Ok(clock) => Box::new(move || clock.read().ok().map(|waited| waited.run_ns)),
            Err(_) => Box::new(|| None),
        },
    }
}

/// Nobody is stopped.
struct Nobody;

impl Stopper for Nobody {
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

/// What is said where nobody shares: nothing was watched, and nothing is claimed.
fn nobody_shares(siblings: &Siblings) -> SmtReport {
    SmtReport {
        policy: siblings.policy.to_string(),
        protected: false,
        against: Vec::new(),
        broken: 0,
        shares: Vec::new(),
        progress: "none".to_owned(),
        stopper: None,
        margin_ns: 0,
        margin_first_ns: 0,
        stop_trial_ns: None,
        stop_max_ns: 0,
        jobs: 0,
        missed: 0,
        idle: 0,
        stops: 0,
        stopped_ns: 0,
        checks: 0,
        backwards: 0,
        unmoved: 0,
    }
}
