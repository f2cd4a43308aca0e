//! Threads on a grid, and limits that end a run, on the simulated machine.

use hourglass_time::Span;

use super::{EPOCH, Interruption, PreemptionSource, STEP, SimulatedMachine, ms};
use crate::guard::HitKind;
use crate::memory::Memory;
use crate::models::simulated_executions::{cpu, grid};

fn taken(at: u64, length: u64) -> Interruption {
    Interruption { at, length, cpu: 0, by: PreemptionSource::Thread }
}

/// The grid of cyclictest: due times do not move with the waking before.
#[test]
fn a_thread_on_a_grid_keeps_to_it() {
    let machine = SimulatedMachine { wake_latency: 700, ..SimulatedMachine::new(vec![]) };
    let memory = Memory::new(1_000, false, true);
    let recorded = machine.run_with(&mut grid(5, None), Span::from_millis(52), memory);
    let late: Vec<u64> = recorded.lateness.unwrap().samples().collect();
    assert_eq!(late.len(), 10);
    assert!(late.iter().all(|late| (700..800).contains(late)), "{late:?}");
    assert_eq!(recorded.tally.lost_wake_ups, 0);
}

/// cyclictest skips the periods that a late wake-up costs and says nothing of them.
#[test]
fn lost_periods_are_counted_and_not_made_up_for() {
    // Each wake-up is 12 ms late on a grid of 5 ms: of three periods one is served.
    let machine = SimulatedMachine { wake_latency: ms(12), ..SimulatedMachine::new(vec![]) };
    let memory = Memory::new(1_000, false, true)
        .counting(&[Span::from_millis(3), Span::from_millis(11)], Some(ms(5)));
    let recorded = machine.run_with(&mut grid(5, None), Span::from_millis(100), memory);
    let lateness = recorded.lateness.unwrap();
    let late: Vec<u64> = lateness.samples().collect();
    // Due at 5, 20, 35, 50, 65, 80; that of 95 is not over at 100.
    assert_eq!((late.len(), recorded.tally.lost_wake_ups), (6, 12));
    assert!(late.iter().all(|late| (ms(12)..ms(12) + 200).contains(late)), "{late:?}");
    // 12, 7 and 2 ms late each time.
    assert_eq!(lateness.excess.beyond(Span::from_millis(3)), Some(12));
    assert_eq!(lateness.excess.beyond(Span::from_millis(11)), Some(6));
}

#[test]
fn a_wake_up_that_never_comes_is_as_late_as_the_end() {
    let machine = SimulatedMachine { wake_latency: ms(200), ..SimulatedMachine::new(vec![]) };
    let memory = Memory::new(1_000, false, true);
    let recorded = machine.run_with(&mut grid(10, None), Span::from_millis(100), memory);
    let lateness = recorded.lateness.unwrap();
    assert_eq!(lateness.max_ns, ms(90));
    assert_eq!((lateness.histogram.len(), recorded.tally.lost_wake_ups), (1, 8));
}

#[test]
fn so_many_wake_ups_end_the_run() {
    let machine = SimulatedMachine { wake_latency: 700, ..SimulatedMachine::new(vec![]) };
    let memory = Memory::new(1_000, false, true);
    let recorded = machine.run_with(&mut grid(5, Some(4)), Span::from_millis(100), memory);
    assert_eq!(recorded.lateness.unwrap().samples().count(), 4);
    assert!(recorded.end < EPOCH + ms(21), "{}", recorded.end);
}

/// The first gap beyond the limit is the last that the run sees.
#[test]
fn a_hit_ends_the_run_and_is_kept() {
    let gaps = vec![taken(ms(2), ms(1)), taken(ms(20), ms(3)), taken(ms(40), ms(5))];
    let machine = SimulatedMachine { stop_gap: Some(ms(2)), ..SimulatedMachine::new(gaps) };
    let recorded = machine.run(&mut cpu(), Span::from_millis(100));
    let hit = recorded.hit.unwrap();
    assert_eq!(hit.kind, HitKind::Gap);
    assert!(hit.ticks.abs_diff(ms(3)) <= 2 * STEP, "{hit:?}");
    assert!(hit.end.abs_diff(EPOCH + ms(23)) <= 4 * STEP, "{hit:?}");
    assert!(recorded.end.abs_diff(hit.end) <= 4 * STEP, "{}", recorded.end);
    assert_eq!(recorded.gaps.histogram.len(), 2);
}

#[test]
fn a_late_wake_up_beyond_the_limit_ends_the_run() {
    let machine = SimulatedMachine {
        wake_latency: 700,
        stop_late: Some(699),
        ..SimulatedMachine::new(vec![])
    };
    let memory = Memory::new(1_000, false, true);
    let recorded = machine.run_with(&mut grid(5, None), Span::from_millis(100), memory);
    assert_eq!(recorded.hit.map(|hit| hit.kind), Some(HitKind::Latency));
    assert_eq!(recorded.lateness.unwrap().samples().count(), 1);
}

/// Being charged is no gap, and changes nothing of what a thread receives; a gap that is found then is lost
/// time as any other.
#[test]
fn who_is_charged_receives_no_less() {
    let ran = |charge| {
        let gaps = vec![taken(ms(2), ms(1)), taken(ms(20), ms(3)), taken(ms(40), ms(5))];
        let machine = SimulatedMachine { charge, ..SimulatedMachine::new(gaps) };
        machine.run(&mut cpu(), Span::from_millis(100))
    };
    let (plain, charged) = (ran(None), ran(Some(STEP * 10)));
    assert_eq!((charged.intervals, charged.gaps.histogram.len()), (plain.intervals, 3));
    assert!(charged.received.abs_diff(plain.received) <= 8 * STEP, "{}", charged.received);
}
