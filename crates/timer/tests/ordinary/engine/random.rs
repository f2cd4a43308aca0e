//! Hours of virtual time, at random, beside a slow twin: the same timers expire in the same order,
//! never early on their own clock, and no later than slack, device and tick allow.
//!
//! Source: the issue, "ordering and never early over hours of simulated time with random arm, cancel,
//! re-arm and clock steps, seed printed". A failure is played again with its seed in
//! `HOURGLASS_SEED`.

use hourglass_dice::{Dice, seed};
use hourglass_queue::reference::SortedList;
use hourglass_queue::{Key, PriorityStructure};
use hourglass_timer::engine::{ClockReadings, ExpiredTimer};
use hourglass_timer::event::PeriodGrid;

use super::*;

const CROWD: usize = 150;

#[derive(Clone, Copy, Debug)]
struct TwinTimer {
    id: TimerId,
    on_set: ClockSetPolicy,
    alive: bool,
    armed: Option<Armed>,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    expiry_ns: i64,
    /// By when it must be looked at, on its clock.
    latest_ns: i64,
    sequence: u64,
    /// Settings of the clock that the engine knew of.
    sets: u64,
}

struct Twin {
    known: Vec<TwinTimer>,
    /// A list a base, of places in `known`.
    lists: [SortedList; 4],
    times: SimTimes,
    dice: Dice,
    sequence: u64,
    sets: u64,
    fired: u64,
    notified: u64,
}

impl Twin {
    fn one_of(&mut self, wanted: impl Fn(&TwinTimer) -> bool) -> Option<usize> {
        let places: Vec<usize> =
            (0..self.known.len()).filter(|i| wanted(&self.known[*i])).collect();
        let n = places.len() as u64;
        (n > 0).then(|| places[self.dice.below(n) as usize])
    }

    fn act(&mut self, timers: &mut EngineTimers<u32>) {
        let alive = self.known.iter().filter(|known| known.alive).count();
        match self.dice.below(12) {
            0..=2 if alive < CROWD => self.create(timers),
            3 => {
                let Some(i) = self.one_of(|known| known.alive) else { return };
                assert_eq!(timers.remove(self.known[i].id), Ok(i as u32));
                self.disarm(i);
                self.known[i].alive = false;
            }
            4..=5 => {
                let Some(i) = self.one_of(|known| known.alive) else { return };
                let armed = self.known[i].armed.is_some();
                assert_eq!(timers.cancel(self.known[i].id), Ok(armed));
                self.disarm(i);
            }
            6 => {
                let Some(i) = self.one_of(|known| !known.alive) else { return };
                let id = self.known[i].id;
                assert!(timers.cancel(id).is_err() && timers.expiry_ns(id).is_err());
            }
            _ => {
                if let Some(i) = self.one_of(|known| known.alive) {
                    self.arm(timers, i);
                }
            }
        }
    }

    fn create(&mut self, timers: &mut EngineTimers<u32>) {
        let name = self.known.len() as u32;
        let on_set =
            if self.dice.below(4) == 0 { ClockSetPolicy::Expire } else { ClockSetPolicy::Follow };
        let base = ClockBase::ALL[self.dice.below(4) as usize];
        let id = timers.create_with(base, on_set, name).unwrap();
        self.known.push(TwinTimer { id, on_set, alive: true, armed: None });
    }

    fn disarm(&mut self, i: usize) {
        self.known[i].armed = None;
        for list in &mut self.lists {
            list.remove(i as u32);
        }
    }

    fn arm(&mut self, timers: &mut EngineTimers<u32>, i: usize) {
        let TwinTimer { id, .. } = self.known[i];
        let now = self.times.now();
        let base_ns = now.ns(id.base());
        let expiry_ns = match self.dice.below(10) {
            // Often the same times, some of them on a tick.
            0..=2 => (base_ns / (12 * MS) + 1 + self.dice.below(3) as i64) * 12 * MS,
            3 => base_ns - self.dice.magnitude(36),
            4 => base_ns + self.dice.magnitude(30),
            _ => {
                let bits = 30 + self.dice.below(15);
                base_ns + self.dice.below(1 << bits) as i64
            }
        };
        let expiry_ns = expiry_ns.max(0);
        let slack_ns = match self.dice.below(4) {
            0 => self.dice.magnitude(34),
            _ => 0,
        };
        self.sequence += 1;
        let latest_ns = expiry_ns + slack_ns;
        timers.arm(id, expiry_ns, slack_ns as u64).unwrap();
        let (sequence, sets) = (self.sequence, self.sets);
        self.known[i].armed = Some(Armed { expiry_ns, latest_ns, sequence, sets });
        let list = &mut self.lists[id.base() as usize];
        list.reserve(self.known.len()).unwrap();
        list.place(i as u32, Key { expiry: latest_ns, sequence });
    }

    fn expires_with_set(&self, sets: u64) -> Option<usize> {
        let waits = |known: &TwinTimer| {
            let armed = known.armed?;
            let settable = known.id.base().is_settable() && known.on_set == ClockSetPolicy::Expire;
            (settable && armed.sets < sets).then_some((armed.sets, armed.sequence))
        };
        let all = self.known.iter().enumerate();
        all.filter_map(|(i, known)| Some((waits(known)?, i))).min().map(|(_, i)| i)
    }

    fn next(&self, now: &ClockReadings) -> Option<(i64, usize)> {
        let mut next: Option<(i64, usize)> = None;
        for (base, list) in ClockBase::ALL.into_iter().zip(&self.lists) {
            let Some(first) = list.first() else { continue };
            let i = first.slot as usize;
            let until_ns = first.expiry - now.ns(base);
            let may = self.known[i].armed.unwrap().expiry_ns <= now.ns(base);
            if may && next.is_none_or(|(sooner, _)| until_ns < sooner) {
                next = Some((until_ns, i));
            }
        }
        next
    }

    /// By when the engine must have come back, device time, but for what its device needs.
    fn due_ns(&self, now: &ClockReadings) -> u64 {
        if self.expires_with_set(now.sets()).is_some() {
            return now.device_ns();
        }
        let latest = |known: &TwinTimer| {
            let armed = known.armed?;
            Some(now.to_device_ns(known.id.base(), armed.latest_ns))
        };
        self.known.iter().filter_map(latest).min().map_or(u64::MAX, |ns| ns.max(now.device_ns()))
    }

    fn check(&mut self, name: u32, fired: &ExpiredTimer, now: &ClockReadings) {
        let i = name as usize;
        let known = self.known[i];
        let armed = known.armed.expect("it is not armed");
        assert_eq!((fired.id, fired.expiry_ns), (known.id, armed.expiry_ns));
        assert_eq!(fired.now_ns, now.ns(fired.base));
        self.sets = now.sets();
        match fired.cause {
            Cause::ClockSet => {
                assert_eq!(self.expires_with_set(now.sets()), Some(i));
                assert_eq!(fired.latest_ns, armed.latest_ns);
                self.notified += 1;
            }
            Cause::Expiry => {
                assert_eq!(self.expires_with_set(now.sets()), None);
                let actual_ns = self.times.now().ns(fired.base);
                assert!(armed.expiry_ns <= actual_ns.min(fired.now_ns), "early: {fired:?}");
                let until_ns = fired.latest_ns - fired.now_ns;
                let next = self.next(now);
                assert_eq!(fired.latest_ns, armed.latest_ns);
                assert_eq!(next, Some((until_ns, i)));
            }
        }
        self.fired += 1;
        self.disarm(i);
    }
}

struct World {
    engine: Engine<u32>,
    twin: Twin,
    quiet: bool,
    /// Whether the device can be programmed, and then the ticks of it.
    ticks: Option<PeriodGrid>,
    /// How late the device may be; its tick.
    device_ns: u64,
    tick_ns: u64,
}

impl World {
    fn new(seed: u64, config: SimEventConfig) -> World {
        let mut dice = Dice::new(seed);
        let config = SimEventConfig { seed: dice.roll(), ..config };
        let (one_shot, unit) = (config.one_shot.is_some(), config.unit);
        let periods = config.periods;
        // The edge that counting begins with, two units at least, and one to round up.
        let device_ns = 4 * (unit.nth_ns(1) - 1) + config.jitter.nanos_or_zero();
        let (engine, times) = machine::engine(config);
        times.set_realtime(1_700_000_000 * SECOND);
        times.set_tai_offset(Span::from_secs(37));
        let asked = DEFAULT_TICK;
        let tick = periods.at_most(asked).unwrap_or(asked);
        World {
            twin: Twin {
                known: Vec::new(),
                lists: std::array::from_fn(|_| SortedList::default()),
                sets: 0,
                times,
                dice,
                sequence: 0,
                fired: 0,
                notified: 0,
            },
            engine,
            quiet: false,
            ticks: one_shot.then(|| PeriodGrid::starting_at(0, tick)),
            device_ns,
            tick_ns: tick.nth_ns(1),
        }
    }

    fn outside(&mut self) {
        let Twin { times, dice, .. } = &mut self.twin;
        let by = Span::from_nanos(dice.magnitude(43));
        match dice.below(60) {
            0 => times.step_realtime(by),
            1 => times.step_realtime(-by),
            2 => times.suspend(by),
            3 => self.engine.source_lost(),
            4..=5 => self.engine.source_valid(),
            _ => {}
        }
    }

    fn wait(&mut self) -> DeviceWaitEnd {
        let begin = self.twin.times.now();
        let limit_ns = begin.device_ns() + self.twin.dice.magnitude(46) as u64;
        let due_ns = self.twin.due_ns(&begin);
        let woken = self.engine.wait(Some(limit_ns)).unwrap();
        let now_ns = self.twin.times.now().device_ns();
        let tick_ns = match self.engine.resolution() {
            Resolution::High => 0,
            Resolution::TickBound => self.tick_ns,
        };
        let allowed_ns = due_ns.saturating_add(self.device_ns + tick_ns);
        assert!(now_ns <= limit_ns.min(allowed_ns), "{now_ns} for {due_ns}, limit {limit_ns}");
        woken
    }

    fn look(&mut self, woken: DeviceWaitEnd) {
        let actual = self.twin.times.now();
        let now_ns = actual.device_ns();
        // Where a look is as of: a device that ticks says when, this is then not known here.
        let as_of_ns = match (self.engine.resolution(), &self.ticks) {
            (Resolution::High, _) => Some(now_ns),
            (Resolution::TickBound, Some(ticks)) => Some(ticks.last_until(now_ns)),
            (Resolution::TickBound, None) => (woken == EVENT).then_some(now_ns),
        };
        let moved = |as_of_ns: u64| {
            let back = now_ns as i64 - as_of_ns as i64;
            ClockReadings::new(ClockBase::ALL.map(|base| actual.ns(base) - back))
                .with_sets(actual.sets())
        };
        let budget = 1 + self.twin.dice.below(12) as usize;
        let looks = self.engine.statistics().polls;
        let quiet = self.quiet;
        let twin = &mut self.twin;
        let count = self.engine.expire(budget, |timers, fired| {
            let seen_ns = now_ns as i64 - (actual.ns(fired.base) - fired.now_ns);
            assert!(as_of_ns.is_none_or(|ns| ns as i64 == seen_ns) && seen_ns <= now_ns as i64);
            let name = *timers.payload(fired.id).unwrap();
            twin.check(name, &fired, &moved(seen_ns as u64));
            if quiet {
                return;
            }
            if twin.dice.below(3) == 0 {
                let long = Span::from_nanos(twin.dice.magnitude(26));
                twin.times.source().advance(long);
            }
            if twin.dice.below(2) == 0 {
                // Often itself.
                twin.arm(timers, name as usize);
            }
            for _ in 0..twin.dice.below(3) {
                twin.act(timers);
            }
        });
        let looked = self.engine.statistics().polls > looks;
        assert!(woken != EVENT || count > 0, "woken for nothing at {now_ns}");
        if looked {
            twin.sets = actual.sets();
        }
        if let Some(as_of_ns) = as_of_ns
            && looked
            && count < budget
        {
            let now = moved(as_of_ns);
            assert_eq!((twin.expires_with_set(now.sets()), twin.next(&now)), (None, None));
        }
    }
}

fn hours(config: SimEventConfig, waits: u64, hours: i64) {
    let name = config.name;
    let mut world = World::new(seed(), config);
    let mut resolutions = [0u64; 2];
    for wait in 0..waits {
        // By turns a quiet time, in which the timers run out.
        world.quiet = wait / 200 % 3 == 2;
        for _ in 0..if world.quiet { 0 } else { world.twin.dice.below(6) } {
            world.twin.act(world.engine.timers());
        }
        world.outside();
        let woken = world.wait();
        resolutions[usize::from(world.engine.resolution() == Resolution::High)] += 1;
        world.look(woken);
    }
    let passed = now_ns(&world.twin.times) / HOUR;
    let statistics = world.engine.statistics();
    eprintln!("{name}: {passed} h, {} told, {resolutions:?}, {statistics:?}", world.twin.notified);
    assert_eq!(statistics.fired, world.twin.fired);
    assert!(
        passed >= hours && world.twin.fired > 100 && world.twin.notified > 0,
        "too little happened"
    );
}

#[test]
fn hours_on_an_exact_device() {
    hours(SimEventConfig::exact(), 10_000, 5);
}

#[test]
fn hours_on_a_late_device() {
    let jitter = Span::from_micros(300);
    hours(SimEventConfig { jitter, ..SimEventConfig::exact() }, 10_000, 5);
}

#[test]
fn hours_on_an_i8254_of_its_own() {
    hours(SimEventConfig { per_cpu: true, ..SimEventConfig::i8254() }, 10_000, 5);
}

#[test]
fn hours_on_the_systems_i8254() {
    hours(SimEventConfig::i8254(), 10_000, 5);
}

#[test]
fn hours_on_an_mc146818() {
    hours(SimEventConfig::mc146818(), 10_000, 5);
}
