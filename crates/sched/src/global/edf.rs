//! Global EDF: tests that look at utilisations or at one interval.
//!
//! Owns: GFB, BAK, BCL and BAR, each as its paper has it, and [`analyse`], which asks all. For
//! bounds on response times see [`super::edf_response`]. Must not: compare floating-point numbers.

use std::cmp::Ordering;

use crate::edf::qpa;
use crate::effort::StepLimit;
use crate::exact_fraction::{BigNatural, FractionSum, share_floor};
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

use super::miss;
use super::schedule::GlobalPolicy;
use super::{accepted, beforehand, beforehand_constrained, edf_response, with_largest};

/// A test for global EDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// [`gfb`].
    Gfb,
    /// [`bak`].
    Bak,
    /// [`bcl`].
    Bcl,
    /// [`edf_response::bcl_iterative`].
    BclIterative,
    /// [`edf_response::analyse`].
    ResponseTimes,
    /// [`bar`].
    Bar,
}

/// All tests, the quick ones first.
pub const TESTS: [Test; 6] =
    [Test::Gfb, Test::Bak, Test::Bcl, Test::BclIterative, Test::ResponseTimes, Test::Bar];

impl Test {
    /// The name of the test in the literature.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Test::Gfb => "gfb",
            Test::Bak => "bak",
            Test::Bcl => "bcl",
            Test::BclIterative => "bcl-iterative",
            Test::ResponseTimes => "bertogna-cirinei",
            Test::Bar => "bar",
        }
    }

    /// The test's verdict on a set on `cpus` processors.
    #[must_use]
    pub fn verdict(self, set: &TaskSet, cpus: u64) -> Verdict {
        self.verdict_by(set, cpus, &mut StepLimit::default())
    }

    /// The same, which takes what it needs from an effort for several tests.
    pub fn verdict_by(self, set: &TaskSet, cpus: u64, effort: &mut StepLimit) -> Verdict {
        match self {
            Test::Gfb => gfb(set, cpus),
            Test::Bak => bak(set, cpus),
            Test::Bcl => bcl(set, cpus),
            Test::BclIterative => edf_response::bcl_iterative_by(set, cpus, effort).verdict(),
            Test::ResponseTimes => edf_response::analyse_by(set, cpus, effort).verdict(),
            Test::Bar => effort.at_most(BAR_LOOKS, |effort| bar_by(set, cpus, effort)),
        }
    }
}

/// The verdict on a set, and the test that decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdfDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// The test that accepted; none if the verdict needed none or none accepted.
    pub by: Option<Test>,
}

/// Whether a set is feasible under global EDF: as many processors as tasks always are enough, on
/// one processor the processor demand decides, and else any of [`TESTS`] may accept. A set that none
/// accepts is simulated with all tasks released at once, which may show a miss.
#[must_use]
pub fn analyse(set: &TaskSet, cpus: u64) -> EdfDecision {
    let decided = decide_by(set, cpus, &mut StepLimit::default());
    if decided.verdict != Verdict::Unknown(Refusal::NotExact) {
        return decided;
    }
    let miss = miss::first(set, cpus, GlobalPolicy::EarliestDeadline);
    EdfDecision { verdict: miss.map_or(decided.verdict, Verdict::Infeasible), by: None }
}

/// The same without a simulation, which takes what it needs from an effort for several such questions.
#[must_use]
pub fn decide_by(set: &TaskSet, cpus: u64, effort: &mut StepLimit) -> EdfDecision {
    let of = |verdict| EdfDecision { verdict, by: None };
    if let Some(verdict) = beforehand(set, cpus, false) {
        return of(verdict);
    }
    if set.len() as u64 <= cpus {
        return of(Verdict::Feasible);
    }
    if cpus == 1 {
        return of(qpa::feasible_by(set, Sections::Preemptive, TimeModel::Discrete, effort).verdict);
    }
    let by = TESTS.into_iter().find(|test| test.verdict_by(set, cpus, effort) == Verdict::Feasible);
    let verdict = by.map_or(Verdict::Unknown(Refusal::NotExact), |_| Verdict::Feasible);
    EdfDecision { verdict, by }
}

/// Goossens, Funk and Baruah, RTSJ 2003, in densities (Bertogna, Cirinei and Lipari, ECRTS 2005):
/// feasible if the sum of C/D is at most m - (m - 1) max C/D. Needs deadlines of at most periods.
#[must_use]
pub fn gfb(set: &TaskSet, cpus: u64) -> Verdict {
    if let Some(verdict) = beforehand_constrained(set, cpus) {
        return verdict;
    }
    let density = |t: &&Task| (u128::from(t.cost) << 64) / u128::from(t.deadline);
    // Values that 64 binary digits do not distinguish are compared exactly.
    let exactly = |a: &&Task, b: &&Task| {
        let (a, b) = (
            u128::from(a.cost) * u128::from(b.deadline),
            u128::from(b.cost) * u128::from(a.deadline),
        );
        a.cmp(&b)
    };
    let largest =
        set.tasks().iter().max_by(|a, b| density(a).cmp(&density(b)).then_with(|| exactly(a, b)));
    let mut sum = FractionSum::zero();
    for task in set.tasks() {
        sum.add(&BigNatural::from_u64(task.cost), &BigNatural::from_u64(task.deadline));
    }
    if let Some(task) = largest {
        let others = BigNatural::from_u64(cpus - 1).times(&BigNatural::from_u64(task.cost));
        sum.add(&others, &BigNatural::from_u64(task.deadline));
    }
    accepted(sum.compare(cpus) != Ordering::Greater)
}

/// Baker, RTSS 2003: with lambda = C/D of a task k, the sum over all tasks of min(1, beta) is at
/// most m - (m - 1) lambda, where beta is u (1 + (T - D)/D_k), and (C - lambda T)/D_k more if
/// lambda < u. Needs deadlines of at most periods.
#[must_use]
pub fn bak(set: &TaskSet, cpus: u64) -> Verdict {
    if let Some(verdict) = beforehand_constrained(set, cpus) {
        return verdict;
    }
    let holds = |k: &Task| {
        let mut sum = FractionSum::zero();
        let others = BigNatural::from_u64(cpus - 1).times(&BigNatural::from_u64(k.cost));
        sum.add(&others, &BigNatural::from_u64(k.deadline));
        for task in set.tasks() {
            add_share_of_baker(&mut sum, task, k);
        }
        sum.compare(cpus) != Ordering::Greater
    };
    accepted(set.tasks().iter().all(holds))
}

/// Adds min(1, beta) of a task for the task k.
fn add_share_of_baker(sum: &mut FractionSum, task: &Task, k: &Task) {
    let one = BigNatural::from_u64(1);
    let due = BigNatural::from_u64(k.deadline);
    let stretched = u128::from(k.deadline) + u128::from(task.period - task.deadline);
    let mut beta = FractionSum::zero();
    let above = BigNatural::from_u64(task.cost).times(&BigNatural::of_wide(stretched));
    beta.add(&above, &BigNatural::from_u64(task.period).times(&due));
    let own = u128::from(task.cost) * u128::from(k.deadline);
    let steady = u128::from(k.cost) * u128::from(task.period);
    if let Some(more) = own.checked_sub(steady) {
        beta.add(&BigNatural::of_wide(more), &due.times(&due));
    }
    match beta.compare(1) {
        Ordering::Less => sum.add_sum(&beta),
        Ordering::Equal | Ordering::Greater => sum.add(&one, &one),
    }
}

/// Bertogna, Cirinei and Lipari, ECRTS 2005, theorem 7: for each task k, the work of the others up
/// to its deadline, none of them counted beyond D - C of k, is below m (D - C), or equal to it and
/// one of them is not cut. Needs deadlines of at most periods.
#[must_use]
pub fn bcl(set: &TaskSet, cpus: u64) -> Verdict {
    if let Some(verdict) = beforehand_constrained(set, cpus) {
        return verdict;
    }
    let holds = |(k, task): (usize, &Task)| {
        let room = u128::from(task.deadline - task.cost);
        let (mut sum, mut whole) = (0u128, false);
        for (_, other) in set.tasks().iter().enumerate().filter(|(i, _)| *i != k) {
            let work = work_due_by(other, task.deadline);
            whole |= 0 < work && work <= room;
            sum += work.min(room);
        }
        let all = room.saturating_mul(cpus.into());
        sum < all || (sum == all && whole)
    };
    accepted(set.tasks().iter().enumerate().all(holds))
}

/// Most work of a task in a window that ends with one of its deadlines, of jobs due in it and of
/// the one before them: N C + min(C, max(0, D_k - N T)), N = floor((D_k - D)/T) + 1.
fn work_due_by(task: &Task, window: u64) -> u128 {
    let jobs = window.checked_sub(task.deadline).map_or(0, |after| after / task.period + 1);
    let used = u128::from(jobs) * u128::from(task.period);
    let before = u128::from(window).saturating_sub(used).min(task.cost.into());
    u128::from(jobs) * u128::from(task.cost) + before
}

/// Baruah, RTSS 2007, condition 8: for each task k and each distance A from the beginning of its
/// busy interval to its arrival, at most m - 1 tasks carry work in, and all work is at most
/// m (A + D - C). Needs deadlines of at most periods and less than full use.
#[must_use]
pub fn bar(set: &TaskSet, cpus: u64) -> Verdict {
    bar_by(set, cpus, &mut StepLimit::with_steps(BAR_LOOKS))
}

/// Looks of [`bar`]; its points grow in number without limit as the processors fill up.
const BAR_LOOKS: u64 = 2_500_000;

/// The same, which takes what it needs from an effort for several tests: a distance is a look at all tasks.
#[must_use]
pub fn bar_by(set: &TaskSet, cpus: u64, effort: &mut StepLimit) -> Verdict {
    if let Some(verdict) = beforehand_constrained(set, cpus) {
        return verdict;
    }
    let Some(longest) = longest_busy(set, cpus) else {
        return Verdict::Unknown(Refusal::Endless);
    };
    for k in 0..set.len() {
        match holds_at_all_distances(set, k, cpus, longest, effort) {
            Ok(true) => {}
            Ok(false) => return Verdict::Unknown(Refusal::NotExact),
            Err(why) => return Verdict::Unknown(why),
        }
    }
    Verdict::Feasible
}

/// An upper bound on (sum of the m - 1 largest C + sum of (T - D) U) / (m - U), to which m C of the
/// task is added (equation 9); above and below the line, in 64 binary digits.
fn longest_busy(set: &TaskSet, cpus: u64) -> Option<(u128, u128)> {
    let costs = set.tasks().iter().map(|t| u128::from(t.cost)).collect();
    let mut above = with_largest(0, costs, cpus - 1);
    let mut used = 0u128;
    for task in set.tasks() {
        let gap = u128::from(task.period - task.deadline) * u128::from(task.cost);
        above = above.checked_add(gap.div_ceil(task.period.into()))?;
        used = used.checked_add(share_floor(task.cost, task.period) + 1)?;
    }
    let free = (u128::from(cpus) << 64).checked_sub(used).filter(|free| *free > 0)?;
    Some((above, free))
}

fn holds_at_all_distances(
    set: &TaskSet,
    k: usize,
    cpus: u64,
    (above, free): (u128, u128),
    effort: &mut StepLimit,
) -> Result<bool, Refusal> {
    let task = &set.tasks()[k];
    let own = u128::from(task.cost).checked_mul(cpus.into());
    let above = own.and_then(|own| own.checked_add(above)).ok_or(Refusal::Overflow)?;
    let above = above.checked_mul(1 << 64).ok_or(Refusal::Overflow)?;
    let end = u64::try_from(above / free + 1).map_err(|_| Refusal::Overflow)?;
    let mut lengths = vec![task.deadline];
    for other in set.tasks() {
        let mut due = other.deadline;
        while due <= end {
            if due > task.deadline {
                effort.charge(set.len())?;
                lengths.push(due);
            }
            due = due.checked_add(other.period).ok_or(Refusal::Overflow)?;
        }
    }
    lengths.sort_unstable();
    lengths.dedup();
    Ok(lengths.into_iter().all(|length| holds_at(set, k, cpus, length)))
}

/// Whether the condition holds where `length` is A + D of the task k.
fn holds_at(set: &TaskSet, k: usize, cpus: u64, length: u64) -> bool {
    let task = &set.tasks()[k];
    let room = u128::from(length - task.cost);
    let distance = u128::from(length - task.deadline);
    let (mut sum, mut more) = (0u128, Vec::with_capacity(set.len()));
    for (i, other) in set.tasks().iter().enumerate() {
        let jobs = length.checked_sub(other.deadline).map_or(0, |after| after / other.period + 1);
        let due = u128::from(jobs) * u128::from(other.cost);
        let carried = super::work_with_carry_in(other, length, other.cost);
        let cut = |work: u128| {
            if i == k {
                work.saturating_sub(task.cost.into()).min(distance)
            } else {
                work.min(room + 1)
            }
        };
        sum += cut(due);
        more.push(cut(carried).saturating_sub(cut(due)));
    }
    with_largest(sum, more, cpus - 1) <= room.saturating_mul(cpus.into())
}
