//! A thread that does not get to run passes its deadline, too. Source: RT-Mach sends the message when the deadline passes
//! (Savage and Tokuda 1993, section 4); a starved thread's handler was called 22.7 ms after a deadline of 3 ms, when the
//! thread ran again.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use hourglass_skip::{Requirement, skip};
use hourglass_sys::sched::{self, Attributes as Scheduling};
use hourglass_sys::thread::{affinity, set_affinity};
use hourglass_time::Span;
use hourglass_timer::PeriodicThread;
use hourglass_timer::fault::{
    Attributes, Deadline, Fault, FaultAction, FaultVerdict, WatchSettings, deadline_handler,
};

use crate::common::watching::{LONG, in_a_thread, now, watch};
use crate::in_own_process;

const STARVED: Duration = Duration::from_millis(25);
const SOON: Span = Span::from_millis(3);
const TURNS: usize = 6;
/// So many that on a machine short of CPUs the hog comes in time once.
const MOST_TURNS: usize = 60;

/// Two CPUs, if this process may use real-time priorities on them.
fn two_cpus() -> Option<(u32, u32)> {
    let cpus = affinity().unwrap();
    let [first, second, ..] = cpus[..] else {
        skip(Requirement::SECOND_CPU, "one CPU");
        return None;
    };
    let allowed = in_a_thread(|| sched::set(Scheduling::Fifo(2)));
    if let Err(error) = allowed {
        skip(Requirement::REAL_TIME, error.to_string());
        return None;
    }
    Some((first, second))
}

/// Keeps the CPU from all others for a while, each time it is asked; answers from when to when, ns.
fn hog(cpu: u32) -> (Sender<()>, Receiver<(u64, u64)>) {
    let (begin, asked) = mpsc::channel::<()>();
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        set_affinity([cpu]).unwrap();
        sched::set(Scheduling::Fifo(50)).unwrap();
        while asked.recv().is_ok() {
            let (begun, begun_ns) = (Instant::now(), now());
            while begun.elapsed() < STARVED {
                std::hint::spin_loop();
            }
            if sender.send((begun_ns, now())).is_err() {
                return;
            }
        }
    });
    (begin, ended)
}

fn attributes(cpu: u32) -> Attributes {
    Attributes { scheduling: Some(Scheduling::Fifo(51)), cpu: Some(cpu), ..Attributes::DEFAULT }
}

/// Whether one of the handlers was called while the hog had the CPU, from before the deadline on.
fn while_starved(called: &[Fault], kept: &[(u64, u64)]) -> bool {
    let starved = |fault: &Fault| {
        kept.iter().any(|(from, to)| *from < fault.deadline_ns && fault.handled_ns < *to)
    };
    called.iter().any(starved)
}

/// Takes turns, more of them until a handler was called while its thread was starved.
fn called_in_time(mut turn: impl FnMut() -> (Fault, Vec<(u64, u64)>)) -> u64 {
    let (mut called, mut kept) = (Vec::new(), Vec::new());
    while called.len() < TURNS || called.len() < MOST_TURNS && !while_starved(&called, &kept) {
        let (fault, from_to) = turn();
        called.push(fault);
        kept.extend(from_to);
    }
    assert!(called.iter().all(|fault| fault.handled_ns >= fault.deadline_ns), "{called:?}");
    assert!(while_starved(&called, &kept), "{called:?} {kept:?}");
    called.len() as u64
}

#[test]
fn a_starved_threads_handler_is_called_before_it_runs_again() {
    in_own_process("starved::a_starved_threads_handler_is_called_before_it_runs_again", || {
        let Some((first, second)) = two_cpus() else { return };
        for strength in [FaultAction::Notify, FaultAction::Demote] {
            in_a_thread(|| {
                set_affinity([first]).unwrap();
                let (begin, ended) = hog(first);
                let mut watch = watch(strength);
                let (sender, receiver) = mpsc::channel();
                let handler = deadline_handler(
                    &watch.thread(),
                    attributes(second),
                    |fault, sender: &mut Sender<Fault>| {
                        let _ = sender.send(*fault);
                        FaultVerdict::Resume
                    },
                    sender,
                )
                .unwrap();
                let turns = called_in_time(|| {
                    watch.arm(Deadline::In(SOON)).unwrap();
                    begin.send(()).unwrap();
                    let kept = ended.recv_timeout(LONG).unwrap();
                    (receiver.recv_timeout(LONG).unwrap(), vec![kept])
                });
                let reported = (watch.faults(), watch.undelivered());
                assert_eq!(reported, (turns, 0), "each is reported once");
                // The entry tells before its verdict is carried out, and a host may have its CPU then.
                let begun = Instant::now();
                while sched::read(0).unwrap() != Some(Scheduling::Other(0))
                    && begun.elapsed() < LONG
                {
                    thread::sleep(Duration::from_micros(200));
                }
                assert_eq!(sched::read(0).unwrap(), Some(Scheduling::Other(0)));
                drop(handler);
            });
        }
    });
}

#[test]
fn so_is_that_of_a_starved_periodic_thread() {
    in_own_process("starved::so_is_that_of_a_starved_periodic_thread", || {
        let Some((first, second)) = two_cpus() else { return };
        let (begin, ended) = hog(first);
        let (sender, receiver) = mpsc::channel();
        let thread = PeriodicThread::builder("starved")
            .period(Span::from_millis(60))
            .deadline(SOON)
            .cpu(first)
            .deadline_handler(
                WatchSettings::with_strength(FaultAction::Notify),
                attributes(second),
                |fault, sender: &mut Sender<Fault>| {
                    let _ = sender.send(*fault);
                    FaultVerdict::Resume
                },
                sender,
            )
            .spawn(move |_job| {
                // The hog comes at once.
                let _ = begin.send(());
            })
            .unwrap();
        // A job that is over before the hog comes keeps its deadline.
        called_in_time(|| {
            let fault = receiver.recv_timeout(LONG).unwrap();
            // The hog tells at its end, also for jobs without a fault.
            let mut kept = Vec::new();
            while kept.last().is_none_or(|(_, to)| *to < fault.deadline_ns) {
                kept.push(ended.recv_timeout(LONG).unwrap());
            }
            (fault, kept)
        });
        thread.stop().unwrap();
    });
}
