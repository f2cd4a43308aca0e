//! What a trace should not contain: read as far as it is sound, and said; never a panic.

use hourglass_documents::Policy;
use hourglass_trace::TraceSummary;
use hourglass_trace::cause::{
    CauseTally, InterruptFacts, KernelCoverage, Quota, RtLimit, RunFacts, SwitchFacts, ThreadFacts,
    TickClock,
};
use hourglass_trace::{
    CounterDeltas, Evidence, Interval, IntervalStart, KernelEvent, KernelEventKind as Kind,
};
use proptest::prelude::*;

use crate::generator::{MS, interval};
use crate::support::{attributed, facts};

#[test]
fn nothing_gives_nothing() {
    let (found, patterns, remarks) = attributed(&RunFacts::default(), &[], &[]);
    assert!(found.is_empty() && patterns.ticks().count() == 0);
    assert_eq!(remarks, Default::default());
    assert!(CauseTally::default().reports().is_empty());
}

#[test]
fn overlapping_and_disordered_records_are_counted() {
    let plain =
        |thread, start, end| interval(thread, 0, start, end, IntervalStart::Gap, Evidence::NONE);
    let trace = [
        plain(0, 0, 2 * MS),
        plain(1, MS, 3 * MS),
        plain(0, 5 * MS, 6 * MS),
        plain(0, 4 * MS, 7 * MS),
    ];
    let (found, _, remarks) = attributed(&facts(&[Policy::Other(0); 2]), &trace, &[]);
    assert_eq!((remarks.overlapping, remarks.out_of_order), (2, 1));
    assert!(found.iter().all(|gap| gap.start_ns < gap.end_ns));
}

#[test]
fn an_event_that_cannot_be_read_ends_the_events_only() {
    use hourglass_trace::cause::{attribute, survey};
    let known = RunFacts {
        kernel: Some(KernelCoverage { cpus: [(0, 0)].into(), error_ns: 0 }),
        ..facts(&[Policy::Other(0)])
    };
    let plain = |start, end| interval(0, 0, start, end, IntervalStart::Gap, Evidence::NONE);
    let trace: Vec<Interval> = (0..4).map(|k| plain(k * 2 * MS, k * 2 * MS + MS)).collect();
    let read = || trace.iter().copied().map(Ok::<_, &str>);
    let patterns = survey(&known, read()).unwrap();
    let gaps: Vec<_> = attribute(&known, &patterns, read(), [Err("damaged")]).collect();
    assert_eq!(gaps.iter().filter(|gap| gap.is_err()).count(), 1);
    let read: Vec<_> = gaps.into_iter().flatten().collect();
    assert_eq!(read.len(), 3);
    assert!(read.iter().all(|gap| gap.composition.is_none()), "no silence without events");
}

fn times() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..20_000_000_i64, 1 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
}

fn any_interval() -> impl Strategy<Value = Interval> {
    let counted = proptest::option::of((0..3_u8, 0..3_u8, any::<u8>()));
    let cleared = proptest::option::of(any::<bool>());
    let number = || prop_oneof![9 => 0..3_u32, 1 => any::<u32>()];
    (number(), number(), times(), times(), 0..5_u8, cleared, counted).prop_map(
        |(thread, cpu, start_ns, end_ns, onset, cleared, counted)| {
            let counted = counted.map(|(involuntary, voluntary, faults)| CounterDeltas {
                involuntary,
                voluntary,
                faults,
            });
            let onset = IntervalStart::from_code(onset).unwrap_or(IntervalStart::Gap);
            let evidence = Evidence { cleared, counted };
            interval(thread, cpu, start_ns, end_ns, onset, evidence)
        },
    )
}

fn any_event() -> impl Strategy<Value = KernelEvent> {
    let number = || prop_oneof![9 => 0..5_u32, 1 => any::<u32>()];
    (times(), 0..15_u8, number(), number(), number(), any::<u64>()).prop_map(
        |(ns, kind, cpu, a, b, value)| KernelEvent {
            ns,
            ticks: 0,
            value,
            cpu,
            a,
            b,
            kind: Kind::from_code(kind).unwrap_or(Kind::Lost),
        },
    )
}

fn any_facts() -> impl Strategy<Value = RunFacts> {
    let time = || prop_oneof![3 => 0..10_000_000_u64, 1 => any::<u64>()];
    let thread = (0..6_u8, any::<bool>(), any::<bool>(), proptest::option::of((time(), time())))
        .prop_map(|(policy, never_waits, waits_unseen, reservation)| ThreadFacts {
            policy: [
                Some(Policy::Other(0)),
                Some(Policy::Fifo(5)),
                Some(Policy::RoundRobin(5)),
                Some(Policy::Deadline),
                Some(Policy::Idle),
                None,
            ][usize::from(policy)],
            never_waits,
            waits_unseen,
            highest: never_waits,
            reservation,
            in_user_space: never_waits,
            number: None,
        });
    (
        proptest::collection::btree_map(0..3_u32, thread, 0..3),
        proptest::option::of(any::<u32>()),
        proptest::option::of(any::<bool>()),
        proptest::option::of((time(), time())),
        proptest::option::of((time(), 0..3_u64)),
        proptest::option::of((0..3_u64, time())),
        time(),
    )
        .prop_map(|(threads, tick_hz, virtual_machine, limit, quota, kernel, reported_ns)| {
            RunFacts {
                threads,
                tick_hz,
                tick_clock: limit.map(|(period_ns, at)| TickClock {
                    period_ns,
                    at_ns: at as i64,
                    skew_ns: period_ns ^ at,
                }),
                interrupts: quota
                    .map(|(at, most)| {
                        let quiet = vec![(at as i64, i64::MAX), (i64::MIN, at as i64)];
                        (0, InterruptFacts { most, others: most / 2, timer: most, quiet })
                    })
                    .into_iter()
                    .collect(),
                virtual_machine,
                rt_limit: limit.map(|(runtime_ns, period_ns)| RtLimit {
                    runtime_ns,
                    period_ns,
                    logged: true,
                    others_ns: runtime_ns / 7,
                    others_ended: period_ns % 2 == 0,
                }),
                real_time: kernel.map(|(lost, _)| (0..3).filter(|of| *of != lost as u32).collect()),
                switches: kernel
                    .map(|(lost, error_ns)| SwitchFacts { complete: lost == 0, error_ns }),
                quota: quota.map(|(period_ns, throttled)| Quota {
                    period_ns,
                    throttled,
                    throttled_ns: None,
                }),
                kernel: kernel.map(|(lost, error_ns)| KernelCoverage {
                    cpus: [(0, lost), (1, 0), (2, lost)].into(),
                    error_ns,
                }),
                reported_ns,
            }
        })
}

proptest! {
    /// Whatever is fed, in whatever order: no panic, a confidence from 0 to 1, and every gap is
    /// counted once. The seed of a failure is printed by proptest.
    #[test]
    fn no_input_panics(
        facts in any_facts(),
        intervals in proptest::collection::vec(any_interval(), 0..120),
        events in proptest::collection::vec(any_event(), 0..200),
        sorted in any::<bool>(),
    ) {
        let (mut intervals, mut events) = (intervals, events);
        if sorted {
            intervals.sort_by_key(|interval| interval.start_ns);
            events.sort_by_key(|event| event.ns);
        }
        let (found, _, remarks) = attributed(&facts, &intervals, &events);
        prop_assert_eq!(found.len() as u64, remarks.gaps);
        let mut tally = CauseTally::default();
        for gap in &found {
            prop_assert!((0.0..=1.0).contains(&gap.confidence()), "{:?}", gap);
            prop_assert!(gap.length_ns() > facts.reported_ns);
            tally.push(gap);
        }
        let reports = tally.reports();
        prop_assert_eq!(reports.iter().map(|r| r.count).sum::<u64>(), remarks.gaps);
        prop_assert!(reports.is_sorted_by(|a, b| a.total_ns >= b.total_ns));
    }

    /// The causes have the time of all gaps, but for those too short for one.
    #[test]
    fn causes_add_up_to_the_gaps(
        facts in any_facts(),
        intervals in proptest::collection::vec(any_interval(), 0..120),
        events in proptest::collection::vec(any_event(), 0..200),
    ) {
        let held = |i: Interval| Interval {
            start_ns: i.start_ns.clamp(0, 20 * MS),
            end_ns: i.end_ns.clamp(0, 20 * MS),
            ..i
        };
        let mut intervals: Vec<Interval> = intervals.into_iter().map(held).collect();
        intervals.sort_by_key(|interval| interval.start_ns);
        let (found, _, remarks) = attributed(&facts, &intervals, &events);
        let mut summary = TraceSummary::default();
        summary.extend(intervals);
        let gaps = summary.threads().iter().map(|t| t.gaps.total_ns).sum::<u64>();
        let mut tally = CauseTally::default();
        found.iter().for_each(|gap| tally.push(gap));
        let causes = tally.reports().iter().map(|cause| cause.total_ns).sum::<u64>();
        prop_assert_eq!(causes + remarks.short_ns, gaps);
    }
}
