//! One processor as the analyst sees it: who runs on it, by which rule, and what is not known.
//!
//! Owns: [`Processor`], [`Member`]. Must not: analyse.

use hourglass_sched::Task;
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::supply::Supply;

use super::MOST_TOGETHER;

/// Who runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    FixedPriority,
    Edf,
    Fifo,
}

/// A task of the set, or something else that takes processor time.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its position in the set; `None` for ticks and servers, whose bounds nobody asks for.
    pub(super) position: Option<usize>,
    pub(super) name: String,
    pub(super) task: Task,
    /// From nominal arrival to release. That of `task` may be longer, to stand for bursts.
    pub(super) jitter: u64,
    /// From the first to the 2nd, 3rd, ... arrival of a burst; empty without bursts.
    pub(super) arrivals: Vec<u64>,
    /// Arrival of its first job, if that is known.
    pub(super) offset: Option<u64>,
    /// Only ranks above this preempt it; its own if there is no threshold.
    pub(super) threshold: u32,
    /// Why nothing can be said about it, although others can be analysed beside it.
    pub(super) unknown: Option<String>,
}

/// A processor, or the budget of a server.
#[derive(Clone, Debug)]
pub(super) struct Processor {
    pub(super) cpus: String,
    /// The server whose budget it is, and how much that is.
    pub(super) supply: Option<(String, Supply)>,
    pub(super) rule: Rule,
    pub(super) sections: Sections,
    pub(super) members: Vec<Member>,
    /// Priorities are to be found.
    pub(super) finds_priorities: bool,
    /// What the numbers count that may never happen. Where there is such a thing, a bound over a
    /// deadline proves no miss.
    pub(super) inexact: Vec<String>,
    /// Why nothing can be said about any of them.
    pub(super) refused: Option<String>,
    /// More than one CPU that share all of the tasks.
    pub(super) shared_by: Option<u64>,
    /// Tasks have preemption thresholds, and no other sections.
    pub(super) has_thresholds: bool,
    /// Every task's first job arrives at its offset, every other exactly a period after the one before,
    /// and none is released later.
    pub(super) has_phases: bool,
    /// A bound over the deadline is none: ticks count only up to the deadline.
    pub(super) holds_to_deadline: bool,
}

impl Processor {
    pub(super) fn new(cpus: String, rule: Rule) -> Processor {
        Processor {
            cpus,
            supply: None,
            rule,
            sections: Sections::Preemptive,
            members: Vec::new(),
            finds_priorities: false,
            inexact: Vec::new(),
            refused: None,
            shared_by: None,
            has_thresholds: false,
            has_phases: false,
            holds_to_deadline: false,
        }
    }

    /// Refuses more tasks than are analysed together.
    pub(super) fn refuse_a_crowd(&mut self) {
        let tasks = self.members.len();
        if tasks > MOST_TOGETHER {
            self.refused.get_or_insert_with(|| {
                format!(
                    "{tasks} tasks run on CPUs {}, and at most {MOST_TOGETHER} are analysed together; give \
                     fewer, or several CPUs and --partition",
                    self.cpus
                )
            });
        }
    }

    /// Whether any task arrives in bursts.
    pub(super) fn has_bursts(&self) -> bool {
        self.members.iter().any(|member| !member.arrivals.is_empty())
    }

    /// Treats phases as not known, and says so.
    pub(super) fn forget_phases(&mut self) {
        self.has_phases = false;
        self.counts("offsets are not used: any phase is taken to be possible");
    }

    /// Says that the numbers count something that may never happen.
    pub(super) fn counts(&mut self, what: &str) {
        if !self.inexact.iter().any(|known| known == what) {
            self.inexact.push(what.to_owned());
        }
    }
}

/// Sentences, each once.
#[derive(Debug, Default)]
pub(super) struct Notes(pub(super) Vec<String>);

impl Notes {
    pub(super) fn say(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.0.contains(&sentence) {
            self.0.push(sentence);
        }
    }
}
