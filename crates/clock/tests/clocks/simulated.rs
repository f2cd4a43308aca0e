//! Hours of virtual time on the simulated clock, with every kind of drift and fault.
//!
//! In each case no reading is before an earlier one; the true time is inside the bounds; a counter
//! that leaves the allowance for drift is found, by a typed event that is counted, and the OS clock
//! serves from then on; times read at any moment stay comparable.
//!
//! What no clock can know: between a fault and the next check the counter is believed. The cases
//! say how long that may be, and what does not hold meanwhile. Two lies are never found, because
//! they do no harm: a count that is off by a constant since before it was adopted, and a rate that
//! is constant but not the nominal one; calibration takes both out.

use std::sync::Arc;

use hourglass_clock::source::sim::{Drift, Fault, FaultKind, SimConfig};
use hourglass_clock::source::{ClockSource, SimSource};
use hourglass_clock::timekeeping::{
    Bounds, Clock, ClockSettings, EventKind, ReferenceClock, SourceId, Start, Status,
};
use hourglass_dice::Dice;
use hourglass_time::Span;

const SECOND_NS: u64 = 1_000_000_000;
const HOURS_NS: u64 = 3 * 3_600 * SECOND_NS;
/// When faults happen, after the clock has settled.
const FAULT_AT: Span = Span::from_secs(3_600);
/// The longest time between two looks.
const LONGEST_PIECE_NS: u64 = 4 * SECOND_NS;
/// Until a fault is found: the longest line (`ClockSettings::longest_interval_ns`), and the pieces
/// until the clock is maintained.
const FOUND_AFTER_NS: u64 = 16 * SECOND_NS + 20 * LONGEST_PIECE_NS;

/// What is to come of a case.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// The counter serves all the time, adopted once; every promise holds all the time.
    Sound,
    /// One of these kinds is counted, once, and the OS clock serves from then on.
    Left(&'static [EventKind]),
    /// The same, but the counter is tried again, and serves in the end.
    TriedAgain(EventKind),
    /// The counter is never adopted.
    NeverTaken,
}

/// What does not hold between a fault and its discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excuse {
    Nothing,
    /// Bounds: the counter leaves them.
    Bounds,
    /// Bounds and order: the counter went back, or differs from CPU to CPU.
    BoundsAndOrder,
}

struct Case {
    name: &'static str,
    config: SimConfig,
    settings: ClockSettings,
    outcome: Outcome,
    meanwhile: Excuse,
}

/// A counter of 2.3 GHz whose reads take 10 to 30 ns; never looks at this machine's files.
fn case(name: &'static str, outcome: Outcome) -> Case {
    let config = SimConfig {
        hertz: 2_300_000_000,
        start_ticks: u64::MAX - 1_000_000_000_000,
        read_cost: Span::from_nanos(10),
        read_jitter: Span::from_nanos(20),
        ..SimConfig::default()
    };
    let settings = ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
    Case { name, config, settings, outcome, meanwhile: Excuse::Nothing }
}

fn sound(name: &'static str, drifts: &[Drift]) -> Case {
    let mut case = case(name, Outcome::Sound);
    case.config.drifts = drifts.to_vec();
    case
}

/// More drift than the allowance, from the beginning.
fn too_much(name: &'static str, drift: Drift) -> Case {
    let mut case = case(name, Outcome::Left(&[EventKind::Residual]));
    case.config.drifts = vec![drift];
    case.meanwhile = Excuse::Bounds;
    case
}

fn faulty(name: &'static str, kinds: &[FaultKind], outcome: Outcome, meanwhile: Excuse) -> Case {
    let mut case = case(name, outcome);
    case.config.drifts = vec![Drift::Constant { ppb: -30_000 }];
    case.config.faults = kinds.iter().map(|kind| Fault { at: FAULT_AT, kind: *kind }).collect();
    case.meanwhile = meanwhile;
    case
}

/// A counter so bad that the clock is often 100 us from the truth, and bounds that say so: what is
/// a few nanoseconds with a good one shows here.
fn wild(mut case: Case) -> Case {
    let crests = Drift::Periodic { ppb: 450_000, period: Span::from_secs(5) };
    case.config.drifts = vec![crests];
    case.settings.allowance_ppb = Some(2_000_000);
    case.settings.target_bound_ns = 5_000_000;
    case.settings.longest_interval_ns = 2 * SECOND_NS;
    case
}

/// An HPET, say: 10 MHz, and reads that take a microsecond and at times several.
fn slow(mut case: Case) -> Case {
    case.config.hertz = 10_000_000;
    case.config.read_cost = Span::from_nanos(700);
    case.config.read_jitter = Span::from_nanos(5_000);
    case
}

/// An ARM timer of 19.2 MHz: a tick is longer than a read, and than the usual bracket.
fn coarse(mut case: Case) -> Case {
    case.config.hertz = 19_200_000;
    case
}

/// A timer of 62.5 MHz that moves once in 2 us: nothing says so but how it moves.
fn jerky(mut case: Case) -> Case {
    case.config.hertz = 62_500_000;
    case.config.grain_ticks = 125;
    case
}

/// Without a synchroniser 100 ppb are allowed for, between any two moments of half a minute.
fn drifts_within_the_allowance() -> Vec<Case> {
    let s = Span::from_secs;
    let periodic = |ppb, period| Drift::Periodic { ppb, period };
    let ageing = |ppb_per_s| Drift::Linear { ppb_per_s, limit_ppb: 100_000_000 };
    let mut sloppy = sound("sloppy, and known to be", &[]);
    sloppy.config.drifts = vec![Drift::Stepping { ppb: 5_000, interval: s(7) }];
    sloppy.settings.allowance_ppb = Some(10_000);
    vec![
        sound("none", &[]),
        sound("constant, fast", &[Drift::Constant { ppb: 300_000 }]),
        sound("constant, slow", &[Drift::Constant { ppb: -5_000_000 }]),
        sound("linear, faster", &[ageing(3)]),
        sound("linear, slower", &[ageing(-3)]),
        sound("periodic, a second", &[periodic(50, s(1))]),
        sound("periodic, half a minute", &[periodic(50, s(24))]),
        sound("periodic, a quarter of an hour", &[periodic(450, s(1_000))]),
        sound("stepping", &[Drift::Stepping { ppb: 50, interval: s(10) }]),
        sound(
            "all together",
            &[
                Drift::Constant { ppb: 80_000 },
                ageing(1),
                periodic(20, s(60)),
                Drift::Stepping { ppb: 10, interval: s(3) },
            ],
        ),
        sloppy,
        wild(sound("wild, and known to be", &[])),
        slow(sound("none, and slow reads", &[])),
        coarse(sound("none, and ticks of 52 ns", &[])),
        jerky(sound("none, and steps of 2 us", &[])),
        jerky(sound("steps of 2 us, and drift", &[ageing(-2), periodic(10, s(30))])),
        coarse(sound("ticks of 52 ns, and drift", &[ageing(2), periodic(10, s(30))])),
    ]
}

fn drifts_beyond_the_allowance() -> Vec<Case> {
    let s = Span::from_secs;
    vec![
        too_much("linear", Drift::Linear { ppb_per_s: 300, limit_ppb: 100_000_000 }),
        too_much("linear, slower", Drift::Linear { ppb_per_s: -300, limit_ppb: 100_000_000 }),
        too_much("periodic", Drift::Periodic { ppb: 20_000, period: s(60) }),
        too_much("stepping", Drift::Stepping { ppb: 20_000, interval: s(20) }),
    ]
}

fn faults() -> Vec<Case> {
    use EventKind::{NegativeStep, Residual, Suspended};
    use Excuse::{Bounds, BoundsAndOrder, Nothing};
    let (ns, s) = (Span::from_nanos, Span::from_secs);
    let left = Outcome::Left(&[Residual, NegativeStep]);
    let step = FaultKind::Step;
    let rate = |ppb| FaultKind::Rate { ppb };
    let cpu = |offset_ns| FaultKind::CpuOffset { cpu: 1, offset: ns(offset_ns) };
    let suspend = FaultKind::Suspend(s(30));
    let again = Outcome::TriedAgain(Suspended);
    let mut narrow = case("32 bits", Outcome::NeverTaken);
    narrow.config.width_bits = 32;
    let mut asked = case("32 bits, asked for", Outcome::NeverTaken);
    asked.config.width_bits = 32;
    asked.settings.start = Start::With(SourceId::SIMULATED);
    let mut off = case("off by a constant from the beginning", Outcome::Sound);
    off.config.faults = vec![Fault { at: Span::ZERO, kind: step(s(1_000)) }];
    vec![
        faulty("2 us back", &[step(ns(-2_000))], left, BoundsAndOrder),
        faulty("3 ms back", &[step(ns(-3_000_000))], left, BoundsAndOrder),
        faulty("an hour back", &[step(s(-3_600))], left, BoundsAndOrder),
        wild(faulty("a wild one, a minute back", &[step(s(-60))], left, BoundsAndOrder)),
        coarse(faulty("a coarse one, 2 us back", &[step(ns(-2_000))], left, BoundsAndOrder)),
        coarse(faulty("a coarse one, 2 us forward", &[step(ns(2_000))], left, Bounds)),
        jerky(faulty("a jerky one, 3 ms back", &[step(ns(-3_000_000))], left, BoundsAndOrder)),
        slow(faulty("a slow one, 3 ms back", &[step(ns(-3_000_000))], left, BoundsAndOrder)),
        faulty("2 us forward", &[step(ns(2_000))], left, Bounds),
        faulty("3 ms forward", &[step(ns(3_000_000))], left, Bounds),
        faulty("an hour forward", &[step(s(3_600))], left, Bounds),
        faulty("stuck for a while", &[FaultKind::Stop(s(10))], left, Bounds),
        faulty("stuck for good", &[FaultKind::Stop(Span::MAX)], left, Bounds),
        faulty("rate 2 ppm off", &[rate(2_000)], left, Bounds),
        faulty("rate 20 % fast", &[rate(200_000_000)], left, Bounds),
        faulty("rate 20 % slow", &[rate(-200_000_000)], left, Bounds),
        faulty("a CPU ahead", &[cpu(50_000)], left, BoundsAndOrder),
        faulty("a CPU behind", &[cpu(-50_000)], left, BoundsAndOrder),
        faulty("suspended, the count too", &[suspend], again, Nothing),
        faulty("suspended, the count went on", &[suspend, step(s(30))], again, Bounds),
        faulty("suspended, the count reset", &[suspend, step(s(-1_000))], again, BoundsAndOrder),
        narrow,
        asked,
        off,
    ]
}

/// Bounds that a reader received, and the true time at that moment.
#[derive(Clone, Copy, Debug)]
struct TimePoint {
    bounds: Bounds,
    truth_ns: u64,
}

/// A clock on a simulated counter, and what was seen of it.
struct World {
    sim: Arc<SimSource>,
    clock: Clock<Arc<SimSource>>,
    last_ns: u64,
    /// Kept now and then, all through the case.
    points: Vec<TimePoint>,
}

impl World {
    fn truth_ns(&self) -> u64 {
        self.sim.true_time().nanos_or_zero()
    }

    fn found(&self) -> u64 {
        EventKind::ALL.iter().filter(|k| k.fails_over()).map(|k| self.clock.count(*k)).sum()
    }

    /// Reads in every way. `excused` says what need not hold.
    fn look(&mut self, name: &str, excused: Excuse, keep: bool) -> Status {
        for ns in [self.clock.now(), self.clock.now_ordered(), self.clock.now()] {
            let forward = ns >= self.last_ns || excused == Excuse::BoundsAndOrder;
            assert!(forward, "{name}: {ns} after {}: {:?}", self.last_ns, self.clock.events());
            self.last_ns = ns.max(self.last_ns);
        }
        let bounds = self.clock.now_bounded();
        // A simulated read takes its time first and samples at its end, so this is the very moment.
        let truth_ns = self.truth_ns();
        let inside = (bounds.earliest..=bounds.latest).contains(&truth_ns);
        if excused == Excuse::Nothing {
            let events = self.clock.events();
            assert!(inside, "{name}: {bounds:?} without {truth_ns}: {events:?}");
        }
        if keep && inside {
            self.points.push(TimePoint { bounds, truth_ns });
        }
        bounds.status
    }

    /// Whichever source served when two times were read, their order and distance are what their
    /// bounds say.
    fn assert_comparable(&self, name: &str) {
        assert!(self.points.len() > 100, "{name}: {}", self.points.len());
        for (index, a) in self.points.iter().enumerate() {
            for b in &self.points[index + 1..] {
                assert!(a.bounds.earliest <= b.bounds.latest, "{name}: {a:?} after {b:?}");
                let least = b.bounds.earliest.saturating_sub(a.bounds.latest);
                let most = b.bounds.latest.saturating_sub(a.bounds.earliest);
                let truth_ns = b.truth_ns - a.truth_ns;
                assert!((least..=most).contains(&truth_ns), "{name}: {a:?} to {b:?}");
            }
        }
    }
}

/// Runs a case for hours; random pieces of time pass, and the clock is maintained in a third of
/// them.
fn run(case: Case, seed: u64) -> World {
    let Case { name, mut config, settings, outcome, meanwhile } = case;
    println!("{name}: seed {seed}, {outcome:?}");
    config.seed = seed;
    let fault_ns = config.faults.iter().map(|f| f.at.nanos_or_zero()).max().unwrap_or(0);
    let several_cpus = config.faults.iter().any(|f| matches!(f.kind, FaultKind::CpuOffset { .. }));
    let sim = Arc::new(SimSource::new(config));
    let clock = Clock::on(Arc::clone(&sim), settings);
    let mut world = World { sim, clock, last_ns: 0, points: Vec::new() };
    let mut dice = Dice::new(seed);
    let mut found_ns = None;
    while world.truth_ns() < HOURS_NS {
        let magnitude = dice.roll() % u64::from(LONGEST_PIECE_NS.ilog2());
        let piece_ns = 1 + dice.roll() % (2 << magnitude);
        world.sim.advance(Span::from_nanos(piece_ns.cast_signed()));
        if several_cpus {
            world.sim.run_on((dice.roll() % 2) as u32);
        }
        if dice.roll().is_multiple_of(3) {
            world.clock.maintain();
        }
        let is_found = world.found() > 0;
        if is_found && found_ns.is_none() {
            found_ns = Some(world.truth_ns());
        }
        let awaited = world.truth_ns() >= fault_ns && !is_found;
        let excused = if awaited { meanwhile } else { Excuse::Nothing };
        let keep = dice.roll().is_multiple_of(64);
        world.look(name, excused, keep);
    }
    assert_outcome(name, outcome, &world);
    if !matches!(outcome, Outcome::Sound | Outcome::NeverTaken) {
        let after_ns = found_ns.expect("checked above") - fault_ns;
        println!("  found after {after_ns} ns");
        assert!(after_ns <= FOUND_AFTER_NS, "{name}: found after {after_ns} ns");
    }
    world.assert_comparable(name);
    world
}

fn assert_outcome(name: &str, outcome: Outcome, world: &World) {
    let (clock, events) = (&world.clock, world.clock.events());
    let (adopted, found) = (clock.count(EventKind::Adopted), world.found());
    let status = clock.now_bounded().status;
    match outcome {
        Outcome::Sound => {
            assert_eq!((adopted, found), (1, 0), "{name}: {events:?}");
            assert_eq!((clock.source(), status), (SourceId::SIMULATED, Status::Steady), "{name}");
        }
        Outcome::Left(kinds) => {
            let counted: u64 = kinds.iter().map(|kind| clock.count(*kind)).sum();
            assert_eq!((adopted, counted, found), (1, 1, 1), "{name}: {events:?}");
            assert_eq!((clock.source(), status), (SourceId::OS, Status::FailedOver), "{name}");
        }
        Outcome::TriedAgain(kind) => {
            assert_eq!((adopted, clock.count(kind), found), (2, 1, 1), "{name}: {events:?}");
            assert_eq!((clock.source(), status), (SourceId::SIMULATED, Status::Steady), "{name}");
        }
        Outcome::NeverTaken => {
            assert_eq!((adopted, clock.source()), (0, SourceId::OS), "{name}: {events:?}");
            assert_eq!(found, clock.count(EventKind::Unsupported), "{name}: {events:?}");
        }
    }
}

#[test]
fn hours_of_drift_within_the_allowance_are_inside_the_bounds() {
    for (seed, case) in (1..).zip(drifts_within_the_allowance()) {
        run(case, seed);
    }
}

#[test]
fn hours_of_drift_beyond_the_allowance_are_not_kept() {
    for seed in 1..=3 {
        for case in drifts_beyond_the_allowance() {
            run(case, seed);
        }
    }
}

#[test]
fn hours_with_a_fault_end_with_its_event() {
    for seed in 1..=3 {
        for case in faults() {
            let asked = case.settings.start == Start::With(SourceId::SIMULATED);
            let suspended = case
                .config
                .faults
                .iter()
                .any(|f| f.kind == FaultKind::Suspend(Span::from_secs(30)));
            let name = case.name;
            let world = run(case, seed);
            if asked {
                assert_eq!(world.clock.count(EventKind::Unsupported), 1, "{name}");
            }
            if suspended {
                // The other clocks differ from the one that serves.
                let boottime = world.clock.now_on(ReferenceClock::Boottime);
                let truth_ns = (world.truth_ns() + 30 * SECOND_NS).cast_signed();
                assert!(boottime.ns.abs_diff(truth_ns) <= boottime.error_ns + 100, "{name}");
            }
        }
    }
}

/// The same seed gives the same hours, so that a failure can be run again.
#[test]
fn hours_are_repeatable() {
    let bounds_read = |seed| {
        let world = run(faults().remove(1), seed);
        world.points.iter().map(|point| point.bounds).collect::<Vec<Bounds>>()
    };
    assert_eq!(bounds_read(7), bounds_read(7));
    assert_ne!(bounds_read(7), bounds_read(8));
    // No read of this machine's clocks is in it.
    assert_eq!(SimSource::default().read(), 0);
}
