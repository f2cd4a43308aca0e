//! The program that is watched: a clock, sleepers, a timer service and a witness, each of which tells what it saw, and
//! judges nothing.

use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hourglass_clock::process;
use hourglass_clock::source::SimSource;
use hourglass_clock::source::sim::{Adjustment, AdjustmentKind, SimConfig, SimKernel};
use hourglass_clock::timekeeping::{Clock, ClockSettings, MaintenanceThread};
use hourglass_dice::Dice;
use hourglass_measure::spans::SpanRecording;
use hourglass_time::Span;
use hourglass_timer::Sleeper;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::service::{Action, CancelScope, Owner, Port, TimerService, TimerSpec};

use super::facts::Fact;
use super::monotonic_ns;

/// Periods of the timers, ns: none divides another.
pub(super) const PERIODS: [i64; 4] = [1_900_000, 7_300_000, 31_000_000, 250_000_000];

/// Readings of a burst.
const BURST: usize = 8;

/// One span in this number sleeps.
const SLEEPING: u64 = 16;

/// Length of a simulated kernel's life.
const LIFE: Span = Span::from_secs(60);

/// A thread's line to who watches.
struct Teller(BufWriter<UnixStream>);

impl Teller {
    fn new(socket: &Path) -> Teller {
        Teller(BufWriter::with_capacity(4_096, UnixStream::connect(socket).unwrap()))
    }

    fn tell(&mut self, fact: Fact) {
        for word in fact.words() {
            self.0.write_all(&word.to_le_bytes()).unwrap();
        }
    }
}

/// Runs for `length`, then keeps its spans in `folder/spans`.
pub(super) fn run(folder: &Path, length: Duration) {
    let socket = folder.join("facts");
    let until = Instant::now() + length;
    let teller = || Teller::new(&socket);
    std::thread::scope(|scope| {
        scope.spawn(|| clock(teller(), until));
        scope.spawn(|| sleeper(teller(), until));
        scope.spawn(|| timers(teller(), until));
        scope.spawn(|| waits(teller(), until));
        scope.spawn(|| spans(teller(), folder, until));
        scope.spawn(|| slewed(teller(), until));
    });
}

fn clock(mut teller: Teller, until: Instant) {
    let unread = ClockSettings { readers_refit: false, ..ClockSettings::DEFAULT };
    let helper = MaintenanceThread::start(Arc::new(Clock::with(unread))).unwrap();
    let page = helper.clock().share().unwrap();
    teller.tell(Fact::Page { descriptor: page.as_raw_fd().unsigned_abs().into() });
    teller.0.flush().unwrap();
    let read = process::clock();
    while Instant::now() < until {
        for _ in 0..BURST {
            let before = monotonic_ns();
            let bounds = read.now_bounded();
            let after = monotonic_ns();
            let (earliest, latest) = (bounds.earliest, bounds.latest);
            teller.tell(Fact::Clock { before, earliest, latest, after, now: read.now_ordered() });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn sleeper(mut teller: Teller, until: Instant) {
    let mut dice = Dice::new(1);
    let mut sleeper = Sleeper::new();
    while Instant::now() < until {
        let most = 1 << dice.between(10, 23);
        let deadline = sleeper.now_ns() + dice.between(0, most);
        let woke = sleeper.sleep_until_ns(deadline).woke_ns;
        let after = monotonic_ns();
        let bounds = process::clock().now_bounded();
        teller.tell(Fact::Sleep { deadline, woke, after, width: bounds.latest - bounds.earliest });
    }
}

/// Periodic timers, of which no expiry may be lost: each counts up to `until`, and goes on until it has said so.
fn timers(mut teller: Teller, until: Instant) {
    const PATIENCE: Duration = Duration::from_secs(30);
    let service = TimerService::start().unwrap();
    let owner = service.owner("soak");
    let port = Port::new(65_536).unwrap();
    let first = monotonic_ns() as i64 + 10_000_000;
    let timers = PERIODS.map(|period| {
        let tag = PERIODS.iter().position(|one| *one == period).unwrap() as u64;
        let timer = owner.timer(ClockBase::Monotonic, Action::send(&port, tag)).unwrap();
        timer.arm(TimerSpec::at(first).every(Span::from_nanos(period))).unwrap();
        timer
    });
    let mut last = [0; PERIODS.len()];
    let mut stop = None;
    while last.iter().any(|ns| stop.is_none_or(|stop| *ns < stop))
        && Instant::now() < until + PATIENCE
    {
        if let Some(message) = port.receive(Some(Span::from_millis(100))).unwrap() {
            let (tag, expiration) = (message.tag, message.expiration);
            last[tag as usize] = expiration.expiry_ns;
            let (expiry, overruns) = (expiration.expiry_ns as u64, expiration.overruns);
            teller.tell(Fact::Expiry { tag, expiry, overruns, received: monotonic_ns() });
        }
        if stop.is_none() && Instant::now() >= until {
            stop = Some(monotonic_ns() as i64);
        }
    }
    timers.iter().for_each(|timer| assert!(timer.cancel(CancelScope::All).unwrap()));
    let (first, stop) = (first as u64, stop.unwrap_or_default() as u64);
    teller.tell(Fact::Timers { first, stop, unsent: port.lost() });
}

/// A timer that a thread sleeps on, and timers that are made, armed, cancelled and given back all the time.
fn waits(mut teller: Teller, until: Instant) {
    let mut dice = Dice::new(2);
    let service = TimerService::start().unwrap();
    let owner = service.owner("soak");
    let timer = owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
    while Instant::now() < until {
        let at = monotonic_ns() + dice.between(0, 4_000_000);
        timer.sleep_until(at as i64).unwrap();
        teller.tell(Fact::Wait { at, after: monotonic_ns() });
        come_and_go(&owner);
    }
}

fn come_and_go(owner: &Owner) {
    let timer = owner.timer(ClockBase::Boottime, Action::nothing()).unwrap();
    timer.arm(TimerSpec::after(Span::SECOND)).unwrap();
    timer.cancel(CancelScope::All).unwrap();
    timer.terminate().unwrap();
}

fn spans(mut teller: Teller, folder: &Path, until: Instant) {
    let recording = SpanRecording::start(folder.join("spans"), SpanRecording::SETTINGS).unwrap();
    let site = recording.sites().site("turn");
    let thread = recording.sites().current_thread().unwrap();
    let (mut ended, mut slept, mut inside_ns) = (0, 0, 0);
    while Instant::now() < until {
        let begun = monotonic_ns();
        let sleeps = ended % SLEEPING == 0;
        thread.run(site, || {
            if sleeps {
                std::thread::sleep(Duration::from_millis(2));
            } else {
                std::hint::black_box((0..20_000u64).fold(0, u64::wrapping_add));
            }
        });
        inside_ns += monotonic_ns() - begun;
        ended += 1;
        slept += u64::from(sleeps);
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(thread);
    recording.finish().unwrap();
    teller.tell(Fact::Spans { ended, slept, inside_ns });
}

/// Clocks of simulated kernels that are slewed in every way that `adjtimex(2)` has, one kernel after the other.
fn slewed(mut teller: Teller, until: Instant) {
    const LOOKS: usize = 20;
    let mut dice = Dice::new(3);
    while Instant::now() < until {
        let sim = Arc::new(slewed_kernel(&mut dice));
        let unwatched = ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
        let clock = Clock::on(Arc::clone(&sim), unwatched);
        teller.tell(Fact::Simulation);
        while sim.true_time() < LIFE && Instant::now() < until {
            for _ in 0..LOOKS {
                let most = 1 << dice.between(10, 27);
                sim.advance(Span::from_nanos(dice.within(0, most)));
                let kernel = || sim.monotonic().nanos_or_zero();
                let before = kernel();
                let bounds = clock.now_bounded();
                let (after, now) = (kernel(), clock.now());
                let (earliest, latest) = (bounds.earliest, bounds.latest);
                teller.tell(Fact::Simulated { before, earliest, latest, after, now });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn slewed_kernel(dice: &mut Dice) -> SimSource {
    let mut adjustments = Vec::new();
    let mut at_ns = 0;
    while at_ns < LIFE.nanos() {
        let most = 1 << dice.between(21, 32);
        at_ns += dice.within(1_000_000, most);
        let kind = match dice.below(4) {
            0 => AdjustmentKind::Frequency(dice.within(-500_000, 500_001)),
            1 => AdjustmentKind::Tick(10_000 + dice.within(-1_000, 1_001)),
            2 => AdjustmentKind::Offset {
                ns: dice.within(-500_000_000, 500_000_001),
                constant: dice.below(7) as u32,
            },
            _ => AdjustmentKind::SingleShot(dice.within(-100_000, 100_001)),
        };
        adjustments.push(Adjustment { at: Span::from_nanos(at_ns), kind });
    }
    let kernel = SimKernel { tick: Span::from_millis(4), adjustments, shown: true };
    let read_cost = Span::from_nanos(10);
    SimSource::new(SimConfig {
        seed: dice.roll(),
        kernel: Some(kernel),
        read_cost,
        ..SimConfig::default()
    })
}
