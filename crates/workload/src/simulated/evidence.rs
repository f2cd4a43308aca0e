//! Evidence on the simulated machine, which records what took the CPU.

use hourglass_time::Span;
use hourglass_trace::{CounterDeltas, Evidence, IntervalStart};

use super::{Interruption, PreemptionSource, SimulatedMachine, gaps, intervals, ms};
use crate::models::simulated_executions::{cpu, periodic};

/// A machine before Linux 6.19, or after.
fn machine(keeps_in_system_calls: bool, interruptions: Vec<Interruption>) -> SimulatedMachine {
    SimulatedMachine { keeps_in_system_calls, ..SimulatedMachine::new(interruptions) }
}

/// Issue 6, part 1: cleared and counted is a context switch, cleared alone is not; for a section that was
/// kept no counter is asked.
#[test]
fn each_gap_has_its_own_evidence() {
    let by = |at, by| Interruption { at: ms(at), length: 9_000, cpu: 0, by };
    let interruptions = vec![
        by(1, PreemptionSource::Below),
        by(2, PreemptionSource::Thread),
        by(3, PreemptionSource::Below),
        by(4, PreemptionSource::Resched),
        by(5, PreemptionSource::Thread),
    ];
    let kept = Evidence { cleared: Some(false), counted: None };
    let cleared = |involuntary| Evidence {
        cleared: Some(true),
        counted: Some(CounterDeltas { involuntary, ..CounterDeltas::default() }),
    };
    for keeps_in_system_calls in [false, true] {
        let machine = machine(keeps_in_system_calls, interruptions.clone());
        let recorded = machine.run(&mut cpu(), Span::from_millis(6));
        let seen: Vec<Evidence> = intervals(&recorded).iter().map(|i| i.evidence).collect();
        let expected = [Evidence::NONE, kept, cleared(1), kept, cleared(0), cleared(1)];
        assert_eq!(seen, expected);
    }
}

/// While the thread asks about one gap it is interrupted again: wherever that falls, the switch is in
/// the evidence of the gap in which it was.
#[test]
fn an_interruption_while_it_asks_is_of_the_same_gap() {
    for (after, keeps) in (0..400).step_by(5).flat_map(|after| [(after, false), (after, true)]) {
        let below = Interruption { at: ms(1), length: 9_000, cpu: 0, by: PreemptionSource::Below };
        let at = ms(1) + 9_000 + after;
        let thread = Interruption { at, length: ms(1), cpu: 0, by: PreemptionSource::Thread };
        let machine = SimulatedMachine { asking: 15, ..machine(keeps, vec![below, thread]) };
        let recorded = machine.run(&mut cpu(), Span::from_millis(4));
        for pair in intervals(&recorded).windows(2) {
            let long = pair[1].start_ns - pair[0].end_ns >= 1_000_000;
            let Evidence { cleared, counted } = pair[1].evidence;
            let counted = counted.map(|counted| counted.involuntary);
            assert_eq!(counted, long.then_some(1), "{after}, {keeps}: {pair:?}");
            assert!(!long || cleared != Some(false), "{after}, {keeps}: {pair:?}");
        }
    }
}

/// Where system calls are slow, a question takes longer than noting a gap. A switch in it that makes it no longer than usual is in
/// the answer; no gap behind it, of the question alone, says that there was none.
#[test]
fn a_slow_question_is_no_gap_without_a_switch() {
    for (after, length) in (0..12_000).step_by(100).flat_map(|after| [(after, 500), (after, 5_000)])
    {
        let first = [1, 2, 3].map(|at| Interruption {
            at: ms(at),
            length: 9_000,
            cpu: 0,
            by: PreemptionSource::Thread,
        });
        let at = ms(3) + 9_000 + after;
        let hidden = Interruption { at, length, cpu: 0, by: PreemptionSource::Thread };
        let interruptions = first.into_iter().chain([hidden]).collect();
        let machine = SimulatedMachine { asking: 3_000, ..machine(false, interruptions) };
        let recorded = machine.run(&mut cpu(), Span::from_millis(5));
        let found = intervals(&recorded);
        let counted =
            |evidence: Evidence| evidence.counted.map_or(0, |counted| counted.involuntary);
        assert_eq!(found.iter().map(|interval| counted(interval.evidence)).sum::<u8>(), 4);
        for pair in found.windows(2) {
            // It goes on behind the time that the switch takes.
            let there = pair[0].end_ns as u64 <= at && at <= pair[1].start_ns as u64;
            let kept = pair[1].evidence.cleared == Some(false);
            assert!(!there || !kept, "{after}, {length}: {pair:?}");
        }
    }
}

/// The kernel's counts behind a wait are asked for in parts. A switch between two of them is the wait's, not half the wait's and
/// half the gap's that follows; where it is too late for that, it is the gap's.
#[test]
fn a_switch_in_the_question_behind_a_wait_is_counted_where_it_is() {
    let machines =
        [(15, 500, false), (15, 9_000, true), (15, 9_000, false), (3_000, 90_000, false)];
    for (asking, length, keeps) in machines {
        for after in (25..4 * asking + 200).step_by(if asking > 100 { 100 } else { 5 }) {
            let interruptions = vec![Interruption {
                at: ms(8) + after,
                length,
                cpu: 0,
                by: PreemptionSource::Thread,
            }];
            let machine = SimulatedMachine { asking, ..machine(keeps, interruptions) };
            let recorded = machine.run(&mut periodic(3, 8), Span::from_millis(16));
            let seen: Vec<(IntervalStart, Evidence)> =
                intervals(&recorded).iter().map(|i| (i.onset, i.evidence)).collect();
            let by_counts = |evidence: Evidence| evidence.counted.unwrap_or_default();
            let sum: u8 = seen.iter().map(|(_, evidence)| by_counts(*evidence).involuntary).sum();
            let kept = gaps(&recorded).iter().any(|gap| *gap as u64 >= length);
            assert!(kept || length == 500, "{asking}, {keeps}, {after}: {seen:?}");
            // What is too short for a gap is forgotten, if it is behind the question.
            assert!(
                sum == 1 || (sum == 0 && length == 500),
                "{asking}, {length}, {keeps}, {after}: {seen:?}"
            );
            for (onset, evidence) in &seen {
                let none = evidence.counted.is_some_and(|of| of.involuntary + of.voluntary == 0);
                let cleared = evidence.cleared == Some(true);
                assert!(
                    !(cleared && none),
                    "{asking}, {length}, {keeps}, {after}: {onset:?} {seen:?}"
                );
            }
        }
    }
}

/// The same right behind something too short for a gap: the question about that is no less a question.
#[test]
fn a_switch_in_a_question_about_nothing_is_not_forgotten() {
    let at = ms(1) + 9_000;
    let places =
        (0..200).step_by(10).flat_map(|short| (0..300).step_by(15).map(move |long| (short, long)));
    for ((short, long), keeps) in places.flat_map(|place| [(place, false), (place, true)]) {
        let interruptions = vec![
            Interruption { at: ms(1), length: 9_000, cpu: 0, by: PreemptionSource::Below },
            Interruption { at: at + short, length: 20, cpu: 0, by: PreemptionSource::Resched },
            Interruption {
                at: at + short + 20 + long,
                length: ms(1),
                cpu: 0,
                by: PreemptionSource::Thread,
            },
        ];
        let machine = SimulatedMachine { asking: 15, ..machine(keeps, interruptions) };
        let recorded = machine.run(&mut cpu(), Span::from_millis(3));
        for pair in intervals(&recorded).windows(2) {
            if pair[1].start_ns - pair[0].end_ns >= 1_000_000 {
                let Evidence { cleared, counted } = pair[1].evidence;
                let counted = counted.map(|counted| counted.involuntary);
                assert_eq!(counted, Some(1), "{short}, {long}, {keeps}: {pair:?}");
                assert_ne!(cleared, Some(false), "{short}, {long}, {keeps}: {pair:?}");
            }
        }
    }
}

/// A thread's own wait is not taken for a switch in the gap behind it.
#[test]
fn a_wait_is_counted_before_its_interval() {
    let taken = [1, 9].map(|at| Interruption {
        at: ms(at),
        length: 5_000,
        cpu: 0,
        by: PreemptionSource::Below,
    });
    let evidence = |cleared, voluntary| Evidence {
        cleared,
        counted: Some(CounterDeltas { voluntary, ..CounterDeltas::default() }),
    };
    let kept = Evidence { cleared: Some(false), counted: None };
    // It may have made a system call before its first job.
    let cannot_tell = evidence(None, 0);
    for (keeps, first, cleared) in [(false, kept, Some(true)), (true, cannot_tell, None)] {
        let machine = machine(keeps, taken.to_vec());
        let recorded = machine.run(&mut periodic(3, 8), Span::from_millis(16));
        let seen: Vec<(IntervalStart, Evidence)> =
            intervals(&recorded).iter().map(|i| (i.onset, i.evidence)).collect();
        let [first, second] = [first, kept].map(|gap| (IntervalStart::Gap, gap));
        let waited = (IntervalStart::Wait, evidence(cleared, 1));
        assert_eq!(seen, [(IntervalStart::Start, Evidence::NONE), first, waited, second]);
    }
}
