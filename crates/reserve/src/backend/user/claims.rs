//! Which reservations of this kind there are on this machine, and whether one more fits.
//!
//! Owns: the claim of a reservation, which is a name among the abstract sockets: everybody can read it in
//! `/proc/net/unix`, and the kernel removes it with the process, however that ends. It is entered
//! first and the others are read afterwards, so that of two at the same time at least one sees the
//! other. Must not: analyse; responses and sums are `sched`'s.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_model::CpuSet;
use hourglass_sched::admission::{Fraction, admits};
use hourglass_sched::effort::Effort;
use hourglass_sched::fixed_priority::{Sections, TimeModel, verdict_within};
use hourglass_sched::{Task, TaskSet, Verdict};

/// What the names begin with, and the version of what follows.
const PREFIX: &str = "hourglass-reserve/1/";

/// Claims made by this process so far.
static MADE: AtomicU32 = AtomicU32::new(0);

/// One reservation among others, in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// CPUs on which it may be used.
    pub cpus: CpuSet,
    /// Processor time of a period.
    pub budget_ns: u64,
    /// When it is delivered at the latest.
    pub deadline_ns: u64,
    /// The period.
    pub period_ns: u64,
    /// The real-time priority; a thread of the deadline class is above all.
    pub priority: u32,
}

/// Above every FIFO priority: the deadline class.
pub const DEADLINE_CLASS: u32 = 1_000;

/// The FIFO priority for a deadline: the shorter, the higher, by octaves from 100 us on. Each has
/// the next number too, so they are two apart.
#[must_use]
pub fn priority_for(deadline_ns: u64) -> u8 {
    const SHORTEST_NS: u64 = 100_000;
    const HIGHEST: u8 = 88;
    const LOWEST: u8 = 58;
    let octave = (deadline_ns / SHORTEST_NS).checked_ilog2().unwrap_or(0);
    let below = u8::try_from(octave).unwrap_or(u8::MAX).saturating_mul(2);
    HIGHEST.saturating_sub(below).max(LOWEST)
}

/// The entry of a reservation in force; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: UnixDatagram,
    /// As it stands among the others.
    name: String,
}

impl Claim {
    /// Enters a reservation.
    ///
    /// # Errors
    /// `InvalidInput` for a list of CPUs that does not fit into a name of 107 bytes.
    pub(super) fn enter(share: &Share) -> io::Result<Claim> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let Share { cpus, budget_ns, deadline_ns, period_ns, .. } = share;
        let own = std::process::id();
        let name = format!("{PREFIX}{own}-{number}/{cpus}/{budget_ns}/{deadline_ns}/{period_ns}");
        let address = SocketAddr::from_abstract_name(&name)?;
        Ok(Claim { _socket: UnixDatagram::bind_addr(&address)?, name })
    }

    /// All other reservations of now.
    pub(super) fn others(&self) -> Vec<Share> {
        let others = |name: &str| name != self.name;
        std::fs::read_to_string("/proc/net/unix").map_or_else(|_| Vec::new(), |t| all(&t, others))
    }
}

/// The reservations of this kind on this machine.
#[must_use]
pub fn present() -> Vec<Share> {
    std::fs::read_to_string("/proc/net/unix").map_or_else(|_| Vec::new(), |t| all(&t, |_| true))
}

/// The claims in the text of `/proc/net/unix`, whose last column is the name with an `@`.
fn all(text: &str, which: impl Fn(&str) -> bool) -> Vec<Share> {
    let names = text.lines().filter_map(|line| line.rsplit_once(" @").map(|(_, name)| name));
    names.filter(|name| which(name)).filter_map(share_of).collect()
}

fn share_of(name: &str) -> Option<Share> {
    let mut parts = name.strip_prefix(PREFIX)?.split('/').skip(1);
    let cpus = parts.next()?.parse().ok()?;
    let mut number = || parts.next()?.parse::<u64>().ok().filter(|ns| *ns > 0);
    let (budget_ns, deadline_ns, period_ns) = (number()?, number()?, number()?);
    let priority = u32::from(priority_for(deadline_ns));
    Some(Share { cpus, budget_ns, deadline_ns, period_ns, priority })
}

/// Why a reservation does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// All together are more than real-time threads may have on this CPU.
    Sum {
        /// The CPU.
        cpu: u32,
    },
    /// One of them, the new one or one that is there, would not have its budget by its deadline.
    Late {
        /// The CPU.
        cpu: u32,
        /// Which.
        share: Share,
    },
}

/// Whether `new` fits beside `others`, of whose time real-time threads may have `cap`.
///
/// Each CPU on which a reservation may be used is looked at as if all of it were used there: while a
/// raised thread waits, all of its CPUs, so also that one, are busy with work of higher priority.
/// A budget may be used at any place in its period, so that it delays others as one released with
/// jitter does (Strosnider, Lehoczky and Sha, IEEE ToC 1995, on deferrable servers).
///
/// # Errors
/// What does not fit.
pub fn fits(new: &Share, others: &[Share], cap: Fraction) -> Result<(), Misfit> {
    for cpu in new.cpus.iter() {
        let mut here = vec![new];
        here.extend(others.iter().filter(|other| other.cpus.contains(cpu)));
        let tasks = here.iter().filter_map(|share| task(share, false)).collect();
        if admits(&TaskSet::new(tasks), cap, 1) != Some(true) {
            return Err(Misfit::Sum { cpu });
        }
        for (position, share) in here.iter().enumerate() {
            let tasks = here.iter().enumerate().filter_map(|(k, one)| task(one, k != position));
            // The other ones are there to delay it; whether they are late is asked when it is their turn.
            let tasks = tasks.enumerate().map(|(k, task)| (k == position, task));
            let set = TaskSet::new(tasks.filter_map(delaying).collect());
            let verdict =
                verdict_within(&set, Sections::Preemptive, TimeModel::Discrete, Effort::default());
            if verdict != Verdict::Feasible {
                return Err(Misfit::Late { cpu, share: (*share).clone() });
            }
        }
    }
    Ok(())
}

/// As the analyst sees it.
fn task(share: &Share, delays: bool) -> Option<Task> {
    let task = Task::new(share.budget_ns, share.period_ns, share.deadline_ns).ok()?;
    let jitter = if delays { share.period_ns.saturating_sub(share.budget_ns) } else { 0 };
    Some(task.with_priority(share.priority).with_jitter(jitter))
}

/// One that only delays has no deadline of its own.
fn delaying((own, task): (bool, Task)) -> Option<Task> {
    if own {
        return Some(task);
    }
    /// Far beyond every busy window.
    const NEVER: u64 = u64::MAX / 4;
    let free = Task::new(task.cost(), task.period(), NEVER).ok()?;
    Some(free.with_priority(task.priority()).with_jitter(task.jitter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// `kernel.sched_rt_runtime_us` over its period, as it usually is.
    const USUAL: Fraction = Fraction { numerator: 19, denominator: 20 };

    fn share(cpus: &str, budget: u64, deadline: u64, period: u64) -> Share {
        Share {
            cpus: cpus.parse().unwrap(),
            budget_ns: budget,
            deadline_ns: deadline,
            period_ns: period,
            priority: u32::from(priority_for(deadline)),
        }
    }

    #[test]
    fn shorter_deadlines_have_higher_priorities() {
        assert_eq!(priority_for(50_000), 88);
        assert_eq!(priority_for(100_000), 88);
        assert_eq!(priority_for(200_000), 86);
        assert_eq!(priority_for(8 * MS), 76);
        assert_eq!(priority_for(u64::MAX), 58);
    }

    #[test]
    fn a_claim_is_seen_until_it_ends() {
        // A period that nobody else has.
        let period = 3_600_000 * MS + u64::from(std::process::id());
        let own = share("0", 1, period, period);
        let mine = |shares: Vec<Share>| shares.iter().filter(|one| **one == own).count();
        let first = Claim::enter(&own).unwrap();
        let second = Claim::enter(&own).unwrap();
        assert_eq!((mine(first.others()), mine(second.others())), (1, 1));
        drop(first);
        assert_eq!((mine(second.others()), mine(present())), (0, 1));
    }

    #[test]
    fn names_of_others_are_not_taken_for_claims() {
        let text = "Num RefCount Protocol Flags Type St Inode Path\n\
            0: 00000002 00000000 00000000 0002 01 17 @hourglass-reserve/1/7-0/0-1/5/6/7\n\
            1: 00000002 00000000 00000000 0002 01 18 /run/x @y\n\
            2: 00000002 00000000 00000000 0002 01 19 @hourglass-reserve/1/7-0/0-1/0/6/7\n\
            3: 00000002 00000000 00000000 0002 01 20 @hourglass-reserve/2/7-0/0-1/5/6/7\n";
        let found = all(text, |_| true);
        assert_eq!(found, [share("0-1", 5, 6, 7)]);
    }

    #[test]
    fn the_sum_is_looked_at_on_each_cpu() {
        let new = share("0-1", 4 * MS, 10 * MS, 10 * MS);
        let other = share("1", 56 * MS, 100 * MS, 100 * MS);
        assert_eq!(fits(&new, &[], USUAL), Ok(()));
        assert_eq!(fits(&new, std::slice::from_ref(&other), USUAL), Err(Misfit::Sum { cpu: 1 }));
        let elsewhere = Share { cpus: "2".parse().unwrap(), ..other };
        assert_eq!(fits(&new, &[elsewhere], USUAL), Ok(()));
    }

    /// Half of the CPU each: the sum would do with all of it for real-time threads, but the longer one
    /// meets two budgets of the shorter one back to back at its begin, and a third.
    #[test]
    fn a_budget_late_in_its_period_delays_others() {
        let all = Fraction { numerator: 1, denominator: 1 };
        let short = share("0", 4 * MS, 10 * MS, 10 * MS);
        let long = share("0", 9 * MS, 20 * MS, 40 * MS);
        // 9 + 4 at 0, 4 at 4 (10 - 6), 4 at 14: 21 ms.
        let misfit = Misfit::Late { cpu: 0, share: long.clone() };
        assert_eq!(fits(&long, std::slice::from_ref(&short), all), Err(misfit.clone()));
        // The one that is there is protected from the new one just as well.
        assert_eq!(fits(&short, std::slice::from_ref(&long), all), Err(misfit));
        let later = share("0", 9 * MS, 21 * MS, 40 * MS);
        assert_eq!(fits(&later, &[short], all), Ok(()));
    }
}
