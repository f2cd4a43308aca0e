//! Which backend is asked, and which one takes it.

use super::Backend;
use hourglass_documents::document::Warning;

use super::broken::BreakerLog;
use super::document;
use crate::admission::{self, AdmissionFacts, Obstacle, PlannedReservation, Refusal};
use crate::backend::choose::{self, BackendSubject, Choice};
use crate::backend::deadline::{self, Deadline};
use crate::backend::quota::{self, Quota};
use crate::backend::user::{self, User};
use crate::backend::{ActiveReservation, Backend as Enforces, BackendRequest, members, nested};
use crate::guardian::Guardian;
use crate::target::Target;

#[derive(Debug)]
pub(super) struct BackendQuery<'a> {
    pub(super) kind: Option<Backend>,
    /// Whether the target is a program of which nothing is known yet.
    pub(super) program: bool,
    /// For a check without a command, this process stands for the program.
    pub(super) target: &'a Target,
    pub(super) request: &'a BackendRequest,
    /// It runs within what another reservation of this process has claimed.
    pub(super) within: bool,
    /// What is to be made with it, for a check.
    pub(super) planned: &'a [PlannedReservation],
}

/// What admission does not say of a budget.
#[derive(Debug, Default)]
pub(super) struct BudgetDoubts {
    /// It may come late: then it is not guaranteed, whatever the kernel admits.
    pub(super) late: Option<Warning>,
    /// It may last longer than it says.
    pub(super) longer: Option<Warning>,
}

#[derive(Debug)]
pub(super) struct SelectedBackend {
    pub(super) reserved: Box<dyn ActiveReservation>,
    pub(super) kind: Backend,
    pub(super) guarantee: bool,
    pub(super) reason: String,
    pub(super) refused: Vec<Refusal>,
    pub(super) doubts: BudgetDoubts,
    /// Work above the reserved work when periods were missed.
    pub(super) broken: BreakerLog,
}

impl SelectedBackend {
    /// To be called now and then, and before it is released.
    pub(super) fn look(&mut self) {
        self.reserved.look();
        self.broken.look(self.reserved.as_mut());
    }
}

impl BackendQuery<'_> {
    /// Asks the best backend that nothing seems to be in the way of, and if it refuses, the next.
    /// One that is asked for by name is asked in any case.
    pub(super) fn reserve(&self, guardian: &Guardian) -> Result<SelectedBackend, Vec<Refusal>> {
        if let Some(nested) = self.nested() {
            return Err(vec![nested]);
        }
        let mut said: Vec<(Backend, Refusal)> = Vec::new();
        let mut facts = None;
        loop {
            let choice = match self.kind {
                Some(kind) => choose::chosen(kind, refusals_of(kind, &said)),
                None => {
                    let facts = facts.get_or_insert_with(|| AdmissionFacts::here(self.subject()));
                    self.choose(facts, |kind| {
                        let own = refusals_of(kind, &said);
                        if own.is_empty() { self.refused(kind, facts) } else { own }
                    })
                }
            };
            let Some(kind) = choice.kind else { return Err(choice.refusals) };
            // A thread would stay in the class if this process were killed meanwhile.
            let lives = if kind == Backend::Deadline { guardian.must_live() } else { Ok(()) };
            if let Err(why) = lives {
                let (cause, remedy) = (why.to_string(), "try it again".to_owned());
                let id = Obstacle::Missing;
                said.push((kind, Refusal { backend: kind, id, errno: None, cause, remedy }));
                continue;
            }
            let backend = self.backend(kind, guardian);
            match backend.reserve(self.target, self.request) {
                Ok(reserved) => {
                    let (guarantee, reason) = (backend.guarantee(), choice.reason);
                    let refused = choice.refusals;
                    let facts = facts.get_or_insert_with(|| AdmissionFacts::here(self.subject()));
                    let doubts = self.doubts(kind, facts);
                    return Ok(SelectedBackend {
                        reserved,
                        kind,
                        guarantee,
                        reason,
                        refused,
                        doubts,
                        broken: BreakerLog::default(),
                    });
                }
                Err(refusal) => said.push((kind, refusal)),
            }
        }
    }

    /// Which one would be asked, and what would be in the way; nothing is reserved.
    pub(super) fn check(&self) -> (Choice, BudgetDoubts) {
        if let Some(nested) = self.nested() {
            let (reason, refusals) = (nested.cause.clone(), vec![nested]);
            return (Choice { kind: None, reason, refusals }, BudgetDoubts::default());
        }
        let facts = AdmissionFacts::here(self.subject()).with_planned(self.planned);
        let choice = match self.kind {
            Some(kind) => choose::chosen(kind, self.refused(kind, &facts)),
            None => self.choose(&facts, |kind| self.refused(kind, &facts)),
        };
        let doubts =
            choice.kind.map_or_else(BudgetDoubts::default, |kind| self.doubts(kind, &facts));
        (choice, doubts)
    }

    /// Obstacles to any guarantee, whatever gives it; a quota gives none.
    fn nested(&self) -> Option<Refusal> {
        let kind = self.kind.unwrap_or(Backend::User);
        if kind == Backend::Quota { None } else { nested::refusal(kind, self.target) }
    }

    /// Of the deadline class; the others keep to one CPU, and count time as it passes, or promise nothing.
    fn doubts(&self, kind: Backend, facts: &AdmissionFacts) -> BudgetDoubts {
        if kind != Backend::Deadline {
            return BudgetDoubts::default();
        }
        let late = admission::lateness(self.request, facts).and_then(document::late);
        let longer = admission::by_capacity(self.request, facts).map(document::doubt);
        BudgetDoubts { late, longer }
    }

    fn choose(
        &self,
        facts: &AdmissionFacts,
        refused: impl FnMut(Backend) -> Vec<Refusal>,
    ) -> Choice {
        let coarse = facts.tick.and_then(|tick| tick.against(self.request));
        choose::choose(
            self.backend_subject(),
            self.request.cpu.is_some(),
            coarse.as_deref(),
            refused,
        )
    }

    fn backend_subject(&self) -> BackendSubject {
        match self.target {
            _ if self.program => BackendSubject::Program,
            Target::Thread(_) => BackendSubject::Thread,
            Target::Process(pid) => BackendSubject::Process {
                threads: members::threads_of(*pid).len(),
                children: members::children_of(*pid).len(),
            },
        }
    }

    fn backend(&self, kind: Backend, guardian: &Guardian) -> Box<dyn Enforces> {
        let user = User::new(guardian.clone());
        match kind {
            Backend::Deadline => Box::new(Deadline),
            Backend::User if self.within => Box::new(user.within()),
            Backend::User => Box::new(user),
            Backend::Quota => Box::new(Quota::new(guardian.clone())),
        }
    }

    /// The thread of which facts are read; this one for a program, which inherits what it has.
    fn subject(&self) -> Option<u32> {
        (!self.program).then_some(self.target.id())
    }

    fn refused(&self, kind: Backend, facts: &AdmissionFacts) -> Vec<Refusal> {
        match kind {
            Backend::Deadline => {
                let mut refusals = admission::deadline(self.request, facts);
                if refusals.is_empty() && !self.program {
                    refusals.extend(deadline::the_thread(self.target, self.request).err());
                }
                if refusals.is_empty() {
                    refusals.extend(user::check_above(self.request, facts).err());
                }
                refusals
            }
            Backend::User => {
                let mut refusals = user::check(self.request, facts);
                if refusals.is_empty() && !self.program {
                    refusals.extend(user::check_target(self.target, self.request).err());
                }
                let cpus = user::cpus_of(self.target, self.request).unwrap_or_default();
                // Beside those that there are, if nothing else is in the way.
                if refusals.is_empty() {
                    refusals.extend(user::check_present(self.request, &cpus, facts).err());
                }
                refusals
            }
            Backend::Quota => quota::check(self.target, self.request, facts),
        }
    }
}

fn refusals_of(kind: Backend, said: &[(Backend, Refusal)]) -> Vec<Refusal> {
    said.iter().filter(|(whose, _)| *whose == kind).map(|(_, refusal)| refusal.clone()).collect()
}
