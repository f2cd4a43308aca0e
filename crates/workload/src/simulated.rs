//! A machine whose time is a number and whose interruptions are written down: runs the models
//! and the recorder through virtual time.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hourglass_clock::{Calibration, Counter, Rate, Reading};
use hourglass_model::{Interval, Onset};
use hourglass_sys::rseq::State;
use hourglass_sys::thread::Counters;
use hourglass_time::Span;

use crate::memory::Memory;
use crate::models::Execution;
use crate::recorder::{Recorded, Recorder, Settings};
use crate::stage::Stage;
use crate::timeline::{Epoch, Timeline};
use crate::wake::{Alarm, WakeUp};
use crate::witness::Senses;

/// One tick is one nanosecond; the run begins here, so that times before it can be told.
pub(crate) const EPOCH: u64 = 1_000_000;

/// Time that a read of the counter takes.
pub(crate) const STEP: u64 = 20;

/// GAP in the simulation.
pub(crate) const GAP: u64 = 50;

/// Somebody else takes the CPU at `at` (ns from the run's start) for `length`; the thread comes
/// back on `cpu`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interruption {
    pub(crate) at: u64,
    pub(crate) length: u64,
    pub(crate) cpu: u32,
    pub(crate) by: By,
}

/// Who takes the CPU, as far as the thread can find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Another thread: the kernel clears the critical section and counts.
    Thread,
    /// An interrupt upon which the kernel thought of a switch: cleared, and nothing counted.
    Resched,
    /// A plain interrupt, or nobody that the kernel knows: neither.
    Below,
}

/// A machine in virtual time.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    now: AtomicU64,
    cpu: AtomicU32,
    next: AtomicU64,
    interruptions: Vec<Interruption>,
    /// Whether the critical section is armed and was not cleared.
    kept: AtomicBool,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    /// Time for which another thread had the CPU, or the thread waited.
    away: AtomicU64,
    /// How late wake-ups are.
    pub(crate) wake_latency: u64,
    /// A longer gap ends the run.
    pub(crate) stop_gap: Option<u64>,
    /// A later wake-up ends the run.
    pub(crate) stop_late: Option<u64>,
}

impl Machine {
    /// A machine at the run's start. `interruptions` in order of time.
    pub(crate) fn new(interruptions: Vec<Interruption>) -> Machine {
        Machine { now: AtomicU64::new(EPOCH), interruptions, ..Machine::default() }
    }

    /// Runs `execution`, which writes a trace, for `duration` from the run's start.
    pub(crate) fn run(&self, execution: &mut impl Execution, duration: Span) -> Recorded {
        self.run_with(execution, duration, Memory::new(1_000, false, false))
    }

    /// Runs `execution` with the memory given.
    pub(crate) fn run_with(
        &self,
        execution: &mut impl Execution,
        duration: Span,
        memory: Memory,
    ) -> Recorded {
        let stop = AtomicBool::new(false);
        let mut bed = Bed(self);
        let settings = Settings {
            gap: GAP,
            timeline: timeline(),
            start: EPOCH,
            finish: EPOCH + duration.nanos_or_zero(),
            stop_gap: self.stop_gap.unwrap_or(u64::MAX),
            stop_late: self.stop_late.unwrap_or(u64::MAX),
            live: None,
        };
        let mut recorder = Recorder::new(self, settings, memory, &mut bed, &stop).asking(self);
        recorder.begin();
        execution.run(&mut recorder);
        recorder.end()
    }

    /// The thread computes for `ns`, looking at no counter.
    pub(crate) fn compute(&self, ns: u64) {
        self.now.fetch_add(ns, Ordering::Relaxed);
    }

    /// The thread waits for `ns`, by means of its own.
    pub(crate) fn wait(&self, ns: u64) {
        self.now.fetch_add(ns, Ordering::Relaxed);
        self.away.fetch_add(ns, Ordering::Relaxed);
        self.kept.store(false, Ordering::Relaxed);
        self.voluntary.fetch_add(1, Ordering::Relaxed);
    }

    /// Time passes to `ticks`, unless it has.
    fn advance_to(&self, ticks: u64) {
        self.now.fetch_max(ticks, Ordering::Relaxed);
    }
}

/// Zero error and one nanosecond a tick.
pub(crate) fn timeline() -> Timeline {
    Timeline {
        epoch: Epoch { ticks: EPOCH, monotonic_ns: EPOCH, realtime_ns: 0 },
        calibration: Calibration {
            rate: Rate::NANOSECONDS,
            window_ns: 0,
            rate_error_ppb: 0,
            bracket_ns: 0,
        },
    }
}

impl Counter for &Machine {
    const NAME: &'static str = "sim";

    /// Each read takes [`STEP`]; an interruption whose time has come takes its length first.
    fn read(&self) -> Reading {
        let mut now = self.now.load(Ordering::Relaxed) + STEP;
        let next = self.next.load(Ordering::Relaxed);
        if let Some(interruption) = self.interruptions.get(next as usize)
            && now >= EPOCH + interruption.at
        {
            now += interruption.length;
            self.cpu.store(interruption.cpu, Ordering::Relaxed);
            self.next.store(next + 1, Ordering::Relaxed);
            if interruption.by != By::Below {
                self.kept.store(false, Ordering::Relaxed);
            }
            if interruption.by == By::Thread {
                self.involuntary.fetch_add(1, Ordering::Relaxed);
                self.away.fetch_add(interruption.length, Ordering::Relaxed);
            }
        }
        self.now.store(now, Ordering::Relaxed);
        Reading { ticks: now, cpu: self.cpu.load(Ordering::Relaxed) }
    }
}

impl Stage for &Machine {
    type Senses = Self;
}

impl Senses for &Machine {
    fn arm(&mut self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    fn look(&self) -> Option<State> {
        Some(if self.kept.load(Ordering::Relaxed) { State::Kept } else { State::Cleared })
    }

    fn counters(&self) -> Counters {
        Counters {
            voluntary: self.voluntary.load(Ordering::Relaxed),
            involuntary: self.involuntary.load(Ordering::Relaxed),
            ..Counters::default()
        }
    }

    fn cpu_ns(&self) -> u64 {
        self.now.load(Ordering::Relaxed) - self.away.load(Ordering::Relaxed)
    }
}

/// Where threads of the machine sleep. `now_ns` of the alarm is the real machine's clock, so only
/// the difference counts.
pub(crate) struct Bed<'a>(pub(crate) &'a Machine);

impl WakeUp for Bed<'_> {
    fn wait(&mut self, alarm: Alarm) {
        let ahead = alarm.due_ns - alarm.now_ns;
        let now = self.0.now.load(Ordering::Relaxed);
        self.0.advance_to(now + ahead + self.0.wake_latency);
        self.0.kept.store(false, Ordering::Relaxed);
        self.0.voluntary.fetch_add(1, Ordering::Relaxed);
    }
}

/// The intervals of a recording, ns from the run's start.
pub(crate) fn intervals(recorded: &Recorded) -> Vec<Interval> {
    let timeline = timeline();
    recorded
        .trace
        .iter()
        .map(|record| Interval {
            thread: 0,
            cpu: record.cpu,
            start_ns: timeline.ns_at(record.start),
            end_ns: timeline.ns_at(record.end),
            start_ticks: record.start,
            end_ticks: record.end,
            onset: record.onset(),
            evidence: record.evidence(),
        })
        .collect()
}

/// Lengths of forced gaps, ns, in order.
pub(crate) fn gaps(recorded: &Recorded) -> Vec<i64> {
    let intervals = intervals(recorded);
    intervals
        .windows(2)
        .filter(|pair| pair[1].onset.is_gap())
        .map(|pair| pair[1].start_ns - pair[0].end_ns)
        .collect()
}

/// Shorthand for tests.
pub(crate) fn ms(ms: u64) -> u64 {
    ms * 1_000_000
}

mod limits;

mod tests {
    use super::*;
    use crate::models::simulated_executions::{cpu, cpu_periodic, lat, periodic};
    use hourglass_model::document::Deadlines;
    use hourglass_model::{Counted, Evidence};

    fn taken(at: u64, length: u64) -> Interruption {
        Interruption { at, length, cpu: 0, by: By::Thread }
    }

    fn account(hit: u64, missed: u64, lost: u64, completed: u64) -> Option<Deadlines> {
        Some(Deadlines { hit, missed, lost, completed })
    }

    /// Figure 2: each interruption longer than GAP is one gap, with its length, and the time
    /// received is all the rest.
    #[test]
    fn known_interruptions_are_found_with_their_lengths() {
        let machine = Machine::new(vec![
            taken(ms(1), 5_000),
            taken(ms(2), ms(4)),
            taken(ms(7), GAP - STEP),
            taken(ms(8), GAP + 1),
        ]);
        let recorded = machine.run(&mut cpu(), Span::from_millis(10));
        let step = STEP as i64;
        assert_eq!(gaps(&recorded), [5_000 + step, 4_000_000 + step, GAP as i64 + 1 + step]);
        assert_eq!(recorded.intervals, 4);
        let received: i64 = intervals(&recorded).iter().map(Interval::duration_ns).sum();
        assert_eq!(received as u64, recorded.received);
        let lost: i64 = gaps(&recorded).iter().sum();
        assert!((received + lost - 10_000_000).abs() <= 2 * step, "{received} + {lost}");
    }

    #[test]
    fn a_migration_ends_a_record_however_short_it_is() {
        let machine =
            Machine::new(vec![Interruption { at: ms(1), length: 0, cpu: 3, by: By::Thread }]);
        let recorded = machine.run(&mut cpu(), Span::from_millis(2));
        let cpus: Vec<(u32, Onset)> =
            intervals(&recorded).iter().map(|i| (i.cpu, i.onset)).collect();
        assert_eq!(cpus, [(0, Onset::Start), (3, Onset::Migration)]);
        assert_eq!((recorded.migrations, &recorded.cpus_seen[..]), (1, &[0, 3][..]));
    }

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

    /// A thread's own wait is not taken for a switch in the gap behind it.
    #[test]
    fn a_wait_is_counted_before_its_interval() {
        let taken =
            [1, 9].map(|at| Interruption { at: ms(at), length: 5_000, cpu: 0, by: By::Below });
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

    #[test]
    fn records_of_a_thread_are_disjoint_and_in_order() {
        let machine = Machine::new((0..100).map(|i| taken(i * 70_000, 3_000)).collect());
        let recorded = machine.run(&mut periodic(1, 5), Span::from_millis(40));
        let intervals = intervals(&recorded);
        assert!(intervals.len() > 10);
        assert!(intervals.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
    }

    #[test]
    fn a_full_buffer_goes_on_counting() {
        let machine = Machine::new((1..=9).map(|i| taken(i * 100_000, 1_000)).collect());
        let memory = Memory::new(4, false, false);
        let recorded = machine.run_with(&mut cpu(), Span::from_millis(1), memory);
        assert_eq!((recorded.intervals, recorded.trace.dropped()), (10, 6));
        assert_eq!(recorded.gaps.histogram.len(), 9);
        assert!(recorded.received > 980_000);
    }

    /// Section 3.2: an undisturbed thread of 3 ms every 8 ms hits all its deadlines, and
    /// receives what it asked for, never less.
    #[test]
    fn an_undisturbed_periodic_thread_hits_every_period() {
        let machine = Machine::new(vec![]);
        let recorded = machine.run(&mut periodic(3, 8), Span::from_millis(80));
        assert_eq!(recorded.tally.deadlines, account(10, 0, 0, 10));
        for interval in intervals(&recorded) {
            let over = interval.duration_ns() - 3_000_000;
            assert!((0..5_000).contains(&over), "{over} ns over");
            // The wake-up is for the boundary, and the first interval begins with the run.
            assert!(interval.start_ns % 8_000_000 < 100);
        }
    }

    /// A job that loses 20 ms in its second period is one miss; it runs on and is released at
    /// the next boundary after it finished; the boundaries passed meanwhile are lost.
    #[test]
    fn a_late_job_is_one_miss_and_the_boundaries_it_ran_over_are_lost() {
        let machine = Machine::new(vec![taken(ms(9), ms(20))]);
        let recorded = machine.run(&mut periodic(3, 8), Span::from_millis(80));
        // Job 1: released 8, finished 31, deadline 16; next boundary 32 = period 4; 2 and 3 lost.
        assert_eq!(recorded.tally.deadlines, account(7, 1, 2, 8));
    }

    #[test]
    fn a_job_cut_off_by_the_end_counts_only_the_periods_that_were_over() {
        // Starved from 17 to the end at 41: period 2 (16..24) missed, 3 and 4 lost.
        let machine = Machine::new(vec![taken(ms(17), ms(100))]);
        let recorded = machine.run(&mut periodic(3, 8), Span::from_millis(41));
        assert_eq!(recorded.tally.deadlines, account(2, 1, 2, 2));
    }

    #[test]
    fn a_period_that_the_end_cuts_off_is_none() {
        // 0..33, 33..66 and 34 ms of a third, whose job finished.
        let machine = Machine::new(vec![]);
        let recorded = machine.run(&mut periodic(17, 33), Span::from_millis(98));
        assert_eq!(recorded.tally.deadlines, account(2, 0, 0, 3));
        // A late job whose next release lies beyond the end: 0 missed, 1 lost, 2 not whole.
        let machine = Machine::new(vec![taken(ms(1), ms(60))]);
        let recorded = machine.run(&mut periodic(17, 33), Span::from_millis(98));
        assert_eq!(recorded.tally.deadlines, account(0, 1, 1, 1));
    }

    /// Whatever interrupts a periodic thread, every whole period is hit, missed or lost once.
    #[test]
    fn hit_missed_and_lost_are_all_periods() {
        for stride in 1..60u64 {
            let interruptions =
                (0..50).map(|i| taken(i * stride * 100_000, (i * i * 7919) % ms(4))).collect();
            let duration = 50 + stride;
            let machine = Machine::new(interruptions);
            let recorded = machine.run(&mut periodic(3, 8), Span::from_millis(duration as i64));
            let d = recorded.tally.deadlines.unwrap();
            assert_eq!(d.hit + d.missed + d.lost, duration / 8, "stride {stride}: {d:?}");
        }
    }

    /// Between two jobs the thread's own bookkeeping passes between two reads of the counter; an
    /// interruption that falls there is a gap like any other, even if it outlasts the boundary.
    #[test]
    fn an_interruption_between_two_jobs_is_not_swallowed() {
        for at in (ms(1)..ms(1) + 200).step_by(5) {
            let machine = Machine::new(vec![taken(at, ms(10))]);
            let recorded = machine.run(&mut periodic(1, 5), Span::from_millis(40));
            let jobs = recorded.tally.deadlines.unwrap().completed;
            assert!(recorded.received <= ms(jobs) + 10_000, "at {at}: {}", recorded.received);
            let longest = gaps(&recorded).into_iter().max().unwrap_or(0);
            // It may also have fallen into the wait, which is no gap.
            let waited = intervals(&recorded)
                .iter()
                .any(|i| i.onset == Onset::Wait && (15_000_000..15_100_000).contains(&i.start_ns));
            assert!(longest >= 10_000_000 || waited, "at {at}: longest {longest}");
        }
    }

    /// A gap that outlasts the thread's time ends with it, and nothing is recorded afterwards.
    #[test]
    fn nothing_is_recorded_after_the_finish() {
        let machine = Machine::new(vec![taken(ms(8), ms(100))]);
        let recorded = machine.run(&mut cpu(), Span::from_millis(10));
        assert_eq!(intervals(&recorded).len(), 1);
        assert_eq!(recorded.ended, EPOCH + ms(10));
        assert!(recorded.gaps.total_ticks.abs_diff(ms(2)) <= 2 * STEP);
        assert!(recorded.received.abs_diff(ms(8)) <= 2 * STEP);
    }

    /// Section 3.2: a game that needs 10 ms a frame and 20 frames a second makes 100 a second if
    /// it has the CPU for itself.
    #[test]
    fn a_cpu_periodic_thread_takes_what_it_can() {
        let machine = Machine::new(vec![]);
        let recorded = machine.run(&mut cpu_periodic(10, 50), Span::from_millis(1_000));
        let d = recorded.tally.deadlines.unwrap();
        assert_eq!((d.hit, d.missed, d.lost), (20, 0, 0));
        assert!((99..=100).contains(&d.completed), "{d:?}");
    }

    #[test]
    fn a_cpu_periodic_thread_misses_each_whole_period_without_a_frame() {
        // Taken from 45 to 265: the periods 50..100, 100..150, 150..200, 200..250 have no frame.
        let machine = Machine::new(vec![taken(ms(45), ms(220))]);
        let recorded = machine.run(&mut cpu_periodic(10, 50), Span::from_millis(400));
        let d = recorded.tally.deadlines.unwrap();
        assert_eq!((d.hit, d.missed, d.lost), (4, 4, 0));
    }

    /// Section 3.2: the next wake-up is the time of waking plus the period, so that lateness
    /// does not accumulate.
    #[test]
    fn a_latency_test_starts_anew_from_each_waking() {
        let machine = Machine { wake_latency: 700, ..Machine::new(vec![]) };
        let memory = Memory::new(1_000, false, true);
        let recorded = machine.run_with(&mut lat(5), Span::from_millis(52), memory);
        let lateness = recorded.lateness.unwrap();
        assert_eq!(lateness.samples().count(), 10);
        assert!(lateness.samples().all(|late| (700..800).contains(&late)));
        assert_eq!(recorded.trace.iter().count(), 0, "writes no trace records");
    }
}
