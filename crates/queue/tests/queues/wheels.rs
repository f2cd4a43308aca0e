//! The wheels against a list: nothing fires early, nothing later than its wheel says, and what was
//! not cancelled does fire; over years of simulated time, with granules of many sizes.

use std::collections::BTreeMap;

use hourglass_dice::Dice;
use hourglass_queue::reference::CascadingWheel;
use hourglass_queue::{Handle, TimeoutWheel};
use hourglass_time::{Instant, Sim, Span};

fn at(ns: i64) -> Instant<Sim> {
    Instant::from_nanos(ns)
}

type Window = (Instant<Sim>, Instant<Sim>);

struct Checked {
    wheel: TimeoutWheel<Sim, u64>,
    /// By payload: the handle, and if armed, the expiry and the latest time that the wheel's
    /// documentation allows.
    known: BTreeMap<u64, (Handle, Option<Window>)>,
    payloads: u64,
    now: Instant<Sim>,
    dice: Dice,
    fired: u64,
}

impl Checked {
    fn new(seed: u64, granularity: Span) -> Checked {
        let mut dice = Dice::new(seed);
        let now = at(dice.roll() as i64 >> dice.below(64));
        let wheel = TimeoutWheel::new(granularity, now).unwrap();
        Checked { wheel, known: BTreeMap::new(), payloads: 0, now, dice, fired: 0 }
    }

    fn one_of_the_known(&mut self) -> Option<u64> {
        let n = self.known.len() as u64;
        let i = self.dice.below(n.max(1)) as usize;
        self.known.keys().nth(i).copied()
    }

    fn create(&mut self) {
        self.payloads += 1;
        let handle = self.wheel.create(self.payloads).unwrap();
        self.known.insert(self.payloads, (handle, None));
    }

    fn arm(&mut self, payload: u64) {
        let delay = match self.dice.below(10) {
            0 => Span::from_nanos(-self.dice.magnitude(40)),
            1..=3 => self.wheel.granularity().saturating_mul(self.dice.below(70) as i64),
            4 => Span::MAX,
            _ => Span::from_nanos(self.dice.magnitude(62)),
        };
        let expiry = self.now.saturating_add(delay);
        // What is due and not popped yet holds the wheel back.
        let from = self.wheel.next_expiry().unwrap_or(Instant::MAX).min(self.now);
        let (handle, armed) = self.known.get_mut(&payload).unwrap();
        self.wheel.arm_at(*handle, self.now, expiry).unwrap();
        let delay = expiry.saturating_since(from).max(Span::ZERO);
        let late = Span::from_nanos(delay.nanos() / 15).saturating_add(self.wheel.granularity());
        *armed = Some((expiry, expiry.max(self.now).saturating_add(late)));
    }

    fn cancel(&mut self, payload: u64) {
        let (handle, armed) = self.known.get_mut(&payload).unwrap();
        assert_eq!(self.wheel.cancel(*handle), Ok(armed.take().is_some()));
    }

    fn remove(&mut self, payload: u64) {
        let (handle, _) = self.known.remove(&payload).unwrap();
        assert_eq!(self.wheel.remove(handle), Ok(payload));
        assert!(self.wheel.cancel(handle).is_err());
    }

    fn move_the_clock(&mut self) {
        let by = self.dice.magnitude(60).min(i64::MAX / 50_000 - 1);
        self.now = match (self.dice.below(4), self.wheel.next_expiry()) {
            (0..=1, Some(next)) if next < at(i64::MAX / 2) => next.max(self.now),
            _ if self.now > at(i64::MAX - (1 << 60)) => self.now,
            _ => self.now.saturating_add(Span::from_nanos(by >> self.dice.below(50))),
        };
    }

    fn pop(&mut self, budget: usize) -> usize {
        let promised = self.wheel.next_expiry();
        let (now, known) = (self.now, &mut self.known);
        let fired = self.wheel.expire(now, budget, |wheel, expired| {
            let payload = *wheel.payload(expired.handle).unwrap();
            let (handle, armed) = known.get_mut(&payload).unwrap();
            let (expiry, latest) = armed.take().expect("it was armed");
            assert_eq!((expired.handle, expired.expiry), (*handle, expiry));
            assert!(expiry <= now, "early");
            assert!(expiry <= expired.latest && expired.latest <= latest, "late");
        });
        assert_eq!(fired > 0, promised.is_some_and(|next| next <= now));
        self.fired += fired as u64;
        fired
    }

    fn check(&self) {
        let armed = self.known.values().filter_map(|(_, armed)| *armed);
        assert_eq!(self.wheel.armed(), armed.clone().count());
        let next = self.wheel.next_expiry();
        assert_eq!(next, next.filter(|_| self.wheel.armed() > 0));
        // The wheel does not sleep past what it has promised.
        if let Some(latest) = armed.map(|(_, latest)| latest).min() {
            assert!(next.is_some_and(|next| next <= latest), "{next:?} is after {latest:?}");
        }
    }

    fn step(&mut self, most: usize) {
        match (self.dice.below(20), self.one_of_the_known()) {
            (0..=2, _) | (_, None) if self.known.len() < most => self.create(),
            (3, Some(payload)) => self.remove(payload),
            (4..=12, Some(payload)) => self.arm(payload),
            (13..=14, Some(payload)) => self.cancel(payload),
            (15, _) => {
                self.pop(2);
            }
            // The clock runs on without a poll.
            (16, _) => self.move_the_clock(),
            _ => {
                self.move_the_clock();
                while self.pop(5) == 5 {}
                // All that is left is still within its time.
                let left = self.known.values().filter_map(|(_, armed)| *armed);
                assert!(
                    left.clone().all(|(_, latest)| self.now < latest || latest == Instant::MAX)
                );
            }
        }
        self.check();
    }
}

#[test]
fn timeouts_fire_within_their_lateness() {
    let granularities = [
        Span::from_nanos(2),
        Span::from_nanos(1_000),
        Span::from_micros(50),
        Span::MILLISECOND,
        Span::SECOND,
        Span::from_secs(86_400),
    ];
    for (seed, granularity) in (1..).zip(granularities.into_iter().cycle().take(24)) {
        let most = [3, 30, 300, 1_000][seed as usize % 4];
        println!("seed {seed}, granularity {granularity}, at most {most} timeouts");
        let mut checked = Checked::new(seed, granularity);
        for _ in 0..6_000 {
            checked.step(most);
        }
        assert!(checked.fired > 100, "{} fired", checked.fired);
    }
}

/// Timeouts as they are used, 5 s and re-armed or cancelled most of the time, polled only when the
/// wheel says so, for an hour: each fires within 5 s / 15 and a granule.
#[test]
fn an_hour_of_timeouts() {
    let seed = 4;
    println!("seed {seed}");
    let (mut dice, timeout) = (Dice::new(seed), Span::from_secs(5));
    let mut now = at(0);
    let mut wheel = TimeoutWheel::new(Span::MILLISECOND, now).unwrap();
    let mut late = Span::ZERO;
    let handles: Vec<Handle> = (0..1_000).map(|i| wheel.create(i).unwrap()).collect();
    let (mut polls, mut fired) = (0, 0);
    while now < at(3_600_000_000_000) {
        for _ in 0..5 {
            let handle = handles[dice.below(1_000) as usize];
            wheel.arm_after(handle, now, timeout).unwrap();
        }
        let event = now.saturating_add(Span::from_nanos(dice.magnitude(28)));
        now = wheel.next_expiry().unwrap().min(event);
        polls += 1;
        fired += wheel.expire(now, usize::MAX, |_, expired| {
            assert!(expired.expiry <= now);
            late = late.max(now.saturating_since(expired.expiry));
        });
    }
    assert!(late < Span::from_nanos(5_000_000_000 / 15 + 1_000_000), "{late}");
    assert!(polls > 10_000 && fired > 1_000, "{polls} polls, {fired} fired");
}

/// The paper's wheel (section 4.1) keeps its promise too, at its price: each timer fires at the
/// first tick at or after its expiry, and the search of section 9 finds it.
#[test]
fn the_cascading_wheel_fires_on_the_tick() {
    for seed in 1..=6 {
        println!("seed {seed}");
        let mut dice = Dice::new(seed);
        let tick = 1_000_000;
        let mut wheel = CascadingWheel::new(Span::from_nanos(tick), at(0)).unwrap();
        let handles: Vec<Handle> = (0..100).map(|i| wheel.create(i).unwrap()).collect();
        // Expiry, and the tick of it, none of those that have been processed already.
        let mut armed: BTreeMap<Handle, (i64, i64)> = BTreeMap::new();
        let (mut now, mut cascaded) = (0, 0);
        for _ in 0..6_000 {
            let handle = handles[dice.below(100) as usize];
            match dice.below(10) {
                0..=5 => {
                    let expiry = now + dice.magnitude(37);
                    wheel.arm(handle, at(expiry)).unwrap();
                    armed.insert(handle, (expiry, (expiry / tick).max(now / tick) + 1));
                    if expiry % tick == 0 && expiry / tick > now / tick {
                        armed.insert(handle, (expiry, expiry / tick));
                    }
                }
                6 => assert_eq!(wheel.cancel(handle), Ok(armed.remove(&handle).is_some())),
                _ => {
                    now += dice.magnitude(33);
                    let advance = wheel.advance(at(now), |_, expired| {
                        let (expiry, due) = armed.remove(&expired.handle).expect("it was armed");
                        assert_eq!(expired.expiry, at(expiry));
                        assert_eq!(expired.latest, at(due * tick));
                        assert!(expiry <= now && due * tick <= now);
                    });
                    cascaded += advance.cascaded;
                    assert!(armed.values().all(|(_, due)| *due > now / tick));
                }
            }
            let next = armed.values().map(|(_, due)| due * tick).min();
            assert_eq!(wheel.search().next, next.map(at));
            assert_eq!(wheel.armed(), armed.len());
        }
        assert!(cascaded > 200, "{cascaded} cascaded");
    }
}
