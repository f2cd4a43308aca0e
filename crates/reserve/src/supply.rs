//! What a reservation delivered, period by period.

/// Sums over all complete periods so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Complete periods.
    pub periods: u64,
    /// What each was given, in steps: processor time up to so many ns, and how many periods.
    pub steps: std::collections::BTreeMap<u64, u64>,
    /// The same of those periods in which all of the budget was wanted: missed or used up.
    pub wanted: std::collections::BTreeMap<u64, u64>,
    /// Periods whose budget was wanted and not delivered by the deadline.
    pub missed: u64,
    /// Periods in which more than the budget was wanted.
    pub overruns: u64,
    /// Time that the target stood because its budget was used up, ns; `None` where not known.
    pub throttled_ns: Option<u64>,
}
