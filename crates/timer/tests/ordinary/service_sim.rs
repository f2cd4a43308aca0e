//! The service over hours of simulated time: random arming, cancelling, terminating and setting of the
//! clock, against a slow twin that keeps a plain list. The seed is printed, and `HOURGLASS_SEED` gives
//! it back.

use std::sync::{Arc, Mutex};

use hourglass_dice::{Dice, seed};
use hourglass_time::Span;
use hourglass_timer::engine::{Cause, ClockBase, ClockSetPolicy, SimTimes};
use hourglass_timer::service::{
    Action, CancelScope, ClassSettings, Expiration, Expiry, Owner, Port, ServiceError, SimService,
    Timer, TimerSettings, TimerSpec,
};

use crate::common::machine;

const S: i64 = 1_000_000_000;

fn simulated() -> (SimService, SimTimes) {
    let times = machine::clocks();
    times.set_realtime(1_000_000 * S);
    (SimService::new(&times), times)
}

struct Twin {
    timer: Timer,
    base: ClockBase,
    on_set: ClockSetPolicy,
    armed: Option<(i64, i64)>,
    skips: bool,
}

type Log = Arc<Mutex<Vec<(usize, Expiration)>>>;

fn make(
    owner: &Owner,
    number: usize,
    dice: &mut Dice,
    log: &Log,
    class: &hourglass_timer::service::ActionClass,
) -> Twin {
    let log = Arc::clone(log);
    let call = move |expiration: &Expiration| log.lock().unwrap().push((number, *expiration));
    let base = ClockBase::ALL[dice.below(4) as usize];
    let on_set = if dice.below(3) == 0 { ClockSetPolicy::Expire } else { ClockSetPolicy::Follow };
    let action =
        if dice.below(2) == 0 { Action::immediate(call) } else { Action::deferred(class, call) };
    let timer = owner.timer_with(TimerSettings { base, on_set, action, engine: None }).unwrap();
    Twin { timer, base, on_set, armed: None, skips: false }
}

impl Twin {
    fn look(&mut self, now: i64, was_set: bool) -> Option<(i64, u64, Cause)> {
        let (expiry, period) = self.armed?;
        if was_set && self.on_set == ClockSetPolicy::Expire && self.base.is_settable() {
            self.armed = None;
            self.skips = false;
            return Some((expiry, 0, Cause::ClockSet));
        }
        if expiry > now {
            return None;
        }
        let mut past = 1;
        let mut last = expiry;
        while period > 0 && last + period <= now {
            last += period;
            past += 1;
        }
        let skipped = std::mem::take(&mut self.skips);
        self.armed = (period > 0).then_some((last + period, period));
        let reported = past - u64::from(skipped);
        (reported > 0).then(|| (last, reported - 1, Cause::Expiry))
    }
}

fn act(twin: &mut Twin, now: i64, dice: &mut Dice) {
    match dice.below(10) {
        0..=5 => {
            let expiry = (now + dice.magnitude(42) - dice.magnitude(34)).max(0);
            let period = if dice.below(3) == 0 { S / 4 + dice.magnitude(40) } else { 0 };
            let mut arm = TimerSpec::at(expiry);
            if period > 0 {
                arm = arm.every(Span::from_nanos(period));
            }
            twin.timer.arm(arm).unwrap();
            (twin.armed, twin.skips) = (Some((expiry, period)), false);
        }
        6 => {
            let armed = twin.armed.take().is_some();
            twin.skips = false;
            assert_eq!(twin.timer.cancel(CancelScope::All), Ok(armed));
        }
        _ => {
            let was = match twin.armed {
                None => false,
                Some((_, 0)) => twin.armed.take().is_some(),
                Some(_) => !std::mem::replace(&mut twin.skips, true),
            };
            assert_eq!(twin.timer.cancel(CancelScope::Current), Ok(was));
        }
    }
    let next = twin.armed.map(|(expiry, period)| if twin.skips { expiry + period } else { expiry });
    assert_eq!(twin.timer.status().unwrap().next_ns, next);
}

/// Issue, "How it will be checked": ordering and never early over hours with random arm, cancel,
/// re-arm and clock steps.
#[test]
fn hours_of_everything_agree_with_a_list() {
    let mut dice = Dice::new(seed());
    let (mut service, times) = simulated();
    let class = service.class("deferred", ClassSettings::default()).unwrap();
    let owner = service.owner("random");
    let log: Log = Arc::default();
    let mut twins: Vec<Twin> =
        (0..40).map(|number| make(&owner, number, &mut dice, &log, &class)).collect();
    let (mut reported, mut turns) = (0, 0);
    while turns < 60_000 || service.now_ns(ClockBase::Monotonic) < 3 * 3_600 * S {
        turns += 1;
        let at = dice.below(40) as usize;
        let now = service.now_ns(twins[at].base);
        act(&mut twins[at], now, &mut dice);
        if dice.below(500) == 0 {
            // The old one is torn down, action and all.
            twins[at].timer.terminate().unwrap();
            assert_eq!(twins[at].timer.arm(TimerSpec::at(0)), Err(ServiceError::Terminated));
            twins[at] = make(&owner, at, &mut dice, &log, &class);
        }
        let was_set = dice.below(200) == 0;
        match dice.below(4) {
            _ if was_set => {
                let by = dice.magnitude(43) - dice.magnitude(43);
                times.step_realtime(Span::from_nanos(by.max(-S)));
            }
            0 if dice.below(100) == 0 => times.suspend(Span::from_nanos(dice.magnitude(40))),
            0 | 1 => times.source().advance(Span::from_nanos(dice.magnitude(34))),
            _ => {}
        }
        service.poll();
        reported += compare(&mut twins, &service, &log, was_set);
    }
    let hours = service.now_ns(ClockBase::Monotonic) / S / 3_600;
    println!("{reported} expiries in {hours} hours, {:?}", service.statistics());
    assert!(hours >= 3 && reported > 5_000);
    owner.terminate().unwrap();
    drop(twins);
    service.poll();
    assert_eq!(service.timers(), 0);
}

fn compare(twins: &mut [Twin], service: &SimService, log: &Log, was_set: bool) -> usize {
    let mut seen = std::mem::take(&mut *log.lock().unwrap());
    for (_, expiration) in &seen {
        let early = expiration.cause == Cause::Expiry && expiration.now_ns < expiration.expiry_ns;
        assert!(!early, "early: {expiration:?}");
    }
    seen.sort_by_key(|(number, _)| *number);
    let mut expected = Vec::new();
    for (number, twin) in twins.iter_mut().enumerate() {
        let now = service.now_ns(twin.base);
        if let Some((expiry_ns, overruns, cause)) = twin.look(now, was_set) {
            let base = twin.base;
            expected.push((number, Expiration { base, expiry_ns, now_ns: now, overruns, cause }));
        }
    }
    assert_eq!(seen, expected);
    seen.len()
}

#[test]
fn stepping_is_exact_and_in_order() {
    let mut dice = Dice::new(seed());
    let (mut service, times) = simulated();
    let owner = service.owner("exact");
    let order: Arc<Mutex<Vec<i64>>> = Arc::default();
    let timers: Vec<(Timer, i64)> = (0..500)
        .map(|_| {
            let (log, clock) = (Arc::clone(&order), times.source().clone());
            let action = Action::immediate(move |expiration| {
                assert_eq!(expiration.now_ns, expiration.expiry_ns, "late on an exact device");
                log.lock().unwrap().push(clock.true_time().nanos());
            });
            let base = ClockBase::ALL[dice.below(4) as usize];
            let timer = owner.timer(base, action).unwrap();
            let delay = 1 + dice.magnitude(44);
            timer.arm(TimerSpec::after(Span::from_nanos(delay))).unwrap();
            (timer, delay)
        })
        .collect();
    while service.step() {}
    let mut delays: Vec<i64> = timers.iter().map(|(_, delay)| *delay).collect();
    delays.sort_unstable();
    assert_eq!(*order.lock().unwrap(), delays);
}

/// A period of 1 ns took the engine's CPU for ever: each look found the next expiry due.
#[test]
fn a_period_shorter_than_a_look_leaves_the_engine_time() {
    for (period_ns, most_calls) in [(1, 20_002), (999, 20_002), (99_999, 10_002)] {
        let (mut service, times) = simulated();
        let owner = service.owner("short");
        let log: Arc<Mutex<Vec<Expiration>>> = Arc::default();
        let (own, time) = (Arc::clone(&log), times.source().clone());
        let action = Action::immediate(move |expiration| {
            own.lock().unwrap().push(*expiration);
            time.advance(Span::from_micros(5));
        });
        let timer = owner.timer(ClockBase::Monotonic, action).unwrap();
        let first = service.now_ns(ClockBase::Monotonic) + S;
        timer.arm(TimerSpec::at(first).every(Span::from_nanos(period_ns))).unwrap();
        service.run_for(Span::from_secs(2));
        let log = log.lock().unwrap();
        assert!(log.len() <= most_calls, "{period_ns} ns: {} calls in a second", log.len());
        // No expiry is forgotten, and the phase is kept.
        let mut expected = first;
        for reported in log.iter() {
            expected += reported.overruns as i64 * period_ns;
            assert_eq!(reported.expiry_ns, expected, "{period_ns} ns: {reported:?}");
            assert!(reported.now_ns >= reported.expiry_ns, "early: {reported:?}");
            expected += period_ns;
        }
        let status = timer.status().unwrap();
        assert!(expected - first > S - 200_000, "{period_ns} ns: {} ns counted", expected - first);
        assert_eq!(status.fired, log.len() as u64);
    }
}

/// `latest_ns` was the age of the wall clock, 1.7e18, after one expiry that was past when it was armed.
#[test]
fn an_expiry_that_is_past_when_it_is_armed_is_not_late() {
    let (mut service, times) = simulated();
    times.source().advance(Span::from_secs(3_600));
    let owner = service.owner("past");
    let timer = |base| owner.timer(base, Action::nothing()).unwrap();
    let (monotonic, realtime) = (timer(ClockBase::Monotonic), timer(ClockBase::Realtime));
    monotonic.arm(TimerSpec::at(0)).unwrap();
    realtime.arm(TimerSpec::at(5).every(Span::from_secs(1))).unwrap();
    service.poll();
    assert_eq!((service.statistics().fired, service.statistics().latest_ns), (2, 0));
    // What comes after that is late again, the next period of the same timer too.
    times.source().advance(Span::from_millis(1_007));
    service.poll();
    let late_ns = service.statistics().latest_ns;
    assert!((6_000_000..=1_007_000_000).contains(&late_ns), "{late_ns}");
    monotonic.arm(TimerSpec::after(Span::from_secs(2))).unwrap();
    times.source().advance(Span::from_secs(9));
    service.poll();
    assert!(service.statistics().latest_ns >= 7_000_000_000, "{:?}", service.statistics());
}

#[test]
fn a_sleeper_learns_that_the_clock_was_set() {
    for (on_set, answer) in
        [(ClockSetPolicy::Expire, Err(ServiceError::ClockSet)), (ClockSetPolicy::Follow, Ok(()))]
    {
        let (mut service, times) = simulated();
        let owner = service.owner("set");
        let settings = TimerSettings {
            base: ClockBase::Realtime,
            on_set,
            action: Action::nothing(),
            engine: None,
        };
        let timer = owner.timer_with(settings).unwrap();
        let other = times.clone();
        let setter = Action::immediate(move |_| other.step_realtime(Span::from_secs(-100)));
        let setter = owner.timer(ClockBase::Monotonic, setter).unwrap();
        setter.arm(TimerSpec::after(Span::from_secs(5))).unwrap();
        let begun = service.now_ns(ClockBase::Monotonic);
        assert_eq!(service.sleep(&timer, Expiry::After(Span::from_secs(10))), answer);
        let slept = (service.now_ns(ClockBase::Monotonic) - begun) / S;
        assert_eq!(slept, if on_set == ClockSetPolicy::Expire { 5 } else { 110 });
        assert_eq!(timer.sleep_until(0), Err(ServiceError::Simulated));
    }
}

/// What a suspension does is the base's affair: [`ClockBase::Monotonic`] stands still, the others go on.
#[test]
fn a_suspension_is_the_clocks_affair() {
    let (mut service, times) = simulated();
    let owner = service.owner("suspended");
    let port = Port::new(8).unwrap();
    let timer = |base, tag| {
        let timer = owner.timer(base, Action::send(&port, tag)).unwrap();
        timer.arm(TimerSpec::after(Span::from_secs(60))).unwrap();
        timer
    };
    let _timers = [
        timer(ClockBase::Monotonic, 0),
        timer(ClockBase::Boottime, 1),
        timer(ClockBase::Realtime, 2),
    ];
    times.suspend(Span::from_secs(3_600));
    service.poll();
    let tags: Vec<u64> = std::iter::from_fn(|| port.try_receive()).map(|m| m.tag).collect();
    assert_eq!(tags, [1, 2]);
    assert!(service.step());
    assert_eq!(port.try_receive().unwrap().tag, 0);
    assert_eq!(service.now_ns(ClockBase::Monotonic), 60 * S);
}

#[test]
fn slack_shares_a_wake_up() {
    let (mut service, _) = simulated();
    let owner = service.owner("slack");
    let port = Port::new(8).unwrap();
    let make = |tag| owner.timer(ClockBase::Monotonic, Action::send(&port, tag)).unwrap();
    let (one, two) = (make(1), make(2));
    one.arm(TimerSpec::at(1_000).slack(Span::from_nanos(1_000))).unwrap();
    two.arm(TimerSpec::at(1_800)).unwrap();
    assert!(service.step());
    let tags: Vec<u64> = std::iter::from_fn(|| port.try_receive()).map(|m| m.tag).collect();
    // The order of the latest times: 1,800 before 2,000.
    assert_eq!((tags, service.now_ns(ClockBase::Monotonic)), (vec![2, 1], 1_800));
    assert!(!service.step());
}

#[test]
fn an_action_longer_than_its_period() {
    let (mut service, times) = simulated();
    let class = service.class("slow", ClassSettings::default()).unwrap();
    let owner = service.owner("slow");
    let log: Arc<Mutex<Vec<(i64, u64)>>> = Arc::default();
    let (own, time) = (Arc::clone(&log), times.source().clone());
    let action = Action::deferred(&class, move |expiration| {
        own.lock().unwrap().push((expiration.expiry_ns / 1_000_000, expiration.overruns));
        time.advance(Span::from_millis(35));
    });
    let timer = owner.timer(ClockBase::Monotonic, action).unwrap();
    timer.arm(TimerSpec::at(0).every(Span::from_millis(10))).unwrap();
    for _ in 0..5 {
        assert!(service.step());
    }
    // It runs at 0, 35, 70, 105 and 140 ms.
    assert_eq!(*log.lock().unwrap(), [(0, 0), (30, 2), (70, 3), (100, 2), (140, 3)]);
    assert_eq!(timer.status().unwrap().overruns, 10);
    assert_eq!(class.statistics().longest_ns, 35_000_000);
}
