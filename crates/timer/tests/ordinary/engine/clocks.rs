//! Several clocks over one device: order, clocks that are set, suspensions, ranges.

use super::*;

#[test]
fn four_clocks_expire_in_the_order_of_the_device() {
    let (mut engine, times) = exact();
    times.set_realtime(1_000 * SECOND);
    times.set_tai_offset(Span::from_secs(37));
    times.suspend(Span::from_secs(5));
    // Setting it before the engine watches causes no kick.
    armed(&mut engine, ClockBase::Tai, 4, 1_046 * SECOND);
    armed(&mut engine, ClockBase::Realtime, 3, 1_008 * SECOND);
    armed(&mut engine, ClockBase::Boottime, 2, 7 * SECOND);
    armed(&mut engine, ClockBase::Monotonic, 1, SECOND);
    let expected = [(SECOND, 1), (2 * SECOND, 2), (3 * SECOND, 3), (4 * SECOND, 4)];
    assert_eq!(run(&mut engine, &times, 10 * SECOND), expected);
    // In one look the same order, whatever the order of arming; equal times by base, then first
    // in, first out.
    let mono = 20 * SECOND;
    for (base, name, offset) in [
        (ClockBase::Tai, 4, 1_042 * SECOND),
        (ClockBase::Realtime, 3, 1_005 * SECOND - 1),
        (ClockBase::Boottime, 2, 5 * SECOND),
        (ClockBase::Monotonic, 1, 0),
        (ClockBase::Monotonic, 5, 0),
    ] {
        armed(&mut engine, base, name, mono + offset);
    }
    times.source().advance(Span::from_secs(30));
    assert_eq!(expired(&mut engine), [3, 1, 5, 2, 4]);
}

/// Section 4.2 there: setting the clock recalculates no expiry; here the device is not even
/// programmed twice.
#[test]
fn setting_the_clock_moves_no_timer_and_tells_the_device_once() {
    let (mut engine, times) = exact();
    times.set_realtime(1_000 * SECOND);
    let ids: Vec<TimerId> = (0..1_000)
        .map(|i| armed(&mut engine, ClockBase::Realtime, i, (1_010 + i64::from(i)) * SECOND))
        .collect();
    engine.wait(Some(SECOND as u64)).unwrap();
    assert_eq!(programmed(&engine), 1);
    times.step_realtime(Span::from_secs(3));
    // The set ends the wait.
    assert_eq!(engine.wait(None).unwrap(), DeviceWaitEnd::Kicked);
    assert_eq!(engine.expire(10, |_, _| ()), 0);
    let woken = engine.wait(None).unwrap();
    assert_eq!((woken, now_ns(&times)), (EVENT, 7 * SECOND));
    assert_eq!(programmed(&engine), 2);
    assert_eq!(expired(&mut engine), [0]);
    for (i, id) in ids.iter().enumerate().skip(1) {
        let expiry_ns = engine.timers().expiry_ns(*id).unwrap();
        assert_eq!(expiry_ns, Some((1_010 + i as i64) * SECOND));
    }
    // Set past many of them: those are due at once, in order.
    times.step_realtime(Span::from_secs(100));
    assert_eq!(expired(&mut engine), (1..=100).collect::<Vec<u32>>());
    // Set back: the others wait longer.
    times.step_realtime(Span::from_secs(-50));
    assert_eq!(engine.wait(None).unwrap(), DeviceWaitEnd::Kicked);
    engine.wait(None).unwrap();
    assert_eq!((expired(&mut engine), now_ns(&times)), (vec![101], 58 * SECOND));
}

/// As timerfds with `TFD_TIMER_CANCEL_ON_SET`; a suspension is no setting.
#[test]
fn a_timer_is_notified_that_its_clock_was_set() {
    let (mut engine, times) = exact();
    let notified = |engine: &mut Engine<u32>, base| {
        engine.timers().create_with(base, ClockSetPolicy::Expire, 7).unwrap()
    };
    let [a, b, c, d] =
        [ClockBase::Tai, ClockBase::Realtime, ClockBase::Realtime, ClockBase::Boottime]
            .map(|b| notified(&mut engine, b));
    for (id, expiry_ns) in [(a, HOUR), (b, 2 * HOUR), (c, 9 * HOUR), (d, HOUR)] {
        engine.timers().arm(id, expiry_ns, 5).unwrap();
    }
    assert_eq!(engine.timers().cancel(c), Ok(true));
    armed(&mut engine, ClockBase::Realtime, 8, 8 * HOUR);
    engine.wait(Some(1)).unwrap();
    times.suspend(Span::from_secs(1));
    assert_eq!(engine.wait(None).unwrap(), DeviceWaitEnd::Kicked);
    assert_eq!(engine.expire(10, |_, _| ()), 0);

    times.step_realtime(Span::from_secs(-1));
    assert_eq!(engine.wait(None).unwrap(), EVENT);
    let mut fired = Vec::new();
    engine.expire(10, |timers, f| {
        fired.push((f.id, f.cause, f.expiry_ns, f.latest_ns, f.late_ns()));
        // Armed for the new time: that timer does not expire with this setting.
        timers.arm(f.id, 3 * HOUR, 0).unwrap();
    });
    let set = Cause::ClockSet;
    assert_eq!(fired, [(a, set, HOUR, HOUR + 5, 0), (b, set, 2 * HOUR, 2 * HOUR + 5, 0)]);
    assert_eq!(engine.expire(10, |_, _| ()), 0);
    // And expire like any other.
    let seen = run(&mut engine, &times, 4 * HOUR);
    assert_eq!(seen, [(HOUR - SECOND + 5, 7), (3 * HOUR, 7), (3 * HOUR, 7)]);
    // Removed ones do not expire.
    engine.timers().arm(a, 30 * HOUR, 0).unwrap();
    assert_eq!(engine.timers().remove(a), Ok(7));
    times.step_realtime(Span::from_secs(1));
    assert_eq!(engine.expire(10, |_, _| ()), 0);
}

#[test]
fn after_a_suspension_boottime_expires_and_monotonic_waits() {
    let (mut engine, times) = exact();
    armed(&mut engine, ClockBase::Monotonic, 1, 10 * SECOND);
    armed(&mut engine, ClockBase::Boottime, 2, 60 * SECOND);
    engine.wait(Some(SECOND as u64)).unwrap();
    times.suspend(Span::from_secs(600));
    assert_eq!(engine.wait(None).unwrap(), EVENT);
    assert_eq!((expired(&mut engine), now_ns(&times)), (vec![2], SECOND));
    assert_eq!(run(&mut engine, &times, 20 * SECOND), [(10 * SECOND, 1)]);
}

#[test]
fn bad_input_is_refused_with_one_line() {
    let (mut engine, times) = exact();
    let timer = engine.timers().create(ClockBase::Realtime, 1).unwrap();
    let now = times.now();
    let timers = engine.timers();
    let errors =
        [timers.arm(timer, -1, 0).unwrap_err(), timers.arm(timer, i64::MIN, 0).unwrap_err()];
    for error in errors {
        let text = error.to_string();
        assert!(text.lines().count() == 1 && text.contains(": "), "{text}");
    }
    assert_eq!(timers.armed(ClockBase::Realtime), 0);
    // The ends of the range are in it.
    timers.arm(timer, i64::MAX, u64::MAX).unwrap();
    assert_eq!(timers.earliest(&now), Some(i64::MAX as u64));
    assert_eq!(engine.wait(Some(HOUR as u64)).unwrap(), DeviceWaitEnd::Limit);
    let timers = engine.timers();
    assert_eq!(timers.remove(timer), Ok(1));
    let stale = |e: TimerError| matches!(e, TimerError::Queue(QueueError::StaleHandle { .. }));
    assert!(stale(timers.cancel(timer).unwrap_err()) && stale(timers.remove(timer).unwrap_err()));
    assert!(stale(timers.payload(timer).unwrap_err()));
    assert!(stale(timers.expiry_ns(timer).unwrap_err()));
    assert_eq!(size_of::<Option<TimerId>>(), 12);
    assert_eq!(size_of::<Handle>(), 8);
}

/// Clocks that cannot be watched for the first times asked; and are not, then.
struct Scarce(SimTimes, u64);

impl Times for Scarce {
    fn now(&self) -> ClockReadings {
        self.0.now()
    }
    fn watch(&mut self, kick: &Kick) -> Result<(), DeviceError> {
        if self.1 > 0 {
            self.1 -= 1;
            return Err(DeviceError::TooManyFiles);
        }
        self.0.watch(kick)
    }
}

fn scarce(failures: u64) -> (Engine<u32>, SimTimes) {
    let times = machine::clocks();
    let device = machine::device(&times, SimEventConfig::exact());
    let tick = Period::from_hertz(100).unwrap();
    let clocks = Scarce(times.clone(), failures);
    let mut engine = Engine::new(tick, device, clocks).unwrap();
    engine.source_valid();
    engine.validate().unwrap();
    (engine, times)
}

/// No file descriptors left (`timerfd_create(2)`, EMFILE): timers of every clock go on.
#[test]
fn an_engine_goes_on_while_its_clocks_cannot_be_watched() {
    let (mut engine, times) = scarce(3);
    let begin = now_ns(&times);
    armed(&mut engine, ClockBase::Monotonic, 1, begin + 15 * MS);
    armed(&mut engine, ClockBase::Realtime, 2, HOUR);
    let woken = engine.wait(None).unwrap();
    assert_eq!((woken, now_ns(&times)), (DeviceWaitEnd::Kicked, begin + 10 * MS));
    assert_eq!(engine.statistics().watch_failures, 1);
    // A limit of the caller's is one still.
    let limit = begin + 12 * MS;
    let woken = engine.wait(Some(limit as u64)).unwrap();
    assert_eq!((woken, now_ns(&times)), (DeviceWaitEnd::Limit, limit));
    // Nothing of others is late. It is tried once a tick, not in each wait.
    assert_eq!(run(&mut engine, &times, begin + 16 * MS), [(begin + 15 * MS, 1)]);
    assert_eq!(engine.statistics().watch_failures, 2);
    // Set while unwatched: seen in the next poll.
    times.set_realtime(HOUR);
    assert_eq!(expired(&mut engine), [2]);
    let set = now_ns(&times);
    armed(&mut engine, ClockBase::Realtime, 3, 3 * HOUR);
    engine.wait(Some(set as u64)).unwrap();
    let source = Arc::clone(times.source());
    source.advance(Span::from_millis(1));
    times.set_realtime(3 * HOUR - 100 * MS);
    // Three failures, then it is watched, and waits are as long as they may be.
    assert_eq!(run(&mut engine, &times, set + 200 * MS), [(set + 101 * MS, 3)]);
    assert_eq!(engine.statistics().watch_failures, 3);
    let begin_ns = now_ns(&times);
    armed(&mut engine, ClockBase::Boottime, 4, times.now().ns(ClockBase::Boottime) + HOUR);
    let wakes = engine.statistics().wakes;
    assert_eq!(run(&mut engine, &times, begin_ns + HOUR), [(begin_ns + HOUR, 4)]);
    assert_eq!(engine.statistics().wakes, wakes + 1);
}

#[test]
fn a_clock_set_without_a_watcher_is_seen_within_a_tick() {
    let (mut engine, times) = scarce(u64::MAX);
    let begin = now_ns(&times);
    armed(&mut engine, ClockBase::Realtime, 1, HOUR);
    engine.wait(None).unwrap();
    assert!(expired(&mut engine).is_empty());
    times.set_realtime(HOUR - 15 * MS);
    assert_eq!(run(&mut engine, &times, begin + 40 * MS), [(begin + 25 * MS, 1)]);
    // Nothing on those clocks is armed: no wake-up for them.
    let failures = engine.statistics().watch_failures;
    assert_eq!(engine.wait(Some(SECOND as u64)).unwrap(), DeviceWaitEnd::Limit);
    assert_eq!((now_ns(&times), engine.statistics().watch_failures), (SECOND, failures));
}
