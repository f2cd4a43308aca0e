//! Marked loops on the simulated machine, where outcomes are exact, and one on the real one.

use hourglass_clock::{Counter, choice};
use hourglass_trace::{CounterDeltas, Evidence, IntervalStart};

use super::*;
use crate::recorder::Recording;
use crate::simulated::{
    self, EPOCH, GAP, Interruption, PreemptionSource, STEP, SimThreadSleeper, SimulatedMachine, ms,
};

/// What reading the counter takes in a period.
const SLIP: u64 = 20 * STEP;

fn spec() -> LoopSpec {
    LoopSpec::every("loop", Span::from_millis(10))
}

/// Runs a marked loop on a machine that takes the CPU away at the given times.
fn marked(
    spec: &LoopSpec,
    taken: Vec<Interruption>,
    body: impl FnOnce(&SimulatedMachine, &mut Recorder<&SimulatedMachine>, &mut LoopAccount),
) -> (Recording, Deadlines) {
    marked_on(SimulatedMachine::new(taken), spec, body)
}

fn marked_on(
    machine: SimulatedMachine,
    spec: &LoopSpec,
    body: impl FnOnce(&SimulatedMachine, &mut Recorder<&SimulatedMachine>, &mut LoopAccount),
) -> (Recording, Deadlines) {
    let mut bed = SimThreadSleeper(&machine);
    let timeline = simulated::timeline();
    let settings = RecorderSettings {
        gap: spec.gap.map_or(u64::MAX, |gap| timeline.ticks_at_least(gap)),
        timeline,
        start: EPOCH,
        finish: u64::MAX,
        stop_gap: u64::MAX,
        stop_late: u64::MAX,
        live: None,
        charge: u64::MAX,
    };
    let memory = Memory::new(1_000, false, false).with_jobs(100, JobTerms::default());
    let mut recorder = Recorder::new(&machine, settings, memory, &mut bed, &NEVER).asking(&machine);
    recorder.await_marks();
    let mut account = LoopAccount::new(spec, timeline);
    body(&machine, &mut recorder, &mut account);
    recorder.pause();
    let LoopAccount { mut deadlines, begins } = account;
    deadlines.close(recorder.now());
    let mut recorded = recorder.end();
    (recorded.lateness, recorded.wakes) = begins.into_latencies();
    (recorded, deadlines.counted)
}

fn by(at: u64, length: u64, by: PreemptionSource) -> Interruption {
    Interruption { at, length, cpu: 0, by }
}

fn counted(hit: u64, missed: u64, lost: u64, completed: u64) -> Deadlines {
    Deadlines { hit, missed, lost, completed }
}

/// An undisturbed loop has an interval a period, and a wait before each but the first.
#[test]
fn an_undisturbed_loop_hits_every_period() {
    let (recorded, deadlines) = marked(&spec(), vec![], |machine, recorder, account| {
        for _ in 0..5 {
            begin(recorder, account, None);
            machine.compute(ms(3));
            recorder.mark();
            machine.compute(ms(1));
            end(recorder, account);
            machine.wait(ms(6));
        }
    });
    assert_eq!(deadlines, counted(5, 0, 0, 5));
    let intervals = simulated::intervals(&recorded);
    let onsets: Vec<IntervalStart> = intervals.iter().map(|interval| interval.onset).collect();
    assert_eq!(
        onsets,
        [
            IntervalStart::Start,
            IntervalStart::Wait,
            IntervalStart::Wait,
            IntervalStart::Wait,
            IntervalStart::Wait
        ]
    );
    assert!(intervals.iter().all(|i| (ms(4)..ms(4) + SLIP).contains(&(i.duration_ns() as u64))));
    assert!(intervals[1..].iter().all(|i| i.evidence.counted.is_some_and(|c| c.voluntary == 1)));
    assert_eq!(recorded.gaps.histogram.len(), 0);
    assert_eq!(recorded.jobs.unwrap().jobs().len(), 5);
}

/// Another thread takes 2 ms in the middle of a stretch of 5 ms without a mark: the gap is as long as
/// the CPU clock says, and lies at the end of the stretch.
#[test]
fn a_switch_within_a_stretch_is_a_gap_of_its_length() {
    let taken = vec![by(ms(2), ms(2), PreemptionSource::Thread)];
    let (recorded, deadlines) = marked(&spec(), taken, |machine, recorder, account| {
        begin(recorder, account, None);
        machine.compute(ms(3));
        end(recorder, account);
    });
    assert_eq!(deadlines, counted(1, 0, 0, 1));
    let intervals = simulated::intervals(&recorded);
    let [gap] = simulated::gaps(&recorded)[..] else { panic!("{intervals:?}") };
    assert!((gap as u64).abs_diff(ms(2)) <= SLIP, "{gap}");
    assert!(recorded.received.abs_diff(ms(3)) <= SLIP, "{}", recorded.received);
    let evidence = intervals[1].evidence;
    assert_eq!((evidence.cleared, evidence.counted.unwrap().involuntary), (Some(true), 1));
    assert_eq!(intervals[1].onset, IntervalStart::Gap);
}

/// A switch while the thread asks what became of its wait is no gap that began with a switch and counted none.
#[test]
fn a_switch_in_the_question_behind_a_wait_is_counted_once() {
    for after in (20..120).step_by(5) {
        let taken = vec![by(ms(10) + after, ms(2), PreemptionSource::Thread)];
        let mut machine = SimulatedMachine::new(taken);
        machine.asking = 15;
        let (recorded, _) = marked_on(machine, &spec(), |machine, recorder, account| {
            begin(recorder, account, None);
            machine.compute(ms(4));
            recorder.pause();
            let spent = machine.read().ticks - EPOCH;
            machine.wait(ms(10) - spent);
            begin(recorder, account, None);
            machine.compute(ms(3));
            end(recorder, account);
        });
        let intervals = simulated::intervals(&recorded);
        let counted = intervals.iter().filter_map(|interval| interval.evidence.counted);
        assert_eq!(
            counted.map(|counted| counted.involuntary).sum::<u8>(),
            1,
            "{after}: {intervals:?}"
        );
        let received = recorded.received.abs_diff(ms(7));
        assert!(received <= SLIP, "{after}: {received} ns more or less, {intervals:?}");
    }
}

/// What the kernel does not know is found by marks that lie close, as in the loop of Figure 2.
#[test]
fn marks_further_apart_than_gap_are_one() {
    let close = LoopSpec { gap: Some(Span::from_nanos(GAP as i64)), ..spec() };
    let taken = || vec![by(ms(1), 9_000, PreemptionSource::Below)];
    let body = |_: &SimulatedMachine,
                recorder: &mut Recorder<&SimulatedMachine>,
                account: &mut LoopAccount| {
        begin(recorder, account, None);
        while recorder.now() < EPOCH + ms(2) {
            recorder.mark();
        }
        end(recorder, account);
    };
    let (recorded, _) = marked(&close, taken(), body);
    let gaps = simulated::gaps(&recorded);
    assert_eq!(gaps, [9_000 + STEP as i64]);
    let kept = Evidence { cleared: Some(false), counted: None };
    assert_eq!(simulated::intervals(&recorded)[1].evidence, kept);
    // Without the rule it cannot be distinguished from the loop's own work.
    let (recorded, _) = marked(&spec(), taken(), body);
    assert!(simulated::gaps(&recorded).is_empty());
}

/// A period that takes 27 of 10 ms is late, and the two that it runs over never start.
#[test]
fn a_late_period_is_missed_and_those_it_ran_over_are_lost() {
    let (_, deadlines) = marked(&spec(), vec![], |machine, recorder, account| {
        for (work, wait) in [(4, 6), (27, 3), (4, 6), (2, 0)] {
            begin(recorder, account, None);
            machine.compute(ms(work));
            end(recorder, account);
            machine.wait(ms(wait));
        }
    });
    assert_eq!(deadlines, counted(3, 1, 2, 4));
}

/// The example of a loop on an absolute grid: it wakes 4 ms late, and catches up. Nothing is lost.
#[test]
fn a_loop_that_catches_up_loses_nothing() {
    let mut account = DeadlineCounter::new(&spec(), &simulated::timeline());
    for begun in [0, 10, 24, 30, 48, 49, 50, 60, 95, 96, 97, 98, 100] {
        account.begin(EPOCH + ms(begun));
    }
    assert_eq!(account.counted.lost, 0);
    // Twenty at once are no more than one, and 130 to 150 never come.
    (0..20).for_each(|_| account.begin(EPOCH + ms(110)));
    account.begin(EPOCH + ms(120));
    account.begin(EPOCH + ms(160));
    assert_eq!(account.counted.lost, 3);
}

/// A sound card whose clock is off by 200 ppm, and a loop that is up to 3 ms late.
#[test]
fn a_loop_on_another_clock_loses_nothing() {
    for step in [9_998_000, 10_000_000, 10_002_000] {
        let mut account = DeadlineCounter::new(&spec(), &simulated::timeline());
        for number in 0..100_000u64 {
            let jitter = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ms(3);
            account.begin(EPOCH + number * step + jitter);
        }
        assert_eq!(account.counted.lost, 0, "{step}");
    }
}

/// Due 4 ms before it began: 7 ms of work end 1 ms after the deadline.
#[test]
fn a_deadline_counts_from_when_a_period_was_due() {
    let late = |machine: &SimulatedMachine,
                recorder: &mut Recorder<&SimulatedMachine>,
                account: &mut LoopAccount| {
        machine.compute(ms(4));
        begin(recorder, account, Some(EPOCH));
        machine.compute(ms(7));
        end(recorder, account);
    };
    assert_eq!(marked(&spec(), vec![], late).1, counted(0, 1, 0, 1));
    let generous = LoopSpec { deadline: Some(Span::from_millis(12)), ..spec() };
    assert_eq!(marked(&generous, vec![], late).1, counted(1, 0, 0, 1));
}

/// Issue 33, 2: a loop of 10 ms, whose second period is due when another thread has the CPU for 4 ms (it is ready
/// and waits), when its timer is 4 ms late, or when it computes on its own account before it marks the begin.
#[test]
fn what_others_took_of_the_time_from_due_to_begin_is_a_gap() {
    enum Hindrance {
        Ready,
        LateTimer,
        OwnWork,
    }
    for (late, involuntary) in
        [(Hindrance::Ready, Some(1)), (Hindrance::LateTimer, Some(0)), (Hindrance::OwnWork, None)]
    {
        let (recorded, deadlines) = marked(&spec(), vec![], |machine, recorder, account| {
            begin(recorder, account, Some(EPOCH));
            machine.compute(ms(4));
            end(recorder, account);
            match late {
                Hindrance::Ready => machine.wait_and_be_ready(ms(10), ms(4)),
                Hindrance::LateTimer => machine.wait(ms(10)),
                Hindrance::OwnWork => {
                    machine.wait(ms(6));
                    machine.compute(ms(4));
                }
            }
            begin(recorder, account, Some(EPOCH + ms(10)));
            machine.compute(ms(4));
            end(recorder, account);
        });
        assert_eq!(deadlines, counted(2, 0, 0, 2));
        let late: Vec<u64> = recorded.lateness.as_ref().unwrap().samples().collect();
        assert!(late[0] <= SLIP && (ms(4)..ms(4) + 2 * SLIP).contains(&late[1]), "{late:?}");
        assert_eq!(recorded.wakes.as_ref().unwrap().times().count(), 2);
        let intervals = simulated::intervals(&recorded);
        let gaps = simulated::gaps(&recorded);
        let Some(involuntary) = involuntary else {
            assert!(gaps.is_empty(), "{gaps:?}");
            continue;
        };
        let [gap] = gaps[..] else { panic!("{intervals:?}") };
        assert!((gap as u64).abs_diff(ms(4)) <= 2 * SLIP, "{gap}");
        // The wait ends when the period is due, and the gap behind it when the thread runs.
        let [_, wait, ran] = intervals[..] else { panic!("{intervals:?}") };
        assert_eq!((wait.onset, ran.onset), (IntervalStart::Wait, IntervalStart::Late));
        assert_eq!((wait.start_ns, wait.end_ns), (ms(10) as i64, ms(10) as i64));
        let counted = CounterDeltas { involuntary, voluntary: 0, faults: 0 };
        assert_eq!(ran.evidence, Evidence { cleared: None, counted: Some(counted) });
    }
}

/// A begin that is 4 ms late, half of it for want of a CPU: neither is the cause.
#[test]
fn what_two_share_has_no_evidence() {
    let (recorded, _) = marked(&spec(), vec![], |machine, recorder, account| {
        begin(recorder, account, Some(EPOCH));
        end(recorder, account);
        machine.wait_and_be_ready(ms(14), ms(2));
        begin(recorder, account, Some(EPOCH + ms(10)));
        end(recorder, account);
    });
    let intervals = simulated::intervals(&recorded);
    let late = intervals.iter().find(|interval| interval.onset == IntervalStart::Late).unwrap();
    assert!(late.evidence.is_none(), "{late:?}");
}

/// What a thread waited for a CPU within a period is none of its wait for the next one.
#[test]
fn a_preempted_period_does_not_make_the_next_begin_a_wait() {
    let taken = vec![by(ms(1), ms(5), PreemptionSource::Thread)];
    let (recorded, _) = marked(&spec(), taken, |machine, recorder, account| {
        begin(recorder, account, Some(EPOCH));
        machine.compute(ms(3));
        end(recorder, account);
        machine.wait(ms(4));
        begin(recorder, account, Some(EPOCH + ms(10)));
        machine.compute(ms(1));
        end(recorder, account);
    });
    let intervals = simulated::intervals(&recorded);
    let late = intervals.iter().find(|interval| interval.onset == IntervalStart::Late).unwrap();
    assert_eq!(late.evidence.counted.map(|counted| counted.involuntary), Some(0));
}

/// Marks that do not fit change nothing; a period cut off by the end counts only if it is late.
#[test]
fn marks_in_any_order() {
    for (work, missed) in [(1, 0), (11, 1)] {
        let (recorded, deadlines) = marked(&spec(), vec![], |machine, recorder, account| {
            recorder.mark();
            end(recorder, account);
            begin(recorder, account, None);
            begin(recorder, account, None);
            end(recorder, account);
            end(recorder, account);
            recorder.mark();
            begin(recorder, account, None);
            machine.compute(ms(work));
        });
        assert_eq!(deadlines, counted(2, missed, 0, 2));
        assert_eq!(recorded.intervals, 3);
    }
}

#[test]
fn a_specification_that_cannot_be_meant_is_refused() {
    let refused = |spec: LoopSpec| spec.check().unwrap_err();
    assert_eq!(refused(LoopSpec::every("x", Span::ZERO)), LoopError::NotPositive("period"));
    let late = LoopSpec { deadline: Some(Span::from_nanos(-1)), ..spec() };
    assert_eq!(refused(late), LoopError::NotPositive("deadline"));
    assert_eq!(refused(LoopSpec { records: 0, ..spec() }), LoopError::NotPositive("records"));
    assert_eq!(spec().check(), Ok(()));
}

/// More than any memory: an answer, and no abort.
#[test]
fn room_that_no_machine_has_is_refused() {
    for (records, jobs) in [(u64::MAX, 0), (1 << 42, 0), (1, usize::MAX), (u64::MAX, usize::MAX)] {
        let choice = choice::choose(std::path::Path::new("/"));
        let started = OwnLoop::start(LoopSpec { records, jobs, ..spec() }, choice);
        assert_eq!(started.err(), Some(LoopError::Memory { records, jobs }));
    }
}

/// On this machine: periods are counted, time received is not more than passed, and the intervals lie
/// within the periods.
#[test]
fn a_loop_on_this_machine() {
    let spec = LoopSpec { jobs: 10, ..LoopSpec::every("real", Span::from_millis(2)) };
    let mut own = OwnLoop::start(spec, choice::choose(std::path::Path::new("/"))).unwrap();
    for _ in 0..10 {
        own.begin_period();
        let begun = now_ns(ClockId::Monotonic);
        while now_ns(ClockId::Monotonic) < begun + 200_000 {
            own.check();
        }
        own.end_period();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let Deadlines { hit, missed, completed, .. } = own.deadlines();
    assert_eq!((hit + missed, completed), (10, 10));
    let LoopMeasurement { measured, .. } = own.finish();
    let [thread] = &measured.threads[..] else { panic!() };
    assert_eq!(thread.tid, os::id());
    assert_eq!(thread.recorded.tally.deadlines.unwrap().completed, 10);
    assert!(thread.recorded.intervals >= 10);
    let received = measured.timeline.ns_in(thread.recorded.received);
    assert!(received <= measured.elapsed.nanos_or_zero());
    let jobs = thread.recorded.jobs.as_ref().unwrap();
    assert!(jobs.jobs().iter().all(|job| job.received <= job.finished - job.started));
    let waits = thread.recorded.trace.iter().filter(|record| record.onset() == IntervalStart::Wait);
    assert_eq!(waits.count(), 9);
}
