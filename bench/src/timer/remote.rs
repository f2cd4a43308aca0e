//! The case `remote_arm`: arming a timer of an engine that is another thread.
//!
//! Owns: the engine that sleeps, the thread that arms, and what it costs that one.
//! Must not: measure the wake-up, which none of these armings needs: the engine wakes every
//! millisecond, and all expiries lie behind that.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_time::Span;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::service::{Action, Owner, Timer, TimerService, TimerSpec};

use super::dice::Dice;
use super::ratio;
use crate::document::Row;
use crate::paired::median;

const CASE: &str = "remote_arm";
const GOAL: f64 = 60.0;

const TIMERS: u64 = 1_000;
const WAKES: Duration = Duration::from_millis(1);
const AHEAD: u64 = 1_000_000_000;
const BATCHES: usize = 400;
const BATCH: u32 = 500;

/// Arms timer `id` for an absolute time: `delay_ns` after the subject was made.
trait RemoteTimer {
    fn arm(&mut self, id: usize, delay_ns: u64);
}

/// The median over batches of what an arming takes, ns.
fn measure(subject: &mut impl RemoteTimer, round: u32) -> f64 {
    let mut dice = Dice::new(round);
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begun = Instant::now();
            for _ in 0..BATCH {
                let delay = AHEAD + dice.delay();
                subject.arm(dice.below(TIMERS) as usize, delay);
            }
            begun.elapsed().as_nanos() as f64 / f64::from(BATCH)
        })
        .collect();
    median(&mut batches)
}

struct ServiceTimers {
    _owner: Owner,
    timers: Vec<Timer>,
    zero_ns: i64,
}

impl ServiceTimers {
    fn start() -> Result<ServiceTimers> {
        let service = TimerService::start()?;
        let owner = service.owner("bench");
        let make = || owner.timer(ClockBase::Monotonic, Action::nothing());
        let mut timers = (0..TIMERS).map(|_| make()).collect::<Result<Vec<Timer>, _>>()?;
        let tick = make()?;
        let period = Span::from_nanos(WAKES.as_nanos() as i64);
        tick.arm(TimerSpec::after(period).every(period))?;
        timers.push(tick);
        Ok(ServiceTimers { _owner: owner, timers, zero_ns: now_ns(ClockId::Monotonic) as i64 })
    }
}

impl RemoteTimer for ServiceTimers {
    fn arm(&mut self, id: usize, delay_ns: u64) {
        self.timers[id].arm(TimerSpec::at(self.zero_ns + delay_ns as i64)).expect("it lives");
    }
}

/// The same with relative times, for which the service reads the clock.
struct RelativeTimers(ServiceTimers);

impl RemoteTimer for RelativeTimers {
    fn arm(&mut self, id: usize, delay_ns: u64) {
        let arm = TimerSpec::after(Span::from_nanos(delay_ns as i64));
        self.0.timers[id].arm(arm).expect("it lives");
    }
}

/// What one writes oneself: a map under a lock, and a thread that waits for the first.
struct Map {
    zero: Instant,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    table: Mutex<Table>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct Table {
    order: BTreeSet<(Instant, usize)>,
    armed: BTreeMap<usize, Instant>,
    looks_at: Option<Instant>,
}

impl Map {
    const NAME: &str = "Mutex<BTreeSet>";

    fn start() -> Map {
        let (table, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { table, changed, stop: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || own.serve()));
        Map { zero: Instant::now(), shared, thread }
    }
}

impl Shared {
    fn serve(&self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.stop.load(Ordering::Acquire) {
            let now = Instant::now();
            while table.order.first().is_some_and(|(at, _)| *at <= now) {
                table.order.pop_first();
            }
            let wake = now + WAKES;
            table.looks_at = Some(wake);
            let waited = self.changed.wait_timeout(table, WAKES);
            table = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl RemoteTimer for Map {
    fn arm(&mut self, id: usize, delay_ns: u64) {
        let at = self.zero + Duration::from_nanos(delay_ns);
        let mut table = self.shared.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = table.armed.insert(id, at) {
            table.order.remove(&(before, id));
        }
        table.order.insert((at, id));
        let looks_later = table.looks_at.is_some_and(|looks_at| at < looks_at);
        drop(table);
        if looks_later {
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// `tokio::time::Sleep`, reset from outside of its runtime's thread.
struct Tokio {
    zero: tokio::time::Instant,
    sleeps: Vec<Pin<Box<tokio::time::Sleep>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tokio {
    const NAME: &str = "tokio";

    fn start() -> Result<Tokio> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let mut sleeps: Vec<_> = {
            let _entered = runtime.enter();
            let far = Duration::from_secs(60);
            (0..TIMERS).map(|_| Box::pin(tokio::time::sleep(far))).collect()
        };
        // A sleep is registered when it is first polled.
        for sleep in &mut sleeps {
            let _ = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let mut wakes = tokio::time::interval(WAKES);
                while !own.load(Ordering::Acquire) {
                    wakes.tick().await;
                }
            });
        });
        Ok(Tokio { zero: tokio::time::Instant::now(), sleeps, stop, thread: Some(thread) })
    }
}

impl RemoteTimer for Tokio {
    fn arm(&mut self, id: usize, delay_ns: u64) {
        let at = self.zero + Duration::from_nanos(delay_ns);
        self.sleeps[id].as_mut().reset(at);
    }
}

impl Drop for Tokio {
    fn drop(&mut self) {
        self.sleeps.clear();
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(super) fn rows(rounds: u32) -> Result<Vec<Row>> {
    let subjects = ["hourglass", "hourglass/relative", Map::NAME, Tokio::NAME];
    let mut values = vec![Vec::new(); subjects.len()];
    for round in 0..rounds {
        for turn in 0..subjects.len() {
            // Another one begins each time.
            let subject = (turn + round as usize) % subjects.len();
            values[subject].push(match subject {
                0 => measure(&mut ServiceTimers::start()?, round),
                1 => measure(&mut RelativeTimers(ServiceTimers::start()?), round),
                2 => measure(&mut Map::start(), round),
                _ => measure(&mut Tokio::start()?, round),
            });
        }
    }
    let rows = subjects.iter().zip(&values).map(|(subject, own)| {
        let row = Row::alone(CASE, subject, median(&mut own.clone()), "ns");
        if !subject.starts_with("hourglass") {
            return row;
        }
        let mut row = if *subject == "hourglass" { row.at_most(GOAL) } else { row };
        row.ratio_to =
            [ratio(Map::NAME, own, &values[2]), ratio(Tokio::NAME, own, &values[3])].into();
        row
    });
    Ok(rows.collect())
}
