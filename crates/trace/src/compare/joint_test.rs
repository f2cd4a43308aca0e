//! Whether one of several quantities moved, all of them considered together.
//!
//! Owns: the test, by the signs that the pairs of each quantity might have had (step-down minimal p-values
//! with weights: P. H. Westfall and S. S. Young, *Resampling-Based Multiple Testing*, 1993), and how many
//! rounds it needs. Must not: know what was measured, use floating point for a decision.
//!
//! If nothing differs, each pair's difference is as likely with the other sign, in all quantities at once.
//! So the chance that any quantity seems to have moved as far as it did is counted over all signs, which is exact
//! for any number of pairs, however quantities depend on each other.
//!
//! Quantities that lead (medians, shares) are looked at first: the chance of any other one counts
//! [`HANDICAP`] times. A maximum is the noisiest number of a run, and there are many quantities like it; with
//! equal weights they would take from the median most of what few rounds can show.

use hourglass_documents::random::Stream;

use super::quantity::Quantity;
use super::signed_rank::signed_ranks;

/// How many times the chance of a quantity that does not lead counts. With 4, ten rounds can still decide
/// every quantity that a run has ([`DetectableRounds`]).
const HANDICAP: u64 = 4;

/// A reported change is wrong at most once in this number of comparisons of equals: 1 - `USUAL`.
const ONCE_IN: u64 = 20;

/// All signs are tried up to this number of pairs; with more, they are drawn.
const MOST_ENUMERATED: usize = 13;

/// Number of draws, besides the observed signs.
const DRAWN: usize = 10_000;

pub(super) struct Candidate {
    /// Second minus first, pair by pair. All candidates of a family have the same pairs.
    pub(super) differences: Vec<f64>,
    pub(super) is_primary: bool,
}

/// How often chance alone gives what was found, all quantities of the family considered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermutationCount {
    reached: usize,
    permutations: usize,
}

impl PermutationCount {
    /// Whether it is so small that the quantity moved.
    pub(super) fn shows_a_move(self) -> bool {
        self.reached as u64 * ONCE_IN <= self.permutations as u64
    }
}

/// The chance of each quantity, in their order. With more than 13 pairs, the signs are drawn from a sequence
/// that begins with `seed`.
pub(super) fn joint_chances(family: &[Candidate], seed: u64) -> Vec<PermutationCount> {
    let counts: Vec<Vec<u64>> = counts_of(family, seed);
    let Some(tried) = counts.first().map(Vec::len) else { return Vec::new() };
    // The first signs are those that there were.
    let observed = |one: usize| counts[one].first().copied().unwrap_or(u64::MAX);
    let mut order: Vec<usize> = (0..family.len()).collect();
    order.sort_by_key(|one| observed(*one));
    let mut chances = vec![PermutationCount { reached: tried, permutations: tried }; family.len()];
    // From the last on: a quantity competes with those that moved no more than it did.
    let mut least = vec![u64::MAX; tried];
    for one in order.iter().rev() {
        for (least, count) in least.iter_mut().zip(&counts[*one]) {
            *least = (*least).min(*count);
        }
        chances[*one].reached = least.iter().filter(|least| **least <= observed(*one)).count();
    }
    let mut so_far = 0;
    for one in order {
        so_far = so_far.max(chances[one].reached);
        chances[one].reached = so_far;
    }
    chances
}

/// For each quantity and all signs: under how many of them its rank sum is as far from zero, weighted.
fn counts_of(family: &[Candidate], seed: u64) -> Vec<Vec<u64>> {
    let ranks: Vec<Vec<i64>> = family.iter().map(|one| signed_ranks(&one.differences)).collect();
    let pairs = ranks.iter().map(Vec::len).min().unwrap_or(0);
    let is_enumerated = pairs <= MOST_ENUMERATED;
    let tries = if is_enumerated { 1 << pairs } else { DRAWN + 1 };
    let mut random = Stream::from_seeds(&[seed, pairs as u64]);
    let mut sums = vec![Vec::with_capacity(tries); family.len()];
    let mut flipped = vec![false; pairs];
    for number in 0..tries {
        for (at, sign) in flipped.iter_mut().enumerate() {
            *sign = match is_enumerated {
                true => number >> at & 1 == 1,
                false => number > 0 && random.below(2) == 1,
            };
        }
        for (sums, ranks) in sums.iter_mut().zip(&ranks) {
            let signed = ranks.iter().zip(&flipped).map(|(r, flip)| if *flip { -r } else { *r });
            sums.push(signed.sum::<i64>().unsigned_abs());
        }
    }
    let weigh = |(sums, one): (Vec<u64>, &Candidate)| {
        let weight = if one.is_primary { 1 } else { HANDICAP };
        let mut sorted = sums.clone();
        sorted.sort_unstable();
        let as_far = |sum: &u64| sorted.len() - sorted.partition_point(|other| other < sum);
        sums.iter().map(|sum| as_far(sum) as u64 * weight).collect()
    };
    sums.into_iter().zip(family).map(weigh).collect()
}

/// From how many rounds on a comparison can decide, whatever its quantities have to do with each other: if all
/// rounds agree on a quantity, it is said to have moved. With fewer rounds even that may be chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectableRounds {
    /// Quantities that lead; all, if none leads.
    pub leading: u64,
    pub all: u64,
}

impl DetectableRounds {
    /// The rounds for these quantities. Those that only explain others are a family of their own.
    pub fn of_all<'a>(quantities: impl IntoIterator<Item = &'a Quantity>) -> DetectableRounds {
        let (leading, others): (Vec<_>, Vec<_>) =
            quantities.into_iter().partition(|quantity| quantity.leads());
        DetectableRounds::of(leading.len(), others.len())
    }

    pub fn of(leading: usize, others: usize) -> DetectableRounds {
        let (leading, others) = (leading as u64, others as u64);
        // Rounds that agree are two patterns of signs, all one way and all the other way.
        const AGREED: u64 = 2;
        // A chance of AGREED counts HANDICAP times; that of a leading quantity counts as it is.
        let handicapped = leading * patterns_up_to(AGREED * HANDICAP) + others * AGREED;
        let all = rounds_for(if others > 0 { handicapped } else { leading * AGREED });
        let leading = if leading > 0 { rounds_for(leading * AGREED) } else { all };
        DetectableRounds { leading, all }
    }
}

/// How many patterns of signs have a chance of at most `most` patterns: those with the smallest rank sums.
fn patterns_up_to(most: u64) -> u64 {
    // Sets of ranks with the sum 0, 1, 2, 3, 4, 5 and 6.
    const SETS: [u64; 7] = [1, 1, 1, 2, 2, 3, 4];
    let mut sum = 0;
    for sets in SETS {
        if sum + 2 * sets > most {
            break;
        }
        sum += 2 * sets;
    }
    sum
}

/// The smallest number of rounds with enough patterns of signs for `reached` of them to be rare.
fn rounds_for(reached: u64) -> u64 {
    u64::from((reached.max(1) * ONCE_IN).next_power_of_two().ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leading(differences: Vec<f64>) -> Candidate {
        Candidate { differences, is_primary: true }
    }

    fn share(chance: PermutationCount) -> f64 {
        chance.reached as f64 / chance.permutations as f64
    }

    /// M. Hollander and D. A. Wolfe, *Nonparametric Statistical Methods* (1973), page 29: p = 0.0391.
    #[test]
    fn hollander_and_wolfe() {
        // Depression scores of nine patients, after less before, in thousandths.
        let differences = [-952, 147, -1_022, -430, -620, -590, -490, 80, -10].map(f64::from);
        let chance = share(joint_chances(&[leading(differences.to_vec())], 1)[0]);
        assert!((chance - 0.0391).abs() < 5e-5, "{chance}");
    }

    /// The obviously right twin: the least chance is that of equal signs, one of 2^(n-1), however
    /// many quantities move together.
    #[test]
    fn quantities_that_move_together_count_once() {
        let one: Vec<f64> = (1..=8).map(f64::from).collect();
        let family: Vec<Candidate> = (0..12).map(|_| leading(one.clone())).collect();
        let chances = joint_chances(&family, 1);
        assert!(
            chances.iter().all(|p| *p == PermutationCount { reached: 2, permutations: 256 }),
            "{chances:?}"
        );
        let still = joint_chances(&[leading(vec![0.0; 8])], 1)[0];
        assert_eq!(still.reached, still.permutations);
        assert!(joint_chances(&[], 1).is_empty());
    }

    /// Drawn signs give what all signs give (seed 3).
    #[test]
    fn drawn_signs_agree_with_the_normal_distribution() {
        // 20 pairs, T+ = 52: the exact two-sided chance is 0.0484 (Hollander and Wolfe, A.4).
        let is_positive = |rank: i32| [20, 19, 13].contains(&rank);
        let differences: Vec<f64> = (1..=20)
            .map(|rank| if is_positive(rank) { f64::from(rank) } else { -f64::from(rank) })
            .collect();
        let chance = share(joint_chances(&[leading(differences)], 3)[0]);
        assert!((chance - 0.0484).abs() < 0.008, "{chance}");
    }

    /// Differences whose rounds disagree, but for the first candidate; `others` do not lead.
    fn family(rounds: usize, leaders: usize, others: usize, seed: u64) -> Vec<Candidate> {
        let mut random = Stream::from_seeds(&[seed, rounds as u64]);
        let mut one = |all_agree: bool| -> Vec<f64> {
            let sized = |at: usize, random: &mut Stream| (at as f64 + 1.0 + random.share()) * 7.0;
            let mut all: Vec<f64> = (0..rounds).map(|at| sized(at, &mut random)).collect();
            for value in all.iter_mut().filter(|_| !all_agree) {
                *value *= if random.below(2) == 1 { 1.0 } else { -1.0 };
            }
            all
        };
        let count = leaders + others;
        (0..count)
            .map(|at| Candidate { differences: one(at == 0), is_primary: at < leaders })
            .collect()
    }

    /// A real difference of 20 us was found in none of ten comparisons of 6 rounds, since three other numbers
    /// that had not moved competed with the median; with 10 rounds in five of five. From the number of rounds
    /// that is announced on, rounds that agree are enough, whatever the others do.
    #[test]
    fn rounds_that_agree_are_enough_from_the_announced_number_on() {
        for (leaders, others) in [(1, 0), (1, 3), (2, 4), (3, 7), (5, 7), (0, 4)] {
            let reach = DetectableRounds::of(leaders, others);
            for seed in 0..40 {
                let rounds = if leaders > 0 { reach.leading } else { reach.all };
                let found = joint_chances(&family(rounds as usize, leaders, others, seed), 1);
                assert!(found[0].shows_a_move(), "{leaders}+{others}, seed {seed}: {found:?}");
            }
        }
        assert_eq!(DetectableRounds::of(1, 3), DetectableRounds { leading: 6, all: 8 });
        assert_eq!(DetectableRounds::of(3, 7), DetectableRounds { leading: 7, all: 10 });
        // Everything that a run can have.
        assert_eq!(DetectableRounds::of(5, 7), DetectableRounds { leading: 8, all: 10 });
        assert_eq!(DetectableRounds::of(0, 4), DetectableRounds { leading: 8, all: 8 });
    }

    /// A quantity that does not lead needs the number of rounds that is announced for all.
    #[test]
    fn others_need_more_rounds() {
        for (leaders, others) in [(1, 3), (3, 7), (5, 7)] {
            let rounds = DetectableRounds::of(leaders, others).all as usize;
            for seed in 0..40 {
                let mut all = family(rounds, leaders, others, seed);
                // The one whose rounds agree is another one.
                all.swap(0, leaders);
                all[0].is_primary = true;
                all[leaders].is_primary = false;
                let found = joint_chances(&all, 1)[leaders];
                assert!(found.shows_a_move(), "{leaders}+{others}, seed {seed}: {found:?}");
            }
        }
    }

    /// With one round less, chance alone makes one of the leading quantities agree too often.
    #[test]
    fn fewer_rounds_than_announced_decide_nothing_for_sure() {
        for (leaders, others) in [(1, 3), (3, 7), (5, 7)] {
            let rounds = DetectableRounds::of(leaders, others).leading as usize - 1;
            // Signs that differ from quantity to quantity.
            let seeds = (0..40).filter(|seed| {
                let signs = |one: &Candidate| -> Vec<bool> {
                    let first = one.differences[0] > 0.0;
                    one.differences.iter().map(|d| (*d > 0.0) == first).collect()
                };
                let all: Vec<_> = family(rounds, leaders, 0, *seed).iter().map(signs).collect();
                all.iter().enumerate().all(|(at, one)| !all[..at].contains(one))
            });
            let seeds: Vec<u64> = seeds.collect();
            assert!(!seeds.is_empty());
            for seed in seeds {
                let found = joint_chances(&family(rounds, leaders, others, seed), 1);
                assert!(!found[0].shows_a_move(), "{leaders}+{others}, seed {seed}: {found:?}");
            }
        }
    }

    /// Seven rounds that agree on the median decide it, although five maxima are judged as well.
    #[test]
    fn a_maximum_does_not_take_what_the_median_needs() {
        let median: Vec<f64> = (1..=7).map(f64::from).collect();
        let maximum = |at: usize| -> Vec<f64> {
            let sign = |one: usize| if one == at || one == 6 { -1.0 } else { 1.0 };
            (0..7).map(|one| sign(one) * (one as f64 + 1.0)).collect()
        };
        let with = |leads: bool| {
            let others = (0..5).map(|at| Candidate { differences: maximum(at), is_primary: leads });
            let mut family = vec![leading(median.clone())];
            family.extend(others);
            joint_chances(&family, 1)[0].shows_a_move()
        };
        assert!(with(false));
        // All alike, as it was before: 12 of 128 patterns make one of the six agree.
        assert!(!with(true));
    }
}
