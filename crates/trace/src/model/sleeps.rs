//! Waits of one length among others: a thread that sleeps for a time within its jobs.
//!
//! Without system calls the record does not name what a thread waits for. A sleep lasts equally long whatever ran before it, while a timer or a
//! message ends a wait at a time of its own.

use std::collections::BTreeMap;

use super::activity::{Burst, Waker, length};
use super::grouping::spread;

/// Lengths of a sleep differ by this, ns, or by this part of it: the timer's slack and the way into the wait.
const NEAR_NS: u64 = 100_000;
const NEAR_PART: u64 = 32;
/// Sleeps are at least one in so many waits, and as many are none.
const SOME: usize = 5;
/// Around lengths of sleeps there are this many times fewer.
const APART: usize = 4;
/// Execution before a wait is an outlier where it exceeds the median by this, ns; with so many outliers these decide.
const LONGER_NS: u64 = 50_000;
const CASES: usize = 5;
/// Of the outliers one in so many may contradict.
const OTHERS: usize = 5;
/// With fewer outliers the quartiles of execution decide, where they differ by this, ns, at least.
const LEAST_NS: u64 = 4_000;
/// A place for a wait in a job that fewer than one in so many jobs have is left out; so are as few wakings by threads.
const RARE: usize = 10;

/// With fewer waits a regression shows nothing.
const FEWEST: i128 = 10;

/// Execution before a wait and the wait, ns.
pub(super) type Times = (u64, u64);

/// Lengths of waits, both among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SleepLength {
    from_ns: u64,
    to_ns: u64,
}

impl SleepLength {
    pub(super) fn has(self, burst: &Burst) -> bool {
        waited(burst).is_some_and(|wait| self.contains(wait))
    }

    fn contains(self, wait: u64) -> bool {
        (self.from_ns..=self.to_ns).contains(&wait)
    }

    /// Whether enough of all waits, ascending, are of this length, enough are not, and few are near it.
    fn is_apart(self, waits: &[u64]) -> bool {
        let width = self.to_ns - self.from_ns;
        // Without room for shorter waits nothing shows that there are few of them.
        let Some(before) = self.from_ns.checked_sub(width) else { return false };
        let inside = number(waits, self.from_ns, self.to_ns);
        let before = number(waits, before, self.from_ns.saturating_sub(1));
        let behind = number(waits, self.to_ns + 1, self.to_ns.saturating_add(width));
        let some = (waits.len() / SOME).max(1);
        let rest = waits.len() - inside;
        inside >= some && rest >= some && (before + behind) * APART <= inside
    }
}

/// The length of which many waits are and others are not; `None` without one, or where equal distances of wakings may be the
/// reason.
pub(super) fn find(bursts: &[Burst]) -> Option<SleepLength> {
    lengths_apart(bursts).into_iter().find(|found| {
        let of_sleeps = || bursts.windows(2).filter(|pair| found.has(&pair[1]));
        let distances = of_sleeps().map(|pair| length(pair[0].at_ns, pair[1].at_ns));
        let distances = spread(distances.collect());
        let lengths = spread(of_sleeps().filter_map(|pair| waited(&pair[1])).collect());
        let is_steadier = distances >= NEAR_NS && lengths.saturating_mul(2) <= distances;
        // The answer of another thread may come after a constant time, too.
        let by_thread = |pair: &&[Burst]| matches!(pair[1].waker, Waker::Thread(_));
        let is_answer = of_sleeps().filter(by_thread).count() * RARE > of_sleeps().count();
        is_steadier || !is_answer && begin_behind_work(bursts, |burst| found.has(burst))
    })
}

/// Lengths that many waits have and others have not, whatever the reason.
pub(super) fn lengths_apart(bursts: &[Burst]) -> Vec<SleepLength> {
    let mut waits: Vec<u64> = bursts.iter().filter_map(waited).collect();
    waits.sort_unstable();
    let most = densest(&waits);
    // The waits between jobs may be alike, too.
    let rest = waits.iter().copied().filter(|wait| !most.is_some_and(|most| most.contains(*wait)));
    let both = [most, densest(&rest.collect::<Vec<u64>>())].into_iter().flatten();
    both.filter(|found| found.is_apart(&waits)).collect()
}

/// The length that most of these waits have, ascending.
fn densest(waits: &[u64]) -> Option<SleepLength> {
    let of = |from_ns: u64| {
        let to_ns = from_ns.saturating_add(NEAR_NS.max(from_ns / NEAR_PART));
        SleepLength { from_ns, to_ns }
    };
    let all = waits.iter().map(|from_ns| of(*from_ns));
    all.max_by_key(|length| number(waits, length.from_ns, length.to_ns))
}

/// How many of these waits, ascending, are between two lengths.
fn number(waits: &[u64], from: u64, to: u64) -> usize {
    let below = |limit: u64| waits.partition_point(|wait| *wait < limit);
    below(to.saturating_add(1)).saturating_sub(below(from))
}

/// Whether waits begin when what ran before them has ended: where that took longer than usual, they end later by as much, while a
/// timer would have cut them short.
pub(super) fn begin_behind_work(bursts: &[Burst], is_inner: impl Fn(&Burst) -> bool) -> bool {
    let places = by_place(bursts, is_inner);
    !places.is_empty() && places.iter().all(|times| of_one_place(times))
}

/// For each place of a wait in a job the times from the waking before to the wait, and from there to its end.
pub(super) fn by_place(bursts: &[Burst], is_inner: impl Fn(&Burst) -> bool) -> Vec<Vec<Times>> {
    let mut places: BTreeMap<usize, Vec<Times>> = BTreeMap::new();
    let mut place = 0;
    for pair in bursts.windows(2).filter(|pair| pair[0].stretch == pair[1].stretch) {
        let inner = pair[1].slept.filter(|_| is_inner(&pair[1]));
        let Some((from_ns, _)) = inner else {
            place = 0;
            continue;
        };
        let times = (length(pair[0].at_ns, from_ns), length(from_ns, pair[1].at_ns));
        places.entry(place).or_default().push(times);
        place += 1;
    }
    // A job that is late may seem to have more waits than the others.
    let most = places.values().map(Vec::len).max().unwrap_or(0);
    places.into_values().filter(|times| times.len() * RARE >= most).collect()
}

/// The same of waits at one place in each job, as (execution before, wait).
fn of_one_place(times: &[Times]) -> bool {
    let ran = median(times.iter().map(|(ran, _)| *ran));
    let wait = median(times.iter().map(|(_, wait)| *wait));
    let longer = times.iter().map(|(at, waited)| (at.saturating_sub(ran), *waited));
    let longer: Vec<(u64, u64)> = longer.filter(|(by, _)| *by >= LONGER_NS).collect();
    let behind = longer.iter().filter(|(by, waited)| waited.saturating_add(by / 2) >= wait).count();
    if longer.len() >= CASES {
        return (longer.len() - behind) * OTHERS <= longer.len();
    }
    // Both halves must show it: one might by chance.
    [0, 1].into_iter().all(|first| {
        let mut sample: Vec<(u64, u64)> = times.iter().skip(first).step_by(2).copied().collect();
        sample.sort_unstable();
        let quarter = sample.len() / 4;
        let ends = [&sample[..quarter], &sample[sample.len() - quarter..]];
        let [short, long] = ends.map(|part| median(part.iter().map(|(ran, _)| *ran)));
        let [from, to] = ends.map(|part| median(part.iter().map(|(ran, wait)| ran + wait)));
        let by = long.saturating_sub(short);
        quarter >= CASES && by >= LEAST_NS && to.saturating_sub(from) * 4 >= by * 3
    })
}

/// Whether waits shorten by what ran before them: the slope of their regression is nearer to -1 than to 0, or nearer to 0, by
/// three times its standard error.
pub(super) fn cut_short(times: &[Times]) -> Option<bool> {
    let number = times.len() as i128;
    if number < FEWEST {
        return None;
    }
    // Products of these with each other stay in range.
    let in_us = |(ran, wait): &Times| (i128::from(ran / 1_000), i128::from(wait / 1_000));
    let pairs: Vec<(i128, i128)> = times.iter().map(in_us).collect();
    let mean = |of: fn(&(i128, i128)) -> i128| pairs.iter().map(of).sum::<i128>() / number;
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

pub(super) fn median<T: Ord + Copy + Default>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn waited(burst: &Burst) -> Option<u64> {
    Some(length(burst.slept?.0, burst.at_ns))
}
