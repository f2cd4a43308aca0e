//! The algebra of slack time (Inoue et al., CPU Resource Reservation for SMT, 2006, section 3).
//!
//! Owns: equations 1 to 3 and 9, with a margin at which to stop, checks at variable and at fixed
//! intervals, and slack that looks ahead to jobs that are yet to come. Must not: measure progress,
//! stop anybody, or round in the optimistic direction: a check comes early, never late.

use std::cmp::Ordering;

use hourglass_tasks::exact_fraction::{compare_shares, greatest_common_divisor, share_floor};
use thiserror::Error;

/// The reservation of one process, and the monitoring of its co-runners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlackReservation {
    /// When the work must be done.
    deadline: u64,
    /// The work, as time of a processor that is not shared.
    cost: u64,
    /// The worst rate of progress while co-runners run.
    alpha: ProgressRate,
    /// Co-runners are stopped at this slack: the duration of a stop.
    margin: u64,
}

/// A rate below one, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressRate {
    numerator: u64,
    denominator: u64,
}

impl ProgressRate {
    /// No progress at all is certain.
    pub const ZERO: ProgressRate = ProgressRate { numerator: 0, denominator: 1 };

    /// `part` of `whole`; `None` unless it is below one.
    #[must_use]
    pub fn new(part: u64, whole: u64) -> Option<ProgressRate> {
        (part < whole).then_some(ProgressRate { numerator: part, denominator: whole })
    }

    /// The fraction, as `part` and `whole`.
    #[must_use]
    pub fn parts(self) -> (u64, u64) {
        (self.numerator, self.denominator)
    }
}

/// The decision about the co-runners at a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Co-runners may run on until this time, when slack must be checked again.
    RunUntil(u64),
    /// Co-runners must stop now.
    Stop,
}

/// The times at which slack is checked (section 3.2), besides the begins and ends of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlackCheck {
    /// When it may be used up: equations 2 and 3.
    #[default]
    Variable,
    /// Checks at this distance, ns; above zero. With a long one much slack is given away.
    Fixed(u64),
}

impl SlackCheck {
    /// The decision for checks at these times: co-runners stop if slack may be used up before the next check.
    #[must_use]
    pub fn limit(self, now: u64, decision: Decision) -> Decision {
        match (self, decision) {
            (SlackCheck::Fixed(interval), Decision::RunUntil(latest)) => {
                let next = now.saturating_add(interval);
                if next <= latest { Decision::RunUntil(next) } else { Decision::Stop }
            }
            (_, decision) => decision,
        }
    }
}

impl SlackReservation {
    /// `cost` of work by `deadline`. With a rate `alpha` that is proven, checks are rarer; without
    /// proof it must be zero.
    #[must_use]
    pub fn new(deadline: u64, cost: u64, alpha: ProgressRate, margin: u64) -> SlackReservation {
        SlackReservation { deadline, cost, alpha, margin }
    }

    /// Slack at `now` with `done` of the work: T - C, section 3.1. Below zero, the promise is broken.
    /// Once all of the work is done it is kept, and slack has no meaning any more.
    #[must_use]
    pub fn slack(&self, now: u64, done: u64) -> i128 {
        let remaining = self.cost.saturating_sub(done);
        PendingWork { deadline: self.deadline, remaining }.slack(now)
    }

    /// Equation 2, and 3 where `alpha` is above zero: the next check is at now + slack / (1 - alpha).
    /// The margin is kept back, so that what is left then is no less than it.
    #[must_use]
    pub fn decide(&self, now: u64, slack: i128) -> Decision {
        let spare = slack - i128::from(self.margin);
        match u128::try_from(spare) {
            Ok(spare) if spare > 0 => {
                // Below 2^64 times below 2^64.
                let whole = u128::from(self.alpha.denominator);
                let rest = whole - u128::from(self.alpha.numerator);
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
        SlackReservation { margin: 0, ..*self }.decide(now, slack)
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

/// Work promised to one of several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingWork {
    /// When it must be done.
    pub deadline: u64,
    /// The remaining work, as time of a processor that is not shared; 0 if it is done.
    pub remaining: u64,
}

impl PendingWork {
    /// Slack at `now`: T - C, section 3.1. Below zero, the promise is broken.
    #[must_use]
    pub fn slack(self, now: u64) -> i128 {
        i128::from(self.deadline) - i128::from(now) - i128::from(self.remaining)
    }
}

/// One, with 64 binary digits behind the point.
const ONE: u128 = 1 << 64;

/// A reservation with a period: what is pending of it, and what comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The work of this period; its deadline is the start of the next period.
    pub pending: PendingWork,
    /// The work of each later period.
    pub cost: u64,
    /// The period, not 0.
    pub period: u64,
}

/// Looks at a reservation that a step costs at least, since it may leave a point.
const LEAST_LOOKS: u64 = 25;

/// Why the slack with later periods is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SlackError {
    /// More is reserved than there is.
    #[error("more is reserved than there is, or a period is 0")]
    Overbooked,
    #[error("the periods fit together too rarely: the search takes more steps than allowed")]
    TooLong,
}

/// The slack of the whole system with all later periods of its reservations, which equation 9 leaves
/// out: neighbours may use up slack now that a later job of another reservation needs. The smallest
/// over all deadlines; `None` of no reservation. `most_looks` is a bound on the looks at a reservation.
///
/// # Errors
/// [`SlackError`].
pub fn slack_ahead(
    now: u64,
    reservations: &[Reservation],
    most_looks: u64,
) -> Result<Option<i128>, SlackError> {
    let mut looks = most_looks;
    let shares = reservations.iter().map(|r| (r.cost, r.period));
    if reservations.iter().any(|r| r.period == 0)
        || compare_shares(shares, (1, 1)) == Ordering::Greater
    {
        return Err(SlackError::Overbooked);
    }
    // Shares rounded up, with 64 binary digits behind the point.
    let used: u128 = reservations.iter().map(|r| share_floor(r.cost, r.period) + 1).sum();
    let multiple = reservations.iter().try_fold(1u64, |multiple, r| {
        (multiple / greatest_common_divisor(multiple, r.period)).checked_mul(r.period)
    });
    let mut next: Vec<(u128, Reservation)> =
        reservations.iter().map(|r| (u128::from(r.pending.deadline), *r)).collect();
    let all: i128 = reservations.iter().map(|r| i128::from(r.pending.remaining)).sum();
    let first = reservations.iter().map(|r| r.pending.deadline).min().unwrap_or(0);
    let last = reservations.iter().map(|r| r.pending.deadline).max().unwrap_or(0);
    let (mut work, mut least) = (0i128, None::<i128>);
    while let Some(due) = next.iter().map(|(due, _)| *due).min() {
        let step = LEAST_LOOKS.max(next.len() as u64);
        looks = looks.checked_sub(step).ok_or(SlackError::TooLong)?;
        for (at, reservation) in next.iter_mut().filter(|(at, _)| *at == due) {
            let pending = due == u128::from(reservation.pending.deadline);
            let of_job = if pending { reservation.pending.remaining } else { reservation.cost };
            work += i128::from(of_job);
            *at += u128::from(reservation.period);
        }
        let ahead = |instant: u128| i128::try_from(instant).unwrap_or(i128::MAX) - i128::from(now);
        let slack = ahead(due) - work;
        let smallest = least.map_or(slack, |least| least.min(slack));
        least = Some(smallest);
        // From the last pending deadline on, slack is never below a line that rises with the share
        // that is free, and repeats, no smaller, after the common multiple of the periods.
        let since = due - u128::from(first);
        let rising = used < ONE && since < ONE && {
            let later = i128::try_from((since * used) >> 64).unwrap_or(i128::MAX);
            ahead(due).saturating_sub(all).saturating_sub(later).saturating_sub(1) >= smallest
        };
        let repeated = multiple.is_some_and(|m| due >= u128::from(last) + u128::from(m));
        if due >= u128::from(last) && (rising || repeated) {
            return Ok(least);
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MANY_LOOKS: u64 = 100_000_000;

    proptest! {
        /// Whatever the progress is, if it is at least alpha, the promise is still kept at the stop,
        /// and what is left is no less than the margin, if it was so at the beginning.
        #[test]
        fn stopping_keeps_the_promise(
            cost in 1..1_000u64, room in 0..1_000u64, margin in 0..50u64,
            part in 0..9u64, steps in proptest::collection::vec(0..=100u64, 64)
        ) {
            let alpha = ProgressRate::new(part, 10).unwrap();
            let promise = SlackReservation::new(cost + room, cost, alpha, margin);
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

    proptest! {
        /// The fixed interval never stops later than the variable one, and keeps the promise too.
        #[test]
        fn fixed_intervals_keep_the_promise(
            cost in 1..1_000u64, room in 0..1_000u64, margin in 0..50u64, interval in 1..90u64,
            part in 0..9u64, steps in proptest::collection::vec(0..=100u64, 64)
        ) {
            let alpha = ProgressRate::new(part, 10).unwrap();
            let promise = SlackReservation::new(cost + room, cost, alpha, margin);
            let (mut now, mut done) = (0, 0);
            for step in steps {
                let slack = promise.slack(now, done);
                if done >= cost {
                    break;
                }
                prop_assert!(slack >= i128::from(margin.min(room)));
                let found = SlackCheck::Fixed(interval).limit(now, promise.decide(now, slack));
                let Decision::RunUntil(next) = found else { break };
                prop_assert_eq!(next, now + interval);
                let least = (interval * part).div_ceil(10);
                done += least + (interval - least) * step / 100;
                now = next;
            }
        }

        /// Equation 9 with all later jobs, instant by instant.
        #[test]
        fn slack_ahead_is_the_least_of_all_deadlines(
            numbers in proptest::collection::vec((0..30u64, 0..9u64, 1..8u64, 6..20u64), 1..4),
            now in 0..10u64,
        ) {
            let reservation = |(due, left, cost, period): &(u64, u64, u64, u64)| Reservation {
                pending: PendingWork { deadline: *due, remaining: *left },
                cost: *cost,
                period: *period,
            };
            let reservations: Vec<Reservation> = numbers.iter().map(reservation).collect();
            let slack = |at: u64| {
                let work = |r: &Reservation| match at.checked_sub(r.pending.deadline) {
                    Some(since) => r.pending.remaining + since / r.period * r.cost,
                    None => 0,
                };
                let work: u64 = reservations.iter().map(work).sum();
                i128::from(at) - i128::from(now) - i128::from(work)
            };
            let first = numbers.iter().map(|n| n.0).min().unwrap();
            let due = |at: &u64| reservations.iter().any(|r| {
                at.checked_sub(r.pending.deadline).is_some_and(|since| since % r.period == 0)
            });
            let least = (first..8_000).filter(due).map(slack).min();
            match slack_ahead(now, &reservations, MANY_LOOKS) {
                Ok(found) => prop_assert_eq!(found, least),
                Err(why) => {
                    prop_assert_eq!(why, SlackError::Overbooked);
                    let u: f64 = numbers.iter().map(|n| n.2 as f64 / n.3 as f64).sum();
                    prop_assert!(u > 0.999);
                }
            }
        }
    }

    /// 5 of every 10 beside 9 by 20: equation 9 sees a slack of 5, but 5 more come before 20.
    #[test]
    fn later_periods_need_slack_too() {
        let of = |deadline, left| PendingWork { deadline, remaining: left };
        let reservations = [
            Reservation { pending: of(10, 5), cost: 5, period: 10 },
            Reservation { pending: of(20, 9), cost: 9, period: 20 },
        ];
        assert_eq!(slack_of_each(&[(10, 5), (20, 9)]), (vec![5, 6], Some(5)));
        assert_eq!(slack_ahead(0, &reservations, MANY_LOOKS), Ok(Some(1)));
        let full = [Reservation { cost: 11, ..reservations[0] }];
        assert_eq!(slack_ahead(0, &full, MANY_LOOKS), Err(SlackError::Overbooked));
    }

    /// Section 3.3: 4, then 2 after 2 of 4 were done, then 0.
    #[test]
    fn the_example_of_the_paper() {
        let promise = SlackReservation::new(10, 6, ProgressRate::ZERO, 0);
        assert_eq!(promise.decide(0, promise.slack(0, 0)), Decision::RunUntil(4));
        assert_eq!(promise.decide(4, promise.slack(4, 2)), Decision::RunUntil(6));
        assert_eq!(promise.decide(6, promise.slack(6, 2)), Decision::Stop);
    }
}
