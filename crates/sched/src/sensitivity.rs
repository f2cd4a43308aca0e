//! How much may change before a deadline is missed.
//!
//! Owns: the largest cost, jitter and blocking, the smallest period, and the largest factor of all
//! costs with which a set stays feasible, by bisection over whole numbers (the questions of Bini, Di
//! Natale and Buttazzo, RTS 2008; the breakdown utilisation of Lehoczky, Sha and Ding, RTSS 1989).
//! Must not: know an analysis; it asks a test.
//!
//! Bisection needs a test that is monotone: what it accepts, it accepts also with less cost, jitter
//! or blocking, or a longer period. The tests here for fixed priorities (all
//! [`crate::fixed_priority::Sections`], thresholds, bursts), for EDF's demand and in reservations
//! are. The exact schedule of known phases ([`crate::offsets`]) is not in periods, since other
//! periods meet in other phases, and explored job sets ([`crate::jobset`]) are not in anything; for
//! these an answer is only a value that the test accepts.

mod fixed;

pub use fixed::FixedLimits;

use crate::admission::{Fraction, utilisation};
use crate::edf::qpa::Feasibility;
use crate::exact_fraction::greatest_common_divisor;
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Verdict};

/// The verdict of a test on a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleTest {
    /// The verdict.
    pub verdict: Verdict,
    /// A task that is not feasible, if the test judges tasks.
    pub failing: Option<usize>,
}

impl From<&Analysis> for ScaleTest {
    fn from(analysis: &Analysis) -> ScaleTest {
        let failing = analysis.tasks.iter().position(|task| task.verdict != Verdict::Feasible);
        ScaleTest { verdict: analysis.verdict(), failing }
    }
}

impl From<&Feasibility> for ScaleTest {
    fn from(found: &Feasibility) -> ScaleTest {
        ScaleTest { verdict: found.verdict, failing: None }
    }
}

/// A factor of all costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostScale {
    /// The factor by which all costs may be multiplied.
    pub factor: Fraction,
    /// The utilisation that the set has then; `None` if its terms have more than 64 bits.
    pub utilisation: Option<Fraction>,
    /// The verdict one part further on: it names the task that breaks first.
    pub beyond: Option<ScaleTest>,
}

/// The largest number from `low` to `high` that is accepted, if all below an accepted one are. What is `given`
/// is asked first: mostly it is accepted.
fn largest(low: u64, high: u64, given: u64, accepts: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high {
        return None;
    }
    let (mut good, mut bad) = (low, high.saturating_add(1));
    if (low..=high).contains(&given) && accepts(given) {
        good = given;
    } else if !accepts(low) {
        return None;
    }
    if high == u64::MAX && accepts(high) {
        return Some(high);
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if accepts(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

/// The same from what is `given` on up to the first that is not accepted, if above it that may change back behind one of `ends`
/// alone.
#[must_use]
pub fn furthest(
    low: u64,
    high: u64,
    given: u64,
    mut ends: Vec<u64>,
    accepts: impl Fn(u64) -> bool,
) -> Option<u64> {
    if ends.is_empty() || !accepts(given) {
        return largest(low, high, given, accepts);
    }
    ends.push(high);
    ends.retain(|end| (given..=high).contains(end));
    ends.sort_unstable();
    let mut found = given;
    for end in ends {
        let from = found.saturating_add(u64::from(found > given));
        if from > end {
            continue;
        }
        match largest(from, end, from, &accepts) {
            Some(last) if last == end => found = last,
            last => return Some(last.unwrap_or(found)),
        }
    }
    Some(found)
}

/// Deadlines of the others, each less its jitter too: under EDF, where a task's own comes to one, others hold it up, or it them, by
/// what is not preempted, and may be infeasible, and feasible again.
pub fn deadlines(set: &TaskSet, task: usize) -> impl Iterator<Item = u64> {
    let others = set.tasks().iter().enumerate().filter(move |(position, _)| *position != task);
    others.flat_map(|(_, t)| [t.deadline, t.deadline.saturating_sub(t.jitter)])
}

/// The set with one task changed; `None` if that task cannot be meant.
fn with(set: &TaskSet, task: usize, change: impl Fn(&Task) -> Option<Task>) -> Option<TaskSet> {
    let changed = change(set.tasks().get(task)?)?;
    let mut set = set.clone();
    set.replace(task, changed);
    Some(set)
}

/// A task with another cost: segments are cut to it.
fn with_cost(task: &Task, cost: u64) -> Option<Task> {
    let np = task.np.min(cost);
    (cost > 0).then(|| Task { cost, np, last: task.last.min(np), ..task.clone() })
}

fn is_feasible(set: Option<TaskSet>, test: &impl Fn(&TaskSet) -> ScaleTest) -> bool {
    set.is_some_and(|set| test(&set).verdict == Verdict::Feasible)
}

/// The largest cost of one task with which the set is feasible; `None` if none is. Needs at most 66
/// tests, like the others here.
#[must_use]
pub fn largest_cost(
    set: &TaskSet,
    task: usize,
    test: impl Fn(&TaskSet) -> ScaleTest,
) -> Option<u64> {
    let Task { cost: given, deadline, .. } = *set.tasks().get(task)?;
    largest(1, deadline, given, |cost| is_feasible(with(set, task, |t| with_cost(t, cost)), &test))
}

/// The largest release jitter of one task up to which the set is feasible; `None` if with none it is.
#[must_use]
pub fn largest_jitter(
    set: &TaskSet,
    task: usize,
    test: impl Fn(&TaskSet) -> ScaleTest,
) -> Option<u64> {
    let Task { deadline, jitter, .. } = *set.tasks().get(task)?;
    largest(0, deadline, jitter, |jitter| {
        is_feasible(with(set, task, |t| Some(t.with_jitter(jitter))), &test)
    })
}

/// The smallest period of one task down to which the set is feasible, up to 2^62; `None` if with none it is. A
/// deadline that is the period stays it. Priorities stay as they are. `None` of a task that is not plain.
#[must_use]
pub fn smallest_period(
    set: &TaskSet,
    task: usize,
    test: impl Fn(&TaskSet) -> ScaleTest,
) -> Option<u64> {
    const LONGEST: u64 = 1 << 62;
    // A curve or a phase goes with its period.
    let old = set.tasks().get(task).filter(|t| t.is_plain())?;
    let implicit = old.deadline == old.period;
    let of = |period: u64| {
        with(set, task, |t| {
            let deadline = if implicit { period } else { t.deadline };
            Some(Task { period, deadline, ..t.clone() })
        })
    };
    // The longer, the better: count from the longest down.
    let given = LONGEST.saturating_sub(old.period);
    let is_feasible = |less| is_feasible(of(LONGEST - less), &test);
    let shorter = largest(0, LONGEST - 1, given, is_feasible)?;
    Some(LONGEST - shorter)
}

/// The largest factor of all costs and segments, in parts of `parts`, with which the set is
/// feasible: `None` without one, if a task is not plain, or if times in these parts have more than 64 bits. Times are
/// divided, costs are not rounded, so that the factor is exact to a part.
#[must_use]
pub fn largest_scale(
    set: &TaskSet,
    parts: u64,
    test: impl Fn(&TaskSet) -> ScaleTest,
) -> Option<CostScale> {
    let fits = |time: u64| time.checked_mul(parts).is_some();
    let times =
        |t: &Task| [t.period, t.deadline, t.jitter, t.blocking, t.suspension].into_iter().all(fits);
    if parts == 0 || set.is_empty() || !set.is_plain() || !set.tasks().iter().all(times) {
        return None;
    }
    let of = |factor: u64| {
        let scaled = |t: &Task| {
            Some(Task {
                cost: t.cost.checked_mul(factor)?,
                period: t.period * parts,
                deadline: t.deadline * parts,
                jitter: t.jitter * parts,
                blocking: t.blocking * parts,
                suspension: t.suspension * parts,
                np: t.np.checked_mul(factor)?,
                last: t.last.checked_mul(factor)?,
                priority: t.priority,
                extra: None,
            })
        };
        set.tasks().iter().map(scaled).collect::<Option<Vec<Task>>>().map(TaskSet::new)
    };
    // A cost, at least 1, above its deadline is never feasible.
    let high = set.tasks().iter().filter_map(|t| t.deadline.checked_mul(parts)).min()?;
    let factor = largest(1, high, parts, |factor| is_feasible(of(factor), &test))?;
    let common = greatest_common_divisor(factor, parts);
    let fraction = Fraction { numerator: factor / common, denominator: parts / common };
    Some(CostScale {
        factor: fraction,
        // Its terms are smaller before it is scaled.
        utilisation: utilisation(set).and_then(|u| product(u, fraction)),
        beyond: of(factor + 1).map(|set| test(&set)),
    })
}

fn product(a: Fraction, b: Fraction) -> Option<Fraction> {
    let numerator = a.numerator.checked_mul(b.numerator)?;
    let denominator = a.denominator.checked_mul(b.denominator)?;
    let common = greatest_common_divisor(numerator, denominator);
    Some(Fraction { numerator: numerator / common, denominator: denominator / common })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edf::qpa;
    use crate::effort::StepLimit;
    use crate::fixed_priority::{self, Sections, TimeModel};

    fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
        TaskSet::in_order(tasks.iter().map(|(c, t, d)| Task::new(*c, *t, *d).unwrap()).collect())
    }

    fn preemptive(set: &TaskSet) -> ScaleTest {
        ScaleTest::from(&fixed_priority::analyse(set, Sections::Preemptive, TimeModel::Discrete))
    }

    fn edf(set: &TaskSet) -> ScaleTest {
        ScaleTest::from(&qpa::feasible(set, Sections::Preemptive, TimeModel::Discrete))
    }

    /// Hourglass paper, section 5.5: 17 of 33 behind 3 of 8 responds in 29, 20 would in 32; 21 would
    /// meet a fifth job of the first and respond in 36.
    #[test]
    fn the_set_of_the_paper() {
        let set = set(&[(3, 8, 8), (17, 33, 33)]);
        assert_eq!(largest_cost(&set, 1, preemptive), Some(20));
        assert_eq!(largest_jitter(&set, 1, preemptive), Some(4));
    }

    /// Rate monotonic with harmonic periods: the processor may be used completely.
    #[test]
    fn harmonic_sets_break_at_full_utilisation() {
        let set = set(&[(5, 20, 20), (5, 40, 40), (10, 80, 80)]);
        let found = largest_scale(&set, 1_000, preemptive).unwrap();
        assert_eq!(found.factor, Fraction { numerator: 2, denominator: 1 });
        assert_eq!(found.utilisation, Some(Fraction { numerator: 1, denominator: 1 }));
        assert_eq!(found.beyond.unwrap().failing, Some(2));
        assert_eq!(largest_scale(&set, 1_000, edf).map(|s| s.factor), Some(found.factor));
        assert!(largest_scale(&set, u64::MAX, preemptive).is_none());
    }

    /// Liu and Layland 1973: with periods of 1 and the square root of 2, the bound of two tasks.
    #[test]
    fn the_breakdown_utilisation_of_the_worst_pair() {
        let set = set(&[(41_421, 100_000, 100_000), (58_579, 141_421, 141_421)]);
        let found = largest_scale(&set, 100_000, preemptive).unwrap();
        let u = found.utilisation.unwrap();
        let permille = u128::from(u.numerator) * 1_000 / u128::from(u.denominator);
        assert_eq!(permille, 828);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// What is found is accepted and one step further is not, and so in between: bisection finds
        /// what trying all finds.
        #[test]
        fn limits_are_sharp(
            numbers in proptest::collection::vec((4..24u64, 1..6u64, 3..30u64, 0..9u64), 1..4),
            which in 0..4usize, dynamic in any::<bool>(),
        ) {
            let task = |(period, tenths, deadline, jitter): &(u64, u64, u64, u64)| {
                let cost = (period * tenths / 16).max(1);
                Task::new(cost, *period, *deadline).unwrap().with_jitter(jitter / 4)
            };
            let set = TaskSet::in_order(numbers.iter().map(task).collect());
            let at = which % set.len();
            let test = |set: &TaskSet| if dynamic { edf(set) } else { preemptive(set) };
            let analysis = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
            if let Some(mut limits) = FixedLimits::new(&set, &analysis) {
                // A task at a time finds what tests of the whole set find.
                let mut effort = StepLimit::default();
                let cost = largest_cost(&set, at, preemptive);
                prop_assert_eq!(limits.largest_cost(at, &mut effort), Ok(cost));
                let jitter = largest_jitter(&set, at, preemptive);
                prop_assert_eq!(limits.largest_jitter(at, &mut effort), Ok(jitter));
                let period = smallest_period(&set, at, preemptive);
                prop_assert_eq!(limits.smallest_period(at, &mut effort), Ok(period));
            }
            let accepts = |change: &dyn Fn(&Task) -> Task| {
                let changed = with(&set, at, |t| Some(change(t))).unwrap();
                test(&changed).verdict == Verdict::Feasible
            };
            let cost = |cost: &u64| accepts(&|t| with_cost(t, *cost).unwrap());
            prop_assert_eq!(largest_cost(&set, at, test), (1..40).filter(cost).max());
            let jitter = |jitter: &u64| accepts(&|t| t.with_jitter(*jitter));
            prop_assert_eq!(largest_jitter(&set, at, test), (0..40).filter(jitter).max());
            let implicit = set.tasks()[at].deadline == set.tasks()[at].period;
            let period = |period: &u64| accepts(&|t| Task {
                period: *period,
                deadline: if implicit { *period } else { t.deadline },
                ..t.clone()
            });
            if let Some(found) = smallest_period(&set, at, test) {
                prop_assert!(period(&found) && (1..found).rev().take(20).all(|less| !period(&less)));
            }
        }
    }
}
