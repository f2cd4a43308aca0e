//! Section 4's rules: a trace without evidence columns, of any machine.

use hourglass_dice::Dice;
use hourglass_documents::{Cause, Policy};
use hourglass_trace::cause::{CauseBasis, Indication, RunFacts, Successor};
use hourglass_trace::{Interval, IntervalStart};

use crate::generator::{MS, SECOND, US, interval, periodic, random, trace, woven};
use crate::support::{attributed, facts, of};

fn plain(thread: u32, cpu: u32, start: i64, end: i64, onset: IntervalStart) -> Interval {
    interval(thread, cpu, start, end, onset, Default::default())
}

/// The first two rules: thread 0 runs, a gap, thread 1 runs; both never yield or block.
#[test]
fn interleaving_proves_an_involuntary_switch() {
    let trace = [
        plain(0, 0, 0, 3 * MS, IntervalStart::Start),
        plain(1, 0, 3 * MS + 2_198, 6 * MS, IntervalStart::Start),
        plain(0, 0, 6 * MS + 2_183, 9 * MS, IntervalStart::Gap),
        plain(1, 0, 9 * MS + 2_200, 12 * MS, IntervalStart::Gap),
    ];
    let known = facts(&[Policy::Other(0), Policy::Other(0)]);
    let (found, _, _) = attributed(&known, &trace, &[]);
    assert_eq!(found.len(), 2);
    for (gap, to) in found.iter().zip([1, 0]) {
        assert_eq!((gap.cause, gap.basis), (Cause::ContextSwitchInvoluntary, CauseBasis::Seen));
        assert_eq!(gap.to_thread, Some(Successor::OfRun(to)));
        assert!(gap.evidence.contains(Indication::OtherThreadSeen));
    }
    // Of threads about which nothing is known, only the switch is certain.
    let (found, _, _) = attributed(&RunFacts::default(), &trace, &[]);
    assert!(
        found.iter().all(|gap| (gap.cause, gap.basis) == (Cause::ContextSwitch, CauseBasis::Seen))
    );
}

#[test]
fn a_yield_is_voluntary_and_another_cpu_is_a_migration() {
    let trace = [
        plain(0, 0, 0, MS, IntervalStart::Start),
        plain(1, 0, MS + US, 2 * MS, IntervalStart::Start),
        plain(0, 0, 2 * MS + US, 3 * MS, IntervalStart::Yield),
        plain(0, 1, 3 * MS + 30 * US, 4 * MS, IntervalStart::Migration),
        plain(0, 1, 5 * MS, 6 * MS, IntervalStart::Wait),
    ];
    let (found, _, _) = attributed(&facts(&[Policy::Other(0); 2]), &trace, &[]);
    assert_eq!(found.len(), 2, "a wait is no gap");
    assert_eq!(found[0].cause, Cause::ContextSwitchVoluntary);
    assert_eq!((found[1].cause, found[1].cpu_before, found[1].cpu_after), (Cause::Migration, 0, 1));
    assert!(found[1].confidence() < 1.0);
}

/// The third rule: gaps of the highest-priority thread that never blocks are interrupts.
#[test]
fn the_highest_thread_is_only_interrupted() {
    let mut dice = Dice::new(71);
    let until = 4 * SECOND;
    let mut all =
        periodic(&mut dice, Cause::TimerTick, [US, 4 * MS, 3 * US], [3 * US, 6 * US], until);
    all.extend(random(&mut dice, Cause::Irq, 7 * MS, [4 * US, 40 * US], until));
    let planted = woven(all);
    let trace = trace(&mut dice, 0, 0, &planted, until, false);
    let mut facts = facts(&[Policy::Fifo(80), Policy::Other(0)]);
    facts.virtual_machine = Some(false);
    facts.threads.get_mut(&0).unwrap().highest = true;
    let (found, _, remarks) = attributed(&facts, &trace, &[]);
    assert_eq!(remarks.with_evidence, 0);
    assert!(found.iter().all(|gap| matches!(gap.cause, Cause::Irq | Cause::TimerTick)));
    let tick = of(&found, &planted, Cause::TimerTick);
    assert!(tick.precision >= 0.97 && tick.recall >= 0.99, "{tick:?}");
    // Without the rule's premise nothing is known of the others.
    facts.threads.get_mut(&0).unwrap().never_waits = false;
    let (found, _, _) = attributed(&facts, &trace, &[]);
    assert!(found.iter().any(|gap| gap.cause == Cause::Unknown));
    assert!(found.iter().all(|gap| gap.cause != Cause::Irq));
}

#[test]
fn short_gaps_are_counted_apart() {
    let mut from = 0;
    let mut trace = Vec::new();
    for length in [500, 1_000, 1_001, 200] {
        trace.push(plain(0, 0, from, from + MS, IntervalStart::Gap));
        from += MS + length;
    }
    trace.push(plain(0, 0, from, from + MS, IntervalStart::Gap));
    let (found, _, remarks) = attributed(&facts(&[Policy::Other(0)]), &trace, &[]);
    assert_eq!((found.len(), remarks.short, remarks.short_ns), (1, 3, 1_700));
}

/// Measured: FIFO 40 beside FIFO 60. What is before a thread's first interval is no switch that it has
/// counted, and no silence of the kernel: another thread of the run that had the CPU is seen, else nothing is known. The
/// edge of a thread that has the CPU only after the end is beside the last interval of another, not within it.
#[test]
fn the_ends_of_a_run_are_gaps() {
    use hourglass_trace::CpuTimeline;
    use hourglass_trace::cause::KernelCoverage;
    let edge = |thread, at, onset| plain(thread, 0, at, at, onset);
    let late = [edge(0, 0, IntervalStart::Start), edge(0, SECOND, IntervalStart::Gap)];
    let shared = [
        edge(0, 0, IntervalStart::Start),
        plain(1, 0, 20, SECOND + 30, IntervalStart::Start),
        edge(0, SECOND, IntervalStart::Gap),
    ];
    for traced in [false, true] {
        let mut known = facts(&[Policy::Fifo(40), Policy::Fifo(60)]);
        known.threads.get_mut(&0).unwrap().highest = true;
        known.kernel = traced.then(|| KernelCoverage { cpus: [(0, 0)].into(), error_ns: 0 });
        for (intervals, cause) in [(&late[..], Cause::Unknown), (&shared[..], Cause::ContextSwitch)]
        {
            let (found, _, remarks) = attributed(&known, intervals, &[]);
            let [gap] = found[..] else { panic!("{found:?}") };
            assert_eq!(
                (gap.cause, gap.length_ns(), remarks.overlapping),
                (cause, 1_000_000_000, 0)
            );
            let mut timeline = CpuTimeline::default();
            assert!(intervals.iter().all(|i| timeline.push(i).is_none_or(|gap| gap.ns >= 0)));
            assert_eq!(timeline.switches(), 0);
        }
    }
}
