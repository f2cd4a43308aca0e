//! Wall-clock time set, steered and followed (hrtimers paper, 3.2 and 3.3).

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// The true wall-clock time: 30 ppm faster than monotonic time.
fn truth(monotonic_ns: u64) -> i64 {
    1_700_000_000_000_000_000 + (monotonic_ns + monotonic_ns * 3 / 100_000).cast_signed()
}

fn said(monotonic_ns: u64, error_ns: u64) -> WallReference {
    WallReference { monotonic_ns, wall_ns: truth(monotonic_ns), error_ns }
}

#[test]
fn steering_slews_and_learns_the_rate() {
    let mut wall = Wall::FOLLOWING;
    wall.steer(said(SECOND_NS, 1_000), Offset::UNKNOWN);
    let mut last = i64::MIN;
    for second in 1..400u64 {
        let now_ns = second * SECOND_NS;
        if second.is_multiple_of(16) {
            wall.steer(said(now_ns, 1_000), Offset::UNKNOWN);
        }
        let time = wall.line.at(now_ns, 0);
        assert!(time.ns > last, "slewing does not step back");
        last = time.ns;
        let error = time.ns.abs_diff(truth(now_ns));
        assert!(error <= time.error_ns.unwrap(), "{second} s: {error} ns, {time:?}");
        assert_eq!(time.status, WallStatus::Steered);
        assert!(second < 100 || error < 2_000, "{second} s: {error} ns");
    }
}

/// A reference that runs off by more than is followed: what is left behind is in the bound.
#[test]
fn a_reference_faster_than_is_followed_is_not_claimed_to_be_held() {
    let fast = |monotonic_ns: u64| (monotonic_ns + monotonic_ns / 1_000).cast_signed();
    let mut wall = Wall::FOLLOWING;
    for second in 0..500u64 {
        let now_ns = second * SECOND_NS;
        if second <= 100 && second.is_multiple_of(10) {
            let wall_ns = fast(now_ns);
            wall.steer(
                WallReference { monotonic_ns: now_ns, wall_ns, error_ns: 1_000 },
                Offset::UNKNOWN,
            );
        }
        let time = wall.line.at(now_ns, 0);
        let error = time.ns.abs_diff(fast(now_ns));
        // Between the first two references nothing is known of the rate.
        assert!(second < 10 || error <= time.error_ns.unwrap(), "{second} s: {error}, {time:?}");
    }
}

#[test]
fn large_errors_are_stepped() {
    let mut wall = Wall::FOLLOWING;
    wall.set(WallReference { monotonic_ns: 5, wall_ns: 77, error_ns: 3 });
    let by_hand = wall.line.at(1_005, 0);
    assert_eq!((by_hand.ns, by_hand.status), (1_077, WallStatus::ByHand));
    wall.steer(said(SECOND_NS, 10), Offset::UNKNOWN);
    assert_eq!(wall.line.at(SECOND_NS, 0).ns, truth(SECOND_NS));
}

/// The first reference goes on from the kernel's wall time.
#[test]
fn steering_begins_where_the_kernel_is() {
    let mut wall = Wall::FOLLOWING;
    let ahead = Offset { ns: truth(SECOND_NS) - SECOND_NS.cast_signed() + 5_000_000, bound_ns: 20 };
    wall.steer(said(SECOND_NS, 1_000), ahead);
    let time = wall.line.at(SECOND_NS, 0);
    assert_eq!((time.ns, time.error_ns), (truth(SECOND_NS) + 5_000_000, Some(5_001_002)));
}

#[test]
fn nothing_overflows() {
    let mut wall = Wall::FOLLOWING;
    for monotonic_ns in [0, u64::MAX] {
        for wall_ns in [i64::MIN, i64::MAX] {
            let said = WallReference { monotonic_ns, wall_ns, error_ns: u64::MAX };
            wall.steer(said, Offset::UNKNOWN);
            let _ = wall.line.at(u64::MAX - monotonic_ns, u64::MAX);
            wall.set(said);
            let _ = wall.line.at(u64::MAX - monotonic_ns, u64::MAX);
            assert_eq!(WallLine::from_words(wall.line.to_words()), wall.line);
        }
    }
}
