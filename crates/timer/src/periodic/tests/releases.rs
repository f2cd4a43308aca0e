use super::*;
use crate::periodic::Parameters;
use hourglass_time::{Instant, Span};

const MS: u64 = 1_000_000;

fn starting(parameters: Parameters, now_ns: u64) -> Releases {
    Releases::starting(&parameters.check().unwrap(), now_ns)
}

fn every_ms(policy: OverrunPolicy) -> Releases {
    let parameters = Parameters::every(Span::MILLISECOND).with_overrun_policy(policy);
    starting(parameters, 10 * MS)
}

/// The first job is 3.5 periods long, the second one short: where the next releases are, what is
/// lost, how far the grid moved.
#[test]
fn passed_releases_are_reported() {
    use OverrunPolicy::{CatchUp, Delay, Skip};
    let half = MS / 2;
    for (policy, next, lost, moved_ns) in [
        (Skip, [14 * MS, 15 * MS], 3, 0),
        (CatchUp, [11 * MS, 12 * MS], 0, 0),
        (Delay, [13 * MS + half, 14 * MS + half], 2, 2 * MS + half),
    ] {
        let mut releases = every_ms(policy);
        assert_eq!(releases.next_ns(), 10 * MS);
        let passed = releases.completed(13 * MS + half);
        assert_eq!(passed, MissedReleases { overrun: true, lost, moved_ns }, "{policy:?}");
        assert_eq!(releases.next_ns(), next[0], "{policy:?}");
        // In time: at the next but one release exactly, or long before.
        let passed = releases.completed(next[1]);
        assert_eq!(passed, MissedReleases::default(), "{policy:?}");
        assert_eq!(releases.next_ns(), next[1], "{policy:?}");
    }
}

/// Issue 33, 2: a loop follows the clock of a device. All later releases move, also those that pass meanwhile; a move of
/// a period or more is held below it, so that no release comes before the one that was.
#[test]
fn a_grid_can_be_moved() {
    let mut releases = every_ms(OverrunPolicy::Skip);
    releases.shift(Span::from_micros(250));
    assert_eq!(releases.completed(10 * MS + 1), MissedReleases::default());
    assert_eq!(releases.next_ns(), 11 * MS + MS / 4);
    releases.shift(Span::from_micros(-500));
    let passed = releases.completed(14 * MS);
    assert_eq!((passed.lost, releases.next_ns()), (3, 14 * MS + 3 * MS / 4));
    for (by, next) in [(Span::MAX, 16 * MS + 3 * MS / 4 - 1), (Span::MIN, 14 * MS + 3 * MS / 4 + 1)]
    {
        let mut far = releases;
        far.shift(by);
        far.completed(0);
        assert_eq!(far.next_ns(), next);
    }
}

/// A job that ends exactly at a release three periods on: two releases passed, that one did not. When
/// the grid moves to where it ends, two whole periods have no job.
#[test]
fn a_release_at_the_end_of_a_job_has_not_passed() {
    use OverrunPolicy::{CatchUp, Delay, Skip};
    for (policy, next, lost, moved_ns) in
        [(Skip, 13, 2, 0), (CatchUp, 11, 0, 0), (Delay, 13, 2, 2 * MS)]
    {
        let mut releases = every_ms(policy);
        let passed = releases.completed(13 * MS);
        assert_eq!(passed, MissedReleases { overrun: true, lost, moved_ns }, "{policy:?}");
        assert_eq!(releases.next_ns(), next * MS, "{policy:?}");
    }
}

/// Issue 4, item 8: "the epoch can be given so that several threads share one". One that has passed
/// loses nothing.
#[test]
fn an_epoch_that_has_passed_begins_at_the_next_point() {
    let every = Parameters::every(Span::MILLISECOND).with_phase(Span::from_micros(300));
    let at = |epoch_ns, now_ns| {
        starting(every.with_epoch(Instant::from_nanos(epoch_ns)), now_ns).next_ns()
    };
    assert_eq!(at(5_000_000, 0), 5_300_000);
    assert_eq!(at(5_000_000, 5_300_000), 5_300_000);
    assert_eq!(at(5_000_000, 5_300_001), 6_300_000);
    assert_eq!(at(0, 1_000_000_000_000), 1_000_000_300_000);
    // Before the clock's zero: the phase is kept.
    assert_eq!(at(-300_001, 0), 999_999);
    assert_eq!(
        at(-i64::MAX, 0) % 1_000_000,
        (-i128::from(i64::MAX) + 300_000).rem_euclid(1_000_000) as u64
    );
    // Without an epoch the grid begins now.
    assert_eq!(starting(every, 77).next_ns(), 300_077);
}

/// 3 Hz: a third of a second is no number of nanoseconds, and the grid is exact after a year.
#[test]
fn no_error_adds_up() {
    let thirds = Parameters::hertz(3).with_epoch(Instant::from_nanos(0));
    let mut releases = starting(thirds, 0);
    for number in 0..1_000_000u64 {
        let release = releases.next_ns();
        assert_eq!(release, (number * 1_000_000_000).div_ceil(3));
        assert!(!releases.completed(release + 5).overrun);
    }
    let year = 365 * 86_400 * 1_000_000_000;
    assert_eq!(starting(thirds, year).next_ns(), year);
}

#[test]
fn points_are_found_as_by_walking() {
    for hertz in [3, 7, 1_000, 999_983] {
        let mut fast = starting(Parameters::hertz(hertz), 1_234_567);
        let point = |index: u64| 1_234_567 + (index * 1_000_000_000).div_ceil(u64::from(hertz));
        let mut index = 0;
        for step in 0..2_000u64 {
            assert_eq!(fast.next_ns(), point(index));
            // From a fraction of a period to 30 of them; often exactly at a point.
            let length = step * step % 97 * point(1).saturating_sub(1_234_567) / 3;
            let completed =
                if step % 5 == 0 { point(index + step % 9) } else { point(index) + length };
            let passed = fast.completed(completed);
            index += 1;
            let mut lost = 0;
            while point(index) < completed {
                (index, lost) = (index + 1, lost + 1);
            }
            assert_eq!((passed.lost, passed.overrun), (lost, lost > 0), "{hertz} Hz, {step}");
        }
    }
}

#[test]
fn the_ends_of_the_range_are_held() {
    for policy in [OverrunPolicy::Skip, OverrunPolicy::CatchUp, OverrunPolicy::Delay] {
        let parameters = Parameters::every(Span::MAX).with_overrun_policy(policy);
        let mut releases = starting(parameters, u64::MAX - 5);
        assert_eq!(releases.next_ns(), u64::MAX - 5);
        releases.completed(u64::MAX);
        assert_eq!(releases.next_ns(), u64::MAX, "{policy:?}");
        releases.completed(u64::MAX);
        let mut fast = starting(Parameters::every(Span::NANOSECOND).with_overrun_policy(policy), 0);
        fast.completed(u64::MAX);
        let lost = if policy == OverrunPolicy::CatchUp { 1 } else { u64::MAX };
        assert_eq!(fast.next_ns(), lost, "{policy:?}");
    }
}
