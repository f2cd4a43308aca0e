//! Bounds held against what the threads of a recorded program did.
//!
//! Owns: which measured time a bound is about, and when it says nothing. Must not: bound or measure anything.

use hourglass_documents::predict::{AgainstFacts, Assumption, PredictDocument, PredictedTask};
use hourglass_documents::task_model::{ActivationClass, HeldResponse, ModelDocument, ThreadModel};
use hourglass_documents::{CpuSet, Policy};
use hourglass_tasks::{Activation, Scheduler, Task, TaskSet};
use hourglass_time::Span;

use super::theory;
use super::thread_of_task::thread_of;

/// Holds the bound of each task against the thread of its name, and the assumptions that the record shows.
///
/// A bound counts from the nominal arrival, and a record has the waking, which is up to the jitter later: a response from
/// the waking that is longer than the bound breaks it, and one that is shorter by the jitter keeps it. Of periodic jobs,
/// the grid on which they were released has the nominal arrivals. Where events were lost, a longer job may be among them.
pub fn hold_against(
    document: &mut PredictDocument,
    set: &TaskSet,
    model: &ModelDocument,
    folder: String,
) {
    let mut facts = AgainstFacts {
        folder,
        elapsed_ns: model.elapsed_ns,
        events_lost: model.events_lost,
        ..AgainstFacts::default()
    };
    for (row, task) in document.tasks.iter_mut().zip(&set.tasks) {
        let thread = thread_of(task, set, model);
        let nominal = thread.as_ref().ok().and_then(|seen| nominal(task, seen, set, model));
        let is_as_stated = |thread| same_setup(task, thread, set, model).map(|()| thread);
        let held = thread.clone().and_then(is_as_stated);
        match held.and_then(|thread| held_by(row, (task, set), thread, nominal)) {
            Ok(true) if model.events_lost > 0 => {
                row.not_held = Some(format!(
                    "{} events of the kernel were lost, and a longer job may be among them",
                    model.events_lost
                ));
            }
            Ok(held) => row.held = Some(held),
            Err(why) => row.not_held = Some(why),
        }
        *match row.held {
            Some(true) => &mut facts.held,
            Some(false) => &mut facts.broken,
            None => &mut facts.unknown,
        } += 1;
        document.assumptions.extend(thread.iter().flat_map(|seen| assumptions(task, seen)));
    }
    document.against = Some(facts);
}

/// That a thread ran as its task is analysed: on its CPUs, by the same class, and in the same order of priorities, whatever
/// their numbers.
///
/// # Errors
/// It did not, in a sentence.
fn same_setup(
    task: &Task,
    thread: &ThreadModel,
    set: &TaskSet,
    model: &ModelDocument,
) -> Result<(), String> {
    let recorded = |thread: &ThreadModel| thread.policy.parse::<Policy>().ok();
    let priority_of = |policy: Policy| match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(u32::from(priority)),
        _ => None,
    };
    if let (Some(stated), Ok(cpus)) = (&task.cpus, thread.cpus.parse::<CpuSet>())
        && !cpus.is_empty()
        && cpus != *stated
    {
        return Err(format!("it could run on CPUs {cpus}, and its task has CPUs {stated}"));
    }
    let Some(policy) = recorded(thread) else { return Ok(()) };
    let stated = task.policy.map_or(
        match (set.scheduler, task.priority()) {
            (Scheduler::Edf, _) => Some(policy == Policy::Deadline),
            (Scheduler::FixedPriority, Some(_)) => Some(priority_of(policy).is_some()),
            _ => None,
        },
        |stated| Some(std::mem::discriminant(&stated) == std::mem::discriminant(&policy)),
    );
    if stated == Some(false) {
        return Err(format!("it ran as {policy}, and its task is of another class"));
    }
    let others = set.tasks.iter().filter_map(|other| {
        let priority = priority_of(recorded(thread_of(other, set, model).ok()?)?)?;
        Some((other, other.priority()?, priority))
    });
    let own = task.priority().zip(priority_of(policy));
    let differs = |(_, stated, seen): &(&Task, u32, u32)| {
        own.is_some_and(|(own_stated, own_seen)| own_stated.cmp(stated) != own_seen.cmp(seen))
    };
    match others.filter(|_| set.scheduler == Scheduler::FixedPriority).find(differs) {
        None => Ok(()),
        Some((other, _, seen)) => Err(format!(
            "it ran as {policy} and '{}' with priority {seen}, and their tasks are in another order",
            other.name
        )),
    }
}

/// The longest from the arrival that the bound of a task counts from, if the record shows that: its own, or of the first of its
/// chain, which is the same chain in the record.
fn nominal(task: &Task, thread: &ThreadModel, set: &TaskSet, model: &ModelDocument) -> Option<u64> {
    let (mut task, mut seen) = (task, thread);
    for _ in 0..set.tasks.len() {
        let [before] = &task.after[..] else { break };
        task = set.tasks.iter().find(|other| other.name == *before)?;
        let of_file = thread_of(task, set, model).ok()?;
        if seen.after.as_ref() != Some(&of_file.name) {
            return None;
        }
        seen = of_file;
    }
    let is_periodic = task.activation == Activation::Periodic && task.after.is_empty();
    let is_first = is_periodic && seen.after.is_none();
    thread.response.filter(|_| is_first).and_then(|response| response.from_nominal_ns)
}

fn held_by(
    row: &mut PredictedTask,
    (task, set): (&Task, &TaskSet),
    thread: &ThreadModel,
    nominal: Option<u64>,
) -> Result<bool, String> {
    if let Some(why) = &thread.unmodelled {
        return Err(format!("its jobs are not known: {why}"));
    }
    row.recorded_jobs = Some(thread.response.map_or(0, |seen| seen.jobs));
    let seen = thread.response.ok_or(
        "no job of it was seen whole from its waking to its end: record with watch --trace, or for longer",
    )?;
    row.measured_ns = Some(nominal.unwrap_or(seen.max_ns));
    let bound = row.bound_ns.ok_or("the analysis has no bound")?;
    let latest = match (nominal, task.after.is_empty()) {
        (Some(nominal), _) => Some(nominal),
        (None, true) => seen.max_ns.checked_add(task.jitter.nanos_or_zero()),
        // How much later than the first of its chain it came is not known.
        (None, false) => None,
    };
    // The bound is of the threads of the file alone.
    let broken = |alone_ns: Option<u64>, held: Option<HeldResponse>| match alone_ns {
        Some(alone_ns) if alone_ns <= bound => Err(OTHERS.to_owned()),
        _ if held.is_none_or(|held| is_longer(held, bound, (task, set))) => Ok(false),
        _ => Err(OTHERS_BEFORE.to_owned()),
    };
    let is_merged = thread.after_fit.is_some_and(|fit| fit.merged > 0);
    match latest {
        _ if nominal.unwrap_or(seen.max_ns).max(seen.max_ns) > bound && is_merged => Err(
            "the longest may be of several of its jobs, whose wakings came while it was still at work".to_owned(),
        ),
        _ if seen.max_ns > bound => broken(seen.alone_ns, seen.least_held),
        Some(latest) if latest <= bound => match seen.unseen {
            0 => may_be_later(thread, nominal, bound),
            unseen => Err(format!(
                "jobs not seen from their waking to their end: {unseen}, and a longer one may be among them"
            )),
        },
        Some(_) if nominal.is_some() => {
            broken(seen.from_nominal_alone_ns, seen.from_nominal_least_held)
        }
        Some(_) => {
            Err("its jobs came up to the jitter after their arrival, which was not seen".to_owned())
        }
        None => {
            Err("its bound counts from the arrival of the first of its chain, which the record does not show".to_owned())
        }
    }
}

const OTHERS: &str =
    "threads that are not in the file had its CPU while it was ready, or it stood idle";
const OTHERS_BEFORE: &str = "threads that are not in the file, or an idle CPU, held up more urgent ones, whose work then came before it";

/// Whether a response is longer than the bound with as much blocking as others held it up: meanwhile more jobs of more urgent
/// threads come, so that it is late by more than that time.
fn is_longer(held: HeldResponse, bound: u64, (task, set): (&Task, &TaskSet)) -> bool {
    let mut beside = set.clone();
    let mut held_up = vec![task.name.clone()];
    while let Some(name) = held_up.pop() {
        // One that was held up already is not again: threads may activate each other.
        let Some(place) = beside.tasks.iter().position(|other| other.name == name) else {
            continue;
        };
        let blocking = set.tasks[place].blocking;
        let more = blocking.saturating_add(Span::saturating_from_nanos(held.others_ns));
        if beside.tasks[place].blocking != more {
            beside.tasks[place].blocking = more;
            held_up.extend(beside.tasks[place].after.iter().cloned());
        }
    }
    let place = set.tasks.iter().position(|other| other.name == task.name);
    let bounds = theory::bounds_on_paper(&beside);
    let beside = place.and_then(|place| bounds.tasks.get(place)?.response_ns);
    // Not every analysis knows blocking.
    let later = || bound.checked_add(latest_delay(held.others_ns, task, set)?);
    beside.or_else(later).is_some_and(|bound| held.response_ns > bound)
}

/// By how much time that others had delays a job at most: by itself, and by what comes meanwhile of all that is not less urgent.
/// `None` where that does not end soon.
fn latest_delay(others_ns: u64, task: &Task, set: &TaskSet) -> Option<u64> {
    const MOST_STEPS: u32 = 1_000;
    let is_below = |other: &Task| {
        let both = other.priority().zip(task.priority());
        set.scheduler == Scheduler::FixedPriority
            && task.after.is_empty()
            && both.is_some_and(|(other, own)| other < own)
    };
    let counts = |other: &&Task| other.name != task.name && !is_below(other);
    let mut delay_ns = others_ns;
    for _ in 0..MOST_STEPS {
        let work_ns = set.tasks.iter().filter(counts).try_fold(others_ns, |sum, other| {
            let apart = other.arrivals.first().copied().unwrap_or(other.period);
            let jobs = delay_ns.checked_next_multiple_of(apart.nanos_or_zero())?;
            let jobs = jobs.checked_div(apart.nanos_or_zero())?;
            sum.checked_add(jobs.checked_mul(other.wcet.nanos_or_zero())?)
        })?;
        if work_ns == delay_ns {
            return Some(delay_ns);
        }
        delay_ns = work_ns;
    }
    None
}

/// That no job was released so late that it looks like that of the next period: a few periods without a job may be such ones.
/// Many are a rule of the thread.
fn may_be_later(thread: &ThreadModel, nominal: Option<u64>, bound: u64) -> Result<bool, String> {
    let law = &thread.activation;
    let is_few = law.skipped > 0 && law.skipped.saturating_mul(FEW) <= thread.fit.jobs;
    let later = nominal.map(|ns| ns.saturating_add(law.period_ns));
    match later.filter(|later| is_few && *later > bound) {
        None => Ok(true),
        Some(_) => Err(format!(
            "periods without a job: {}, as where a release comes more than half a period late, and counts for the next one",
            law.skipped
        )),
    }
}

/// Where so many times the periods without a job are no more than the jobs, these are no rule.
const FEW: u64 = 50;

/// What the analysis assumes of the thread alone, as far as the record shows it.
fn assumptions(task: &Task, seen: &ThreadModel) -> Vec<Assumption> {
    let row = |name: &str, found: Option<(u64, Span)>| {
        let excess_ns =
            found.map_or(0, |(seen, stated)| seen.saturating_sub(stated.nanos_or_zero()));
        Assumption {
            task: task.name.clone(),
            assumption: name.to_owned(),
            held: found.map(|_| excess_ns == 0),
            jobs: seen.fit.jobs,
            excess_ns,
            at_ns: None,
            cpu: None,
        }
    };
    let law = &seen.activation;
    let is_known = seen.unmodelled.is_none() && task.after.is_empty();
    let is_periodic = law.class == ActivationClass::Periodic && is_known;
    let stated = task.arrivals.first().copied().unwrap_or(task.period).saturating_sub(task.jitter);
    let closest = match law.class {
        ActivationClass::Periodic => law.period_ns.saturating_sub(law.jitter_ns),
        _ => law.arrivals_ns.first().copied().unwrap_or(law.period_ns),
    };
    // By how much two jobs came closer together than stated.
    let missing = stated.nanos_or_zero().saturating_sub(closest);
    let cost = &seen.execution;
    // An upper figure above the stated one says nothing.
    let is_broken = cost.at_least_ns.is_none_or(|least| least > task.wcet.nanos_or_zero());
    let is_cost_known = cost.max_ns <= task.wcet.nanos_or_zero() || is_broken;
    let is_cost_known = seen.fit.jobs > 0 && is_cost_known;
    let waits = seen.suspension.as_ref().map_or(0, |waits| waits.max_ns);
    // A wait for a lock is in the analysis by the section of another task.
    let has_locks = !task.critical_sections.is_empty() && waits > task.suspension.nanos_or_zero();
    let are_waits_known = seen.unmodelled.is_none() && seen.fit.jobs > 0 && !has_locks;
    vec![
        row("arrivals", is_known.then_some((missing, Span::ZERO))),
        row("release", is_periodic.then_some((law.jitter_ns, task.jitter))),
        row("cost", is_cost_known.then_some((cost.max_ns, task.wcet))),
        row("work-conserving", are_waits_known.then_some((waits, task.suspension))),
    ]
}

#[cfg(test)]
mod tests {
    use hourglass_documents::task_model::{
        ActivationModel, ChainFitModel, ExecutionModel, FitModel, ResponseModel, SuspensionModel,
    };

    use super::super::{initial_document, theory};
    use super::*;

    const MS: u64 = 1_000_000;

    fn thread(max: u64, from_nominal_ns: Option<u64>) -> ThreadModel {
        ThreadModel {
            name: "a".to_owned(),
            activation: ActivationModel {
                class: ActivationClass::Periodic,
                period_ns: 20 * MS,
                jitter_ns: MS,
                ..ActivationModel::default()
            },
            execution: ExecutionModel { max_ns: 3 * MS, ..ExecutionModel::default() },
            response: Some(ResponseModel {
                max_ns: max,
                from_nominal_ns,
                jobs: 100,
                ..ResponseModel::default()
            }),
            fit: FitModel { jobs: 100, explained: 100, ..FitModel::default() },
            ..ThreadModel::default()
        }
    }

    fn against(keys: &str, threads: Vec<ThreadModel>) -> PredictDocument {
        let text = format!(
            "[[task]]\nname = \"a\"\nwcet = \"3ms\"\nperiod = \"20ms\"\npriority = 9\n{keys}"
        );
        let set = TaskSet::from_toml(&text).unwrap();
        let bounds = theory::bounds_on_paper(&set);
        let not_simulated = Err("not here".to_owned());
        let mut document =
            initial_document(&set, String::new(), Vec::new(), &bounds, not_simulated);
        let model = ModelDocument { threads, ..ModelDocument::default() };
        hold_against(&mut document, &set, &model, "monday".to_owned());
        document
    }

    /// The bound of a task alone is its execution time and jitter: 4 ms.
    #[test]
    fn a_bound_is_held_where_the_record_shows_its_arrival() {
        let jitter = "jitter = \"1ms\"";
        let sporadic = "jitter = \"1ms\"\nactivation = \"sporadic\"";
        for (keys, seen, held) in [
            (jitter, thread(3 * MS, Some(4 * MS)), Some(true)),
            (jitter, thread(3 * MS, Some(4 * MS + 1)), Some(false)),
            (jitter, thread(4 * MS + 1, None), Some(false)),
            (sporadic, thread(3 * MS, None), Some(true)),
            (sporadic, thread(3 * MS + 1, None), None),
            (jitter, ThreadModel { response: None, ..thread(0, None) }, None),
            (jitter, ThreadModel { name: "b".to_owned(), ..thread(0, None) }, None),
        ] {
            let document = against(keys, vec![seen.clone()]);
            let row = &document.tasks[0];
            assert_eq!(row.bound_ns, Some(4 * MS));
            assert_eq!(row.held, held, "{keys}: {seen:?}");
            assert_eq!(row.held.is_none(), row.not_held.is_some());
        }
    }

    /// A bound of 4 ms, and 5 ms of which others had the CPU for some: rt-app beside a program that is not in the file.
    #[test]
    fn what_others_took_breaks_no_bound() {
        let keys = "jitter = \"1ms\"";
        for (nominal, alone_ns, held) in [
            (None, 4 * MS, None),
            (None, 4 * MS + 1, Some(false)),
            (Some(5 * MS), 4 * MS, None),
            (Some(5 * MS), 4 * MS + 1, Some(false)),
        ] {
            let mut seen = thread(if nominal.is_some() { 3 * MS } else { 5 * MS }, nominal);
            let response = seen.response.as_mut().unwrap();
            (response.alone_ns, response.from_nominal_alone_ns) = (Some(alone_ns), Some(alone_ns));
            let document = against(keys, vec![seen]);
            let row = &document.tasks[0];
            assert_eq!(row.held, held, "{nominal:?} {alone_ns}");
            assert_eq!(
                row.not_held.as_deref().is_some_and(|why| why.contains("not in the file")),
                held.is_none()
            );
        }
    }

    /// A task of 3 ms below one of 2 in 5 ms: 10 ms behind others, three jobs of that one come instead of one.
    #[test]
    fn what_more_urgent_ones_had_to_make_up_for_breaks_no_bound() {
        let other = "[[task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"5ms\"\npriority = 10";
        for (response_ns, others_ns, held) in [
            (6 * MS, 0, Some(false)),
            (6 * MS, 10_000, None),
            (8 * MS, 10_000, Some(false)),
            (19 * MS, 10 * MS, None),
            (25 * MS, 10 * MS, Some(false)),
        ] {
            let mut seen = thread(response_ns, None);
            let response = seen.response.as_mut().unwrap();
            response.alone_ns = Some(response_ns - others_ns);
            response.least_held = Some(HeldResponse { response_ns, others_ns });
            let document = against(&format!("deadline = \"40ms\"\n{other}"), vec![seen]);
            assert_eq!(document.tasks[0].bound_ns, Some(5 * MS));
            assert_eq!(document.tasks[0].held, held, "{response_ns} {others_ns}");
        }
    }

    #[test]
    fn time_of_others_delays_by_what_comes_meanwhile() {
        let set = |wcet: &str| {
            let text = format!(
                "[[task]]\nname = \"a\"\nwcet = \"3ms\"\nperiod = \"20ms\"\npriority = 9\n\
                 [[task]]\nname = \"b\"\nwcet = \"{wcet}\"\nperiod = \"5ms\"\npriority = 10"
            );
            TaskSet::from_toml(&text).unwrap()
        };
        for (place, wcet, others_ns, delay_ns) in [
            (0, "2ms", 0, Some(0)),
            (0, "2ms", 1, Some(2 * MS + 1)),
            // 10 and, until 18, four jobs.
            (0, "2ms", 10 * MS, Some(18 * MS)),
            (0, "5ms", MS, None),
            (0, "2ms", u64::MAX, None),
            (1, "2ms", 10 * MS, Some(10 * MS)),
        ] {
            let set = set(wcet);
            let found = latest_delay(others_ns, &set.tasks[place], &set);
            assert_eq!(found, delay_ns, "{place} {wcet} {others_ns}");
        }
    }

    /// A bound is of a thread on these CPUs, in this class and this order of priorities; the numbers do not matter.
    #[test]
    fn another_setup_says_nothing_of_a_bound() {
        for (keys, policy, cpus, held) in [
            ("cpus = \"1\"", "FIFO:50", "1", Some(true)),
            ("cpus = \"1\"", "FIFO:50", "0-1", None),
            ("cpus = \"1\"", "OTHER:0", "1", None),
            ("cpus = \"1\"", "FIFO:20", "1", None),
            ("", "RR:50", "0", Some(true)),
            ("", "", "", Some(true)),
        ] {
            let second = "[[task]]\nname = \"b\"\nwcet = \"1ms\"\nperiod = \"20ms\"\npriority = 8\ncpus = \"1\"";
            let keys = format!("jitter = \"1ms\"\n{keys}\n{second}");
            let (policy, cpus) = (policy.to_owned(), cpus.to_owned());
            let first = ThreadModel { policy, cpus, ..thread(3 * MS, Some(3 * MS)) };
            let name = "b".to_owned();
            let other = ThreadModel { name, policy: "FIFO:30".to_owned(), ..first.clone() };
            let document = against(&keys, vec![first, other]);
            assert_eq!(document.tasks[0].held, held, "{keys} {:?}", document.tasks[0].not_held);
        }
    }

    /// One period in 100 without a job may be a release that came late, and some jobs that were not seen may have been longer.
    #[test]
    fn what_was_not_seen_keeps_no_bound() {
        for (skipped, unseen, held) in
            [(0, 0, Some(true)), (1, 0, None), (30, 0, Some(true)), (0, 1, None)]
        {
            let mut seen = thread(3 * MS, Some(3 * MS));
            seen.activation.skipped = skipped;
            seen.response.as_mut().unwrap().unseen = unseen;
            let document = against("jitter = \"1ms\"", vec![seen]);
            assert_eq!(document.tasks[0].held, held, "{skipped} {unseen}");
        }
    }

    /// A chain is held from the arrival of its first task, where the record has the same chain; of threads of the
    /// chain alone, the bound is three execution times.
    #[test]
    fn a_chain_is_held_from_the_arrival_of_its_first_task() {
        let second = |after: Option<&str>, from_nominal| ThreadModel {
            name: "b".to_owned(),
            after: after.map(str::to_owned),
            ..thread(3 * MS, Some(from_nominal))
        };
        let keys = "[[task]]\nname = \"b\"\nwcet = \"3ms\"\nafter = [\"a\"]\npriority = 8\ndeadline = \"20ms\"\n";
        for (after, from_nominal, held) in [
            (Some("a"), 9 * MS, Some(true)),
            (Some("a"), 9 * MS + 1, Some(false)),
            (Some("c"), 9 * MS, None),
            (None, 9 * MS, None),
        ] {
            let first = thread(3 * MS, Some(3 * MS));
            let document = against(keys, vec![first, second(after, from_nominal)]);
            assert_eq!(document.tasks[1].bound_ns, Some(9 * MS));
            assert_eq!(document.tasks[1].held, held, "{after:?} {from_nominal}");
        }
    }

    /// A response of 5 ms and an execution time of 5 ms, by a bound and a `wcet` of 3, which may be of two jobs.
    #[test]
    fn what_may_be_several_jobs_breaks_nothing() {
        for (merged, at_least_ns, held, cost) in [
            (0, Some(5 * MS), Some(false), Some(false)),
            (0, Some(3 * MS + 1), Some(false), Some(false)),
            (0, None, Some(false), Some(false)),
            (1, Some(3 * MS), None, None),
        ] {
            let execution =
                ExecutionModel { max_ns: 5 * MS, at_least_ns, ..ExecutionModel::default() };
            let fit = ChainFitModel { jobs: 100, own: 100 - merged, merged };
            let seen =
                ThreadModel { execution, after_fit: Some(fit), ..thread(5 * MS, Some(5 * MS)) };
            let document = against("", vec![seen]);
            assert_eq!(document.tasks[0].held, held, "{merged} {at_least_ns:?}");
            let row = document.assumptions.iter().find(|row| row.assumption == "cost").unwrap();
            assert_eq!(row.held, cost, "{merged} {at_least_ns:?}");
        }
    }

    #[test]
    fn what_the_analysis_assumes_of_the_thread_is_tested() {
        let long = ExecutionModel { max_ns: 5 * MS, ..ExecutionModel::default() };
        let waits = SuspensionModel { max_ns: 3 * MS, ..SuspensionModel::default() };
        let thread = ThreadModel { suspension: Some(waits), ..thread(5 * MS, None) };
        let document = against("", vec![ThreadModel { execution: long, ..thread }]);
        let found: Vec<(&str, Option<bool>, u64)> = document
            .assumptions
            .iter()
            .map(|row| (row.assumption.as_str(), row.held, row.excess_ns))
            .collect();
        let wanted = [
            ("arrivals", Some(false), MS),
            ("release", Some(false), MS),
            ("cost", Some(false), 2 * MS),
            ("work-conserving", Some(false), 3 * MS),
        ];
        assert_eq!(found, wanted);
        let facts = document.against.unwrap();
        assert_eq!((facts.held, facts.broken, facts.unknown), (0, 1, 0));
    }
}
