//! Facts about the machine that explain a run's numbers. A fact that the machine does not tell
//! is `None`.

use serde::{Deserialize, Serialize};

/// The machine, as it was when the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`: build, and preemption model where it says so.
    pub kernel_build: String,
}
