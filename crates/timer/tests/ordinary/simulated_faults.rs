//! Hours of deadlines on virtual time, against a twin that knows when each job is late.
//!
//! Source: "Real-Time Mach Timers" (1993), section 4: a thread is stopped when its deadline is passed,
//! not when its job ends. The seed is printed; `HOURGLASS_SEED` replays one.

use std::cell::RefCell;
use std::rc::Rc;

use hourglass_dice::{Dice, seed};
use hourglass_time::Span;
use hourglass_timer::fault::sim::{Delays, SimThread};
use hourglass_timer::fault::{
    Deadline, Fault, FaultAction, FaultError, FaultVerdict, Periodic, SchedulingUpdate,
    ThreadTerminated,
};

const HOURS_NS: u64 = 3 * 3_600_000_000_000;

fn ns(ns: u64) -> Span {
    Span::from_nanos(ns as i64)
}

type Faults = Rc<RefCell<Vec<Fault>>>;

#[derive(Clone, Copy, Debug)]
struct Job {
    begun_ns: u64,
    deadline_ns: u64,
    /// Before, in and after a region.
    work_ns: [u64; 3],
}

impl Job {
    /// When the thread's fault is reported, by the twin: no earlier than the deadline, and the first moment
    /// from the signal on at which it may be acted upon; or when the job is ended, if that comes first.
    fn reported_ns(&self, strength: FaultAction, delays: Delays) -> Option<u64> {
        let [before, within, after] = self.work_ns;
        let entered_ns = self.begun_ns + before;
        let left_ns = entered_ns + within;
        let ended_ns = left_ns + after;
        if self.deadline_ns > ended_ns {
            return None;
        }
        let signal_ns = if self.deadline_ns <= self.begun_ns {
            self.begun_ns
        } else {
            self.deadline_ns + delays.signal_ns
        };
        let in_region = entered_ns < signal_ns && signal_ns <= left_ns && within > 0;
        let may_ns = if in_region && strength != FaultAction::Notify { left_ns } else { signal_ns };
        Some(may_ns.min(ended_ns))
    }
}

fn hours(strength: FaultAction, dice: &mut Dice) {
    let delays = Delays {
        signal_ns: dice.below(40_000),
        handler_ns: dice.below(30_000),
        entry_ns: dice.below(20_000),
        resume_ns: dice.below(20_000),
    };
    let reported = Faults::default();
    let report = Rc::clone(&reported);
    let mut thread = SimThread::new(strength, delays, move |fault: &Fault| {
        report.borrow_mut().push(*fault);
        FaultVerdict::Resume
    });
    let mut missed = 0;
    while thread.now_ns() < HOURS_NS {
        let begun_ns = thread.now_ns();
        let deadline_ns = begun_ns + dice.below(200_000_000);
        let mut work = || dice.below(3) * dice.below(60_000_000);
        let job = Job { begun_ns, deadline_ns, work_ns: [work(), work(), work()] };
        thread.begin_job(Deadline::At(deadline_ns)).unwrap();
        thread.work(ns(job.work_ns[0]));
        // A stop before this comes on top of the twin's times; it has been reported by then.
        thread.defer(|thread| thread.work(ns(job.work_ns[1])));
        thread.work(ns(job.work_ns[2]));
        let ending = thread.end_job().unwrap().unwrap();
        // Long enough that the handler is done.
        thread.work(ns(100_000 + dice.below(10_000_000)));
        let expected = job.reported_ns(strength, delays);
        let what = format!("{strength:?} {delays:?} {job:?} {ending:?}");
        assert_eq!(ending.has_missed(), expected.is_some(), "{what}");
        let reported = std::mem::take(&mut *reported.borrow_mut());
        let stopped: Vec<u64> = reported.iter().map(|fault| fault.stopped_ns).collect();
        assert_eq!(stopped, Vec::from_iter(expected), "{what}");
        for fault in &reported {
            missed += 1;
            assert_eq!((fault.deadline_ns, fault.count), (deadline_ns, missed), "{what}");
            assert_eq!(fault.handled_ns, fault.stopped_ns + delays.handler_ns, "{what}");
        }
        assert_eq!((thread.deadline_ns(), thread.is_demoted()), (None, false), "{what}");
    }
    assert!(!thread.has_hung() && missed > 10_000, "{missed}");
    assert_eq!((thread.faults(), thread.undelivered()), (missed, 0));
}

#[test]
fn every_late_job_is_reported_once_and_at_its_time() {
    let mut dice = Dice::new(seed());
    for strength in [FaultAction::Notify, FaultAction::Demote, FaultAction::Suspend] {
        hours(strength, &mut dice);
    }
}

#[test]
fn whatever_is_answered_nothing_is_early_and_nothing_lost() {
    let mut dice = Dice::new(seed());
    for _ in 0..60 {
        let strength = [FaultAction::Notify, FaultAction::Demote, FaultAction::Suspend]
            [dice.below(3) as usize];
        let mut magnitude = || dice.below(300_000);
        let delays = Delays {
            signal_ns: magnitude(),
            handler_ns: magnitude(),
            entry_ns: magnitude(),
            resume_ns: magnitude(),
        };
        let reported = Faults::default();
        let (report, mut verdicts) = (Rc::clone(&reported), Dice::new(dice.roll()));
        let mut thread = SimThread::new(strength, delays, move |fault: &Fault| {
            report.borrow_mut().push(*fault);
            let deadline = Deadline::In(ns(verdicts.below(2_000_000)));
            match verdicts.below(5) {
                0 => FaultVerdict::ResumeBy(deadline),
                1 => FaultVerdict::KeepDemoted,
                2 => FaultVerdict::Reschedule(SchedulingUpdate {
                    deadline: Some(deadline),
                    ..SchedulingUpdate::default()
                }),
                _ => FaultVerdict::Resume,
            }
        });
        let end_ns = 120_000_000_000;
        while thread.now_ns() < end_ns {
            at_random(&mut thread, &mut dice);
            assert!(!thread.has_hung());
            let past = thread.deadline_ns().filter(|at_ns| *at_ns <= thread.now_ns());
            if past.is_some() {
                // It is only waiting for its signal, which two answers may each have put off.
                thread.work(ns(3 * delays.signal_ns));
                assert_ne!(thread.deadline_ns(), past);
            }
        }
        thread.disarm().unwrap();
        thread.work(Span::SECOND);
        let reported = reported.borrow();
        assert_eq!(reported.len() as u64 + thread.undelivered(), thread.faults());
        assert!(reported.len() > 100, "{}", reported.len());
        for two in reported.windows(2) {
            assert!(two[0].count < two[1].count && two[0].handled_ns <= two[1].handled_ns);
        }
        for fault in reported.iter() {
            assert!(fault.deadline_ns <= fault.stopped_ns && fault.stopped_ns <= fault.handled_ns);
        }
    }
}

fn at_random<F: FnMut(&Fault) -> FaultVerdict>(thread: &mut SimThread<F>, dice: &mut Dice) {
    let length = ns(dice.below(3_000_000));
    let deadline = Deadline::In(ns(dice.below(4_000_000)));
    match dice.below(7) {
        0 => thread.arm(deadline).unwrap(),
        1 => drop(thread.disarm().unwrap()),
        2 => thread.begin_job(deadline).unwrap(),
        3 => drop(thread.end_job().unwrap()),
        4 => {
            let first_ns = thread.now_ns() + dice.below(4_000_000);
            let period = ns(1 + dice.below(2_000_000));
            thread.begin_jobs(Periodic { first_ns, period }).unwrap();
        }
        5 => thread.defer(|thread| {
            thread.work(length);
            if dice.below(2) == 0 {
                thread.arm(deadline).unwrap();
            }
            thread.defer(|thread| thread.work(length));
        }),
        _ => thread.work(length),
    }
}

#[test]
fn a_series_keeps_its_grid_and_its_handler_may_end_it() {
    let mut thread = SimThread::new(FaultAction::Suspend, Delays::default(), |fault: &Fault| {
        if fault.count == 3 { FaultVerdict::End } else { FaultVerdict::Resume }
    });
    thread.begin_jobs(Periodic { first_ns: 1_000_000, period: Span::from_millis(2) }).unwrap();
    // Met, then late by more than a period: the next is late as it begins.
    let ending = thread.end_job().unwrap().unwrap();
    assert_eq!((ending.number, ending.has_missed()), (0, false));
    thread.work(Span::from_millis(6));
    assert_eq!(thread.faults(), 1);
    let ending = thread.end_job().unwrap().unwrap();
    assert_eq!((ending.number, ending.deadline_ns, ending.finished_ns), (1, 3_000_000, 6_000_000));
    assert_eq!((ending.next_deadline_ns, thread.faults()), (Some(5_000_000), 2));
    assert_eq!(thread.safepoint(), Ok(()));
    // The third is passed as it begins, too: that is the last.
    thread.work(Span::from_millis(3));
    assert_eq!(thread.end_job(), Err(FaultError::Ended(ThreadTerminated)));
    assert_eq!((thread.faults(), thread.safepoint()), (3, Err(ThreadTerminated)));
}
