//! Who had the CPU while another thread wanted it.

use serde::{Deserialize, Serialize};

/// A thread that had the CPU while one of the run was without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccupantReport {
    /// Number of the thread, if it is one of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The kernel's number of the thread, if it is another; 0 is the idle CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Its name, where the kernel's trace has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For how long, ns, in all of the gaps.
    pub total_ns: u64,
}
