//! Whether wakings that come soon after others are arrivals, or end waits within a job.
//!
//! The kernel's record names no job. Where wakings come by themselves, a longer execution before one cuts the wait for it short;
//! a wait within a job begins when what ran before it has ended, and takes as long as ever.

use std::collections::{BTreeMap, BTreeSet};

use super::activity::{Burst, Waker, length};
use super::sleeps::median;

/// Wakings are soon after others at less than this part of their mean distance, in quarters.
const SOON: u64 = 3;
/// A distance is the usual one where so many of a hundred are, but for a part in `NEAR`.
const USUAL: usize = 80;
const NEAR: u64 = 8;
/// Of a hundred wakings so many are nearly all.
const SURE: usize = 95;
/// With fewer pairs of execution and wait nothing is shown.
const FEWEST: i128 = 10;
/// Beyond this many, what they show is sure.
const MOST: usize = 20_000;

/// Execution before a wait and the wait, in microseconds.
type Pair = (i128, i128);

/// Whether nothing but arrivals explains the wakings soon after others: another thread that a timer had woken since brought them, or
/// the one before was late, or longer execution did not put them off.
pub(super) fn come_by_themselves(bursts: &[Burst]) -> bool {
    let pairs: Vec<&[Burst]> =
        bursts.windows(2).filter(|pair| pair[0].stretch == pair[1].stretch).collect();
    let distances: Vec<u64> =
        pairs.iter().map(|pair| length(pair[0].at_ns, pair[1].at_ns)).collect();
    let mean =
        distances.iter().copied().fold(0, u64::saturating_add) / (distances.len() as u64).max(1);
    let usual = median(distances.iter().copied());
    let is_usual = |distance: &&u64| distance.abs_diff(usual) <= usual / NEAR;
    let has_usual = distances.iter().filter(is_usual).count() * 100 >= distances.len() * USUAL;
    let soon = |at: &usize| distances[*at] < mean / 4 * SOON;
    let follows_late = |at: usize| {
        let two =
            at.checked_sub(1).map_or(0, |before| distances[before].saturating_add(distances[at]));
        has_usual && two >= (usual * 2).saturating_sub(usual / NEAR)
    };
    let messengers = messengers(&pairs);
    // It ran when it was woken, or was told to.
    let is_brought = |burst: &Burst| burst.is_late || messengers.contains(&burst.waker);
    let is_doubtful = |at: &usize| soon(at) && !follows_late(*at) && !is_brought(&pairs[*at][1]);
    // Behind a wait within a job comes the one for the next job, which may be short, too.
    let is_first = |at: &usize| at.checked_sub(1).is_none_or(|before| !is_doubtful(&before));
    let first: Vec<usize> =
        (0..pairs.len()).filter(|at| is_doubtful(at) && is_first(at)).take(MOST).collect();
    let before = first.iter().filter_map(|at| pairs.get(at.checked_sub(1)?));
    let are_cut_short = |pairs: &mut dyn Iterator<Item = &&[Burst]>| {
        cut_short(&pairs.filter_map(|pair| waited(pair)).collect::<Vec<Pair>>())
    };
    first.is_empty()
        || are_cut_short(&mut first.iter().map(|at| &pairs[*at])) == Some(true)
            && are_cut_short(&mut before.into_iter()) != Some(false)
}

/// The wakers whose wakings nearly all were brought by what a timer or a device had begun since the wait began; where they were
/// not seen at work, as they had just lost the CPU, the others speak for them.
fn messengers(pairs: &[&[Burst]]) -> BTreeSet<Waker> {
    let mut counts: BTreeMap<Waker, (usize, usize, usize)> = BTreeMap::new();
    for burst in pairs.iter().map(|pair| &pair[1]) {
        let (all, known, brought) = counts.entry(burst.waker).or_default();
        *all += 1;
        let Some((begun_ns, (from_ns, _))) = burst.by.and_then(|by| by.begun_ns).zip(burst.slept)
        else {
            continue;
        };
        *known += 1;
        *brought += usize::from(begun_ns > from_ns);
    }
    let is_one = |(_, (all, known, brought)): &(Waker, (usize, usize, usize))| {
        *known > 0 && known * 2 >= *all && brought * 100 >= known * SURE
    };
    counts.into_iter().filter(is_one).map(|(waker, _)| waker).collect()
}

fn waited(pair: &[Burst]) -> Option<Pair> {
    let (from_ns, _) = pair[1].slept?;
    let [ran, wait] = [(pair[0].at_ns, from_ns), (from_ns, pair[1].at_ns)]
        .map(|(from, to)| i128::from(length(from, to) / 1_000));
    Some((ran, wait))
}

/// Whether waits shorten by what ran before them: the slope of their regression is nearer to -1 than to 0, or nearer to 0, by
/// three times its standard error.
fn cut_short(pairs: &[Pair]) -> Option<bool> {
    let number = pairs.len() as i128;
    if number < FEWEST {
        return None;
    }
    let mean = |of: fn(&Pair) -> i128| pairs.iter().map(of).sum::<i128>() / number;
    let (ran, wait) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: fn(i128, i128) -> i128| {
        pairs.iter().map(|pair| of(pair.0 - ran, pair.1 - wait)).sum::<i128>()
    };
    let (squares, products) = (sum(|ran, _| ran * ran), sum(|ran, wait| ran * wait));
    let waits = sum(|_, wait| wait * wait);
    // The slope is products / squares, its distance from one half below 0 this over twice the squares.
    let beyond = products.checked_mul(2)?.checked_add(squares)?;
    let rest = waits.checked_mul(squares)?.checked_sub(products.checked_mul(products)?)?;
    let shown = beyond.checked_mul(beyond)?.checked_mul(number - 2)?;
    (squares > 0 && shown > rest.checked_mul(36)?).then_some(beyond < 0)
}
