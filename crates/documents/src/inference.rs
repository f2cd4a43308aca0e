//! What was inferred from a trace, as documents carry it.

use serde::{Deserialize, Serialize};

/// One number that a trace says, with its uncertainty (the paper's sections 4 and 5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inference {
    /// What it is about: `switch_cost_involuntary`, `quantum`, `cpu_share`. New ones may come.
    pub name: String,
    /// The thread that it is about; null for all together.
    pub thread: Option<u32>,
    /// Which number of it: `fastest`, `mode`, `median`, `mean`, `share`, `p99`, `later_than_1ms`.
    pub statistic: String,
    /// The number.
    pub value: f64,
    /// Lower end of its 95 % interval; null without an interval.
    pub ci_lo: Option<f64>,
    /// Upper end of its 95 % interval; null without an interval.
    pub ci_hi: Option<f64>,
    /// Unit of all three: `ns`, `1/s`, `1` for shares.
    pub unit: String,
    /// Single measurements behind it.
    pub count: u64,
    /// Measurements that were set aside as contaminated.
    pub set_aside: u64,
    /// What it rests upon.
    pub basis: InferenceBasis,
}

/// What an inference rests upon (section 4 keeps the two apart).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InferenceBasis {
    /// On nothing but the trace: each single case is what it is called.
    Certain,
    /// On many cases of which most are what they are called.
    Statistical,
}
