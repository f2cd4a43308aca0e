//! The supply of a reservation, period by period.

/// Sums over all complete periods so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Complete periods.
    pub periods: u64,
    /// Processor time that periods were given: the upper end of a step, ns, and the number of periods in it.
    pub steps: std::collections::BTreeMap<u64, u64>,
    /// The steps of those periods in which all of the budget was wanted: missed or used up.
    pub wanted: std::collections::BTreeMap<u64, u64>,
    /// Periods whose budget was wanted and not delivered by the deadline.
    pub missed: u64,
    /// Periods in which more than the budget was wanted.
    pub overruns: u64,
    /// Time that the target stood because its budget was used up, ns; `None` where not known.
    pub throttled_ns: Option<u64>,
    /// Time that the last of them was given, ns; `None` without any, and where not known.
    pub last_ns: Option<u64>,
    /// Budgets and periods that it was given meanwhile, each with the begin of its first period, ns after the first of all.
    pub changes: Vec<(u64, u64, u64)>,
}

/// Cost of a reservation until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Processor time of the target since the begin, ns, beyond budgets too; `None` where not counted.
    pub used_ns: Option<u64>,
    /// In this time, ns.
    pub wall_ns: u64,
    /// Processor time of the thread that keeps it, ns; `None` where the kernel keeps it.
    pub keeper_ns: Option<u64>,
    /// The longest time for which the target, by the reservation, and its keeper had the CPU in a row, ns, as measured; `None`
    /// where not known.
    pub longest_ns: Option<u64>,
}

impl Supply {
    /// The least of the periods in which all of the budget was wanted, ns; `None` without any.
    #[must_use]
    pub fn delivered_min_ns(&self) -> Option<u64> {
        self.wanted.keys().next().copied()
    }

    /// The lower median of the periods in which all of the budget was wanted, ns; `None` without any.
    #[must_use]
    pub fn delivered_p50_ns(&self) -> Option<u64> {
        let half = self.wanted.values().sum::<u64>().div_ceil(2);
        let mut before = 0;
        self.wanted.iter().find_map(|(up_to_ns, periods)| {
            before += periods;
            (before >= half && half > 0).then_some(*up_to_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_periods_and_not_of_steps() {
        let of = |wanted: &[(u64, u64)]| {
            let wanted = wanted.iter().copied().collect();
            let supply = Supply { wanted, ..Supply::default() };
            (supply.delivered_min_ns(), supply.delivered_p50_ns())
        };
        assert_eq!(of(&[]), (None, None));
        assert_eq!(of(&[(5, 1), (7, 9)]), (Some(5), Some(7)));
        assert_eq!(of(&[(5, 1), (7, 1)]), (Some(5), Some(5)));
    }
}
