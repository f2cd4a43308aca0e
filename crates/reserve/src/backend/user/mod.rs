//! A reserve kept by a thread of this program, for those to whom the deadline class does not apply:
//! a process with all its threads and descendants shares one budget, may fork, and stays on its CPU.
//!
//! While its budget lasts, the target has a real-time priority (`SCHED_FIFO`), the higher the shorter
//! its deadline. When the budget is used up, it goes on at timesharing priority (soft) or stands
//! (hard: its control group is frozen, or its processes get SIGSTOP) until the next period. This is
//! the reservation of Inoue et al., section 4.1, kept from outside the kernel.
//!
//! Members share the CPU as they do without a reserve: the keeper lets each run for about 3 ms before the next one
//! ([`turns`]), and weighs nice values as the fair class does. Who wakes waits for its turn. A reserve of one thread
//! has no turns.
//!
//! What it does not do: a yield does not end the dispatch of a period. `sched_yield` of a thread that is alone at its
//! priority changes nothing that can be read (neither its state nor its counts of switches), so that only the kernel
//! sees it; in the deadline class it does end the period. A thread of this process that is done calls
//! [`EndPeriod::end`] instead.
//! A thread that sets a policy itself has it until its next turn. Threads that others put into
//! a real-time class above priority 88 are not in the account, but for those of the deadline class.
//!
//! Owns: [`User`]. [`budget`] and [`turns`] decide, `enforcer` carries out, `team` knows the members.

pub mod budget;
pub mod claims;
pub mod demand;
mod enforcer;
#[cfg(test)]
#[path = "tests/guardians.rs"]
mod guardians;
#[cfg(test)]
#[path = "tests/killed.rs"]
mod killed;
#[cfg(test)]
#[path = "tests/left.rs"]
mod left;
mod orders;
mod registry;
mod sharing;
mod team;
#[cfg(test)]
#[path = "tests/live.rs"]
mod tests;
pub mod turns;
mod unguarded;
mod usage;

use std::io;
use std::path::Path;

use hourglass_model::{CpuSet, Strength};
use hourglass_sched::admission::Fraction;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;
use hourglass_time::Span;

use self::budget::Terms;
use self::claims::{DEADLINE_CLASS, Misfit, Share, fits, priority_for};
use self::enforcer::Enforcer;
pub(super) use self::enforcer::NAME as KEEPER;
pub use self::enforcer::{EndPeriod, Told};
use self::registry::{Entry, Held, Holder, Registry};
use self::team::{Plan, Team};
use super::leavers::Leavers;
use super::{Backend, Doubt, Kind, Request, Reserved, members, nested};
use crate::admission::facts::Facts;
use crate::admission::{self, Obstacle, Refusal};
use crate::guardian::{Absent, Guardian};
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
    /// Whether it claims a share of its CPUs.
    claims: bool,
}

impl User {
    /// What is changed is written down with `guardian` before it is.
    #[must_use]
    pub fn new(guardian: Guardian) -> User {
        User { guardian, grouped: true, claims: true }
    }

    /// Makes no control groups: members are found in `/proc`, and stopped by signals.
    #[must_use]
    pub fn without_groups(self) -> User {
        User { grouped: false, ..self }
    }

    /// Claims no share of its CPUs: it runs within what another reservation of this process has claimed there, and
    /// somebody else sees to it that they do not run at the same time.
    #[must_use]
    pub fn within(self) -> User {
        User { claims: false, ..self }
    }

    /// The same as [`Backend::reserve`], as what it is.
    ///
    /// # Errors
    /// As [`Backend::reserve`].
    pub fn keep(&self, target: &Target, request: &Request) -> Result<Keeping, Refusal> {
        let first = first_of(target);
        let refused = |error: io::Error| explain(&error, target, request);
        nobody_of_ours(target)?;
        admission::ownership(Kind::User, first)?;
        nested::refusal(Kind::User, target).map_or(Ok(()), Err)?;
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
        // Written down first: of two at the same time at least one sees the other.
        let entry = self.claims.then(|| Registry::of_the_machine().enter(&share));
        if let Some(entry) = &entry {
            admit(&share, entry.others(), &facts)?;
        }
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
        let leavers = team.group().map(|group| Leavers::watch(group, target));
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
        Ok(Keeping { leavers, enforcer, grouped, entry })
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
    /// Before the enforcer, which removes the group: it looks a last time.
    leavers: Option<Leavers>,
    enforcer: Enforcer,
    grouped: bool,
    entry: Option<Entry>,
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
        let unseen = self.entry.as_ref().and_then(Entry::doubt);
        let outside = self.leavers.iter().flat_map(Leavers::doubts);
        let mut doubts: Vec<Doubt> = unseen.into_iter().chain(outside).collect();
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
        if told.foreign > 0 {
            doubts.push(Doubt {
                id: "members-of-others",
                text: format!(
                    "members that belong to another user, as set-uid programs do, were not given the budget: up to {} \
                     at a time",
                    told.foreign
                ),
                remedy: "run it as root, whose reservations have all members",
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
        self.leavers.iter_mut().for_each(Leavers::end);
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
    admit(&share(request, cpus), Registry::of_the_machine().all(), facts)
}

/// Why a reservation of this kind would not be seen by all others on this machine, so that they may be promised the
/// same time; `None` if it would.
#[must_use]
pub fn unseen() -> Option<Doubt> {
    Registry::of_the_machine().doubt()
}

/// Removes entries of the registry that nobody holds.
pub(crate) fn remove_claims() {
    // Looking at all of them does that.
    drop(Registry::of_the_machine().all());
}

/// The same beside further reservations that are to be made with it, on the same CPUs.
///
/// # Errors
/// What does not fit.
pub fn check_beside(
    request: &Request,
    cpus: &[u32],
    beside: &[Request],
    facts: &Facts,
) -> Result<(), Refusal> {
    let mut others = Registry::of_the_machine().all();
    let with_it = |one: &Request| Held { share: share(one, cpus), holder: Holder::this_process() };
    others.extend(beside.iter().map(with_it));
    admit(&share(request, cpus), others, facts)
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
fn admit(new: &Share, mut others: Vec<Held>, facts: &Facts) -> Result<(), Refusal> {
    others.extend(facts.deadline_threads.iter().map(|thread| Held {
        share: Share {
            cpus: thread.cpus.clone().unwrap_or_else(|| new.cpus.clone()),
            budget_ns: thread.runtime_ns,
            deadline_ns: thread.period_ns,
            period_ns: thread.period_ns,
            priority: DEADLINE_CLASS,
        },
        holder: Holder::Thread(thread.tid, crate::owner::for_people(&thread.name)),
    }));
    let whole = Fraction { numerator: 1, denominator: 1 };
    let cap = match (facts.rt_runtime_us.map(u64::try_from), facts.rt_period_us) {
        (Some(Ok(numerator)), Some(denominator)) => Fraction { numerator, denominator },
        _ => whole,
    };
    let shares: Vec<Share> = others.iter().map(|held| held.share.clone()).collect();
    fits(new, &shares, cap).map_err(|misfit| {
        let cause = match misfit {
            Misfit::Sum { cpu } => format!(
                "on CPU {cpu} the reservations together are more than real-time threads may have \
                 (kernel.sched_rt_runtime_us is {} of {} us): {}",
                cap.numerator,
                cap.denominator,
                holders(&others, cpu)
            ),
            Misfit::Late { cpu, share } if share == *new => format!(
                "on CPU {cpu} the reservations that are there would delay {} beyond its deadline of {}: {}",
                span(share.budget_ns),
                span(share.deadline_ns),
                holders(&others, cpu)
            ),
            Misfit::Late { cpu, share } => format!(
                "on CPU {cpu} a reservation that is there would come too late, due within {}: {}",
                span(share.deadline_ns),
                holders(others.iter().filter(|held| held.share == share), cpu)
            ),
        };
        refusal(Obstacle::Bandwidth, cause, "reserve less, or take another CPU with --cpu")
    })
}

fn span(ns: u64) -> Span {
    Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// Who has what on a CPU, the largest first.
fn holders<'a>(others: impl IntoIterator<Item = &'a Held>, cpu: u32) -> String {
    const MOST: usize = 3;
    let here = others.into_iter().filter(|held| held.share.cpus.contains(cpu));
    let mut here: Vec<&Held> = here.collect();
    let part = |held: &&Held| {
        u128::from(held.share.budget_ns) * u128::from(u64::MAX)
            / u128::from(held.share.period_ns.max(1))
    };
    here.sort_by_key(|held| std::cmp::Reverse(part(held)));
    let text = |held: &&Held| {
        let Share { budget_ns, period_ns, .. } = held.share;
        format!("{} has {} every {}", held.holder, span(budget_ns), span(period_ns))
    };
    let mut texts: Vec<String> = here.iter().take(MOST).map(text).collect();
    if here.len() > MOST {
        texts.push(format!("{} more", here.len() - MOST));
    }
    texts.join(", ")
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
    if let Some(refusal) = admission::ownership_of(Kind::User, error) {
        return refusal;
    }
    if Absent::is_behind(error) {
        return unguarded::refusal();
    }
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
