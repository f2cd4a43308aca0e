//! The quantities that are compared.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quantity {
    GapP50,
    /// The length that 99 of 100 gaps do not exceed.
    GapP99,
    /// The length that 999 of 1000 gaps do not exceed.
    GapP999,
    GapMax,
    GapRate,
    /// The part of the watched time that gaps took, per cent.
    GapLost,
    /// The lateness of a wake-up that half of all do not exceed, ns.
    LatencyP50,
    /// The latency that 99 of 100 do not exceed.
    LatencyP99,
    /// The latency that 999 of 1000 do not exceed.
    LatencyP999,
    LatencyMax,
    /// Periods that were not finished in time, or lost, per cent.
    DeadlinesFailed,
    Work,
    /// The part of the watched time that gaps of one cause took, per cent.
    CauseLost(String),
}

impl Quantity {
    /// All but those of causes, in the order in which they are shown.
    pub(super) const PLAIN: [Quantity; 12] = [
        Quantity::GapP50,
        Quantity::GapP99,
        Quantity::GapP999,
        Quantity::GapMax,
        Quantity::GapRate,
        Quantity::GapLost,
        Quantity::LatencyP50,
        Quantity::LatencyP99,
        Quantity::LatencyP999,
        Quantity::LatencyMax,
        Quantity::DeadlinesFailed,
        Quantity::Work,
    ];

    /// `ns`, `1/s` or `percent`.
    pub fn unit(&self) -> &'static str {
        match self {
            Quantity::GapRate | Quantity::Work => "1/s",
            Quantity::GapLost | Quantity::DeadlinesFailed | Quantity::CauseLost(_) => "percent",
            _ => "ns",
        }
    }

    pub fn less_is_better(&self) -> bool {
        *self != Quantity::Work
    }

    /// Whether it only explains others: it has a family of its own and no part in the verdict.
    pub fn explains(&self) -> bool {
        matches!(self, Quantity::CauseLost(_))
    }

    /// Whether it is looked at before the others: medians, and what all of a run makes up. What is left are
    /// percentiles in the tail, maxima and the number of gaps, which a few events decide.
    pub fn leads(&self) -> bool {
        matches!(
            self,
            Quantity::GapP50
                | Quantity::GapLost
                | Quantity::LatencyP50
                | Quantity::DeadlinesFailed
                | Quantity::Work
        )
    }

    /// The share of the measurements below it, for percentiles.
    pub(super) fn percentile(&self) -> Option<f64> {
        match self {
            Quantity::GapP50 | Quantity::LatencyP50 => Some(0.5),
            Quantity::GapP99 | Quantity::LatencyP99 => Some(0.99),
            Quantity::GapP999 | Quantity::LatencyP999 => Some(0.999),
            _ => None,
        }
    }

    /// Changes below this margin do not count, in its unit: the resolution of clocks, or what a
    /// person cares for.
    pub(super) fn least_margin(&self) -> f64 {
        match self.unit() {
            "ns" => 10.0,
            _ => 0.1,
        }
    }
}

/// The name in `hourglass.diff/1`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quantity::GapP50 => "gaps.p50_ns",
            Quantity::GapP99 => "gaps.p99_ns",
            Quantity::GapP999 => "gaps.p999_ns",
            Quantity::GapMax => "gaps.max_ns",
            Quantity::GapRate => "gaps.per_s",
            Quantity::GapLost => "gaps.lost_percent",
            Quantity::LatencyP50 => "latency.p50_ns",
            Quantity::LatencyP99 => "latency.p99_ns",
            Quantity::LatencyP999 => "latency.p999_ns",
            Quantity::LatencyMax => "latency.max_ns",
            Quantity::DeadlinesFailed => "deadlines.failed_percent",
            Quantity::Work => "work.per_s",
            Quantity::CauseLost(name) => return write!(f, "causes.{name}.lost_percent"),
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub quantity: Quantity,
    /// How much; `None` where the run has nothing to take it from.
    pub value: Option<f64>,
    pub count: u64,
}

impl Value {
    /// Whether the value says more than a maximum does: at least `least` measurements lie above it.
    pub(super) fn has_above(&self, least: f64) -> bool {
        let above = |share: f64| self.count as f64 * (1.0 - share) >= least * (1.0 - 1e-9);
        self.quantity.percentile().is_none_or(above)
    }
}
