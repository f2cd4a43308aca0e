//! Who activates whom: a thread that is woken by another one, once in each of its jobs.
//!
//! A thread that is still at work when it is woken again shows one job for two: such a chain is found, too, with its share, and
//! is not exact.

use hourglass_documents::task_model::{ChainFitModel, HeldResponse, ThreadModel};

use super::activity::length;
use super::jobs::{Grouped, Job};
use super::{covers, main_waker};

/// Of the jobs of a thread one in so many at most is merged with others. A thread that has no job for one in a few of them may
/// leave jobs out by a rule of its own.
const MERGED: u64 = 10;

#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) after: String,
    pub(super) fit: ChainFitModel,
    /// For each job of the thread, how many of the one before came while it was at work, beside its own.
    merged: Vec<u64>,
    /// The thread before waits within its own job for this one's.
    pub(super) waited_for: bool,
    /// The place of the thread before.
    pub(super) before: usize,
    /// For each job of the thread, the place behind the one of the thread before that activated it.
    numbers: Vec<usize>,
}

/// The thread that wakes this one for its jobs, in each of its own jobs once.
pub(super) fn find(
    thread: &ThreadModel,
    jobs: &[Job],
    all: &[(ThreadModel, Grouped)],
) -> Option<Chain> {
    let waker = main_waker(jobs)?;
    let place = all.iter().position(|(other, _)| other.tid == Some(waker))?;
    let (from, before) = &all[place];
    let is_task = from.unmodelled.is_none() && thread.unmodelled.is_none();
    if !is_task || from.tid == thread.tid || from.after.as_ref() == Some(&thread.name) {
        return None;
    }
    let at = |job: &Job| before.jobs.partition_point(|earlier| earlier.at_ns <= job.at_ns);
    let numbers: Vec<usize> = jobs.iter().map(at).collect();
    // One that was late goes on without a wait: what it does in several of its jobs is in one.
    let again = again(&numbers, before)?;
    let span = numbers.last()?.checked_sub(*numbers.first()?)?.checked_add(1)?;
    // The jobs before the next one's that began while this one was at work.
    let came = |at: usize| {
        let between =
            numbers[at]..numbers.get(at + 1).map_or(numbers[at], |next| next.saturating_sub(1));
        let others = before.jobs.get(between).unwrap_or_default();
        others.iter().filter(|other| other.at_ns <= jobs[at].end_ns).count() as u64
    };
    let merged: Vec<u64> = (0..jobs.len()).map(came).collect();
    let fit = ChainFitModel {
        jobs: (span as u64).saturating_add(again),
        own: numbers.len() as u64,
        merged: merged.iter().copied().fold(0, u64::saturating_add),
    };
    // A thread that follows only some of the jobs is not activated by each.
    let is_each = covers(fit.own.saturating_add(fit.merged), fit.jobs)
        && fit.merged.saturating_mul(MERGED) <= fit.jobs;
    let answers = thread.tid.and_then(|tid| before.answers.get(&tid)).copied().unwrap_or(0);
    let waited_for = answers.saturating_mul(2) >= fit.own;
    is_each.then(|| Chain {
        after: from.name.clone(),
        fit,
        merged,
        waited_for,
        before: place,
        numbers,
    })
}

/// How many jobs came in the same one of the thread before as another one; `None` where one did not stand for so many.
fn again(numbers: &[usize], before: &Grouped) -> Option<u64> {
    let mut all = 0;
    for same in numbers.chunk_by(PartialEq::eq) {
        let more = same.len() as u64 - 1;
        // What came before its first job is not known.
        let place = same.first()?.checked_sub(1);
        let allowed = place.map_or(more, |place| before.more_than_one(place));
        all += Some(more).filter(|more| *more <= allowed)?;
    }
    Some(all)
}

/// The longest from the nominal arrival of the first of its chain to the end of a job, and that without the time that threads
/// which are not in the model had the CPU of one of them meanwhile, ns. `None` where the first has no grid.
pub(super) fn from_first(
    place: usize,
    chains: &[Option<Chain>],
    all: &[(ThreadModel, Grouped)],
) -> Option<(u64, Option<HeldResponse>)> {
    let jobs = || all[place].1.jobs.iter().enumerate().filter(|(_, job)| job.is_seen());
    let response = |(at, job): (usize, &Job)| {
        let first = first_of(place, at, chains, all)?;
        Some((length(first.nominal_ns?, job.end_ns), first))
    };
    let longest = jobs().filter_map(response).map(|(length, _)| length).max()?;
    let whole = jobs().filter_map(response).filter(|(_, first)| first.is_whole);
    let held =
        whole.map(|(response_ns, first)| HeldResponse { response_ns, others_ns: first.others_ns });
    let alone = held.max_by_key(|held| held.weight());
    Some((longest, alone))
}

/// For each job of a thread, how many of the first of its chain came until the next one's, beside its own: one of a thread in
/// between that was late did several at once, and woke it once. `at_root`: how many one job of the first itself is, beside one.
pub(super) fn merged(
    place: usize,
    chains: &[Option<Chain>],
    all: &[(ThreadModel, Grouped)],
    at_root: fn(&Grouped, usize) -> u64,
) -> Vec<u64> {
    let count = all[place].1.jobs.len();
    let first: Vec<Option<FirstJob>> =
        (0..count).map(|at| first_of(place, at, chains, all)).collect();
    let own = |at: usize| chains[place].as_ref().and_then(|chain| chain.merged.get(at)).copied();
    let of_first = |at: usize| {
        let one = first[at].as_ref()?;
        let root = &all[one.place].1;
        // Behind the last job, those that came before its end.
        let ended = || {
            let end_ns = all[place].1.jobs[at].end_ns;
            root.jobs.partition_point(|job| job.at_ns <= end_ns)
        };
        let next = match first.get(at + 1) {
            Some(next) => next.as_ref()?.at,
            None => ended(),
        };
        let came = next.checked_sub(one.at).filter(|came| *came > 0)? as u64 - 1;
        let passed = (one.at..next).map(|at| at_root(root, at));
        Some(passed.fold(came, u64::saturating_add))
    };
    (0..count).map(|at| own(at).unwrap_or(0).max(of_first(at).unwrap_or(0))).collect()
}

struct FirstJob {
    place: usize,
    at: usize,
    nominal_ns: Option<i64>,
    /// Of all jobs from the first one on.
    others_ns: u64,
    is_whole: bool,
}

fn first_of(
    place: usize,
    at: usize,
    chains: &[Option<Chain>],
    all: &[(ThreadModel, Grouped)],
) -> Option<FirstJob> {
    let (mut place, mut job) = (place, all[place].1.jobs.get(at)?);
    let (mut at, mut others_ns, mut is_whole) = (at, 0u64, true);
    // Threads that activate each other have no first one.
    for _ in 0..all.len() {
        others_ns = others_ns.saturating_add(job.others_ns);
        is_whole &= job.is_whole;
        let Some(chain) = chains[place].as_ref().filter(|chain| !chain.waited_for) else {
            return Some(FirstJob { place, at, nominal_ns: job.nominal_ns, others_ns, is_whole });
        };
        at = chain.numbers.get(at)?.checked_sub(1)?;
        place = chain.before;
        job = all[place].1.jobs.get(at)?;
    }
    None
}
