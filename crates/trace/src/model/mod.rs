//! Which task a thread is, from what it was seen to do: the law of its activations, its execution times, its waits.
//!
//! Owns: the inference. Must not: read a folder, know a file of tasks.
//!
//! A job begins with a waking, where that was recorded, and ends with the next wait at the place of its loop (`places`). Without the
//! system calls of its waits, a wait within a job is only told from one between jobs by the kernel's state (uninterruptible), by
//! another waker, or by its constant length. What was seen is no bound: a longer job may come.

mod activity;
mod arrivals;
mod chain;
mod counts;
mod curve;
mod grouping;
mod jobs;
mod others;
mod period;
mod places;
mod reserved;
mod sleeps;
mod urgency;

use std::collections::BTreeMap;

use hourglass_documents::histogram_steps::step_of_bits;
use hourglass_documents::task_model::{
    ActivationClass, ActivationModel, ExecutionBucket, ExecutionModel, FitModel, HeldResponse,
    ResponseModel, SuspensionModel, ThreadModel, WakerModel,
};

pub use activity::{Activity, Burst, Waker, of_events, of_intervals};
pub use counts::{CountReckoning, CountSample};
use jobs::{Grouped, Job};
pub use period::{PeriodFit, fit};
use places::Places;
pub use places::WaitPlace;
pub use reserved::{Budget, FollowedThread};

/// Successive jobs whose execution times are summed up.
const SUCCESSIVE: usize = 8;
/// Bits of an execution time that its step of the histogram keeps.
const KEPT_BITS: u32 = 3;

/// Why a thread with sleeps among other waits is no task.
const SLEEPS: &str = "some of its waits are sleeps of one length, and others are not: they may lie within its jobs, whose execution \
                      times are then not known";

/// Why a thread whose wakings may lie within its jobs is no task.
const WAITS: &str = "its wakings have several sources or come soon after others, and nothing shows whether each begins a job or ends \
                     a wait within one: how long a job takes is then not known";

/// Why a thread that several wake in turn is no task.
const TURNS: &str = "its wakers take turns: nothing shows whether each of them begins a job, or one job waits for them all";

/// Why a thread that waits at several places is no task.
const PLACES: &str = "it waits in several system calls, and nothing shows which of them begins its jobs: how long a job takes is then \
                      not known";

/// Why a thread of several that wake each other in a circle is no task.
const CIRCLE: &str = "it and those that wake it begin each other's jobs in a circle, and nothing from outside begins any";

/// Models each thread, of which the other facts are in `threads`, and finds who activates whom.
pub fn infer(mut threads: Vec<(ThreadModel, Activity)>) -> Vec<ThreadModel> {
    arrivals::mark_answers(&mut threads);
    let group = |threads: &[(ThreadModel, Activity)]| -> Vec<Grouped> {
        threads.iter().map(|(_, activity)| grouping::group(&activity.bursts)).collect()
    };
    let first = group(&threads);
    arrivals::lift_to_jobs(&mut threads, &first);
    let mut grouped = group(&threads);
    while regroup(&threads, &mut grouped) {}
    for grouped in grouped.iter_mut().filter(|grouped| grouped.fit.is_none()) {
        grouped.distances = distances(&grouped.jobs);
    }
    let doubtful: Vec<Option<&str>> = threads
        .iter()
        .zip(&grouped)
        .map(|((_, activity), grouped)| doubt(&activity.bursts, grouped))
        .collect();
    let models = threads
        .into_iter()
        .zip(grouped)
        .map(|((facts, activity), grouped)| (model(facts, &activity, &grouped), grouped));
    let mut all: Vec<(ThreadModel, Grouped)> = models.collect();
    let mut chains = chains_of(&mut all);
    // What is no task activates none.
    while let Some(place) = (0..all.len()).find(|place| {
        all[*place].0.unmodelled.is_none() && chains[*place].is_none() && doubtful[*place].is_some()
    }) {
        all[place].0.unmodelled = doubtful[place].map(str::to_owned);
        chains = chains_of(&mut all);
    }
    let from_first: Vec<Option<(u64, Option<HeldResponse>)>> =
        (0..all.len()).map(|place| chain::from_first(place, &chains, &all)).collect();
    let merged = |place: usize, at_root: fn(&Grouped, usize) -> u64| {
        chain::merged(place, &chains, &all, at_root)
    };
    let merged: Vec<(Vec<u64>, Vec<u64>)> = (0..all.len())
        .map(|place| (merged(place, Grouped::passed_over), merged(place, Grouped::more_than_one)))
        .collect();
    let found = chains.into_iter().zip(from_first).zip(merged);
    for ((thread, grouped), ((found, from_first), merged)) in all.iter_mut().zip(found) {
        let Some(mut found) = found else {
            // One of several threads that wake it may have been late, and done several jobs at once.
            if is_woken_by_threads(&grouped.jobs) {
                thread.execution.at_least_ns = Some(thread.execution.min_ns);
            }
            continue;
        };
        thread.after = Some(found.after);
        let (merged, at_most) = merged;
        found.fit.merged = merged.into_iter().fold(0, u64::saturating_add);
        if let Some(response) = &mut thread.response {
            response.from_nominal_ns = from_first.map(|(longest, _)| longest);
            response.from_nominal_alone_ns =
                from_first.and_then(|(_, alone)| alone).map(|held| held.alone_ns());
            response.from_nominal_least_held = from_first.and_then(|(_, alone)| alone);
        }
        thread.waited_for = found.waited_for;
        if found.fit.own < found.fit.jobs || found.fit.merged > 0 {
            thread.after_fit = Some(found.fit);
        }
        thread.execution.at_least_ns = Some(grouped.surely_ran(&at_most));
    }
    all.into_iter().map(|(thread, _)| thread).collect()
}

fn chains_of(all: &mut [(ThreadModel, Grouped)]) -> Vec<Option<chain::Chain>> {
    let find = |all: &[(ThreadModel, Grouped)]| -> Vec<Option<chain::Chain>> {
        all.iter().map(|(thread, grouped)| chain::find(thread, &grouped.jobs, all)).collect()
    };
    let found = find(all);
    let next = |place: &usize| Some(found.get(*place)?.as_ref()?.before);
    let mut has_circle = false;
    for place in 0..all.len() {
        let mut before = std::iter::successors(next(&place), next).take(all.len());
        if before.any(|other| other == place) {
            all[place].0.unmodelled = Some(CIRCLE.to_owned());
            has_circle = true;
        }
    }
    if has_circle { find(all) } else { found }
}

/// Joins what a thread does within one job of the thread that wakes it, for one thread that has more jobs than that; false
/// without one. Each time there are fewer jobs.
fn regroup(threads: &[(ThreadModel, Activity)], grouped: &mut [Grouped]) -> bool {
    let are_open = |grouped: &Grouped| !matches!(grouped.places, Places::Begin(_));
    for (place, (_, activity)) in threads.iter().enumerate() {
        let jobs = &grouped[place].jobs;
        if !are_open(&grouped[place]) {
            continue;
        }
        let Some(waker) = first_thread(jobs) else { continue };
        let before = threads.iter().position(|(facts, _)| facts.tid == Some(waker));
        let Some(before) = before.filter(|before| *before != place) else { continue };
        let found = grouping::by_jobs(&activity.bursts, &grouped[before].jobs);
        let is_by_waker = |found: &Grouped| main_waker(&found.jobs) == Some(waker);
        let found = found.filter(is_by_waker);
        if let Some(found) = found.filter(|found| found.jobs.len() < jobs.len()) {
            grouped[place] = found;
            return true;
        }
    }
    false
}

fn is_woken_by_threads(jobs: &[Job]) -> bool {
    let others = jobs.iter().filter(|job| !matches!(job.waker, Waker::Thread(_))).count() as u64;
    !covers(others, jobs.len() as u64)
}

/// Why what is held to be jobs may be parts of such.
fn doubt(bursts: &[Burst], grouped: &Grouped) -> Option<&'static str> {
    match grouped.places {
        Places::Begin(_) => return None,
        Places::Several => return Some(PLACES),
        Places::Unknown => {}
    }
    if arrivals::take_turns(&grouped.jobs) {
        return Some(TURNS);
    }
    may_wait_within(bursts, grouped).then_some(WAITS)
}

/// Whether what is held to be jobs may be parts of such. Those of one source on a grid, or in no bursts, are none; those of several
/// are none where each of these comes by itself.
fn may_wait_within(bursts: &[Burst], grouped: &Grouped) -> bool {
    let messengers = arrivals::messengers(bursts);
    let jobs = grouped.jobs.len() as u64;
    let is_one_source = wakers_of(&grouped.jobs).values().any(|count| covers(*count, jobs));
    let by_others = grouped.jobs.iter().filter(|job| messengers.contains(&job.waker)).count();
    if !is_one_source && !covers(by_others as u64, jobs) {
        return true;
    }
    if grouped.fit.is_some() {
        return false;
    }
    let is_sporadic = is_one_source && curve::is_sporadic(&grouped.distances);
    match sleeps::lengths_apart(bursts).first() {
        // Nothing but its length tells a sleep within a job from a timer.
        Some(sleep) if is_sporadic => !arrivals::put_off_none(bursts, |burst| sleep.has(burst)),
        _ => !is_sporadic && !arrivals::come_by_themselves(bursts, &messengers),
    }
}

/// The thread that wakes another one for nearly all of its jobs.
fn main_waker(jobs: &[Job]) -> Option<u32> {
    let WakerModel { tid, jobs: woken, .. } = wakers(jobs).into_iter().next()?;
    tid.filter(|_| covers(woken, jobs.len() as u64))
}

/// The thread that wakes another one for half of its jobs or more.
fn first_thread(jobs: &[Job]) -> Option<u32> {
    let WakerModel { tid, jobs: woken, .. } = wakers(jobs).into_iter().next()?;
    tid.filter(|_| woken.saturating_mul(2) >= jobs.len() as u64)
}

fn model(facts: ThreadModel, activity: &Activity, grouped: &Grouped) -> ThreadModel {
    let jobs = &grouped.jobs;
    let whole = jobs.iter().filter(|job| job.is_whole).count() as u64;
    let execution = execution(grouped, activity.unwoken_ns);
    let activation = activation(grouped, execution.max_ns);
    let mut thread = ThreadModel {
        fit: FitModel {
            jobs: jobs.len() as u64,
            explained: if activation.class == ActivationClass::Unknown {
                0
            } else {
                jobs.len() as u64
            },
            cut_off: (jobs.len() as u64).saturating_sub(whole).saturating_add(activity.unwoken),
            holes: u64::from(activity.holes),
        },
        activation,
        execution,
        response: response(grouped),
        suspension: suspension(grouped),
        woken_by: wakers(jobs),
        ..facts
    };
    thread.unmodelled =
        reason(&thread, activity).or_else(|| grouped.has_sleeps.then(|| SLEEPS.to_owned()));
    thread
}

fn reason(thread: &ThreadModel, activity: &Activity) -> Option<String> {
    let (activation, jobs) = (&thread.activation, thread.fit.jobs);
    let stopped = format!(
        "a signal or a debugger stopped it for {} ms in all",
        activity.stopped_ns.div_ceil(1_000_000)
    );
    // What is unseen without those behind a stop.
    let unseen = activation.unseen.saturating_sub(activity.late_by_stops);
    match activation.class {
        ActivationClass::Unknown if jobs == 0 => Some(
            "it was not seen to begin a job: it waits for nothing, or began before the record"
                .to_owned(),
        ),
        ActivationClass::Unknown if jobs < period::FEWEST as u64 => {
            let jobs = if jobs == 1 { "1 job is".to_owned() } else { format!("{jobs} jobs are") };
            let then = if activity.has_ended { ", and it ended" } else { ": record for longer" };
            Some(format!("{jobs} too few to state a law, which takes {}{then}", period::FEWEST))
        }
        ActivationClass::Unknown
            if !nearly_all_seen(jobs, activation.unseen) && nearly_all_seen(jobs, unseen) =>
        {
            Some(format!(
                "{} of its {jobs} jobs were released while the one before still ran: {stopped}, and these came late behind \
                 that; record without a stop",
                activation.unseen
            ))
        }
        ActivationClass::Unknown if !nearly_all_seen(jobs, activation.unseen) => Some(format!(
            "{} of its {jobs} jobs were released while the one before still ran: record while less runs beside it",
            activation.unseen
        )),
        ActivationClass::Unknown if activity.stopped_ns > 0 => Some(format!(
            "its jobs arrive at the same moment or run longer than they are apart; {stopped}, which may be why: record without \
             a stop"
        )),
        ActivationClass::Unknown => {
            Some("its jobs arrive at the same moment or run longer than they are apart".to_owned())
        }
        _ if thread.execution.max_ns == 0 => Some("its jobs were not seen to run".to_owned()),
        _ => None,
    }
}

fn activation(grouped: &Grouped, longest_ns: u64) -> ActivationModel {
    let times: Vec<i64> = grouped.jobs.iter().map(|job| job.at_ns).collect();
    if let Some(fit) = grouped.fit {
        return ActivationModel {
            class: ActivationClass::Periodic,
            period_ns: fit.period_ns,
            offset_ns: Some(fit.offset_ns),
            jitter_ns: fit.jitter_ns,
            late: fit.late,
            usual_jitter_ns: if fit.late > 0 { fit.usual_ns } else { 0 },
            unseen: grouped.unseen(),
            skipped: fit.skipped,
            arrivals_ns: Vec::new(),
        };
    }
    let distances = &grouped.distances;
    let closest = distances.first().map_or(0, |(_, length)| *length);
    let sporadic = curve::is_sporadic(distances) && longest_ns <= closest;
    let found = match sporadic {
        true => Some(curve::Curve { period_ns: closest, arrivals_ns: Vec::new() }),
        false => curve::curve(distances),
    };
    let is_law = |curve: &curve::Curve| {
        times.len() >= period::FEWEST && curve.period_ns > 0 && longest_ns <= curve.period_ns
    };
    // Their releases may have been closer to those before.
    let is_seen = nearly_all_seen(times.len() as u64, grouped.unseen());
    match found.filter(|curve| is_law(curve) && is_seen) {
        // A burst of one is no burst.
        Some(curve) => ActivationModel {
            class: match curve.arrivals_ns.is_empty() {
                true => ActivationClass::Sporadic,
                false => ActivationClass::ArrivalCurve,
            },
            period_ns: curve.period_ns,
            arrivals_ns: curve.arrivals_ns,
            unseen: grouped.unseen(),
            ..ActivationModel::default()
        },
        None => ActivationModel {
            period_ns: closest,
            unseen: grouped.unseen(),
            ..ActivationModel::default()
        },
    }
}

fn distances(jobs: &[Job]) -> curve::Distances {
    let chunks = jobs.chunk_by(|one, next| one.stretch == next.stretch);
    let stretches: Vec<Vec<i64>> =
        chunks.map(|chunk| chunk.iter().map(|job| job.at_ns).collect()).collect();
    curve::distances(&stretches)
}

fn execution(grouped: &Grouped, unwoken_ns: u64) -> ExecutionModel {
    let jobs = &grouped.jobs;
    let longest = jobs.iter().map(|job| job.run_ns).max().unwrap_or(0);
    let whole = || jobs.iter().filter(|job| job.is_whole);
    let mut histogram: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for job in whole() {
        *histogram.entry(step_of_bits(job.run_ns, KEPT_BITS)).or_default() += 1;
    }
    let sums = |number: usize| {
        let windows = jobs.chunk_by(|one, next| one.stretch == next.stretch);
        let windows = windows.flat_map(move |chunk| chunk.windows(number));
        windows.map(|window| window.iter().map(|job| job.run_ns).fold(0, u64::saturating_add)).max()
    };
    ExecutionModel {
        max_ns: longest.max(unwoken_ns),
        at_least_ns: Some(grouped.surely_ran(&[])),
        min_ns: whole().map(|job| job.run_ns).min().unwrap_or(0),
        successive_ns: (1..=SUCCESSIVE).map_while(sums).collect(),
        histogram: histogram
            .into_iter()
            .map(|((lo_ns, hi_ns), count)| ExecutionBucket { lo_ns, hi_ns, count })
            .collect(),
    }
}

/// From the waking to the end, of the jobs of which both were seen.
fn response(grouped: &Grouped) -> Option<ResponseModel> {
    let seen = || grouped.jobs.iter().filter(|job| job.is_seen());
    // What others took meanwhile is known with each switch.
    let whole = || grouped.jobs.iter().filter(|job| job.is_whole);
    let length = |job: &Job| u64::try_from(job.end_ns.saturating_sub(job.at_ns)).unwrap_or(0);
    let from_nominal =
        |job: &Job| Some(u64::try_from(job.end_ns.saturating_sub(job.nominal_ns?)).unwrap_or(0));
    let alone = |job: &Job| length(job).saturating_sub(job.others_ns);
    let nominal_alone = |job: &Job| Some(from_nominal(job)?.saturating_sub(job.others_ns));
    let held = |length_ns: &dyn Fn(&Job) -> Option<u64>| {
        whole()
            .filter_map(|job| {
                Some(HeldResponse { response_ns: length_ns(job)?, others_ns: job.others_ns })
            })
            .max_by_key(|held| held.weight())
    };
    Some(ResponseModel {
        max_ns: seen().map(length).max()?,
        least_held: held(&|job| Some(length(job))),
        from_nominal_least_held: held(&from_nominal),
        alone_ns: whole().map(alone).max(),
        from_nominal_ns: seen().filter_map(from_nominal).max(),
        from_nominal_alone_ns: whole().filter_map(nominal_alone).max(),
        jobs: seen().count() as u64,
        unseen: cut_within(&grouped.jobs),
    })
}

/// Jobs not seen from their waking to their end, but for those that an end of the record cuts off.
fn cut_within(jobs: &[Job]) -> u64 {
    let from = usize::from(jobs.first().is_some_and(|first| !first.is_begun));
    let within = jobs.get(from..jobs.len().saturating_sub(1)).unwrap_or_default();
    within.iter().filter(|job| !job.is_seen()).count() as u64
}

fn suspension(grouped: &Grouped) -> Option<SuspensionModel> {
    let jobs = || grouped.jobs.iter().enumerate();
    let is_one = |at: usize| grouped.passed_over(at) == 0;
    let of_one = jobs().filter(|(at, _)| is_one(*at)).map(|(_, job)| job.waits_ns.len()).max();
    // Of several jobs in one each has its part of the waits, but for one between each two that ended late; but where it is known that
    // they lie within jobs, one may have them all.
    let are_within = matches!(grouped.places, Places::Begin(_));
    let of_each = |(at, job): (usize, &Job)| {
        let parts =
            usize::try_from(grouped.passed_over(at)).unwrap_or(usize::MAX).saturating_add(1);
        let within = job.waits_ns.len().saturating_sub(parts - 1);
        let of_several = within.div_ceil(parts).max(of_one.unwrap_or(0));
        let most = if are_within { job.waits_ns.len() } else { of_several };
        let mut waits = job.waits_ns.clone();
        waits.sort_unstable_by_key(|wait| std::cmp::Reverse(*wait));
        waits.truncate(most);
        waits
    };
    let waits = jobs().map(|each| of_each(each).len()).max().filter(|waits| *waits > 0)?;
    let sum = |each| of_each(each).into_iter().fold(0, u64::saturating_add);
    let is_regular =
        jobs().all(|(at, job)| !job.is_whole || is_one(at) && job.waits_ns.len() == waits);
    let longest =
        |place: usize| grouped.jobs.iter().filter_map(|job| job.waits_ns.get(place)).max();
    let segments = (0..waits).filter_map(longest).copied();
    Some(SuspensionModel {
        max_ns: jobs().map(sum).max()?,
        waits: waits as u64,
        segments_ns: if is_regular { segments.collect() } else { Vec::new() },
        basis: grouped.basis.to_owned(),
    })
}

fn wakers_of(jobs: &[Job]) -> BTreeMap<Waker, u64> {
    let mut counts: BTreeMap<Waker, u64> = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.waker).or_default() += 1;
    }
    counts
}

fn wakers(jobs: &[Job]) -> Vec<WakerModel> {
    let mut found: Vec<WakerModel> = wakers_of(jobs)
        .into_iter()
        .map(|(waker, jobs)| {
            let (name, tid) = match waker {
                Waker::Unknown => ("unknown".to_owned(), None),
                Waker::Interrupt => ("interrupt".to_owned(), None),
                Waker::Thread(tid) => (tid.to_string(), Some(tid)),
            };
            WakerModel { name, tid, jobs }
        })
        .collect();
    found.sort_by_key(|waker| std::cmp::Reverse(waker.jobs));
    found
}

fn nearly_all_seen(jobs: u64, unseen: u64) -> bool {
    covers(jobs.saturating_sub(unseen), jobs)
}

/// Whether a part is all but one of a hundred: records may lack a waking.
fn covers(part: u64, all: u64) -> bool {
    part.saturating_mul(100) >= all.saturating_mul(99)
}

#[cfg(test)]
mod tests;
