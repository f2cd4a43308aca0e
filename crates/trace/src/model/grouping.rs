//! Which waits of a thread lie within its jobs.
//!
//! Owns: the ways in which these are told from the waits between jobs. Must not: look at more than one thread.

use std::collections::BTreeMap;

use super::activity::{Burst, UNINTERRUPTIBLE, Waker, length};
use super::arrivals;
use super::jobs::{Grouped, Job, grouped};
use super::period::{self, PeriodFit};
use super::places::{self, Places};
use super::sleeps::{self, SleepLength, median};

/// Grouped jobs have a jitter of this part of the period at most: with enough freedom everything could be grouped.
const CLOSE: u64 = 4;
/// Jobs with fewer waits than the others, one in so many at most.
const SHORTENED: usize = 10;
/// A longer period is the true one where its jitter is so many times less.
const STEADIER: u64 = 4;
/// Bursts of a period that are found to repeat, at most.
const LONGEST_PATTERN: usize = 8;
/// A longer period that is looked for is so many times the one that was found, at most.
const LONGEST_PERIOD: i64 = 64;
/// Wakers that are tried as those of jobs.
const WAKERS: usize = 4;
/// A waker that did this part of a usual job, or less, between two wakings did not begin another one.
const AT_ONCE: u64 = 4;
/// Of a hundred jobs so many have a sleep where sleeps lie within jobs, and of waits that are none so many end on their grid.
const SURE: u64 = 95;
/// Times are on a grid that are off by this part of its period at most.
const ON_GRID: i64 = 8;
/// The first times that may be on the grid.
const FIRST: usize = 8;
/// Distances of wakings that vary less than this say nothing, ns.
const SPREAD_NS: u64 = 20_000;

/// The jobs of a thread: with the waits in them that can be told from others.
pub(super) fn group(bursts: &[Burst]) -> Grouped {
    let in_kernel =
        |burst: &Burst| burst.slept.is_some_and(|(_, state)| state & UNINTERRUPTIBLE != 0);
    let places = places::of(bursts, in_kernel);
    if let Places::Begin(begin) = places {
        let is_inner =
            |burst: &Burst| in_kernel(burst) || burst.place.is_some_and(|at| at != begin);
        let basis = "the system call: another one begins jobs";
        let placed = places::from_first(bursts);
        let has_inner = placed.iter().any(is_inner);
        let bursts = if has_inner { &placed } else { bursts };
        let found = grouped(bursts, is_inner, basis);
        let fit = found.fit.filter(|_| found.is_full() || !repeats(&found));
        return Grouped { places, fit, ..found };
    }
    Grouped { places, ..by_times(bursts, in_kernel) }
}

/// The same without the system calls in which it waited.
fn by_times(bursts: &[Burst], in_kernel: impl Fn(&Burst) -> bool + Copy) -> Grouped {
    let plain = grouped(bursts, in_kernel, "the kernel's state: uninterruptible");
    let sleep = sleeps::find(bursts);
    let of_sleeps = || by_sleeps(bursts, sleep?, in_kernel);
    if let Some(fit) = plain.fit.filter(|_| plain.is_full()) {
        // The ends of sleeps near the middle of a period make half of it one, with a jitter as wide as they are.
        let is_steadier = |other: PeriodFit| {
            other.period_ns / 2 >= fit.period_ns - fit.period_ns / CLOSE
                && other.usual_ns.saturating_mul(STEADIER) <= fit.jitter_ns
        };
        let steadier = of_sleeps().filter(|found| found.fit.is_some_and(is_steadier));
        return steadier.unwrap_or(plain);
    }
    // What a host holds up has other lengths.
    let of_lengths = || [by_length(bursts), of_sleeps()].into_iter().flatten().min_by_key(uneven);
    let found = by_waker(bursts, in_kernel).or_else(of_lengths);
    let found = found.or_else(|| by_grid(bursts, in_kernel));
    let plain = if repeats(&plain) { Grouped { fit: None, ..plain } } else { plain };
    found.unwrap_or(Grouped { has_sleeps: sleep.is_some(), ..plain })
}

/// Whether the periods without a job come back again and again, or most jobs have one before them: a longer period has several
/// bursts, of waits in a job or not, and the grid they happen to fall on is no law of them.
fn repeats(found: &Grouped) -> bool {
    let nominal = |job: &Job| job.nominal_ns;
    let at: Vec<i64> = found.jobs.iter().filter_map(nominal).collect();
    let steps: Vec<i64> = at.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let again = |length: usize| {
        let pairs = steps.iter().zip(steps.iter().skip(length));
        pairs.filter(|(one, next)| one == next).count()
    };
    // Nearly all steps are alike where most periods have a job.
    let is_varied = again(1) * 4 <= steps.len() * 3;
    let is_again = |length: usize| again(length) * 20 >= steps.len().saturating_sub(length) * 19;
    let is_finer = Some(median(steps.iter().copied())) > found.fit.map(|fit| fit.period_ns as i64);
    is_finer
        || has_longer_period(found)
        || is_varied && steps.len() > LONGEST_PATTERN && (2..=LONGEST_PATTERN).any(is_again)
}

/// Whether the jobs behind periods without one come again and again at the same place of a longer period.
fn has_longer_period(found: &Grouped) -> bool {
    let period = found.fit.and_then(|fit| i64::try_from(fit.period_ns).ok()).unwrap_or(0).max(1);
    let steps = found.jobs.windows(2).filter_map(|pair| {
        let (before, at) = pair[0].nominal_ns.zip(pair[1].nominal_ns)?;
        (at.saturating_sub(before) > period).then_some(at / period)
    });
    let behind: Vec<i64> = steps.collect();
    let is_of = |longer: &i64| {
        let mut places: BTreeMap<i64, usize> = BTreeMap::new();
        behind.iter().for_each(|at| *places.entry(at.rem_euclid(*longer)).or_default() += 1);
        places.values().any(|count| count * 10 >= behind.len() * 9)
    };
    behind.len() > LONGEST_PATTERN && (2..=LONGEST_PERIOD).any(|longer| is_of(&longer))
}

/// Jobs that all begin by one waker, with a period, while others wake the thread within.
fn by_waker(bursts: &[Burst], in_kernel: impl Fn(&Burst) -> bool) -> Option<Grouped> {
    let mut counts: BTreeMap<Waker, usize> = BTreeMap::new();
    for burst in bursts {
        *counts.entry(burst.waker).or_default() += 1;
    }
    if counts.contains_key(&Waker::Unknown) || counts.len() < 2 {
        return None;
    }
    let mut wakers: Vec<(Waker, usize)> = counts.into_iter().collect();
    wakers.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let of_waker = |basis: &'static str, waker: Waker| {
        let is_inner = |burst: &Burst| in_kernel(burst) || burst.waker != waker;
        grouped(bursts, is_inner, basis)
    };
    let most = || wakers.iter().take(WAKERS).map(|(waker, _)| *waker);
    let locked = most().filter(|waker| others_hold_locks(bursts, *waker));
    let basis = "the waker: at work since before the wait";
    let of_locks = locked.map(|waker| of_waker(basis, waker)).find(is_close);
    let basis = "the waker: another one begins jobs";
    let answered = most().filter(|waker| {
        !others_come_by_themselves(bursts, *waker) && !timers_keep_a_grid(bursts, *waker)
    });
    let of_answers = |waker| Grouped { may_be_several: true, ..of_waker(basis, waker) };
    let mut found = answered.map(of_answers).filter(|found| is_regular(found) && waits_less(found));
    of_locks.or_else(|| found.next())
}

/// Whether jobs wait for less time within them than between them: the rest of each with the begin of the next one is as regular.
fn waits_less(found: &Grouped) -> bool {
    let within = found.jobs.iter().filter_map(|job| job.waits_ns.iter().copied().max());
    let between = found.jobs.windows(2).map(|pair| length(pair[0].end_ns, pair[1].at_ns));
    median(within) <= median(between)
}

/// Whether more than a few of the waits that others than `waker` ended were ended in a job of theirs that a timer or a device
/// had begun since: these are activations of another source, and no answers.
fn others_come_by_themselves(bursts: &[Burst], waker: Waker) -> bool {
    let inner = || bursts.iter().filter(|burst| burst.waker != waker);
    let is_own = |burst: &&Burst| arrivals::is_brought(burst);
    inner().filter(is_own).count() * SHORTENED > inner().count()
}

/// Whether wakings by timers have a period of their own beside those by `waker`, whose jobs they then do not lie in.
fn timers_keep_a_grid(bursts: &[Burst], waker: Waker) -> bool {
    let of_timers = |burst: &Burst| burst.waker != Waker::Interrupt;
    waker != Waker::Interrupt && is_near_grid(&grouped(bursts, of_timers, ""))
}

/// Whether each wait that another thread than `waker` ended began while that one was at work, or the one before it of those that
/// a lock went through: some jobs wait for it, and others find it free. A message comes whenever it likes.
fn others_hold_locks(bursts: &[Burst], waker: Waker) -> bool {
    let inner = || bursts.iter().filter(|burst| burst.waker != waker);
    let followed = |waker: Waker| inner().any(|burst| burst.waker == waker && burst.by.is_some());
    let is_held = |burst: &Burst| {
        // The kernel's record may lack the switch to a thread that is followed.
        let Some((by, (from, _))) = burst.by.zip(burst.slept) else {
            return (!followed(burst.waker)).then_some(false);
        };
        if by.at_ns <= from { Some(true) } else { Some(by.begun_ns? <= from) }
    };
    let known: Vec<bool> = inner().filter_map(is_held).collect();
    let held = known.iter().filter(|is_held| **is_held).count();
    known.len() * 2 >= inner().count() && super::covers(held as u64, known.len() as u64)
}

/// Jobs of a thread that is woken by one with the jobs `before`, in each of them: all that it does from one of these to the next
/// is one job. A lock that the waker still holds takes the CPU from it again.
pub(super) fn by_jobs(bursts: &[Burst], before: &[Job]) -> Option<Grouped> {
    let number = |burst: &Burst| before.partition_point(|job| job.at_ns <= burst.at_ns);
    let distances = before.windows(2).map(|pair| length(pair[0].at_ns, pair[1].at_ns));
    let mut distances: Vec<u64> = distances.collect();
    distances.sort_unstable();
    // After a longer wait it was woken for another job, of two that the waker did at once; if the waker did next to nothing
    // in between, it had lost the CPU with the lock.
    let longest = distances.get(distances.len() / 2)? / 2;
    let mut work: Vec<u64> = before.iter().map(|job| job.run_ns).collect();
    work.sort_unstable();
    let least = work.get(work.len() / 2)? / AT_ONCE;
    let is_held = |pair: &&[Burst]| {
        let ran = pair[1].by.zip(pair[0].by);
        let ran = ran.and_then(|(later, earlier)| later.ran_ns?.checked_sub(earlier.ran_ns?));
        pair[0].waker == pair[1].waker && ran.is_some_and(|ran| ran <= least)
    };
    let is_one = |pair: &&[Burst]| {
        let is_short = length(pair[0].end_ns, pair[1].at_ns) <= longest;
        let is_sent = pair[0].waker != pair[1].waker && arrivals::is_brought(&pair[1]);
        number(&pair[0]) == number(&pair[1]) && !is_sent && (is_short || is_held(pair))
    };
    let inner: Vec<i64> = bursts.windows(2).filter(is_one).map(|pair| pair[1].at_ns).collect();
    if inner.is_empty() {
        return None;
    }
    let is_inner = |burst: &Burst| inner.binary_search(&burst.at_ns).is_ok();
    let found = grouped(bursts, is_inner, "the waker: once in each of its jobs");
    let most = bursts.last().map_or(0, number).checked_sub(bursts.first().map_or(0, number))?;
    let found = Grouped { may_be_several: true, ..found };
    super::covers(found.jobs.len() as u64, most as u64).then_some(found)
}

/// Jobs that begin after the long waits, with a period, where the short ones last equally long, whenever they begin: a burst of
/// activations would have its distances between wakings. Or where the jobs keep to a grid and what ends these waits does not.
fn by_length(bursts: &[Burst]) -> Option<Grouped> {
    let wait = |burst: &Burst| Some(length(burst.slept?.0, burst.at_ns));
    let mut waits: Vec<u64> = bursts.iter().filter_map(wait).collect();
    waits.sort_unstable();
    let few = waits.len() / SHORTENED;
    let wider = |pair: &&[u64]| u128::from(pair[1]) * 1024 / u128::from(pair[0].max(1));
    let middle = waits.get(few..waits.len().saturating_sub(few))?;
    let limit = middle.windows(2).filter(|pair| pair[1] / 2 > pair[0]).max_by_key(wider)?[0];
    let is_inner = |burst: &Burst| wait(burst).is_some_and(|wait| wait <= limit);
    let found = grouped(bursts, is_inner, "the length: equal, whatever ran before");
    if !is_regular(&found) {
        return None;
    }
    let places = sleeps::by_place(bursts, is_inner);
    let spreads = places.iter().map(|times| {
        let distances = spread(times.iter().map(|(ran, wait)| ran.saturating_add(*wait)).collect());
        (spread(times.iter().map(|(_, wait)| *wait).collect()), distances)
    });
    let spreads: Vec<(u64, u64)> = spreads.collect();
    let is_steadier = |one: u64, other: u64| other >= SPREAD_NS && one * 2 <= other;
    if spreads.iter().any(|(waits, distances)| is_steadier(*distances, *waits)) {
        return None;
    }
    let late = |job: &Job| Some(length(job.nominal_ns?, job.at_ns));
    let late = spread(found.jobs.iter().filter_map(late).collect());
    let distances = spreads.iter().map(|(_, distances)| *distances).max()?;
    let is_behind = sleeps::begin_behind_work(bursts, is_inner);
    let basis = if is_behind || spreads.iter().any(|(waits, all)| is_steadier(*waits, *all)) {
        found.basis
    } else if late * STEADIER <= distances && distances >= SPREAD_NS {
        "the grid: jobs keep to it, and the ends of their waits do not"
    } else {
        return None;
    };
    Some(Grouped { basis, ..found })
}

/// Jobs that begin after all other waits than sleeps, with a period. Late ones go on without a wait, and have several sleeps. A
/// sleep that an interrupt ended late is known by its end, which is not on their grid.
fn by_sleeps(
    bursts: &[Burst],
    sleep: SleepLength,
    in_kernel: impl Fn(&Burst) -> bool,
) -> Option<Grouped> {
    // Timers may end waits of one length behind work of one length.
    let places = sleeps::by_place(bursts, |burst| sleep.has(burst));
    if places.iter().any(|times| sleeps::cut_short(times) == Some(true)) {
        return None;
    }
    let basis = "the length: equal, whatever ran before";
    let is_outer = |burst: &&Burst| !in_kernel(burst) && !sleep.has(burst);
    let found = grouped(bursts, |burst| !is_outer(&burst), basis);
    let of_grid = || {
        let begins = bursts.iter().filter(is_outer).map(|burst| burst.at_ns).collect();
        let (mut begins, period) = on_one_grid(begins)?;
        // Behind a job that began late the wait for the next one may be as short as a sleep.
        let sleeps = bursts.iter().filter(|burst| sleep.has(burst)).map(|burst| burst.at_ns);
        let more: Vec<i64> = sleeps.filter(|at| is_on_grid(&begins, period, *at)).collect();
        if more.len() * SHORTENED <= begins.len() {
            begins.extend(more);
            begins.sort_unstable();
        }
        // Where a period has no job, the wait for it ended late, which no sleep does within a job.
        let outer = bursts.iter().filter(is_outer).map(|burst| burst.at_ns);
        let late: Vec<i64> = outer.filter(|at| is_in_empty_period(&begins, period, *at)).collect();
        begins.extend(late);
        begins.sort_unstable();
        Some(grouped(bursts, |burst| begins.binary_search(&burst.at_ns).is_err(), basis))
    };
    let is_sure = |found: &Grouped| {
        let sleeps = found.jobs.iter().filter(|job| !job.waits_ns.is_empty()).count() as u64;
        let is_each = sleeps.saturating_mul(100) >= (found.jobs.len() as u64).saturating_mul(SURE);
        is_each && is_near_grid(found)
    };
    let both = [Some(found), of_grid()].into_iter().flatten().filter(is_sure);
    both.min_by_key(uneven)
}

/// Jobs that begin on a grid, which nearly all wakings are on; the others end waits within the jobs.
fn by_grid(bursts: &[Burst], in_kernel: impl Fn(&Burst) -> bool) -> Option<Grouped> {
    let begins = bursts.iter().filter(|burst| !in_kernel(burst));
    let all: Vec<i64> = begins.map(|burst| burst.at_ns).collect();
    let (mut begins, period) = on_one_grid(all.clone())?;
    let late: Vec<i64> =
        all.into_iter().filter(|at| is_in_empty_period(&begins, period, *at)).collect();
    begins.extend(late);
    begins.sort_unstable();
    let is_inner = |burst: &Burst| begins.binary_search(&burst.at_ns).is_err();
    let waits = || {
        bursts
            .iter()
            .filter(|burst| is_inner(burst))
            .filter_map(|burst| burst.slept.zip(Some(burst.at_ns)))
    };
    let is_short = waits().all(|((from_ns, _), at_ns)| at_ns.saturating_sub(from_ns) <= period / 2);
    let is_sent = bursts.iter().any(|burst| is_inner(burst) && arrivals::is_brought(burst));
    let found = grouped(bursts, is_inner, "the grid: jobs begin on it");
    let found = Grouped { may_be_several: true, ..found };
    (is_short && !is_sent && is_near_grid(&found) && is_close(&found)).then_some(found)
}

fn is_near_grid(found: &Grouped) -> bool {
    found.is_full() && found.fit.is_some_and(|fit| fit.usual_ns <= fit.period_ns / CLOSE)
}

/// Those of the times, ascending, that are near a grid by their usual distance, and this; `None` where these are not nearly all.
fn on_one_grid(times: Vec<i64>) -> Option<(Vec<i64>, i64)> {
    let mut distances: Vec<i64> =
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    distances.sort_unstable();
    let usual = distances.get(distances.len() / 2).copied().filter(|usual| *usual > 0)?;
    let from = |first: usize| {
        let mut kept: Vec<i64> = Vec::with_capacity(times.len());
        for at in times.iter().skip(first) {
            if kept.is_empty() || is_on_grid(&kept, usual, *at) {
                kept.push(*at);
            }
        }
        kept
    };
    let kept = (0..FIRST.min(times.len())).map(from).max_by_key(Vec::len)?;
    (kept.len() as u64 * 100 >= times.len() as u64 * SURE).then_some((kept, usual))
}

/// Whether a time is more than about a period from the times before and after it, of `grid` together.
fn is_in_empty_period(grid: &[i64], period: i64, at: i64) -> bool {
    let next = grid.partition_point(|known| *known < at);
    let around = next.checked_sub(1).and_then(|last| grid.get(last)).zip(grid.get(next));
    let near = period - period / ON_GRID;
    around.is_some_and(|(last, next)| {
        *next != at && at.saturating_sub(*last) >= near && next.saturating_sub(*last) >= near * 2
    })
}

/// Whether a time is near the grid of the last one before it, of `grid`.
fn is_on_grid(grid: &[i64], period: i64, at: i64) -> bool {
    let last = grid[..grid.partition_point(|known| *known < at)].last();
    last.is_some_and(|last| {
        let rest = at.saturating_sub(*last).saturating_add(period / 2).rem_euclid(period);
        (rest - period / 2).saturating_abs() <= period / ON_GRID
    })
}

/// Between the 5th and the 95th of a hundred.
pub(super) fn spread(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    let cut = values.len() / 20;
    let ends = values.get(cut).zip(values.iter().rev().nth(cut));
    ends.map_or(0, |(low, high)| high.saturating_sub(*low))
}

/// Whether the jobs have a close period, and end in it.
fn is_close(found: &Grouped) -> bool {
    let Some(fit) = found.fit.filter(|fit| fit.usual_ns <= fit.period_ns / CLOSE) else {
        return false;
    };
    let within = |job: &Job| {
        let all = job.waits_ns.iter().copied().fold(job.run_ns, u64::saturating_add);
        all <= fit.period_ns
    };
    // A host or an interrupt holds up one in a hundred.
    let held_up = found.jobs.iter().filter(|job| !within(job)).count();
    held_up <= found.jobs.len() / period::RARE
}

/// Jobs that have other numbers of waits than most.
fn uneven(found: &Grouped) -> usize {
    let waits = || found.jobs.iter().map(|job| job.waits_ns.len());
    let usual = median(waits());
    waits().filter(|waits| *waits != usual).count()
}

/// Whether they also have as many waits, but for few that have fewer, and one in a hundred that has more: on page faults.
fn is_regular(found: &Grouped) -> bool {
    let mut waits: Vec<usize> = found.jobs.iter().map(|job| job.waits_ns.len()).collect();
    waits.sort_unstable();
    let most = waits.iter().rev().nth(waits.len() / period::RARE).copied().unwrap_or(0);
    let fewer = found.jobs.iter().filter(|job| job.waits_ns.len() < most).count();
    most > 0 && fewer * SHORTENED <= found.jobs.len() && is_close(found)
}
