//! `reserve --from`: what tasks, or the threads of a run, are to reserve.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hourglass_documents::reserve::{ReserveDocument, ReserveRefusal};
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_report::text;
use hourglass_tasks::{Task, TaskSet};
use hourglass_time::Span;

use crate::exit::{self, Stop};
use crate::lab::reserve::{
    self, AdditionalReservation, Backend, PlannedReservation, SessionRequest, SessionTarget,
    TargetSelector,
};
use crate::lab::task_input;
use crate::lab::theory::reservations::{self, BudgetRule, ReservationProposal};
use crate::lab::workload_file;
use crate::messages;
use crate::output;
use crate::settings::Settings;

use super::{bounds, upper_bounds};

/// How the targets are to be reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProposalOptions<'a> {
    /// The file or folder with the tasks.
    pub(super) path: &'a Path,
    pub(super) strength: ReservationKind,
    pub(super) cpu: Option<u32>,
    pub(super) backend: Option<Backend>,
}

/// Proposes a reservation for each task of a file or run folder, and says which would be granted, each with those before it.
/// With a process, its threads of the tasks' names are meant, and get them (`true`) if all would be granted.
///
/// # Errors
/// It is no set of tasks, the process has not one thread for each, or a reservation is refused after all.
pub(super) fn from(
    how: ProposalOptions<'_>,
    process: Option<(u32, bool)>,
    settings: Settings,
) -> Result<ExitCode> {
    let input = task_input::read(how.path, None).map_err(Stop::bad_input)?;
    let named = |(pid, _)| {
        let names = input.set.tasks.iter().map(|task| (task.name.as_str(), task.policy));
        reserve::named_threads(pid, names).map_err(|error| Stop::usage(error.to_string()))
    };
    let tids = process.map(named).transpose()?;
    let mut proposals = proposals(&input.set, how, tids.as_deref())?;
    // What cannot be asked with the lower figures is not known.
    let least =
        input.set.at_least().and_then(|set| self::proposals(&set, how, tids.as_deref()).ok());
    upper_bounds::mark(&input.set, &mut proposals, least.as_deref());
    let refused = proposals.iter().filter(|one| one.backend.is_none()).count();
    let unknown = proposals.iter().filter(|one| one.unknown_because.is_some()).count();
    if let (Some(tids), Some((_, true)), 0) = (&tids, process, refused) {
        let bounded = input.set.tasks.iter().filter(|task| task.has_upper_bound()).collect();
        let several = Proposed { tids, how, bounded };
        return apply(&several, &proposals, least.as_deref(), settings);
    }
    let mut rest = proposals.into_iter();
    let Some(first) = rest.next() else {
        return Err(
            Stop::usage(format!("{}: it has no tasks to reserve for", how.path.display())).into()
        );
    };
    let document = ReserveDocument { also: rest.collect(), ..first };
    output::shown(&document, text::reserve_proposals, settings)?;
    if !settings.json && !settings.quiet {
        input.notes.iter().for_each(|note| messages::say(note));
        let all = std::iter::once(&document).chain(&document.also);
        all.flat_map(reserve::warnings_of).for_each(|warning| messages::warn(&warning));
    }
    if process.is_some_and(|(_, applies)| applies) {
        let why = nothing_is_reserved(refused - unknown, unknown, input.set.tasks.len());
        return Err(Stop::with(exit::NO, vec![why]).into());
    }
    Ok(ExitCode::from(if refused == 0 { exit::YES } else { exit::NO }))
}

/// Why none of `all` reservations is made: so many would be refused, and of so many it is not known.
fn nothing_is_reserved(refused: usize, unknown: usize, all: usize) -> String {
    let remedy = match all {
        1 => "do what is said there",
        _ => "leave tasks out of the file, or do what is said there",
    };
    let why = match (refused, unknown) {
        (0, _) if all == 1 => "it is not known whether the reservation would be granted".to_owned(),
        _ if all == 1 => "the reservation would be refused".to_owned(),
        (0, _) => {
            format!("it is not known whether {unknown} of {all} reservations would be granted")
        }
        (_, 0) => format!("{refused} of {all} reservations would be refused"),
        _ => format!(
            "{refused} of {all} reservations would be refused, and it is not known whether {unknown} more would be granted"
        ),
    };
    format!("nothing is reserved: {why}, as said above; {remedy}")
}

/// The reservation that a document proposes, for this thread.
fn of_thread(
    document: &ReserveDocument,
    tid: u32,
    how: ProposalOptions<'_>,
) -> Result<AdditionalReservation, Stop> {
    let span = |ns: u64| Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX));
    let [budget, period, deadline] =
        [document.budget_ns, document.period_ns, document.deadline_ns].map(span);
    let whole = Reservation::new(budget, period, how.strength);
    let reservation = whole
        .and_then(|whole| whole.with_deadline(deadline))
        .map_err(|error| Stop::usage(format!("{}: {error}", document.target)))?;
    Ok(AdditionalReservation {
        reservation,
        target: TargetSelector::Thread(tid),
        cpu: document.cpus.first().copied(),
        backend: document
            .backend
            .as_deref()
            .and_then(|name| reserve::arguments::backend(name).ok()?),
    })
}

/// What is to be reserved for the threads of a process.
struct Proposed<'a> {
    tids: &'a [u32],
    how: ProposalOptions<'a>,
    /// The tasks with an upper bound alone.
    bounded: Vec<&'a Task>,
}

impl Proposed<'_> {
    /// One session of all; `None` without any.
    fn session(&self, documents: &[ReserveDocument]) -> Result<Option<SessionRequest>, Stop> {
        let each = documents.iter().zip(self.tids).map(|(one, tid)| of_thread(one, *tid, self.how));
        let mut rest = each.collect::<Result<Vec<_>, _>>()?.into_iter();
        Ok(rest.next().map(|first| SessionRequest {
            reservation: first.reservation,
            cpu: first.cpu,
            backend: first.backend,
            subject: SessionTarget::Adopted(first.target),
            siblings: None,
            additional: rest.collect(),
            aside: false,
        }))
    }
}

/// If one is refused, none stays.
fn apply(
    proposed: &Proposed<'_>,
    documents: &[ReserveDocument],
    least: Option<&[ReserveDocument]>,
    settings: Settings,
) -> Result<ExitCode> {
    let Some(request) = proposed.session(documents)? else { return Ok(ExitCode::from(exit::NO)) };
    let warnings = proposed.bounded.iter().map(|task| upper_bounds::warning(task)).collect();
    let mut together =
        reserve::check(&request).map_err(|failure| super::stop(failure, settings))?;
    if together.backend.is_none() {
        let mut lines = reserve::refusal_lines(&together);
        if !proposed.bounded.is_empty() {
            let least = least.and_then(|least| proposed.session(least).ok().flatten());
            let least = least.and_then(|least| reserve::check(&least).ok());
            together.unknown_because = upper_bounds::unknown(&proposed.bounded, least.as_ref());
        }
        lines.extend(together.unknown_because.iter().map(|why| format!("unknown: {why}")));
        together.warnings.extend(warnings);
        if settings.json {
            output::unless_closed(output::json(&together))?;
        }
        return Err(Stop::with(exit::NO, lines).into());
    }
    super::enforce(&request, None, warnings, settings)
}

/// The backends that are asked in turn, and when their periods begin. A task is one thread, for which the deadline class
/// is the first choice, and takes the least bandwidth.
fn backends(wanted: Option<Backend>) -> Vec<(Backend, BudgetRule)> {
    match wanted {
        None => [Backend::Deadline, Backend::User]
            .into_iter()
            .flat_map(|one| backends(Some(one)))
            .collect(),
        Some(Backend::Deadline) => vec![(Backend::Deadline, BudgetRule::AtWaking)],
        Some(Backend::User) => vec![(Backend::User, BudgetRule::OnGridKept)],
        Some(Backend::Quota) => vec![(Backend::Quota, BudgetRule::OnGrid)],
    }
}

/// How often proposals that are to hold together are asked for again with the budgets that the answers have.
const ROUNDS: usize = 3;

/// What each backend is asked for, for each task.
type Proposals = Vec<(Backend, Vec<Result<ReservationProposal, String>>)>;

/// The answer for each task, or for its thread. Where one is refused beside the others, user-space reserves that hold together are
/// asked for.
fn proposals(
    set: &TaskSet,
    how: ProposalOptions<'_>,
    tids: Option<&[u32]>,
) -> Result<Vec<ReserveDocument>, Stop> {
    let mut asked: Proposals = backends(how.backend)
        .into_iter()
        .map(|(backend, rule)| (backend, reservations::propose(set, rule)))
        .collect();
    let refused = |answers: &[Answer]| answers.iter().filter(|one| one.is_refused()).count();
    let (mut best, mut planned) = answers(set, how, tids, &asked)?;
    let mut last = best.clone();
    for _ in 0..ROUNDS {
        let user = asked.iter_mut().find(|(backend, _)| *backend == Backend::User);
        let Some((_, of_user)) = user.filter(|_| refused(&best) > 0) else { break };
        let mut shares = shares(set, how, &last);
        shares
            .iter_mut()
            .zip(&*of_user)
            .filter(|(_, own)| own.is_err())
            .for_each(|(share, _)| *share = None);
        let together = reservations::propose_together(set, &shares, reserve::less_urgent);
        let Some(together) = together else { break };
        for (own, found) in of_user.iter_mut().zip(together) {
            if let Some(found) = found {
                *own = Ok(found);
            }
        }
        let (found, of_found) = answers(set, how, tids, &asked)?;
        last.clone_from(&found);
        if refused(&found) < refused(&best) {
            (best, planned) = (found, of_found);
        }
    }
    let documents = best.into_iter().map(|answer| answer.beside(&planned));
    Ok(bounds::that_hold(set, documents.collect::<Result<Vec<_>, Stop>>()?))
}

/// The budget and the CPU of each task that has, or is to have, a user-space reserve on one CPU.
fn shares(set: &TaskSet, how: ProposalOptions<'_>, answers: &[Answer]) -> Vec<Option<(Span, u32)>> {
    let share = |(task, answer): (&Task, &Answer)| {
        let document = &answer.document;
        let is_user = |backend: &String| backend == Backend::User.name();
        if !document.backend.as_ref().is_none_or(is_user) {
            return None;
        }
        let cpu = match cpus(task, how, Backend::User)[..] {
            [cpu] => cpu,
            _ => document.backend.as_ref().and_then(|_| document.cpus.first().copied()),
        };
        Some((Span::saturating_from_nanos(document.budget_ns), cpu?))
    };
    set.tasks.iter().zip(answers).map(share).collect()
}

/// The answers in turn: a task that is refused beside those before it takes nothing from those behind it.
fn answers(
    set: &TaskSet,
    how: ProposalOptions<'_>,
    tids: Option<&[u32]>,
    asked: &Proposals,
) -> Result<(Vec<Answer>, Vec<PlannedReservation>), Stop> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut planned = Vec::new();
    for (at, task) in set.tasks.iter().enumerate() {
        let found = asked.iter().filter_map(|(backend, all)| Some((*backend, all.get(at)?)));
        let tid = tids.and_then(|tids| tids.get(at)).copied();
        let answer = proposal(task, how, tid, found.collect(), &planned)?;
        planned.extend(reserve::planned(&answer.request, &answer.document));
        answers.push(answer);
    }
    Ok((answers, planned))
}

/// By the first backend that guarantees it, else the first that takes it, on the first of its CPUs that does.
fn proposal(
    task: &Task,
    how: ProposalOptions<'_>,
    tid: Option<u32>,
    found: Vec<(Backend, &Result<ReservationProposal, String>)>,
    planned: &[PlannedReservation],
) -> Result<Answer, Stop> {
    let mut best: Option<Answer> = None;
    for (backend, proposed) in found {
        for cpu in cpus(task, how, backend) {
            let named = how.backend.is_some();
            let strength = how.strength;
            let question = Question { task, strength, tid, backend, named, cpu, planned };
            let answer = match proposed {
                Ok(proposed) => question.answer(proposed)?,
                Err(why) => question.not_proposed(why)?,
            };
            if answer.document.guarantee {
                return Ok(answer);
            }
            let is_taken = answer.document.backend.is_some();
            best = Some(match best {
                Some(best) if best.document.backend.is_some() || !is_taken => {
                    let refusals = merged(best.document.refusals, answer.document.refusals);
                    let document = ReserveDocument { refusals, ..best.document };
                    Answer { document, ..best }
                }
                _ => answer,
            });
        }
    }
    best.ok_or_else(|| Stop::usage(format!("{}: it has no CPU", task.name)))
}

/// The CPUs to ask for. The deadline class pins nothing: a thread that may run on all of them asks for none there.
fn cpus(task: &Task, how: ProposalOptions<'_>, backend: Backend) -> Vec<Option<u32>> {
    match (how.cpu, &task.cpus) {
        (None, Some(own)) => {
            let online = workload_file::online_cpus();
            let all = online.is_some_and(|online| online.difference(own).is_empty());
            match backend == Backend::Deadline && all {
                true => vec![None],
                false => own.iter().map(Some).collect(),
            }
        }
        (cpu, _) => vec![cpu],
    }
}

/// Refusals of several backends or CPUs, each once.
fn merged(mut all: Vec<ReserveRefusal>, more: Vec<ReserveRefusal>) -> Vec<ReserveRefusal> {
    for refusal in more {
        if !all.contains(&refusal) {
            all.push(refusal);
        }
    }
    all
}

/// The refusals of which a budget or a period is the cause.
const OF_BUDGET: [&str; 2] = ["times", "bandwidth"];

/// What was asked for a task, and the answer.
#[derive(Clone, Debug)]
struct Answer {
    request: SessionRequest,
    document: ReserveDocument,
}

impl Answer {
    fn is_refused(&self) -> bool {
        self.document.backend.is_none()
    }

    /// The answer beside all that are granted, of which those behind it may delay what the deadline class gives to it: its
    /// sum is asked for with each one, its guarantee is not.
    fn beside(self, all: &[PlannedReservation]) -> Result<ReserveDocument, Stop> {
        let Answer { request, document } = self;
        let name = document.target.as_str();
        let in_class = document.backend.as_deref() == Some(Backend::Deadline.name());
        if !in_class {
            return Ok(document);
        }
        let others = all.iter().filter(|one| one.target != name).cloned().collect::<Vec<_>>();
        let again = reserve::check_beside(&request, &others)
            .map_err(|failure| Stop::usage(format!("{name}: {failure}")))?;
        let guarantee = document.guarantee && again.guarantee;
        Ok(ReserveDocument { guarantee, warnings: again.warnings, ..document })
    }
}

/// One task, asked of one backend.
#[derive(Clone, Copy)]
struct Question<'a> {
    task: &'a Task,
    strength: ReservationKind,
    tid: Option<u32>,
    backend: Backend,
    /// The user named it.
    named: bool,
    cpu: Option<u32>,
    /// What is granted to others.
    planned: &'a [PlannedReservation],
}

impl Question<'_> {
    /// The answer for a proposal with what a job needs beyond its execution time, as far as that fits.
    fn answer(&self, proposed: &ReservationProposal) -> Result<Answer, Stop> {
        let exact = self.ask(proposed)?;
        let more = exact.document.suggested_budget_ns.and_then(|ns| i64::try_from(ns).ok());
        let Answer { request, document } = match more.map(Span::from_nanos) {
            Some(more) if more <= proposed.deadline => {
                self.ask(&ReservationProposal { budget: more, ..*proposed })?
            }
            _ => exact,
        };
        let document = ReserveDocument {
            target: self.task.name.clone(),
            suggested_budget_ns: None,
            bound_ns: Some(proposed.bound.nanos_or_zero()),
            ..document
        };
        Ok(Answer { request, document })
    }

    fn not_proposed(&self, why: &str) -> Result<Answer, Stop> {
        let (task, period) = (self.task, self.task.period);
        let budget = task.wcet.min(period);
        let whole = ReservationProposal { budget, period, deadline: period, bound: period };
        // No analysis has a server for tasks that wait in their jobs.
        let remedy = match task.suspension.is_positive() {
            true => "--backend user, where waits count as execution",
            false => "hourglass check FILE --server PERIOD finds a budget where there is one",
        };
        let refusal = ReserveRefusal {
            backend: "any".to_owned(),
            id: "no-proposal".to_owned(),
            errno: None,
            cause: why.to_owned(),
            remedy: remedy.to_owned(),
        };
        let Answer { request, document } = self.ask(&whole)?;
        // A budget that fits would not be granted either.
        let others = document.refusals.iter().filter(|other| !OF_BUDGET.contains(&&*other.id));
        let document = ReserveDocument {
            target: task.name.clone(),
            backend: None,
            guarantee: false,
            reason: why.to_owned(),
            refusals: std::iter::once(refusal).chain(others.cloned()).collect(),
            suggested_budget_ns: None,
            ..document
        };
        Ok(Answer { request, document })
    }

    fn ask(&self, proposed: &ReservationProposal) -> Result<Answer, Stop> {
        let ReservationProposal { budget, period, deadline, .. } = *proposed;
        let wrong = |error: &dyn std::fmt::Display| {
            Stop::usage(format!("{}: {budget}/{period}: {error}", self.task.name))
        };
        let whole = Reservation::new(budget, period, self.strength);
        let reservation =
            whole.and_then(|whole| whole.with_deadline(deadline)).map_err(|error| wrong(&error))?;
        let thread = |tid| SessionTarget::Adopted(TargetSelector::Thread(tid));
        let request = SessionRequest {
            reservation,
            cpu: self.cpu,
            backend: Some(self.backend),
            subject: self.tid.map_or(SessionTarget::CheckOnly, thread),
            siblings: None,
            additional: Vec::new(),
            aside: false,
        };
        let found = reserve::check_beside(&request, self.planned);
        let mut document = found.map_err(|failure| wrong(&failure))?;
        if !self.named {
            document.reason = match (&document.backend, document.refusals.first()) {
                (None, first) => {
                    format!(
                        "no backend takes it: {}",
                        first.map_or("", |first| first.cause.as_str())
                    )
                }
                _ if self.backend == Backend::Deadline => {
                    "the kernel's deadline class serves a single thread".to_owned()
                }
                _ => "the deadline class does not guarantee it".to_owned(),
            };
        }
        Ok(Answer { request, document })
    }
}
