//! A reserve kept by a thread of this program, for those to whom the deadline class does not apply:
//! a process with all its threads and descendants shares one budget, may fork, and stays on its CPU.
//!
//! While its budget lasts, the target has a real-time priority (`SCHED_FIFO`), the higher the shorter
//! its deadline. When the budget is used up, it goes on at timesharing priority (soft) or stands
//! (hard: its control group is frozen, or its processes get SIGSTOP) until the next period. This is
//! the reservation of Inoue et al., section 4.1, kept from outside the kernel.
//!
//! What it does not do: a yield does not end the dispatch of a period. `sched_yield` of a thread that is alone at its
//! priority changes nothing that can be read (neither its state nor its counts of switches), so that only the kernel
//! sees it; in the deadline class it does end the period. A thread of this process that is done calls
//! [`EndPeriod::end`] instead.
//! A thread that sets a policy itself has it until the next period. Threads that others put into
//! a real-time class above priority 88 are not in the account, but for those of the deadline class.
//!
//! Owns: [`User`]. [`budget`] decides, `enforcer` carries out, `team` knows the members.

pub mod budget;
pub mod claims;
pub mod demand;
mod enforcer;
#[cfg(test)]
#[path = "tests/killed.rs"]
mod killed;
mod orders;
mod team;
#[cfg(test)]
#[path = "tests/live.rs"]
mod tests;
mod usage;

use std::io;
use std::path::Path;

use hourglass_model::{CpuSet, Strength};
use hourglass_sched::admission::Fraction;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;
use hourglass_time::Span;

use self::budget::Terms;
use self::claims::{Claim, DEADLINE_CLASS, Misfit, Share, fits, priority_for};
use self::enforcer::Enforcer;
pub use self::enforcer::{EndPeriod, Told};
use self::team::{Plan, Team};
use super::{Backend, Doubt, Kind, Request, Reserved, members};
use crate::admission::facts::Facts;
use crate::admission::{self, Obstacle, Refusal};
use crate::guardian::Guardian;
use crate::supply::Supply;
use crate::target::Target;

/// Shorter ones the thread that keeps them would mostly spend on itself.
const LEAST_BUDGET_NS: u64 = 50_000;
const LEAST_PERIOD_NS: u64 = 500_000;
/// Longer ones say nothing.
const LONGEST_PERIOD_NS: u64 = 3_600_000_000_000;

/// Periods left out are told if they are more than this part of the others.
const TOLERATED_PART: u64 = 100;

/// Keeps reservations by a thread for each.
#[derive(Clone, Debug)]
pub struct User {
    guardian: Guardian,
    grouped: bool,
}

impl User {
    /// What is changed is written down with `guardian` before it is.
    #[must_use]
    pub fn new(guardian: Guardian) -> User {
        User { guardian, grouped: true }
    }

    /// Makes no control groups: members are found in `/proc`, and stopped by signals.
    #[must_use]
    pub fn without_groups(self) -> User {
        User { grouped: false, ..self }
    }

    /// The same as [`Backend::reserve`], as what it is.
    ///
    /// # Errors
    /// As [`Backend::reserve`].
    pub fn keep(&self, target: &Target, request: &Request) -> Result<Keeping, Refusal> {
        let first = first_of(target);
        let refused = |error: io::Error| explain(&error, target, request);
        nobody_of_ours(target)?;
        let policy = sched::of(first).map_err(refused)?;
        if let Some(Attributes::Deadline { .. }) = policy {
            return Err(in_the_class(first));
        }
        let facts = Facts::here(Some(first));
        check(request, &facts).into_iter().next().map_or(Ok(()), Err)?;
        let cpus = match request.cpu {
            Some(cpu) => vec![cpu],
            None => thread::affinity_of(first).map_err(refused)?,
        };
        let share = share(request, &cpus);
        let claim = Claim::enter(&share).map_err(refused)?;
        admit(&share, claim.others(), &facts)?;
        let mut enforcer = Enforcer::start(&cpus).map_err(refused)?;
        let strength = request.reservation.strength();
        let plan = Plan {
            priority: priority_for(share.deadline_ns),
            pin: request.cpu,
            freezes: strength == Strength::Hard,
            grouped: self.grouped,
            privileged: facts.sys_nice == Some(true) && facts.user_namespace != Some(true),
        };
        let team = Team::assemble(&self.guardian, target, plan).map_err(refused)?;
        let grouped = team.is_grouped() || matches!(target, Target::Thread(_));
        let terms = Terms {
            budget_ns: share.budget_ns,
            deadline_ns: share.deadline_ns,
            period_ns: share.period_ns,
            cpus: match target {
                Target::Thread(_) => 1,
                Target::Process(_) => cpus.len() as u64,
            },
            strength,
        };
        let pledge = self.guardian.pledge().map_err(refused)?;
        enforcer.enforce(team, terms, pledge, cpus.len() > 1).map_err(refused)?;
        Ok(Keeping { enforcer, grouped, _claim: claim })
    }
}

impl Backend for User {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn guarantee(&self) -> bool {
        true
    }

    fn reserve(&self, target: &Target, request: &Request) -> Result<Box<dyn Reserved>, Refusal> {
        self.keep(target, request).map(|keeping| -> Box<dyn Reserved> { Box::new(keeping) })
    }
}

/// A reservation of this kind in force.
#[derive(Debug)]
pub struct Keeping {
    enforcer: Enforcer,
    grouped: bool,
    _claim: Claim,
}

impl Keeping {
    /// What the thread that keeps it told last.
    #[must_use]
    pub fn told(&self) -> Told {
        self.enforcer.told()
    }

    /// What ends the period that lasts, for threads of this process that are done with their job.
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

impl Reserved for Keeping {
    fn supply(&mut self) -> Supply {
        self.enforcer.told().supply
    }

    fn doubts(&self) -> Vec<Doubt> {
        let told = self.told();
        let mut doubts = Vec::new();
        if told.left_out > told.supply.periods / TOLERATED_PART {
            let left_out = told.left_out;
            let latest =
                Span::from_micros(i64::try_from(told.latest_ns / 1_000).unwrap_or(i64::MAX));
            doubts.push(Doubt {
                id: "periods-left-out",
                text: format!(
                    "periods that are not counted: {left_out}; the look at their end came too late to tell what was \
                     used before it (by up to {latest})"
                ),
                remedy: "run nothing above FIFO 95 on these CPUs; in a virtual machine, the host took them",
            });
        }
        if !self.grouped {
            doubts.push(Doubt {
                id: "members-searched",
                text: "no control group could be made: members are looked for once a period, and what a \
                       process used between the last look and its end is not counted"
                    .to_owned(),
                remedy: "run it as root, or where cgroup version 2 is writable",
            });
        }
        if told.absent > 0 {
            doubts.push(Doubt {
                id: "keeper-absent",
                text: format!(
                    "the thread that keeps the reserve was away for four periods, and 100 ms at least, {}: the work \
                     was lowered until it came back, since nobody held it to its budget",
                    if told.absent == 1 { "once".to_owned() } else { format!("{} times", told.absent) }
                ),
                remedy: "do not stop hourglass itself (Ctrl-Z does), and run nothing above FIFO 95 on these CPUs",
            });
        }
        if let Some(fault) = told.fault {
            doubts.push(Doubt {
                id: "order-refused",
                text: format!(
                    "the kernel refused {} orders to raise, lower, suspend or resume, which were given \
                     again until it took them; the first time: {fault}",
                    told.refused
                ),
                remedy: "run it as root; members of other users are out of reach otherwise",
            });
        }
        doubts
    }

    fn first_ns(&self) -> Option<u64> {
        Some(self.enforcer.told().first_ns)
    }

    fn release(&mut self) -> io::Result<()> {
        self.enforcer.end()
    }
}

/// What would refuse `request`, reserving nothing; empty if nothing that can be seen. Other reservations
/// of this kind are among what is seen.
#[must_use]
pub fn check(request: &Request, facts: &Facts) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = times(request).into_iter().collect();
    refusals.extend(admission::user(request, facts));
    refusals
}

/// The same beside the reservations of this kind that there are, on these CPUs.
///
/// # Errors
/// What does not fit.
pub fn check_present(request: &Request, cpus: &[u32], facts: &Facts) -> Result<(), Refusal> {
    admit(&share(request, cpus), claims::present(), facts)
}

fn first_of(target: &Target) -> u32 {
    let (Target::Thread(id) | Target::Process(id)) = target;
    *id
}

fn share(request: &Request, cpus: &[u32]) -> Share {
    let reservation = &request.reservation;
    let deadline_ns = reservation.deadline().nanos_or_zero();
    Share {
        cpus: cpus.iter().copied().collect::<CpuSet>(),
        budget_ns: reservation.budget().nanos_or_zero(),
        deadline_ns,
        period_ns: reservation.period().nanos_or_zero(),
        priority: u32::from(priority_for(deadline_ns)),
    }
}

fn refusal(id: Obstacle, cause: String, remedy: &str) -> Refusal {
    Refusal { backend: Kind::User, id, errno: None, cause, remedy: remedy.to_owned() }
}

/// Times that can be kept from outside the kernel.
fn times(request: &Request) -> Option<Refusal> {
    let reservation = &request.reservation;
    let (budget, period) = (reservation.budget(), reservation.period());
    let short = budget.nanos_or_zero() < LEAST_BUDGET_NS;
    if !short && (LEAST_PERIOD_NS..=LONGEST_PERIOD_NS).contains(&period.nanos_or_zero()) {
        return None;
    }
    Some(refusal(
        Obstacle::Times,
        format!("a thread of this program cannot keep {budget} in every {period}"),
        "choose a budget of at least 50us and a period from 500us to 1h",
    ))
}

/// The new one beside others of its kind and beside the deadline class.
fn admit(new: &Share, mut others: Vec<Share>, facts: &Facts) -> Result<(), Refusal> {
    others.extend(facts.deadline_threads.iter().map(|thread| Share {
        cpus: thread.cpus.clone().unwrap_or_else(|| new.cpus.clone()),
        budget_ns: thread.runtime_ns,
        deadline_ns: thread.period_ns,
        period_ns: thread.period_ns,
        priority: DEADLINE_CLASS,
    }));
    let whole = Fraction { numerator: 1, denominator: 1 };
    let cap = match (facts.rt_runtime_us.map(u64::try_from), facts.rt_period_us) {
        (Some(Ok(numerator)), Some(denominator)) => Fraction { numerator, denominator },
        _ => whole,
    };
    fits(new, &others, cap).map_err(|misfit| {
        let cause = match misfit {
            Misfit::Sum { cpu } => format!(
                "on CPU {cpu} the reservations together are more than real-time threads may have \
                 (kernel.sched_rt_runtime_us is {} of {} us)",
                cap.numerator, cap.denominator
            ),
            Misfit::Late { cpu, share } if share == *new => format!(
                "on CPU {cpu} the reservations that are there would delay {} ns beyond its deadline \
                 of {} ns",
                share.budget_ns, share.deadline_ns
            ),
            Misfit::Late { cpu, share } => format!(
                "on CPU {cpu} a reservation of {} ns, due within {} ns, would come too late",
                share.budget_ns, share.deadline_ns
            ),
        };
        refusal(Obstacle::Bandwidth, cause, "reserve less, or take another CPU with --cpu")
    })
}

/// A process that has this one among its descendants would suspend its own keeper; threads of the kernel
/// are nobody's to suspend.
fn nobody_of_ours(target: &Target) -> Result<(), Refusal> {
    let first = first_of(target);
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

/// Whether nobody can be looked up, so that everybody seems to have ended.
fn no_proc() -> bool {
    !Path::new("/proc/self").exists()
}

/// What stands behind an answer of the kernel.
fn explain(error: &io::Error, target: &Target, request: &Request) -> Refusal {
    let first = first_of(target);
    let errno = error.raw_os_error();
    let known = match (error.kind(), errno) {
        (io::ErrorKind::NotFound, _) | (_, Some(admission::ESRCH)) if no_proc() => refusal(
            Obstacle::Missing,
            "there is no /proc, which tells of processes".to_owned(),
            "mount -t proc proc /proc",
        ),
        (io::ErrorKind::NotFound, _) | (_, Some(admission::ESRCH)) => refusal(
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
            let facts = Facts::here(Some(first));
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
