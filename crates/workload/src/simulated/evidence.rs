//! Evidence on the simulated machine, where who took the CPU is written down.

use hourglass_model::{Counted, Evidence, Onset};
use hourglass_time::Span;

use super::{By, Interruption, Machine, intervals, ms};
use crate::models::simulated_executions::{cpu, periodic};

/// Issue 6, part 1: cleared and counted is a context switch, cleared alone is not; a section that
/// was kept asks nobody.
#[test]
fn each_gap_has_its_own_evidence() {
    let by = |at, by| Interruption { at: ms(at), length: 9_000, cpu: 0, by };
    let machine = Machine::new(vec![
        by(1, By::Below),
        by(2, By::Thread),
        by(3, By::Below),
        by(4, By::Resched),
        by(5, By::Thread),
    ]);
    let recorded = machine.run(&mut cpu(), Span::from_millis(6));
    let seen: Vec<Evidence> = intervals(&recorded).iter().map(|i| i.evidence).collect();
    let kept = Evidence { cleared: Some(false), counted: None };
    let cleared = |involuntary| Evidence {
        cleared: Some(true),
        counted: Some(Counted { involuntary, ..Counted::default() }),
    };
    let expected = [Evidence::NONE, kept, cleared(1), kept, cleared(0), cleared(1)];
    assert_eq!(seen, expected);
}

/// While the thread asks about one gap it is interrupted again: wherever that falls, the switch is in
/// the evidence of the gap in which it was.
#[test]
fn an_interruption_while_it_asks_is_of_the_same_gap() {
    for after in (0..400).step_by(5) {
        let below = Interruption { at: ms(1), length: 9_000, cpu: 0, by: By::Below };
        let at = ms(1) + 9_000 + after;
        let thread = Interruption { at, length: ms(1), cpu: 0, by: By::Thread };
        let machine = Machine { asking: 15, ..Machine::new(vec![below, thread]) };
        let recorded = machine.run(&mut cpu(), Span::from_millis(4));
        for pair in intervals(&recorded).windows(2) {
            let long = pair[1].start_ns - pair[0].end_ns >= 1_000_000;
            let counted = pair[1].evidence.counted.map(|counted| counted.involuntary);
            assert_eq!(counted, long.then_some(1), "{after}: {pair:?}");
        }
    }
}

/// A thread's own wait is not taken for a switch in the gap behind it.
#[test]
fn a_wait_is_counted_before_its_interval() {
    let taken = [1, 9].map(|at| Interruption { at: ms(at), length: 5_000, cpu: 0, by: By::Below });
    let machine = Machine::new(taken.to_vec());
    let recorded = machine.run(&mut periodic(3, 8), Span::from_millis(16));
    let seen: Vec<(Onset, Evidence)> =
        intervals(&recorded).iter().map(|i| (i.onset, i.evidence)).collect();
    let kept = (Onset::Gap, Evidence { cleared: Some(false), counted: None });
    let waited = Evidence {
        cleared: Some(true),
        counted: Some(Counted { voluntary: 1, ..Counted::default() }),
    };
    assert_eq!(seen, [(Onset::Start, Evidence::NONE), kept, (Onset::Wait, waited), kept]);
}
