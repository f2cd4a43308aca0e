//! Timers of a clock device: RT-Mach's semantics, and hours against a slow twin.

use hourglass_dice::Dice;
use hourglass_queue::{Handle, QueueError};
use hourglass_time::{Instant, Monotonic};

use super::*;
use crate::sleep::tests::seed;

fn at(ns: u64) -> Instant<Monotonic> {
    Instant::from_nanos(ns as i64)
}

fn tick(device: &mut Device) -> Vec<(u32, u64, u64, u64)> {
    assert!(matches!(device.wait(None), Ok(DeviceWaitEnd::Event { .. })));
    let mut all = Vec::new();
    while let Some(due) = device.pop_expired() {
        let payload = *device.payload_mut(due.timer).unwrap();
        all.push((payload, due.expiry.nanos() as u64, due.tick_ns, due.overruns));
    }
    all
}

fn every_ms() -> Device {
    let mut device = open("sim");
    device.set_resolution(us(1_000), Span::ZERO).unwrap();
    device
}

/// Section 2.2: at an interrupt the head of the queue is looked at. A timer expires at the first tick
/// that is not before its expiry.
#[test]
fn timers_expire_at_ticks() {
    let mut device = every_ms();
    for (payload, expiry_ns) in [(1, 2 * MS), (2, 2 * MS + 1), (3, 2 * MS), (4, MS - 1)] {
        let timer = device.create(payload).unwrap();
        device.arm(timer, at(expiry_ns), None).unwrap();
    }
    assert_eq!(device.next_expiry(), Some(at(MS - 1)));
    assert_eq!(tick(&mut device), [(4, MS - 1, MS, 0)]);
    // At once and in the order in which they were armed.
    assert_eq!(tick(&mut device), [(1, 2 * MS, 2 * MS, 0), (3, 2 * MS, 2 * MS, 0)]);
    assert_eq!(tick(&mut device), [(2, 2 * MS + 1, 3 * MS, 0)]);
    assert_eq!((tick(&mut device).len(), device.next_expiry()), (0, None));
}

/// Section 3: "it will atomically re-arm itself with the specified period relative to the last
/// expiration time"; what passed between two ticks is reported as a number.
#[test]
fn a_periodic_timer_is_armed_from_its_expiry() {
    let mut device = every_ms();
    let timer = device.create(7).unwrap();
    device.arm(timer, at(MS / 2), Some(us(300))).unwrap();
    // 0.5, 0.8; 1.1, 1.4, 1.7, 2.0; 2.3 and so on.
    assert_eq!(tick(&mut device), [(7, MS / 2, MS, 1)]);
    assert_eq!(device.expiry(timer), Ok(Some(at(1_100_000))));
    assert_eq!(tick(&mut device), [(7, 1_100_000, 2 * MS, 3)]);
    assert_eq!(tick(&mut device), [(7, 2_300_000, 3 * MS, 2)]);
}

/// Section 3: "for periodic timers, the user has the option of canceling only the current expiration,
/// or all forthcoming expiration".
#[test]
fn one_expiration_is_cancelled_or_all() {
    let mut device = every_ms();
    let timer = device.create(7).unwrap();
    assert_eq!(device.cancel(timer, Cancel::Current), Ok(false));
    device.arm(timer, at(MS), Some(us(2_000))).unwrap();
    assert_eq!(device.cancel(timer, Cancel::Current), Ok(true));
    assert_eq!(device.expiry(timer), Ok(Some(at(3 * MS))));
    assert!(tick(&mut device).is_empty() && tick(&mut device).is_empty());
    assert_eq!(tick(&mut device), [(7, 3 * MS, 3 * MS, 0)]);
    assert_eq!(device.cancel(timer, Cancel::All), Ok(true));
    assert_eq!((device.expiry(timer), device.cancel(timer, Cancel::All)), (Ok(None), Ok(false)));
    // Once is once.
    device.arm(timer, at(10 * MS), None).unwrap();
    assert_eq!(device.cancel(timer, Cancel::Current), Ok(true));
    assert_eq!(device.expiry(timer), Ok(None));
    assert_eq!(device.terminate(timer), Ok(7));
    let stale = QueueError::StaleHandle { handle: timer };
    assert_eq!(device.cancel(timer, Cancel::All), Err(stale));
    assert_eq!(device.arm(timer, at(MS), None), Err(ArmError::Timer(stale)));
    for span in [Span::ZERO, Span::from_nanos(-1)] {
        assert_eq!(device.arm(timer, at(MS), Some(span)), Err(ArmError::Period(span)));
    }
}

#[test]
fn the_past_expires_at_the_next_tick() {
    let mut device = every_ms();
    let timer = device.create(7).unwrap();
    device.arm(timer, Instant::MIN, None).unwrap();
    for ticks in 1..10 {
        assert!(device.pop_expired().is_none());
        let _ = device.wait(None).unwrap();
        let due = device.pop_expired().unwrap();
        assert_eq!((due.tick_ns, due.expiry), (ticks * MS, Instant::MIN));
        device.arm(timer, Instant::MIN, None).unwrap();
    }
    // The same for one that is armed a little later than the last tick.
    device.arm_after(timer, Span::ZERO, Some(Span::MAX)).unwrap();
    let _ = device.wait(None).unwrap();
    assert_eq!(device.pop_expired().map(|due| due.overruns), Some(0));
    assert_eq!(device.expiry(timer).map(|expiry| expiry.is_some()), Ok(true));
}

#[derive(Clone, Copy, Debug)]
struct Slow {
    timer: Handle,
    armed: Option<(u64, Option<u64>)>,
    /// Which arming it was, for equal expiries.
    order: u64,
}

struct List {
    timers: Vec<Slow>,
    armings: u64,
    expired: u64,
    overran: u64,
}

impl List {
    fn of(device: &mut Device, timers: u32) -> List {
        let slow = |i| Slow { timer: device.create(i).unwrap(), armed: None, order: 0 };
        List { timers: (0..timers).map(slow).collect(), armings: 0, expired: 0, overran: 0 }
    }

    fn happen(&mut self, device: &mut Device, dice: &mut Dice) {
        let one = dice.below(self.timers.len() as u64) as usize;
        let one = &mut self.timers[one];
        match dice.below(16) {
            0..=3 => {
                let ahead_ns = device.now_ns() + dice.below(3 * SECOND);
                let expiry_ns = ahead_ns.saturating_sub(SECOND / 10);
                let period_ns = (dice.below(2) == 0).then(|| MS + dice.below(20 * SECOND));
                let period = period_ns.map(|ns| Span::from_nanos(ns as i64));
                device.arm(one.timer, at(expiry_ns), period).unwrap();
                self.armings += 1;
                (one.armed, one.order) = (Some((expiry_ns, period_ns)), self.armings);
            }
            4 => {
                let was = device.cancel(one.timer, Cancel::All).unwrap();
                assert_eq!(was, one.armed.take().is_some());
            }
            5 => {
                let was = device.cancel(one.timer, Cancel::Current).unwrap();
                assert_eq!(was, one.armed.is_some());
                let next = |(expiry, period): (u64, Option<u64>)| Some((expiry + period?, period));
                one.armed = one.armed.and_then(next);
                self.armings += 1;
                one.order = self.armings;
            }
            6 => {
                let desired = Span::from_nanos((MS + dice.below(50 * MS)) as i64);
                device.set_resolution(desired, desired).unwrap();
            }
            _ => {}
        }
    }

    /// What expires at the tick after `before_ns`, in order. Times that had passed when they were
    /// armed count as just after that.
    fn due(&self, before_ns: u64, tick_ns: u64) -> Vec<usize> {
        let expires = |i: &usize| {
            let armed = self.timers[*i].armed.map(|(at_ns, _)| at_ns.max(before_ns + 1));
            armed.filter(|at_ns| *at_ns <= tick_ns)
        };
        let mut due: Vec<usize> = (0..self.timers.len()).filter(|i| expires(i).is_some()).collect();
        due.sort_by_key(|i| (expires(i), self.timers[*i].order));
        due
    }

    fn expire(&mut self, i: usize, tick_ns: u64) -> (u64, u64) {
        let one = &mut self.timers[i];
        let (expiry_ns, period_ns) = one.armed.take().unwrap();
        self.expired += 1;
        let Some(period_ns) = period_ns else { return (expiry_ns, 0) };
        let (mut next_ns, mut overruns) = (expiry_ns + period_ns, 0);
        while next_ns <= tick_ns {
            (next_ns, overruns) = (next_ns + period_ns, overruns + 1);
        }
        self.armings += 1;
        (one.armed, one.order) = (Some((next_ns, Some(period_ns))), self.armings);
        self.overran += overruns;
        (expiry_ns, overruns)
    }
}

/// An hour of random arming, cancelling and changing the resolution: every expiration at the first
/// tick that is not before it, none lost but those that are reported as overruns.
fn an_hour(name: &str, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut device = open(name);
    let mut list = List::of(&mut device, 40);
    while device.now_ns() < 3_600 * SECOND {
        let before_ns = device.now_ns();
        list.happen(&mut device, &mut dice);
        let _ = device.wait(None).unwrap();
        let tick_ns = device.now_ns();
        for i in list.due(before_ns, tick_ns) {
            let expired = device.pop_expired().unwrap();
            let (expiry_ns, overruns) = list.expire(i, tick_ns);
            assert_eq!((expired.timer, expired.expiry), (list.timers[i].timer, at(expiry_ns)));
            assert_eq!((expired.tick_ns, expired.overruns), (tick_ns, overruns));
        }
        assert_eq!(device.pop_expired(), None);
    }
    let List { expired, overran, .. } = list;
    // That both cases came up often; how often is the seed's (some 31,000, and 800 to 2,000).
    assert!(expired > 10_000 && overran > 100, "{name}: {expired} {overran}");
}

#[test]
fn hours_agree_with_a_list() {
    let seed = seed();
    for (name, more) in [("sim", 0), ("sim_i8254", 1), ("sim_mc146818", 2)] {
        an_hour(name, seed.wrapping_add(more));
    }
}
