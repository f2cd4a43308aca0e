//! What tasks share and lock.
//!
//! Owns: [`Resource`] and its protocols. Must not: bound blocking (`sched` does).

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The name, unique among resources.
    pub name: String,
    pub protocol: Protocol,
    /// The priority that its holder runs at, for the ceiling protocol; without it, the highest
    /// of the tasks that use it.
    pub ceiling: Option<u32>,
}

impl Resource {
    /// That its ceiling means nothing where deadlines decide, in a sentence.
    #[must_use]
    pub fn ceiling_passed_over(&self) -> String {
        format!(
            "resource '{}': its ceiling is a priority, which tasks by deadline do not have; that of its users is taken",
            self.name
        )
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The holder runs at the highest priority of all users (Sha, Rajkumar and Lehoczky 1990;
    /// `PTHREAD_PRIO_PROTECT`).
    #[default]
    Ceiling,
    /// The holder inherits the priority of the threads that it blocks (`PTHREAD_PRIO_INHERIT`).
    Inheritance,
    /// Who waits spins, first come, first served, and is not preempted (MSRP, Gai, Lipari and
    /// Di Natale 2001).
    Spin,
    /// A plain mutex; less urgent tasks may prolong the blocking without a bound.
    Plain,
}
