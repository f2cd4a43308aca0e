//! An audio callback that is late now and then, for three reasons: its own code, a lock, and other threads.
//!
//! `cargo run --release -p hourglass-witness --example audio_callback`

use std::fmt;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread::{affinity, set_affinity};
use hourglass_witness::{Loss, Witness};

/// The device wants a block each so often.
const PERIOD: Duration = Duration::from_millis(5);
/// What a block costs that has no effects.
const WORK: Duration = Duration::from_millis(1);
/// What a heavy block costs besides.
const HEAVY: Duration = Duration::from_micros(3500);
/// Cost of an effect that was added later.
const EFFECT: Duration = Duration::from_millis(7);
/// For how long the window's thread holds the lock while it draws.
const DRAWS: Duration = Duration::from_millis(8);
const BLOCKS: u32 = 60;
/// Threads that compute on the same CPU, now and then.
const OTHERS: usize = 3;

/// Whose fault a late block is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It would have been late with the CPU all to itself.
    Code,
    /// It would have been in time.
    Scheduler(Loss),
    /// The bounds do not say.
    Either(Loss),
}

impl Fault {
    fn of(loss: Option<Loss>) -> Fault {
        let Some(loss) = loss else { return Fault::Code };
        let ns = |span: hourglass_witness::Span| Duration::from_nanos(span.nanos().unsigned_abs());
        let (least, most) = (ns(loss.off_cpu.earliest()), ns(loss.off_cpu.latest()));
        let length = ns(loss.length);
        if length.saturating_sub(most) > PERIOD {
            Fault::Code
        } else if length.saturating_sub(least) <= PERIOD {
            Fault::Scheduler(loss)
        } else {
            Fault::Either(loss)
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Code => write!(f, "its own code"),
            Fault::Scheduler(loss) => write!(f, "{} for {}", loss.cause, loss.off_cpu.latest()),
            Fault::Either(loss) => write!(f, "its own code or {}", loss.cause),
        }
    }
}

/// What is wrong with a block, on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
enum InjectedFault {
    Nothing,
    Effect,
    Lock,
    OtherThreads,
}

impl InjectedFault {
    fn with(block: u32) -> InjectedFault {
        match block % 20 {
            5 => InjectedFault::Effect,
            10 => InjectedFault::Lock,
            15 => InjectedFault::OtherThreads,
            _ => InjectedFault::Nothing,
        }
    }
}

/// A block that was late.
#[derive(Debug)]
struct LateBlock {
    block: u32,
    wrong: InjectedFault,
    length: Duration,
    /// What the thread received of it, by the kernel's count.
    received: Duration,
    fault: Fault,
}

fn received() -> Duration {
    Duration::from_nanos(now_ns(ClockId::ThreadCpu))
}

/// Computes until the thread received `length` of CPU time.
fn compute(length: Duration) {
    let until = received() + length;
    while received() < until {
        spin_loop();
    }
}

/// What the callback shares with the rest of the program.
#[derive(Default)]
struct Shared {
    settings: Mutex<u32>,
    busy: AtomicBool,
    over: AtomicBool,
}

fn callback(shared: &Shared, wrong: InjectedFault) {
    if wrong == InjectedFault::Effect {
        compute(EFFECT);
    }
    if wrong == InjectedFault::OtherThreads {
        // A heavy block, which would still be in time.
        compute(HEAVY);
    }
    // A callback should not take a lock that a thread of the window takes too.
    let _settings = shared.settings.lock();
    compute(WORK);
}

/// Computes on the callback's CPU while `busy` is set.
fn other_thread(shared: &Shared, cpu: u32) {
    let _ = set_affinity([cpu]);
    while !shared.over.load(Ordering::Relaxed) {
        match shared.busy.load(Ordering::Relaxed) {
            true => spin_loop(),
            false => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Draws, with the lock in its hand.
fn window(shared: &Shared, drawing: &Barrier) {
    for _ in (0..BLOCKS).filter(|block| InjectedFault::with(*block) == InjectedFault::Lock) {
        drawing.wait();
        let _settings = shared.settings.lock();
        drawing.wait();
        thread::sleep(DRAWS);
    }
}

/// All blocks, each in a span; those that were late.
fn play(shared: &Shared, drawing: &Barrier) -> Vec<LateBlock> {
    let witness = Witness::new().expect("the thread has just begun");
    let mut late = Vec::new();
    for block in 0..BLOCKS {
        let wrong = InjectedFault::with(block);
        shared.busy.store(wrong == InjectedFault::OtherThreads, Ordering::Relaxed);
        if wrong == InjectedFault::Lock {
            drawing.wait();
            drawing.wait();
        }
        let span = witness.begin();
        let (begun, before) = (Instant::now(), received());
        callback(shared, wrong);
        let (length, received) = (begun.elapsed(), received() - before);
        let loss = witness.end(span);
        if length > PERIOD {
            late.push(LateBlock { block, wrong, length, received, fault: Fault::of(loss) });
        }
        thread::sleep(PERIOD.saturating_sub(length));
    }
    shared.over.store(true, Ordering::Relaxed);
    late
}

fn session() -> Vec<LateBlock> {
    let cpu = affinity().ok().and_then(|cpus| cpus.last().copied()).unwrap_or(0);
    let (shared, drawing) = (Shared::default(), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| window(&shared, &drawing));
        for _ in 0..OTHERS {
            scope.spawn(|| other_thread(&shared, cpu));
        }
        let player = scope.spawn(|| {
            let _ = set_affinity([cpu]);
            play(&shared, &drawing)
        });
        player.join().expect("the callback's thread does not panic")
    })
}

fn main() {
    for LateBlock { block, wrong, length, received, fault } in session() {
        let [length, ran] = [length, received].map(|time| time.as_secs_f64() * 1e3);
        let done = format!("{wrong:?}");
        println!("block {block:>2} ({done}): {length:.1} ms, ran for {ran:.1} ms; late by {fault}");
    }
}

#[cfg(test)]
mod tests {
    use hourglass_witness::Switches;

    use super::*;

    /// What each late block says of itself, against what the thread received by the kernel's count. A busy host may
    /// make any block late, and may let the window draw before the callback wants the lock.
    #[test]
    fn each_fault_is_found() {
        let late = session();
        let effects = late.iter().filter(|block| block.wrong == InjectedFault::Effect);
        assert_eq!(effects.count(), 3, "{late:?}");
        for block in &late {
            match block.fault {
                Fault::Code => assert!(block.received > PERIOD - PERIOD / 10, "{block:?}"),
                Fault::Scheduler(loss) => {
                    assert!(block.received < PERIOD + PERIOD / 10, "{block:?}");
                    assert!(loss.switches != Switches::default(), "{block:?}");
                }
                Fault::Either(_) => {}
            }
        }
    }

    #[test]
    fn a_block_that_lost_nothing_is_late_by_its_code() {
        assert_eq!(Fault::of(None), Fault::Code);
    }
}
