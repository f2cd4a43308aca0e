//! Where the kernel was when the worst of a run happened.

use serde::{Deserialize, Serialize};

/// One of the longest gaps or latest wake-ups of a run, with the kernel's stacks at the switches of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackReport {
    /// `gap` or `wake_up`.
    pub of: String,
    /// Number of the thread in the run.
    pub thread: u32,
    /// When it was over, ns from the run's start.
    pub at_ns: i64,
    /// Length of the gap, or latency of the wake-up, ns.
    pub length_ns: u64,
    /// At the switches, in order of time; at least one.
    pub stacks: Vec<SwitchStack>,
}

/// The stack of a thread that left the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchStack {
    /// `taken`: the CPU was taken from the thread of the run; `given`: another thread gave it the CPU at last.
    pub moment: String,
    /// When, ns from the run's start.
    pub at_ns: i64,
    /// On which CPU.
    pub cpu: u32,
    /// Whose stack it is, by the kernel's number.
    pub tid: u32,
    /// Its name, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Functions of the kernel, the innermost first.
    pub frames: Vec<String>,
}
