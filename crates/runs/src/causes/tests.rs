use super::*;
use hourglass_documents::host::{CpuQuota, HostChange};

/// As manifests write reservations and policies in force.
#[test]
fn reservations_are_read_back() {
    assert_eq!(budget_and_period("3.1ms/8ms"), Some((3_100_000, 8_000_000)));
    assert_eq!(budget_and_period("DEADLINE:3ms/8ms+"), Some((3_000_000, 8_000_000)));
    for text in ["", "3ms", "/", "3/8", "-3ms/8ms", "3ms/x"] {
        assert_eq!(budget_and_period(text), None, "{text}");
    }
    assert_eq!(policy("DEADLINE:3.1ms/8ms"), Some(Policy::Deadline));
    assert_eq!(policy("FIFO:80"), Some(Policy::Fifo(80)));
    assert_eq!(policy("EDF"), None);
}

/// What is missing is said, each thing once.
#[test]
fn what_is_missing_is_said() {
    let ids = |remarks: AttributionCounts| -> Vec<String> {
        warnings(&remarks, &[]).into_iter().map(|warning| warning.id).collect()
    };
    let sound = AttributionCounts {
        intervals: 9,
        gaps: 5,
        with_evidence: 5,
        ..AttributionCounts::default()
    };
    assert!(ids(sound).is_empty());
    assert_eq!(ids(AttributionCounts { with_evidence: 0, ..sound }), ["no-evidence"]);
    assert!(ids(AttributionCounts { with_evidence: 0, with_events: 4, ..sound }).is_empty());
    let damaged = AttributionCounts { events_refused: true, in_holes: 2, out_of_order: 1, ..sound };
    assert_eq!(ids(damaged), ["kernel-clock", "kernel-holes", "records-overlap"]);
}

/// The tick lies on multiples of its length on `CLOCK_MONOTONIC`, the run begins anywhere.
#[test]
fn the_tick_is_put_on_the_runs_time_line() {
    let tick = HostTick { period_ns: 4_000_000, phase_ns: Some(0), skew_ns: 7 };
    let clock = tick_clock(tick, 10_500_000).unwrap();
    assert_eq!((clock.period_ns, clock.at_ns, clock.skew_ns), (4_000_000, -2_500_000, 7));
    assert_eq!(tick_clock(HostTick { phase_ns: None, ..tick }, 10_500_000), None);
    assert_eq!(tick_clock(HostTick { period_ns: 0, ..tick }, 10_500_000), None);
}

/// As many timer interrupts as a run has ticks are ticks.
#[test]
fn interrupts_are_counted_without_ticks() {
    let quiet = vec![(5, 9)];
    let counted = CpuInterrupts { cpu: 1, timer: 987, others: 62, softirqs: 20, quiet };
    let second = 3_000_000_000;
    assert_eq!(interrupts(&counted, Some(4_000_000), second).most, 62 + 237);
    assert_eq!(interrupts(&counted, None, second).most, 62 + 987);
    assert!(interrupts(&counted, None, second).is_quiet(5, 9));
    assert!(!interrupts(&counted, None, second).is_quiet(4, 9));
    assert!(!interrupts(&counted, None, second).is_quiet(6, 10));
}

/// Counts of one group say nothing of a run that was in two: a quota may have stopped it in each period.
#[test]
fn a_quota_that_came_meanwhile_may_have_stopped_the_run() {
    let of = |us: u64| CpuQuota { file: "cpu.max".into(), quota_us: us, period_us: 50_000 };
    let host = |start: &[CpuQuota], end: Option<&[CpuQuota]>, throttled| {
        let mut host = Host::default();
        host.cgroup.cpu_quotas = start.to_vec();
        host.change = Some(HostChange {
            quota_throttled: throttled,
            quotas: end.map(<[_]>::to_vec),
            ..HostChange::default()
        });
        host
    };
    let rows = [
        (host(&[], None, None), None, false),
        (host(&[of(5_000)], None, Some(7)), Some(7), false),
        (host(&[of(5_000)], Some(&[of(9_000)]), None), Some(61), true),
        (host(&[], Some(&[of(9_000)]), None), Some(61), true),
        (host(&[of(9_000)], Some(&[]), None), Some(61), true),
    ];
    for (host, throttled, warned) in rows {
        assert_eq!(quota(&host, 3_000_000_000).map(|quota| quota.throttled), throttled);
        assert_eq!(other_quotas(&host).is_some(), warned);
    }
}
