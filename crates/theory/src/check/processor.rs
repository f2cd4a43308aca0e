//! One processor as the analyst sees it: who runs on it, by which rule, and what is not known.
//!
//! Owns: [`Processor`], which is built once ([`super::processor_builder`]) and not changed: a question to an analysis
//! with the names of its tasks, and with what is not known; [`Member`]. Must not: analyse.

use hourglass_documents::CpuSet;
use hourglass_sched::catalogue::{Question, Rule, Situation};
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::servers::Delivery;
use hourglass_sched::task::CriticalSection;
use hourglass_sched::{Task, TaskSet as Numbers};
use hourglass_tasks::Server;

use super::servers::SharedReservations;
use super::time_sharing::TimeSharing;

/// A task of the set, or something else that takes processor time.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its position in the set; `None` for ticks and servers, whose bounds are not reported.
    pub(super) position: Option<usize>,
    pub(super) name: String,
    pub(super) task: Task,
    /// From nominal arrival to release. That of `task` may be longer, to stand for bursts.
    pub(super) jitter: u64,
    /// The sections under locks that may hold up others.
    pub(super) held: Vec<CriticalSection>,
    /// The reason why it has no answer, although others can be analysed beside it.
    pub(super) unknown: Option<String>,
}

impl Member {
    /// Work that is no task of the set.
    pub(super) fn of_others(name: String, task: Task) -> Member {
        let jitter = task.jitter();
        Member { position: None, name, task, jitter, held: Vec::new(), unknown: None }
    }
}

/// A processor, or the budget of a server.
#[derive(Clone, Debug)]
pub(super) struct Processor {
    pub(super) cpus: String,
    /// The server whose budget it is.
    pub(super) server: Option<String>,
    pub(super) rule: Rule,
    pub(super) sections: Sections,
    pub(super) situation: Situation,
    pub(super) members: Vec<Member>,
    /// Priorities are to be found.
    pub(super) finds_priorities: bool,
    /// What the numbers count that may never happen. Where there is such a thing, a bound over a
    /// deadline proves no miss.
    pub(super) inexact: Vec<String>,
    /// The reason why none of its tasks has an answer.
    pub(super) refused: Option<String>,
    /// A bound over the deadline is not valid: ticks count only up to the deadline.
    pub(super) holds_to_deadline: bool,
    /// Its tasks of time-sharing classes, which the analysis of the others does not bound.
    pub(super) time_sharing: Option<TimeSharing>,
}

impl Processor {
    /// The numbers of all members.
    pub(super) fn numbers(&self) -> Numbers {
        self.members.iter().map(|member| member.task.clone()).collect::<Vec<Task>>().into()
    }

    /// The numbers where phases may be any.
    pub(super) fn in_any_phase(&self) -> Numbers {
        let tasks = self.members.iter().map(|member| member.task.with_phase(None));
        tasks.collect::<Vec<Task>>().into()
    }

    /// The processor with these priorities; `counts` says what they count that may never happen.
    pub(super) fn with_priorities(&self, found: &Numbers, counts: Option<&str>) -> Processor {
        let mut ranked = self.clone();
        for (member, task) in ranked.members.iter_mut().zip(found.tasks()) {
            member.task = member.task.with_priority(task.priority());
        }
        ranked.inexact.extend(counts.map(str::to_owned));
        ranked
    }

    /// The numbers of all members, bursts counted as jitter; `None` if a number does not fit.
    pub(super) fn with_bursts_as_jitter(&self) -> Option<Numbers> {
        let each = self.members.iter().map(|member| member.task.with_bursts_as_jitter());
        each.collect::<Option<Vec<Task>>>().map(Numbers::from)
    }

    /// Whether any task arrives in bursts, by its curve or counted as jitter.
    pub(super) fn has_bursts(&self) -> bool {
        let as_jitter = |member: &Member| member.task.jitter() > member.jitter;
        self.has_curves() || self.members.iter().any(as_jitter)
    }

    /// Whether any task arrives in bursts by its curve.
    pub(super) fn has_curves(&self) -> bool {
        self.members.iter().any(|member| member.task.curve().is_some())
    }

    /// Whether any task has a preemption threshold.
    pub(super) fn has_thresholds(&self) -> bool {
        self.members.iter().any(|member| member.task.threshold().is_some())
    }

    pub(super) fn has_phases(&self) -> bool {
        self.members.iter().any(|member| member.task.phase().is_some())
    }

    /// The question to the analyses.
    pub(super) fn question(&self) -> Question {
        self.question_of(self.numbers())
    }

    /// The question with other numbers.
    pub(super) fn question_of(&self, set: Numbers) -> Question {
        let situation = self.situation.clone();
        Question { set, rule: self.rule, sections: self.sections, situation }
    }

    /// The analysis that fits, by name.
    pub(super) fn analysis(&self) -> &'static str {
        self.question().analysis().map_or("none", |entry| entry.name)
    }
}

/// The group of tasks that share a processor.
pub(super) enum TaskGroup<'a> {
    /// One CPU and its servers, or those that several CPUs share, it among them.
    Cpu { cpu: String, servers: &'a [&'a Server], shared: Option<&'a SharedReservations<'a>> },
    /// Several CPUs, and the reservations that may run on all of them.
    Shared(&'a CpuSet, &'a SharedReservations<'a>),
    /// The budget of a server on these CPUs, and how it is delivered, or why that is not known.
    Inside(&'a Server, String, Result<Delivery, String>),
}

impl TaskGroup<'_> {
    pub(super) fn cpus(&self) -> String {
        match self {
            TaskGroup::Cpu { cpu: cpus, .. } | TaskGroup::Inside(_, cpus, _) => cpus.clone(),
            TaskGroup::Shared(cpus, _) => cpus.to_string(),
        }
    }

    /// The server whose budget it is.
    pub(super) fn server(&self) -> Option<String> {
        match self {
            TaskGroup::Inside(server, ..) => Some(server.name.clone()),
            TaskGroup::Cpu { .. } | TaskGroup::Shared(..) => None,
        }
    }

    pub(super) fn servers(&self) -> &[&Server] {
        match self {
            TaskGroup::Cpu { servers, .. } => servers,
            TaskGroup::Shared(_, shared) => &shared.servers,
            TaskGroup::Inside(..) => &[],
        }
    }
}

/// Sentences, each once.
#[derive(Debug, Default)]
pub(super) struct NoteList(pub(super) Vec<String>);

impl NoteList {
    pub(super) fn say(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.0.contains(&sentence) {
            self.0.push(sentence);
        }
    }
}
