//! What was understood of a set of tasks, for people and scripts.

use serde::Serialize;

/// The whole description of a set of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The set and its machine first, then resources, servers, tasks, rates, other threads.
    pub subjects: Vec<Subject>,
    /// Parts of the set that may be a mistake, one sentence each.
    pub warnings: Vec<String>,
}

/// A part of the set that is described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// `set`, `machine`, `resource`, `server`, `task`, `interference` or `background`.
    pub kind: &'static str,
    /// Name of the part; empty where it needs no name.
    pub name: String,
    /// Facts about it.
    pub facts: Vec<Fact>,
}

/// One thing that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The key under which it would stand in a file, or what follows from the keys.
    pub key: &'static str,
    /// Its value, as files have it.
    pub value: String,
    /// Where it comes from.
    pub origin: FactOrigin,
}

/// Where a fact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FactOrigin {
    /// The description says so.
    Given,
    /// What holds where the description says nothing. Who says the same counts here too.
    Default,
    /// It follows from what the description says.
    Derived,
}
