//! The algebra of slack time (Inoue et al., CPU Resource Reservation for SMT, 2006, section 3).
//!
//! Owns: equations 1 to 3 and 9, with a margin at which to stop. Must not: measure progress, stop
//! anybody, or round in the optimistic direction: a check comes early, never late.

/// What is promised to one process, and how its neighbours are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// When the work must be done.
    deadline: u64,
    /// The work, as time of a processor that is not shared.
    cost: u64,
    /// The worst rate of progress while neighbours run.
    alpha: Rate,
    /// Neighbours are stopped at this slack: what stopping takes.
    margin: u64,
}

/// A rate below one, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    part: u64,
    whole: u64,
}

impl Rate {
    /// No progress at all is certain.
    pub const ZERO: Rate = Rate { part: 0, whole: 1 };

    /// `part` of `whole`; `None` unless it is below one.
    #[must_use]
    pub fn new(part: u64, whole: u64) -> Option<Rate> {
        (part < whole).then_some(Rate { part, whole })
    }
}

/// What to do with the neighbours at a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They may run on until this time, when slack is to be looked at again.
    RunUntil(u64),
    /// They must stop now.
    Stop,
}

impl Promise {
    /// `cost` of work by `deadline`. With a rate `alpha` that is proven, checks are rarer; without
    /// proof it must be zero.
    #[must_use]
    pub fn new(deadline: u64, cost: u64, alpha: Rate, margin: u64) -> Promise {
        Promise { deadline, cost, alpha, margin }
    }

    /// Slack at `now` with `done` of the work: T - C, section 3.1. Below zero, the promise is broken.
    /// Once all of the work is done it is kept, and slack has no meaning any more.
    #[must_use]
    pub fn slack(&self, now: u64, done: u64) -> i128 {
        let left = i128::from(self.deadline) - i128::from(now);
        left - i128::from(self.cost.saturating_sub(done))
    }

    /// Equation 2, and 3 where `alpha` is above zero: the next check is at now + slack / (1 - alpha).
    /// The margin is kept back, so that what is left then is no less than it.
    #[must_use]
    pub fn decide(&self, now: u64, slack: i128) -> Decision {
        let spare = slack - i128::from(self.margin);
        match u128::try_from(spare) {
            Ok(spare) if spare > 0 => {
                // Below 2^64 times below 2^64.
                let whole = u128::from(self.alpha.whole);
                let rest = whole - u128::from(self.alpha.part);
                let wait = spare.saturating_mul(whole) / rest;
                let wait = u64::try_from(wait).unwrap_or(u64::MAX);
                if wait == 0 {
                    Decision::Stop
                } else {
                    Decision::RunUntil(now.saturating_add(wait))
                }
            }
            _ => Decision::Stop,
        }
    }

    /// As the paper's Figure 1 has it: the wait is the whole slack, and the margin only decides when
    /// to stop. A check may then come with less than the margin left, never with less than zero.
    #[must_use]
    pub fn decide_as_published(&self, now: u64, slack: i128) -> Decision {
        if slack <= i128::from(self.margin) {
            return Decision::Stop;
        }
        Promise { margin: 0, ..*self }.decide(now, slack)
    }
}

/// Equation 9: slack of each process, given the time left to its deadline and the work left to it,
/// in the order of deadlines. The smallest is that of the system; `None` of no process.
#[must_use]
pub fn slack_of_each(processes: &[(u64, u64)]) -> (Vec<i128>, Option<i128>) {
    let mut work = 0i128;
    let each: Vec<i128> = processes
        .iter()
        .map(|(time, cost)| {
            work += i128::from(*cost);
            i128::from(*time) - work
        })
        .collect();
    let least = each.iter().copied().min();
    (each, least)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the progress is, if it is at least alpha, the promise is still kept at the stop,
        /// and what is left is no less than the margin, if it was so at the beginning.
        #[test]
        fn stopping_keeps_the_promise(
            cost in 1..1_000u64, room in 0..1_000u64, margin in 0..50u64,
            part in 0..9u64, steps in proptest::collection::vec(0..=100u64, 64)
        ) {
            let alpha = Rate::new(part, 10).unwrap();
            let promise = Promise::new(cost + room, cost, alpha, margin);
            let (mut now, mut done) = (0, 0);
            for step in steps {
                if done >= cost {
                    break;
                }
                let slack = promise.slack(now, done);
                prop_assert!(slack >= i128::from(margin.min(room)));
                let Decision::RunUntil(next) = promise.decide(now, slack) else { break };
                let passed = next - now;
                let least = (passed * part).div_ceil(10);
                done += least + (passed - least) * step / 100;
                now = next;
            }
        }
    }

    /// Section 3.3: 4, then 2 after 2 of 4 were done, then 0.
    #[test]
    fn the_example_of_the_paper() {
        let promise = Promise::new(10, 6, Rate::ZERO, 0);
        assert_eq!(promise.decide(0, promise.slack(0, 0)), Decision::RunUntil(4));
        assert_eq!(promise.decide(4, promise.slack(4, 2)), Decision::RunUntil(6));
        assert_eq!(promise.decide(6, promise.slack(6, 2)), Decision::Stop);
    }
}
