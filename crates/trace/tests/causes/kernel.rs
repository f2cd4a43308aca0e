//! Gaps with the kernel's own events.

use std::convert::Infallible;

use hourglass_dice::Dice;
use hourglass_documents::{Cause, Policy};
use hourglass_trace::cause::{
    self, CauseBasis, CauseTally, Indication, KernelCoverage, Quota, RtLimit, RunFacts, Successor,
};
use hourglass_trace::{IntervalStart, KernelEventKind as Kind};

use crate::generator::{
    MS, OTHER, OURS, Planted, SECOND, TICK_TIMER, US, event, events, interval, periodic, random,
    trace, woven,
};
use crate::support::{attributed, facts, of};

fn covered(policy: Policy, lost: u64) -> RunFacts {
    let kernel = Some(KernelCoverage { cpus: [(0, lost), (1, lost)].into(), error_ns: 0 });
    RunFacts { kernel, ..facts(&[policy]) }
}

fn everything(dice: &mut Dice, until: i64) -> Vec<Planted> {
    let mut all = periodic(dice, Cause::TimerTick, [MS, 4 * MS, 5 * US], [12 * US, 26 * US], until);
    for (cause, mean, length) in [
        (Cause::ContextSwitchInvoluntary, 20 * MS, [5 * US, 5 * MS]),
        (Cause::ContextSwitchVoluntary, 90 * MS, [5 * US, 5 * MS]),
        (Cause::Irq, 11 * MS, [3 * US, 30 * US]),
        (Cause::Softirq, 17 * MS, [6 * US, 60 * US]),
        (Cause::PageFault, 70 * MS, [3 * US, 30 * US]),
        (Cause::Stopped, 500 * MS, [MS, 50 * MS]),
        (Cause::BelowKernel, 5 * MS, [1_100, 900 * US]),
    ] {
        all.extend(random(dice, cause, mean, length, until));
    }
    woven(all)
}

#[test]
fn every_cause_is_read_from_the_events() {
    let mut dice = Dice::new(51);
    let planted = everything(&mut dice, 5 * SECOND);
    let trace = trace(&mut dice, 0, 1, &planted, 5 * SECOND, false);
    let (found, _, remarks) =
        attributed(&covered(Policy::Other(0), 0), &trace, &events(&planted, 0, 1));
    assert_eq!((remarks.with_events, remarks.events_inside), (remarks.gaps, 0));
    for cause in [
        Cause::TimerTick,
        Cause::ContextSwitchInvoluntary,
        Cause::ContextSwitchVoluntary,
        Cause::Irq,
        Cause::Softirq,
        Cause::PageFault,
        Cause::Stopped,
        Cause::BelowKernel,
    ] {
        let score = of(&found, &planted, cause);
        assert!(score.planted > 0, "{cause}");
        assert_eq!((score.precision, score.recall), (1.0, 1.0), "{cause}: {score:?}");
    }
    assert!(found.iter().all(|gap| gap.basis == CauseBasis::Seen));
    for gap in &found {
        let parts = gap.composition.unwrap();
        let sum = parts.switched_ns
            + parts.tick_ns
            + parts.irq_ns
            + parts.softirq_ns
            + parts.fault_ns
            + parts.signal_ns
            + parts.silent_ns;
        assert_eq!(sum, gap.length_ns(), "{gap:?}");
        let to = gap.cause.is_switch().then_some(Successor::Kernel(OTHER));
        assert!(gap.cause == Cause::Stopped || gap.to_thread == to, "{gap:?}");
    }
}

/// A host that takes the CPU for milliseconds delivers the tick that it delayed at the end.
#[test]
fn what_is_silent_for_longer_than_a_delivery_is_below() {
    let trace = [
        interval(0, 1, 0, 1_000_000, IntervalStart::Start, Default::default()),
        interval(0, 1, 4_000_000, 5_000_000, IntervalStart::Gap, Default::default()),
    ];
    let events = [
        event(3_980_000, 1, Kind::VectorEntry, 0, 0, 0),
        event(3_999_800, 1, Kind::VectorExit, 0, 0, 0),
    ];
    let (found, _, _) = attributed(&covered(Policy::Other(0), 0), &trace, &events);
    assert_eq!(found[0].cause, Cause::BelowKernel);
    assert_eq!(found[0].composition.unwrap().tick_ns, 19_800);
    assert!(found[0].evidence.contains(Indication::KernelWork));
}

/// The timer interrupt serves every timer of the CPU: only the tick's is a tick.
#[test]
fn another_timer_is_no_tick() {
    let mut dice = Dice::new(52);
    let ticks =
        periodic(&mut dice, Cause::TimerTick, [MS, 4 * MS, 5 * US], [12 * US, 26 * US], 200 * MS);
    let mut trace = trace(&mut dice, 0, 1, &ticks, 200 * MS, false);
    let mut events = events(&ticks, 0, 1);
    trace.push(interval(
        0,
        1,
        200 * MS + 20 * US,
        201 * MS,
        IntervalStart::Gap,
        Default::default(),
    ));
    for (at, kind, value) in [
        (5, Kind::VectorEntry, 0),
        (6, Kind::HrtimerEntry, TICK_TIMER + 64),
        (15, Kind::HrtimerExit, TICK_TIMER + 64),
        (19, Kind::VectorExit, 0),
    ] {
        events.push(event(200 * MS + at * US, 1, kind, 0, 0, value));
    }
    let (found, _, _) = attributed(&covered(Policy::Other(0), 0), &trace, &events);
    assert_eq!(found.last().unwrap().cause, Cause::Irq);
    assert!(found[..found.len() - 1].iter().all(|gap| gap.cause == Cause::TimerTick));
}

/// The migration thread takes the CPU and moves the thread; no thread waits.
#[test]
fn a_migration_is_distinguished_from_a_switch_that_ended_elsewhere() {
    let trace = [
        interval(0, 0, 0, MS, IntervalStart::Start, Default::default()),
        interval(0, 1, MS + 30 * US, 2 * MS, IntervalStart::Migration, Default::default()),
        interval(0, 0, 4 * MS, 5 * MS, IntervalStart::Migration, Default::default()),
    ];
    let at = |us: i64| MS + us * US;
    let events = [
        event(at(1), 0, Kind::Switch, OURS, 18, 0),
        event(at(3), 0, Kind::Migrate, OURS, 1, 0),
        event(at(20), 1, Kind::Switch, 0, OURS, 0),
        event(at(1_001), 1, Kind::Switch, OURS, OTHER, 0),
        event(at(2_900), 0, Kind::Migrate, OURS, 0, 1),
        event(at(2_990), 0, Kind::Switch, 0, OURS, 0),
    ];
    let (found, _, _) = attributed(&covered(Policy::Other(0), 0), &trace, &events);
    assert_eq!(found[0].cause, Cause::Migration);
    assert_eq!(found[1].cause, Cause::ContextSwitchInvoluntary);
    assert!(found.iter().all(|gap| gap.evidence.contains(Indication::CpuChanged)));
    assert_eq!(found[1].to_thread, Some(Successor::Kernel(OTHER)));
}

/// The first to run is seldom the one that took the time: an own thread of the kernel that ran for 3 us,
/// then a competitor for milliseconds, then idle. While the thread waits for another CPU, that CPU's occupants count.
#[test]
fn who_had_how_much_is_counted() {
    let trace = [
        interval(0, 0, 0, MS, IntervalStart::Start, Default::default()),
        interval(1, 1, 0, 9 * MS, IntervalStart::Start, Default::default()),
        interval(0, 0, 9 * MS, 10 * MS, IntervalStart::Gap, Default::default()),
        interval(0, 1, 13 * MS, 14 * MS, IntervalStart::Migration, Default::default()),
    ];
    let at = |us: i64| MS + us * US;
    let (worker, idle, last) = (18, 0, 900);
    let switches = [
        event(at(1), 0, Kind::Switch, OURS, worker, 0),
        event(at(4), 0, Kind::Switch, worker, OTHER, 0),
        event(at(2_004), 0, Kind::Switch, OTHER, idle, 1),
        event(at(2_504), 0, Kind::Switch, idle, OTHER, 0),
        event(at(7_500), 0, Kind::Switch, OTHER, last, 0),
        event(at(7_999), 0, Kind::Switch, last, OURS, 0),
        event(at(9_000), 0, Kind::Switch, OURS, OTHER, 0),
        event(at(9_100), 1, Kind::Switch, OURS + 1, last, 0),
        event(at(10_000), 1, Kind::Migrate, OURS, 1, 0),
        event(at(11_990), 1, Kind::Switch, last, OURS, 0),
    ];
    let (found, _, _) = attributed(&covered(Policy::Other(0), 0), &trace, &switches);
    let ran = |gap: usize| -> Vec<(Successor, i64)> {
        found[gap].occupants.iter().map(|share| (share.who, share.ns as i64 / US)).collect()
    };
    let kernel = Successor::Kernel;
    assert_eq!(ran(0), [(kernel(OTHER), 6_996), (kernel(idle), 500), (kernel(last), 499)]);
    assert_eq!(found[0].to_thread, Some(kernel(OTHER)));
    assert_eq!(ran(1), [(kernel(last), 1_990), (kernel(OTHER), 1_000)]);
    let mut tally = CauseTally::default();
    found.iter().for_each(|gap| tally.push(gap));
    let sums: Vec<u64> =
        tally.reports().iter().flat_map(|c| &c.ran).map(|ran| ran.total_ns / 1_000).collect();
    assert_eq!(sums, [7_996, 2_489, 500]);
}

/// Where events are missing, silence proves nothing: the thread's own evidence speaks.
#[test]
fn lost_events_are_no_proof() {
    let mut dice = Dice::new(53);
    let planted = everything(&mut dice, 2 * SECOND);
    let trace = trace(&mut dice, 0, 1, &planted, 2 * SECOND, true);
    let mut events = events(&planted, 0, 1);
    let whole = events.len();
    let (from, to) = (SECOND / 2, SECOND);
    events.retain(|event| !(from..to).contains(&event.ns));
    let lost = (whole - events.len()) as u64;
    let place = events.partition_point(|event| event.ns < to);
    events.insert(place, event(to, 1, Kind::Lost, 0, 0, lost));
    let (found, _, remarks) = attributed(&covered(Policy::Other(0), lost), &trace, &events);
    assert_eq!(remarks.events_lost, lost);
    let silent = found.iter().filter(|gap| gap.cause == Cause::BelowKernel);
    assert!(silent.clone().count() > 0 && silent.clone().all(|gap| gap.basis != CauseBasis::Seen));
    let switches = crate::support::score(
        &found,
        &planted,
        |p| p.cause.is_switch(),
        |gap| gap.cause.is_switch(),
    );
    assert!(switches.recall >= 0.99 && switches.precision >= 0.97, "{switches:?}");
}

/// Events on another time line must not be believed.
#[test]
fn events_of_a_drifted_clock_are_refused() {
    let mut dice = Dice::new(54);
    let planted = everything(&mut dice, 2 * SECOND);
    let trace = trace(&mut dice, 0, 1, &planted, 2 * SECOND, true);
    let mut events = events(&planted, 0, 1);
    events.iter_mut().for_each(|event| event.ns += event.ns / 1_000 + 700 * US);
    let (found, _, remarks) = attributed(&covered(Policy::Other(0), 0), &trace, &events);
    assert!(remarks.events_refused && remarks.events_inside > 100, "{remarks:?}");
    let late = found.iter().filter(|gap| gap.start_ns > SECOND);
    assert!(late.clone().count() > 100 && late.clone().all(|gap| gap.composition.is_none()));
}

/// D4: four threads in each gap; the gap names three, the sum of all gaps has the fourth too.
#[test]
fn the_sum_has_all_who_ran() {
    let trace: Vec<_> = (0..3)
        .map(|k| {
            interval(0, 1, k * 100 * MS, k * 100 * MS + MS, IntervalStart::Gap, Default::default())
        })
        .collect();
    let mut events = Vec::new();
    for begun in (0..2).map(|k| k * 100 * MS + MS) {
        // 700 + n has the CPU for n times 10 ms less.
        let mut leaves = OURS;
        for (n, at) in [(0, 0), (1, 40), (2, 70), (3, 90)] {
            events.push(event(begun + at * MS, 1, Kind::Switch, leaves, 700 + n, 0));
            leaves = 700 + n;
        }
        events.push(event(begun + 99 * MS, 1, Kind::Switch, leaves, OURS, 0));
    }
    let mut facts = covered(Policy::Other(0), 0);
    facts.threads.values_mut().for_each(|thread| thread.number = Some(OURS));
    let patterns = cause::survey(&facts, trace.iter().copied().map(Ok::<_, Infallible>));
    let Ok(patterns) = patterns;
    let (intervals, events) =
        (trace.into_iter().map(Ok::<_, Infallible>), events.into_iter().map(Ok));
    let mut gaps = cause::attribute(&facts, &patterns, intervals, events);
    let named = gaps.by_ref().map(|gap| gap.map_or(0, |gap| gap.occupants.iter().count())).max();
    assert_eq!(named, Some(3));
    let all = &gaps.ran()[&Cause::ContextSwitchInvoluntary];
    let sums: Vec<i64> = all.values().map(|ns| *ns as i64 / MS).collect();
    assert_eq!(sums, [80, 60, 40, 18]);
}

/// `watch --trace -o`: a gap of 1.05 s in which the thread itself ran, and a preempted thread beside an idle CPU, both
/// "involuntary" at 100 %. Who leaves the CPU at 300 ms of a gap from 100 to 900 ms; the quota's stops; what it is.
#[test]
fn events_that_contradict_a_preemption_lower_its_confidence() {
    for (leaves, throttled, cause, sign) in [
        (OTHER, 0, Some(Cause::ContextSwitchInvoluntary), None),
        (OURS, 0, None, Some(Indication::KernelLost)), // that it had come back is missing
        (0, 0, Some(Cause::Unknown), Some(Indication::IdleMeanwhile)),
        (0, 3, Some(Cause::CgroupQuota), Some(Indication::IdleMeanwhile)),
    ] {
        let trace = [
            interval(0, 1, 0, 100 * MS, IntervalStart::Start, Default::default()),
            interval(0, 1, 900 * MS, 950 * MS, IntervalStart::Gap, Default::default()),
        ];
        let events = [
            event(100 * MS, 1, Kind::Switch, OURS, if leaves == OURS { OTHER } else { leaves }, 0),
            event(700 * MS, 1, Kind::Switch, leaves, OTHER, 0),
            event(900 * MS, 1, Kind::Switch, OTHER, OURS, 0),
        ];
        let mut facts = covered(Policy::Other(0), 0);
        facts.threads.values_mut().for_each(|thread| thread.number = Some(OURS));
        facts.quota = Some(Quota { period_ns: 100_000_000, throttled, throttled_ns: None });
        let (found, _, _) = attributed(&facts, &trace, &events);
        let gap = &found[0];
        assert!(cause.is_none_or(|cause| gap.cause == cause), "{leaves} {gap:?}");
        assert!(sign.is_none_or(|sign| gap.evidence.contains(sign)), "{leaves} {gap:?}");
        assert_eq!(gap.confidence() == 1.0, sign.is_none(), "{leaves} {gap:?}");
    }
}

/// Seen: of 60 ms in which a FIFO thread waited, time-sharing threads had 48. Who is a real-time thread is read from `/proc`,
/// and where it is not known the gap is a switch.
#[test]
fn time_sharing_threads_before_a_real_time_one_are_throttling() {
    let (own, rival, rustc) = (900, 901, 902);
    let switch = |ns, a, b| event(ns, 0, Kind::Switch, a, b, 0);
    let events = [
        switch(10 * MS, own, rival),
        switch(16 * MS, rival, rustc),
        switch(64 * MS, rustc, rival),
        switch(70 * MS, rival, own),
        switch(80 * MS, own, rival),
        switch(88 * MS, rival, own),
    ];
    let at = |start, end, onset| interval(0, 0, start, end, onset, Default::default());
    let trace = [
        at(0, 10 * MS, IntervalStart::Start),
        at(70 * MS, 80 * MS, IntervalStart::Gap),
        at(88 * MS, 90 * MS, IntervalStart::Gap),
    ];
    let limit = RtLimit {
        runtime_ns: 950_000_000,
        period_ns: 1_000_000_000,
        others_ns: 20_000_000,
        ..RtLimit::default()
    };
    for (policy, rt_limit, real_time, throttled) in [
        (Policy::Fifo(40), Some(limit), Some([rival].into()), true),
        (Policy::Fifo(40), Some(limit), Some([rival, rustc].into()), false),
        (Policy::Fifo(40), Some(limit), None, false),
        (Policy::Fifo(40), None, Some([rival].into()), false),
        (Policy::Other(0), Some(limit), Some([rival].into()), false),
    ] {
        let mut known = RunFacts { rt_limit, real_time, ..covered(policy, 0) };
        known.threads.get_mut(&0).unwrap().number = Some(own);
        let (found, _, _) = attributed(&known, &trace, &events);
        let causes: Vec<Cause> = found.iter().map(|gap| gap.cause).collect();
        let switch = Cause::ContextSwitchInvoluntary;
        let first = if throttled { Cause::RtThrottling } else { switch };
        assert_eq!(causes, [first, switch], "{policy:?} {known:?}");
        assert_eq!(found[0].evidence.contains(Indication::TimeSharing), throttled);
    }
}
