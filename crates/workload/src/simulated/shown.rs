//! What a thread shows of itself while it is measured, on the simulated machine.

use std::sync::Arc;

use hourglass_time::Span;

use super::{EPOCH, Interruption, PreemptionSource, SimulatedMachine, ms};
use crate::live::{LiveCounters, LiveSnapshot};
use crate::memory::Memory;
use crate::models::simulated_executions::{cpu, grid};

fn shown(machine: &mut SimulatedMachine) -> Arc<LiveCounters> {
    let live: Arc<LiveCounters> = Arc::default();
    machine.live = Some(Arc::clone(&live));
    live
}

/// Three gaps, of which the second is the worst: its end, its CPU, and that another thread had it.
#[test]
fn the_worst_gap_is_shown_with_its_evidence() {
    let taken = |at, length, by| Interruption { at: ms(at), length, cpu: 3, by };
    let mut machine = SimulatedMachine::new(vec![
        taken(1, 5_000, PreemptionSource::Below),
        taken(2, 700_000, PreemptionSource::Thread),
        taken(4, 30_000, PreemptionSource::Resched),
    ]);
    let live = shown(&mut machine);
    machine.run(&mut cpu(), Span::from_millis(6));
    let LiveSnapshot { count, max_ns, worst, counts, .. } = live.read();
    let worst = worst.unwrap();
    assert_eq!((count, worst.ns, counts.iter().sum::<u64>()), (3, max_ns, 3));
    assert!((700_000..700_200).contains(&worst.ns), "{worst:?}");
    // On CPU 3 since the first.
    assert_eq!(worst.cpu, 3);
    let over = EPOCH + ms(2) + worst.ns;
    assert!(worst.end_ns.abs_diff(over) < 6_000, "{worst:?}, not {over}");
    assert_eq!(worst.evidence.cleared, Some(true));
    assert_eq!(worst.evidence.counted.map(|counted| counted.involuntary), Some(1));
    // 5, 30 and 700 us.
    assert_eq!([counts[13], counts[15], counts[20]], [1, 1, 1]);
}

/// A thread that measures wake-ups shows these, and not its gaps.
#[test]
fn wake_ups_are_shown() {
    let mut machine = SimulatedMachine {
        wake_latency: 700,
        ..SimulatedMachine::new(vec![Interruption {
            at: ms(1),
            length: 9_000,
            cpu: 0,
            by: PreemptionSource::Below,
        }])
    };
    let live = shown(&mut machine);
    let memory = Memory::new(1_000, false, true);
    let recorded = machine.run_with(&mut grid(5, None), Span::from_millis(52), memory);
    let found = live.read();
    // The interruption is over when the first one should come.
    assert_eq!((found.count, found.counts[10], found.counts[14]), (10, 9, 1));
    assert_eq!(found.max_ns, recorded.lateness.unwrap().max_ns);
    assert!(found.worst.unwrap().evidence.is_none());
}
