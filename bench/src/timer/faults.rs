//! How soon a thread is stopped after its deadline, and how soon its handler runs.
//!
//! An offender works on the last CPU, noting the time over and over, past its deadline. Ours: it armed
//! the deadline itself, and is suspended; the handler's thread has a higher priority on the same CPU.
//! The peers: a watchdog thread of that priority sleeps until the deadline and signals the offender
//! (`tgkill`), on the same CPU or on another. All in turn, in the same rounds. The last note may lie
//! before the deadline, since the interrupt comes before the next one: then `fault_stop` is negative,
//! and ratios would mean nothing.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result, anyhow};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::posix_timer::{realtime_signals, send};
use hourglass_sys::thread::{affinity, id, set_affinity};
use hourglass_sys::{futex, sched, signal};
use hourglass_time::Span;
use hourglass_timer::fault::{
    Attributes, Deadline, DeadlineWatch, Fault, FaultAction, FaultVerdict, Scheduling,
    WatchSettings, deadline_handler,
};

use super::ratio;
use crate::document::Row;
use crate::paired::median;

/// Faults of each subject in a round: some 50 ms of work at a real-time priority.
const FAULTS: usize = 150;
/// From a deadline's arming to the deadline, ns.
const LEAD_NS: u64 = 300_000;
/// Between two, asleep, ns: others are to have the CPU as well.
const PAUSE_NS: u64 = 200_000;
/// The watchdog's signal, counted from the first that programs may use.
const SIGNAL: i32 = 7;
const OFFENDER: Scheduling = Scheduling::Fifo(50);
const HANDLER: Scheduling = Scheduling::Fifo(60);

const STOP_GOAL_NS: f64 = 5_000.0;
const HANDLER_GOAL_NS: f64 = 40_000.0;

/// Medians of a round, ns after the deadline.
#[derive(Clone, Copy, Debug)]
struct Latency {
    stop: f64,
    handler: f64,
}

impl Latency {
    fn of(found: &[(f64, f64)]) -> Latency {
        let mut stop: Vec<f64> = found.iter().map(|found| found.0).collect();
        let mut handler: Vec<f64> = found.iter().map(|found| found.1).collect();
        Latency { stop: median(&mut stop), handler: median(&mut handler) }
    }
}

#[derive(Clone, Copy, Debug)]
enum Stopper {
    Ours,
    Watchdog { cpu: u32 },
}

pub(super) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let cpus = affinity().context("cannot ask for the CPUs")?;
    let (Some(&first), Some(&last)) = (cpus.first(), cpus.last()) else { return Ok(Vec::new()) };
    if !is_permitted() {
        eprintln!("no SCHED_FIFO here (CAP_SYS_NICE or `ulimit -r 60`): faults are left out");
        return Ok(Vec::new());
    }
    let mut subjects =
        vec![("hourglass", Stopper::Ours), ("watchdog", Stopper::Watchdog { cpu: last })];
    if first != last {
        subjects.push(("watchdog/other CPU", Stopper::Watchdog { cpu: first }));
    }
    let mut found: Vec<Vec<Latency>> = vec![Vec::new(); subjects.len()];
    for round in 0..rounds as usize {
        for turn in 0..subjects.len() {
            let subject = (turn + round) % subjects.len();
            found[subject].push(run(subjects[subject].1, last)?);
        }
    }
    let mut rows = Vec::new();
    for ((name, stopper), found) in subjects.iter().zip(&found) {
        let mut stop: Vec<f64> = found.iter().map(|round| round.stop).collect();
        let row = Row::alone("fault_stop", name, median(&mut stop), "ns");
        rows.push(match stopper {
            Stopper::Ours => row.at_most(STOP_GOAL_NS),
            Stopper::Watchdog { .. } => row,
        });
    }
    let handlers = |found: &[Latency]| found.iter().map(|f| f.handler).collect::<Vec<f64>>();
    for ((name, stopper), own) in subjects.iter().zip(&found) {
        let row = Row::alone("fault_handler", name, median(&mut handlers(own)), "ns");
        rows.push(match stopper {
            Stopper::Ours => {
                let peers = subjects.iter().zip(&found).skip(1);
                let ratio = |((peer, _), their): (&(&'static str, Stopper), &Vec<Latency>)| {
                    ratio(peer, &handlers(own), &handlers(their))
                };
                Row { ratio_to: peers.map(ratio).collect(), ..row }.at_most(HANDLER_GOAL_NS)
            }
            Stopper::Watchdog { .. } => row,
        });
    }
    Ok(rows)
}

fn is_permitted() -> bool {
    thread::spawn(|| sched::set(HANDLER).is_ok()).join().unwrap_or(false)
}

/// One subject's turn, in a thread of its own.
fn run(stopper: Stopper, cpu: u32) -> Result<Latency> {
    let offender = thread::spawn(move || {
        set_affinity([cpu]).context("cannot choose a CPU")?;
        sched::set(OFFENDER).context("no SCHED_FIFO")?;
        match stopper {
            Stopper::Ours => ours(cpu),
            Stopper::Watchdog { cpu } => watchdog(cpu),
        }
    });
    Ok(Latency::of(&offender.join().map_err(|_| anyhow!("the offender died"))??))
}

fn now() -> u64 {
    now_ns(ClockId::Monotonic)
}

/// Sleeps: no thread wakes this word.
fn pause() {
    let _ = futex::wait_until(&AtomicU32::new(0), 0, now() + PAUSE_NS);
}

fn after(at_ns: u64, deadline_ns: u64) -> f64 {
    at_ns as f64 - deadline_ns as f64
}

fn ours(cpu: u32) -> Result<Vec<(f64, f64)>> {
    let settings = WatchSettings {
        longest_stop: Some(Span::SECOND),
        ..WatchSettings::with_strength(FaultAction::Suspend)
    };
    let mut watch = DeadlineWatch::new(settings)?;
    let last = Arc::<AtomicU64>::default();
    let noted = Arc::clone(&last);
    let entry = move |fault: &Fault, found: &mut mpsc::SyncSender<(f64, f64)>| {
        let stop = after(noted.load(Ordering::Relaxed), fault.deadline_ns);
        // There is room for all.
        let _ = found.try_send((stop, after(fault.handled_ns, fault.deadline_ns)));
        FaultVerdict::Resume
    };
    let attributes =
        Attributes { scheduling: Some(HANDLER), cpu: Some(cpu), ..Attributes::DEFAULT };
    let (find, found) = mpsc::sync_channel(FAULTS);
    let handler = deadline_handler(&watch.thread(), attributes, entry, find)?;
    for _ in 0..FAULTS {
        pause();
        let before = watch.faults();
        watch.arm(Deadline::At(now() + LEAD_NS))?;
        while watch.faults() == before {
            last.store(now(), Ordering::Relaxed);
        }
    }
    drop(handler);
    Ok(found.try_iter().collect())
}

#[derive(Default)]
struct Post {
    /// The deadline, ns; 0 without one.
    deadline_ns: AtomicU64,
    last_ns: AtomicU64,
    bell: AtomicU32,
}

/// Set by the watchdog's signal.
static STOPPED: AtomicU32 = AtomicU32::new(0);

fn watchdog(cpu: u32) -> Result<Vec<(f64, f64)>> {
    let signal = realtime_signals().0 + SIGNAL;
    signal::latch(signal, &STOPPED).context("cannot catch the signal")?;
    let post = Arc::<Post>::default();
    let (tid, shared) = (id(), Arc::clone(&post));
    let dog = thread::spawn(move || -> io::Result<Vec<(f64, f64)>> {
        set_affinity([cpu])?;
        sched::set(HANDLER)?;
        (0..FAULTS as u32).map(|turn| watch_over(&shared, turn, tid, signal)).collect()
    });
    for turn in 0..FAULTS as u32 {
        pause();
        STOPPED.store(0, Ordering::SeqCst);
        post.deadline_ns.store(now() + LEAD_NS, Ordering::SeqCst);
        post.bell.store(2 * turn + 1, Ordering::SeqCst);
        futex::wake(&post.bell, 1);
        while STOPPED.load(Ordering::Relaxed) == 0 {
            if dog.is_finished() {
                break;
            }
            post.last_ns.store(now(), Ordering::Relaxed);
        }
        let handled = 2 * turn + 2;
        while post.bell.load(Ordering::SeqCst) != handled && !dog.is_finished() {
            let _ = futex::wait_until(&post.bell, handled - 1, now() + PAUSE_NS);
        }
    }
    Ok(dog.join().map_err(|_| anyhow!("the watchdog died"))??)
}

fn watch_over(post: &Post, turn: u32, tid: u32, signal: i32) -> io::Result<(f64, f64)> {
    let armed = 2 * turn + 1;
    while post.bell.load(Ordering::SeqCst) != armed {
        futex::wait_until(&post.bell, 2 * turn, u64::MAX)?;
    }
    let deadline_ns = post.deadline_ns.load(Ordering::SeqCst);
    while now() < deadline_ns {
        futex::wait_until(&post.bell, armed, deadline_ns)?;
    }
    send(tid, signal)?;
    // It is stopped when its handler has run.
    while STOPPED.load(Ordering::SeqCst) == 0 {
        futex::wait_until(&STOPPED, 0, u64::MAX)?;
    }
    let handled_ns = now();
    let last_ns = post.last_ns.load(Ordering::SeqCst);
    post.bell.store(armed + 1, Ordering::SeqCst);
    futex::wake(&post.bell, 1);
    Ok((after(last_ns, deadline_ns), after(handled_ns, deadline_ns)))
}
