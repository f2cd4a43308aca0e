use super::*;

fn measured(stopper: StopperKind, p99_ns: u64) -> Result<StopLatency, Unavailable> {
    let mut measured =
        Samples { stopped: vec![1; 100], ..Samples::default() }.judge(stopper, true)?;
    measured.p99_ns = p99_ns;
    Ok(measured)
}

#[test]
fn preference_decides_unless_a_later_one_is_faster_by_a_fifth() {
    let missing = || Err(Unavailable::new(StopperKind::CoreCookie, "none", "none"));
    let freeze = |p99_ns| measured(StopperKind::Cgroup2Freeze, p99_ns);
    let signal = |p99_ns| measured(StopperKind::Sigstop, p99_ns);
    assert_eq!(best_of(&[freeze(20), signal(16)]), Some(0));
    assert_eq!(best_of(&[freeze(20), signal(15)]), Some(1));
    assert_eq!(best_of(&[missing(), signal(900)]), Some(1));
    assert_eq!(best_of(&[missing(), missing()]), None);
}

/// The first of them is fast, but for one in a thousand.
#[test]
fn a_long_tail_is_found_and_the_least_of_all_is_taken() {
    let kinds = [StopperKind::Cgroup2Freeze, StopperKind::Sigstop, StopperKind::Cgroup1Freezer];
    let race = || {
        let tried = kinds.iter().map(|kind| measured(*kind, 20)).collect();
        Race { kinds: &kinds, tried, fully: vec![false; 3] }
    };
    let with_tails = |tails: [u64; 3]| {
        move |kind| {
            let mut found = measured(kind, 20)?;
            found.p999_ns = tails[kinds.iter().position(|one| *one == kind).unwrap_or(0)];
            Ok(found)
        }
    };
    let place = |tails| race().best(with_tails(tails)).map(|(place, _)| place);
    assert_eq!(place([80, 30, 30]), Some(0));
    assert_eq!(place([81, 30, 40]), Some(1));
    assert_eq!(place([30_000, 90_000, 200]), Some(2));
    // A kind that does not work at all is left out.
    let fails = |kind| match kind {
        StopperKind::Cgroup2Freeze => Err(Unavailable::new(kind, "none", "none")),
        kind => measured(kind, 20),
    };
    let mut race = race();
    assert_eq!(race.best(fails).map(|(place, _)| place), Some(1));
    assert!(race.tried[0].is_err());
    // Each is measured in full once.
    assert_eq!(race.best(|_| unreachable!()).map(|(place, _)| place), Some(1));
}

#[test]
fn percentiles_are_samples_and_never_too_small() {
    let sorted: Vec<u64> = (1..=1_000).collect();
    assert_eq!([500, 990, 999, 1_000].map(|part| at(&sorted, part)), [500, 990, 999, 1_000]);
    assert_eq!(at(&[7, 8], 999), 8);
    assert_eq!(at(&[], 999), 0);
}

#[test]
fn a_victim_that_runs_on_was_not_stopped() {
    let samples = Samples { stopped: vec![1; 100], ran_on: 2, ..Samples::default() };
    let refused = samples.judge(StopperKind::Sigstop, true).unwrap_err();
    assert!(refused.cause.contains("ran on in 2"), "{refused}");
    let few = Samples { stopped: vec![1; 3], ..Samples::default() };
    assert!(few.judge(StopperKind::Sigstop, true).unwrap_err().cause.contains("only 3"));
}
