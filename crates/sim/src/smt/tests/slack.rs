//! Slack beside equation 9, and beside a twin that loses time and looks what becomes of it.

use proptest::prelude::*;

use super::super::slack::{FutureJobs, JobPriority, PendingJob, least_slack};
use crate::ArrivalPattern;
use crate::slack::{PendingWork, Reservation, slack_ahead, slack_of_each};

#[derive(Clone, Debug)]
struct Small {
    order: JobPriority,
    cost: u64,
    period: u64,
    deadline: u64,
    /// What is left of a pending job, and when it is due.
    pending: Option<(u64, u64)>,
    next: u64,
}

impl Small {
    fn coming(&self) -> FutureJobs {
        let arrivals = ArrivalPattern::Periodic { offset: self.next, period: self.period };
        FutureJobs::new(self.order, &arrivals, self.cost, self.deadline)
    }

    fn pending(&self) -> Option<PendingJob> {
        self.pending.map(|(left, due)| PendingJob { order: self.order, due, left })
    }
}

fn slack(threads: &[Small]) -> Option<i128> {
    let pending: Vec<PendingJob> = threads.iter().filter_map(Small::pending).collect();
    let coming: Vec<FutureJobs> = threads.iter().map(Small::coming).collect();
    least_slack(0, &pending, &coming)
}

/// Whether every deadline up to the horizon holds if nothing runs before `lost`, instant by instant.
fn holds(threads: &[Small], lost: u64) -> bool {
    const HORIZON: u64 = 240;
    // Thread, due, left.
    let mut jobs: Vec<(usize, u64, u64)> = Vec::new();
    for (at, thread) in threads.iter().enumerate() {
        jobs.extend(thread.pending.map(|(left, due)| (at, due, left)));
    }
    for now in 0..HORIZON {
        for (at, thread) in threads.iter().enumerate() {
            if now >= thread.next && (now - thread.next).is_multiple_of(thread.period) {
                jobs.push((at, now + thread.deadline, thread.cost));
            }
        }
        jobs.retain(|(_, _, left)| *left > 0);
        if jobs.iter().any(|(_, due, _)| *due <= now) {
            return false;
        }
        if now < lost {
            continue;
        }
        let rank = |(at, due, _): &(usize, u64, u64)| match threads[*at].order {
            JobPriority::Deadline => (0, *due),
            JobPriority::Priority(priority) => (1, u64::from(u32::MAX - priority)),
        };
        // `min_by_key` takes the first of equals, which is the one that was there before.
        if let Some(job) = (0..jobs.len()).min_by_key(|at| rank(&jobs[*at])) {
            jobs[job].2 -= 1;
        }
    }
    true
}

fn small(order: impl Strategy<Value = JobPriority>) -> impl Strategy<Value = Small> {
    let pending = proptest::option::of((1..6u64, 0..20u64));
    (order, 1..5u64, 1..5u64, 0..3u64, pending, 1..12u64).prop_map(
        |(order, cost, factor, tight, pending, next)| {
            let period = cost * (factor + 1) + 2;
            let pending = pending.map(|(left, room)| (left.min(cost), left.min(cost) + room));
            Small {
                order,
                cost,
                period,
                deadline: period - tight.min(period - cost),
                pending,
                next,
            }
        },
    )
}

fn by_deadline() -> impl Strategy<Value = Vec<Small>> {
    proptest::collection::vec(small(Just(JobPriority::Deadline)), 1..4)
}

fn by_priority() -> impl Strategy<Value = Vec<Small>> {
    proptest::collection::vec(small((1..4u32).prop_map(JobPriority::Priority)), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        // Most sets of small numbers hold nothing at all.
        max_global_rejects: 100_000,
        ..ProptestConfig::with_cases(2_000)
    })]

    /// By deadline slack is exact: with it lost all holds, and with one more it does not.
    #[test]
    fn deadline_slack_is_exact(threads in by_deadline()) {
        let used: u64 = threads.iter().map(|t| 1_000 * t.cost / t.period + 1).sum();
        prop_assume!(used < 900 && holds(&threads, 0));
        let Some(slack) = slack(&threads) else { return Ok(()) };
        let lost = u64::try_from(slack).unwrap();
        prop_assert!(holds(&threads, lost), "slack {slack}");
        prop_assert!(!holds(&threads, lost + 1), "slack {slack}");
    }

    /// By priority, and with both: with the slack lost all holds that held without.
    #[test]
    fn slack_may_be_lost(
        threads in by_priority(), more in proptest::collection::vec(small(Just(JobPriority::Deadline)), 0..2)
    ) {
        let threads: Vec<Small> = threads.into_iter().chain(more).collect();
        prop_assume!(holds(&threads, 0));
        let lost = slack(&threads).map_or(0, |slack| u64::try_from(slack).unwrap_or(0));
        prop_assert!(holds(&threads, lost), "slack {lost}");
    }

    /// Equation 9, where nothing is to come.
    #[test]
    fn without_arrivals_it_is_equation_9(
        mut processes in proptest::collection::vec((1..100u64, 1..20u64), 1..6)
    ) {
        processes.sort_unstable();
        let job = |&(due, left): &(u64, u64)| PendingJob { order: JobPriority::Deadline, due, left };
        let pending: Vec<PendingJob> = processes.iter().map(job).collect();
        prop_assert_eq!(least_slack(0, &pending, &[]), slack_of_each(&processes).1);
    }
}

proptest! {
    /// The two ways to look ahead, of the simulator and of `reserve`, check each other.
    #[test]
    fn both_ways_to_look_ahead_agree(
        numbers in proptest::collection::vec((1..9u64, 0..9u64, 0..30u64, 40..90u64), 1..5), now in 0..20u64
    ) {
        let reservation = |&(cost, done, due, period): &(u64, u64, u64, u64)| {
            let pending = PendingWork { deadline: due, remaining: cost - done.min(cost - 1) };
            Reservation { pending, cost, period }
        };
        let reservations: Vec<Reservation> = numbers.iter().map(reservation).collect();
        let job = |&Reservation { pending: PendingWork { deadline, remaining }, .. }: &Reservation| PendingJob {
            order: JobPriority::Deadline, due: deadline, left: remaining
        };
        let pending: Vec<PendingJob> = reservations.iter().map(job).collect();
        let future = |&Reservation { pending, cost, period }: &Reservation| {
            let arrivals = ArrivalPattern::Periodic { offset: pending.deadline, period };
            FutureJobs::new(JobPriority::Deadline, &arrivals, cost, period)
        };
        let coming: Vec<FutureJobs> = reservations.iter().map(future).collect();
        let ahead = slack_ahead(now, &reservations, u64::MAX).unwrap();
        prop_assert_eq!(least_slack(now, &pending, &coming), ahead);
    }
}

/// A single job alone: its deadline, less what is left of it; the second job comes in time.
#[test]
fn a_job_alone() {
    for order in [JobPriority::Deadline, JobPriority::Priority(7)] {
        let thread =
            Small { order, cost: 6, period: 10, deadline: 10, pending: Some((6, 10)), next: 10 };
        assert_eq!(slack(&[thread]), Some(4), "{order:?}");
    }
}

/// A more urgent arrival takes its time from the slack of the job that waits, which equation 9 does
/// not see.
#[test]
fn arrivals_to_come_count() {
    let long = |order| Small {
        order,
        cost: 20,
        period: 100,
        deadline: 60,
        pending: Some((20, 60)),
        next: 100,
    };
    let short = |order| Small { order, cost: 5, period: 25, deadline: 25, pending: None, next: 10 };
    let alone = slack(&[long(JobPriority::Deadline)]);
    assert_eq!(alone, Some(40));
    // Jobs at 10 and 35 are due at 35 and 60; the one at 35 alone leaves less.
    assert_eq!(slack(&[long(JobPriority::Deadline), short(JobPriority::Deadline)]), Some(30));
    // Until 60 jobs arrive at 10 and 35; at 60 the next one comes.
    assert_eq!(slack(&[long(JobPriority::Priority(1)), short(JobPriority::Priority(2))]), Some(30));
}

#[test]
fn nothing_pending_has_no_slack() {
    assert_eq!(least_slack(0, &[], &[]), None);
}

/// Next jobs of all kinds of arrivals: the least slack is that of the first to come.
#[test]
fn arrivals_are_skipped_not_invented() {
    let least_after = |arrivals: &ArrivalPattern, number: u64, at: u64| {
        let mut coming = FutureJobs::new(JobPriority::Deadline, arrivals, 10, 10);
        coming.skip_to(number, at);
        // What is due at 1000 sees all that comes before it.
        let pending = [PendingJob { order: JobPriority::Deadline, due: 1_000, left: 1 }];
        least_slack(0, &pending, &[coming]).unwrap()
    };
    let listed = ArrivalPattern::Listed(vec![5, 100, 300]);
    let after = [0, 1, 2, 3].map(|number| least_after(&listed, number, 0));
    assert_eq!(after, [5, 100, 300, 999]);
    let after = [0, 6, 101, 301].map(|at| least_after(&listed, 0, at));
    assert_eq!(after, [5, 100, 300, 999]);
    let burst = ArrivalPattern::Burst { offset: 0, distances: vec![10, 20], period: 500 };
    let after = [0, 10, 15, 21, 521].map(|at| least_after(&burst, 0, at));
    assert_eq!(after, [0, 10, 20, 520, 999]);
}

/// A sporadic thread counts from the last arrival that was seen, and may always come at once.
#[test]
fn sporadic_arrivals_follow_what_was_seen() {
    let arrivals = ArrivalPattern::Sporadic { offset: 0, period: 100, extra: 1_000 };
    let mut coming = FutureJobs::new(JobPriority::Deadline, &arrivals, 10, 50);
    let pending = [PendingJob { order: JobPriority::Deadline, due: 1_000, left: 1 }];
    coming.saw(3, 470);
    coming.skip_to(4, 0);
    assert_eq!(least_slack(500, &pending, &[coming.clone()]), Some(570 + 50 - 500 - 10));
    coming.skip_to(4, 700);
    assert_eq!(least_slack(700, &pending, &[coming]), Some(40));
}
