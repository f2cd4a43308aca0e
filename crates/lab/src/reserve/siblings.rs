//! Protection from those who share the reserved processor: who they are, how they are stopped, how
//! far the reserved work is.

use hourglass_model::document::Warning;
use hourglass_model::reserve::{ReserveDocument, SmtReport};
use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::progress::ProgressSource;
use hourglass_reserve::progress::cpu_time::CpuTime;
use hourglass_reserve::progress::largest::Largest;
use hourglass_reserve::progress::page::Page;
use hourglass_reserve::progress::word::Word;
use hourglass_reserve::smt::dead_man::DeadMan;
use hourglass_reserve::smt::driver::{Driver, Plan};
use hourglass_reserve::smt::enforcer::Watched;
use hourglass_reserve::smt::jobs::Promised;
use hourglass_reserve::smt::monitor::Settings;
use hourglass_reserve::smt::sharers::locks::Shared;
use hourglass_reserve::smt::sharers::{Spared, select};
use hourglass_reserve::smt::stopper::{CoRunners, Kind, Setup, Stopper, Wanted, choose};
use hourglass_reserve::smt::topology::{Shares, Topology};
use hourglass_reserve::target::Target;
use hourglass_sys::clock::others::{ProcessTime, ThreadTime};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread;

use super::{Failure, Request, SiblingPolicy, Siblings, Subject};

/// How long a monitor may be silent while co-runners stand, beside two periods, ns.
const PATIENCE_NS: u64 = 500_000_000;

/// A protection in force.
pub(super) struct Protection {
    driver: Driver,
    shares: Vec<u32>,
}

impl Protection {
    /// Ends it; everybody runs again. What it did.
    pub(super) fn end(self) -> SmtReport {
        self.driver.stop().to_document(&self.shares)
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

/// Starts the monitor for the target, if one is asked for and somebody shares. It has proved that
/// it runs when this returns.
pub(super) fn protect(
    request: &Request,
    target: &Target,
    page: Option<Page>,
    guardian: &Guardian,
    document: &mut ReserveDocument,
) -> Result<Option<Protection>, Failure> {
    let Some(siblings) = &request.siblings else { return Ok(None) };
    let cpu = reserved_cpu(request, target)?;
    let shares = Topology::default().shares(cpu, &siblings.interference).map_err(failed)?;
    if !shares.any() {
        document.smt = Some(nobody_shares(siblings));
        document.warnings.push(no_claim(&shares, siblings));
        return Ok(None);
    }
    let grid = page.as_ref().map(|page| Page::open(&page.path())).transpose().map_err(failed)?;
    let (stopper, margin_ns) = stopper(request, siblings, target, &shares, guardian, document)?;
    let settings = Settings {
        policy: siblings.policy,
        alpha: siblings.alpha,
        margin_ns,
        ..Settings::default()
    };
    let settings = match siblings.graded {
        true => Settings { slow_ns: Some(slowed_from(request)), ..settings },
        false => settings,
    };
    let plan = Plan { settings, cpus: shares.others.iter().collect(), ..Plan::default() };
    let progress = progress(target, page, siblings, margin_ns)?;
    let promised = Promised::new(&request.reservation, now_ns(ClockId::Monotonic));
    let watched = vec![Watched { promised, progress, gate: None }];
    let driver = Driver::start(plan, watched, stopper).map_err(failed)?;
    if let (Some(grid), [promised]) = (grid, driver.promised()) {
        grid.set_grid(promised.first_ns(), promised.period_ns());
    }
    Ok(Some(Protection { driver, shares: shares.others.iter().collect() }))
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
) -> Result<(Box<dyn Stopper>, u64), Failure> {
    if siblings.policy == SiblingPolicy::Ignore {
        return Ok((Box::new(Nobody), 0));
    }
    let wanted = co_runners(siblings, target, shares, document)?;
    let kinds = siblings.stopper.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let setup = Setup::new(&shares.others).map_err(failed)?;
    let chosen = choose(&kinds, &wanted, &setup, guardian).map_err(failed)?;
    let margin_ns = chosen.measured.p999_ns;
    let patience_ns =
        request.reservation.period().nanos_or_zero().saturating_mul(2).saturating_add(PATIENCE_NS);
    let stopper = DeadMan::new(chosen.stopper, guardian, patience_ns)
        .map_err(Failure::system("the guardian does not answer"))?;
    Ok((Box::new(stopper), margin_ns))
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
    document.warnings.extend(spared(&selected.spared));
    document.warnings.extend(selected.shared.iter().map(shared));
    Ok(Wanted { graded: siblings.graded, ..selected.wanted })
}

/// Who was selected and runs on all the same.
fn spared(spared: &[(u32, Spared)]) -> Option<Warning> {
    let list: Vec<String> = spared.iter().map(|(pid, why)| format!("{pid} ({why})")).collect();
    (!list.is_empty()).then(|| Warning {
        id: "not-stopped".to_owned(),
        text: format!("processes that were selected and are never stopped: {}", list.join(", ")),
        remedy: String::new(),
    })
}

/// A lock that co-runners may hold while they stand.
fn shared(shared: &Shared) -> Warning {
    Warning {
        id: "shared-lock".to_owned(),
        text: shared.to_string(),
        remedy: "stop others, or keep locks out of what they share".to_owned(),
    }
}

/// The word that a program may write, and its processor time, of which only what is proven counts.
fn progress(
    target: &Target,
    page: Option<Page>,
    siblings: &Siblings,
    settle_ns: u64,
) -> Result<Box<dyn ProgressSource>, Failure> {
    let time: Box<dyn ProgressSource> = match target {
        Target::Process(pid) => {
            let clock = ProcessTime::of(*pid);
            Box::new(CpuTime::new(move || clock.read_ns().ok(), siblings.alpha, settle_ns))
        }
        Target::Thread(tid) => {
            let clock = ThreadTime::of(*tid).map_err(failed)?;
            let read = move || clock.read().ok().map(|waited| waited.run_ns);
            Box::new(CpuTime::new(read, siblings.alpha, settle_ns))
        }
    };
    let page = page.or_else(|| match target {
        // One that tells its progress already.
        Target::Process(pid) => Page::of_process(*pid).ok(),
        Target::Thread(_) => None,
    });
    Ok(match page {
        Some(page) => Box::new(Largest::of(Box::new(Word::new(page)), vec![time])),
        None => time,
    })
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
        shares: Vec::new(),
        progress: "none".to_owned(),
        stopper: None,
        margin_ns: 0,
        jobs: 0,
        missed: 0,
        stops: 0,
        stopped_ns: 0,
        checks: 0,
        backwards: 0,
        unmoved: 0,
    }
}

fn no_claim(shares: &Shares, siblings: &Siblings) -> Warning {
    let (cpu, what) = (shares.cpu, &siblings.interference);
    Warning {
        id: "nobody-shares".to_owned(),
        text: format!(
            "no CPU shares {what} with CPU {cpu} ({}): no protection is claimed",
            shares.source
        ),
        remedy: "--interferes llc, membw or a list of CPUs names others".to_owned(),
    }
}
