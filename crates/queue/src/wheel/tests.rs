//! The wheel at its edges. The rest is tested from outside, against a list.

use super::*;
use hourglass_time::Sim;

fn at(ns: i64) -> Instant<Sim> {
    Instant::from_nanos(ns)
}

fn wheel(granularity: i64, now: i64) -> TimeoutWheel<Sim, ()> {
    TimeoutWheel::new(Span::from_nanos(granularity), at(now)).unwrap()
}

#[test]
fn the_granule_is_a_power_of_two_not_above_the_granularity() {
    for (asked, got) in [(2, 2), (3, 2), (1_000, 512), (1_000_000, 524_288), (i64::MAX, 1 << 62)] {
        assert_eq!(wheel(asked, 0).granularity(), Span::from_nanos(got));
    }
    let refused = TimeoutWheel::<Sim, ()>::new(Span::NANOSECOND, at(0)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a granularity of 1ns is too fine for a wheel; the finest is 2ns"
    );
}

#[test]
fn the_ends_of_the_range() {
    for shift in 1..63 {
        let mut wheel = wheel(1 << shift, -i64::MAX);
        let timeout = wheel.create(()).unwrap();
        for now in [Instant::MIN, at(-1), Instant::ZERO, at(i64::MAX - 1)] {
            wheel.arm_at(timeout, now, Instant::MAX).unwrap();
            let next = wheel.next_expiry().unwrap();
            assert_eq!(next, Instant::MAX, "granules of 2^{shift} ns");
            assert_eq!(wheel.pop_expired(at(i64::MAX - 1)), None);
            let expired = wheel.pop_expired(Instant::MAX).unwrap();
            assert_eq!((expired.expiry, expired.latest), (Instant::MAX, Instant::MAX));
            wheel = self::wheel(1 << shift, -i64::MAX);
            assert_eq!(wheel.create(()), Ok(timeout));
        }
        wheel.arm_at(timeout, Instant::MIN, Instant::MIN).unwrap();
        assert!(wheel.next_expiry().unwrap() <= at(-i64::MAX + (1 << shift)));
    }
}

#[test]
fn a_delay_beyond_the_clock_is_refused() {
    let mut wheel = wheel(1_000, 0);
    let timeout = wheel.create(()).unwrap();
    let (after, longest) = (Span::from_nanos(6), Span::from_nanos(5));
    let refused = Err(QueueError::ExpiryOutOfRange { after, longest });
    assert_eq!(wheel.arm_after(timeout, at(i64::MAX - 5), after), refused);
    assert_eq!(wheel.armed(), 0);
    assert_eq!(wheel.arm_after(timeout, at(i64::MAX - 5), longest), Ok(()));
    // A negative delay is an expiry in the past.
    let mut wheel = self::wheel(1_000, 0);
    assert_eq!(wheel.create(()), Ok(timeout));
    assert_eq!(wheel.arm_after(timeout, at(0), Span::MIN), Ok(()));
    assert!(wheel.pop_expired(at(1_000)).is_some());
}

/// glommio issue 44 and its relatives: a next expiry in the past without anything due makes the
/// loop spin. Cancelling leaves none behind.
#[test]
fn the_next_expiry_forgets_what_was_cancelled() {
    let mut wheel = wheel(1_024, 0);
    let early = wheel.create(()).unwrap();
    let late = wheel.create(()).unwrap();
    wheel.arm_at(early, at(0), at(2_000)).unwrap();
    wheel.arm_at(late, at(0), at(900_000)).unwrap();
    assert_eq!(wheel.next_expiry(), Some(at(2_048)));
    assert_eq!(wheel.cancel(early), Ok(true));
    assert!(wheel.next_expiry().unwrap() >= at(900_000));
    assert_eq!(wheel.pop_expired(at(500_000)), None);
    // Nothing is due, so that the delay counts from now.
    wheel.arm_at(early, at(500_000), at(520_000)).unwrap();
    assert_eq!(wheel.next_expiry(), Some(at(520_192)));
}

/// ratas and nexus-timer have a limit for this: a batch of any size is worked off in portions, and
/// meanwhile the next expiry is due.
#[test]
fn a_batch_beyond_the_budget_goes_on_at_the_next_poll() {
    let mut wheel = wheel(1_000_000, 0);
    for _ in 0..10_000 {
        let timeout = wheel.create(()).unwrap();
        wheel.arm_after(timeout, at(0), Span::from_secs(10)).unwrap();
    }
    let due = wheel.next_expiry().unwrap();
    for poll in 1..=10 {
        assert_eq!(wheel.next_expiry(), Some(due));
        assert_eq!(wheel.expire(due, 1_000, |_, _| ()), 1_000);
        assert_eq!(wheel.armed(), 10_000 - poll * 1_000);
    }
    assert_eq!((wheel.next_expiry(), wheel.expire(due, 1_000, |_, _| ())), (None, 0));
}

/// What re-arms itself at once cannot hold the caller (libevent issue 1261).
#[test]
fn re_arming_at_once_counts_towards_the_budget() {
    let mut wheel = wheel(1_000, 0);
    let timeout = wheel.create(()).unwrap();
    let now = at(5_000);
    wheel.arm_at(timeout, at(0), at(1)).unwrap();
    let fired = wheel.expire(now, 7, |wheel, expired| {
        wheel.arm_at(expired.handle, now, now).unwrap();
    });
    assert_eq!(fired, 7);
    assert!(wheel.next_expiry().unwrap() <= now);
}
