//! Whether wakings that come soon after others are arrivals, or end waits within a job.
//!
//! Owns: what shows that a waking is an activation. Must not: group wakings into jobs (`jobs` does).
//!
//! Without system calls the record names no job. Where wakings come by themselves, a longer execution before one cuts the wait for it short;
//! a wait within a job begins when what ran before it has ended, and takes as long as ever.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_documents::task_model::ThreadModel;

use super::activity::{Activity, Burst, Waker, length};
use super::jobs::{Grouped, Job};
use super::sleeps::{Times, cut_short, median};

/// Wakings are soon after others at less than this part of their mean distance, in quarters.
const SOON: u64 = 3;
/// There is a usual distance where this percentage of all differ from their median by a part in `NEAR` at most.
const USUAL: usize = 80;
const NEAR: u64 = 8;
/// Where there is a usual distance, wakings come soon that are nearer by this part of it.
const NEAREST: u64 = 16;
/// A waker is a messenger if this percentage of its wakings were activations: records may lack switches.
const SURE: usize = 95;
/// A thread counts as a waker of another one from one in so many of its wakings on: signals and exits wake, too.
const FEW: usize = 100;
/// Beyond this many, what they show is sure.
const MOST: usize = 20_000;

/// Whether nothing but arrivals explains the wakings soon after others: one of the `messengers` brought them, or the one before was
/// late, or longer execution did not put them off.
pub(super) fn come_by_themselves(bursts: &[Burst], messengers: &BTreeSet<Waker>) -> bool {
    let pairs: Vec<&[Burst]> =
        bursts.windows(2).filter(|pair| pair[0].stretch == pair[1].stretch).collect();
    let distances: Vec<u64> =
        pairs.iter().map(|pair| length(pair[0].at_ns, pair[1].at_ns)).collect();
    let mean =
        distances.iter().copied().fold(0, u64::saturating_add) / (distances.len() as u64).max(1);
    let usual = median(distances.iter().copied());
    let is_usual = |distance: &&u64| distance.abs_diff(usual) <= usual / NEAR;
    let has_usual = distances.iter().filter(is_usual).count() * 100 >= distances.len() * USUAL;
    let least = if has_usual { usual - usual / NEAREST } else { mean / 4 * SOON };
    let soon = |at: &usize| distances[*at] < least;
    let follows_late = |at: usize| {
        let two =
            at.checked_sub(1).map_or(0, |before| distances[before].saturating_add(distances[at]));
        has_usual && two >= (usual * 2).saturating_sub(usual / NEAR)
    };
    // A waking during execution is an activation, as no wait ended by it.
    let is_brought = |burst: &Burst| burst.is_late || messengers.contains(&burst.waker);
    let is_doubtful = |at: &usize| soon(at) && !follows_late(*at) && !is_brought(&pairs[*at][1]);
    // Behind a wait within a job comes the one for the next job, which may be short, too.
    let is_first = |at: &usize| at.checked_sub(1).is_none_or(|before| !is_doubtful(&before));
    let first: Vec<usize> =
        (0..pairs.len()).filter(|at| is_doubtful(at) && is_first(at)).take(MOST).collect();
    let before = first.iter().filter_map(|at| pairs.get(at.checked_sub(1)?));
    let are_cut_short = |pairs: &mut dyn Iterator<Item = &&[Burst]>| {
        cut_short(&pairs.filter_map(|pair| waited(pair)).collect::<Vec<Times>>())
    };
    first.is_empty()
        || are_cut_short(&mut first.iter().map(|at| &pairs[*at])) == Some(true)
            && are_cut_short(&mut before.into_iter()) != Some(false)
}

/// Whether longer execution did not put off the ends of these waits.
pub(super) fn put_off_none(bursts: &[Burst], is_of: impl Fn(&Burst) -> bool) -> bool {
    let pairs = bursts.windows(2).filter(|pair| pair[0].stretch == pair[1].stretch);
    let of_them = pairs.filter(|pair| is_of(&pair[1])).take(MOST);
    cut_short(&of_them.filter_map(waited).collect::<Vec<Times>>()) == Some(true)
}

/// Whether as many jobs in a row as there are wakers have one each, nearly always.
pub(super) fn take_turns(jobs: &[Job]) -> bool {
    let mut counts: BTreeMap<Waker, usize> = BTreeMap::new();
    jobs.iter().for_each(|job| *counts.entry(job.waker).or_default() += 1);
    let wakers = counts.values().filter(|count| **count * FEW >= jobs.len()).count();
    if wakers < 2 {
        return false;
    }
    let is_round = |jobs: &&[Job]| {
        jobs.iter().map(|job| job.waker).collect::<BTreeSet<Waker>>().len() == wakers
    };
    let rounds = jobs.windows(wakers).filter(is_round).count();
    rounds * 100 >= jobs.windows(wakers).len() * SURE
}

/// The wakers whose wakings nearly all were brought by themselves; where they were not seen at work, as they had just lost the CPU,
/// the others speak for them.
pub(super) fn messengers(bursts: &[Burst]) -> BTreeSet<Waker> {
    let mut counts: BTreeMap<Waker, (usize, usize, usize)> = BTreeMap::new();
    for burst in bursts {
        let (all, known, brought) = counts.entry(burst.waker).or_default();
        *all += 1;
        *known += usize::from(burst.by.and_then(|by| by.begun_ns).zip(burst.slept).is_some());
        *brought += usize::from(is_brought(burst));
    }
    let is_one = |(_, (all, known, brought)): &(Waker, (usize, usize, usize))| {
        *known > 0 && known * 2 >= *all && brought * 100 >= known * SURE
    };
    counts.into_iter().filter(is_one).map(|(waker, _)| waker).collect()
}

/// Whether who woke the thread was at work by what a timer or a device had begun since the wait began, and not for this thread.
pub(super) fn is_brought(burst: &Burst) -> bool {
    let is_since = || {
        let (by, (from_ns, _)) = burst.by.zip(burst.slept)?;
        Some(!by.may_answer && by.begun_ns? > from_ns)
    };
    is_since().unwrap_or(false)
}

/// Puts the begin of the jobs of who woke others for that of what these did after a wait within.
pub(super) fn lift_to_jobs(threads: &mut [(ThreadModel, Activity)], grouped: &[Grouped]) {
    let tids = threads.iter().map(|(facts, _)| facts.tid);
    let jobs: BTreeMap<u32, &[Job]> =
        tids.zip(grouped).filter_map(|(tid, grouped)| Some((tid?, &*grouped.jobs))).collect();
    for burst in threads.iter_mut().flat_map(|(_, activity)| &mut activity.bursts) {
        let (Waker::Thread(tid), Some(by)) = (burst.waker, &mut burst.by) else { continue };
        let jobs = jobs.get(&tid).copied().unwrap_or_default();
        let place = jobs.partition_point(|job| job.at_ns <= by.at_ns);
        let job = place.checked_sub(1).and_then(|place| jobs.get(place));
        let Some(job) = job.filter(|job| job.at_ns < by.at_ns && by.at_ns <= job.end_ns) else {
            continue;
        };
        by.begun_ns = by.begun_ns.map(|begun_ns| begun_ns.min(job.at_ns));
        by.at_ns = job.at_ns;
    }
}

/// Marks what is done by threads that each one wakes itself, or that are woken by such.
pub(super) fn mark_answers(threads: &mut [(ThreadModel, Activity)]) {
    let mut wakes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (facts, activity) in &*threads {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for burst in &activity.bursts {
            if let Waker::Thread(tid) = burst.waker {
                *counts.entry(tid).or_default() += 1;
            }
        }
        for (tid, count) in counts {
            if count * FEW >= activity.bursts.len() {
                wakes.entry(tid).or_default().extend(facts.tid);
            }
        }
    }
    for (facts, activity) in threads {
        let mut reached: BTreeSet<u32> = BTreeSet::new();
        let mut next: Vec<u32> = facts.tid.into_iter().collect();
        while let Some(tid) = next.pop() {
            let woken = wakes.get(&tid).into_iter().flatten();
            next.extend(woken.filter(|woken| reached.insert(**woken)));
        }
        for burst in &mut activity.bursts {
            if let (Waker::Thread(tid), Some(by)) = (burst.waker, &mut burst.by) {
                by.may_answer = reached.contains(&tid);
            }
        }
    }
}

fn waited(pair: &[Burst]) -> Option<Times> {
    let (from_ns, _) = pair[1].slept?;
    Some((length(pair[0].at_ns, from_ns), length(from_ns, pair[1].at_ns)))
}
