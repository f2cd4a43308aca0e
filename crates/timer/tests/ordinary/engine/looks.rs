//! Looks at the timers: bounded, what callbacks may do, and what their time costs others.

use super::*;

#[test]
fn a_look_is_bounded_and_the_rest_comes_at_once() {
    let (mut engine, times) = exact();
    for i in 0..100 {
        armed(&mut engine, ClockBase::Monotonic, i, i64::from(i) + 1);
    }
    times.source().advance(Span::from_millis(1));
    let mut looks = 0;
    let mut names = Vec::new();
    while names.len() < 100 {
        assert_eq!(engine.wait(None).unwrap(), EVENT);
        let count = engine.expire(7, |timers, fired| {
            names.push(*timers.payload(fired.id).unwrap());
        });
        assert!(count <= 7);
        looks += 1;
    }
    assert_eq!((looks, now_ns(&times)), (15, MS));
    assert_eq!(names, (0..100).collect::<Vec<u32>>());
    // One that arms itself for now again and again does not hold the caller.
    armed(&mut engine, ClockBase::Monotonic, 0, 5);
    assert_eq!(engine.expire(50, |timers, f| timers.arm(f.id, 5, 0).unwrap()), 50);
    assert_eq!(engine.expire(0, |_, _| ()), 0);
}

#[test]
fn callbacks_arm_cancel_create_and_remove() {
    let (mut engine, times) = exact();
    let a = armed(&mut engine, ClockBase::Monotonic, 1, 10);
    let b = armed(&mut engine, ClockBase::Boottime, 2, 11);
    let c = armed(&mut engine, ClockBase::Realtime, 3, 12);
    times.source().advance(Span::from_nanos(20));
    let mut order = Vec::new();
    engine.expire(10, |timers: &mut EngineTimers<u32>, fired| {
        let name = *timers.payload(fired.id).unwrap();
        order.push(name);
        if fired.expiry_ns == 10 {
            assert_eq!(timers.cancel(a), Ok(false));
            assert_eq!(timers.cancel(b), Ok(true));
            let d = timers.create(ClockBase::Tai, 4).unwrap();
            timers.arm(d, 11, 0).unwrap();
            timers.arm(a, 13, 0).unwrap();
        } else if fired.id == a || fired.id == c {
            assert_eq!(timers.remove(fired.id), Ok(name));
        }
    });
    assert_eq!(order, [1, 4, 3, 1]);
    assert_eq!(engine.timers().count(), 2);
    let gone: Result<u32, TimerError> = engine.timers().remove(c);
    assert!(matches!(gone, Err(TimerError::Queue(QueueError::StaleHandle { .. }))));
}

#[test]
fn what_is_handed_over_late_is_seen_before_the_wait() {
    let (mut engine, times) = exact();
    armed(&mut engine, ClockBase::Monotonic, 1, SECOND);
    let mut wakes_ns = Vec::new();
    let woken = engine
        .wait_with(None, |timers, now, wake_ns| {
            wakes_ns.push(wake_ns);
            if wakes_ns.len() == 1 {
                let id = timers.create(ClockBase::Monotonic, 2).unwrap();
                timers.arm(id, now.ns(ClockBase::Monotonic) + 5 * MS, 0).unwrap();
            }
            wakes_ns.len() == 1
        })
        .unwrap();
    assert_eq!((woken, now_ns(&times)), (EVENT, 5 * MS));
    assert_eq!(wakes_ns, [SECOND as u64, 5 * MS as u64]);
    // A limit is a wake-up, too.
    expired(&mut engine);
    engine
        .wait_with(Some(6 * MS as u64), |_, _, wake_ns| {
            assert_eq!(wake_ns, 6 * MS as u64);
            false
        })
        .unwrap();
}

/// Waits while something is handed over every microsecond, without an end but for a broken engine.
fn wait_in_a_storm(
    engine: &mut Engine<u32>,
    times: &SimTimes,
    limit_ns: Option<u64>,
) -> DeviceWaitEnd {
    let storm_ends_ns = now_ns(times) + SECOND;
    engine
        .wait_with(limit_ns, |timers, now, _| {
            let id = timers.create(ClockBase::Monotonic, 99).unwrap();
            timers.arm(id, now.ns(ClockBase::Monotonic) + HOUR, 0).unwrap();
            timers.remove(id).unwrap();
            times.source().advance(Span::from_micros(1));
            now_ns(times) < storm_ends_ns
        })
        .unwrap()
}

#[test]
fn a_storm_of_what_is_handed_over_does_not_delay_what_is_due() {
    let (mut engine, times) = exact();
    armed(&mut engine, ClockBase::Monotonic, 1, 5 * MS);
    armed(&mut engine, ClockBase::Realtime, 2, 7 * MS);
    for (name, due_ns) in [(1, 5 * MS), (2, 7 * MS)] {
        wait_in_a_storm(&mut engine, &times, None);
        assert_eq!(expired(&mut engine), [name]);
        let late_ns = now_ns(&times) - due_ns;
        assert!((0..=1_000).contains(&late_ns), "{late_ns} ns late");
    }
    // One that came with the storm itself.
    let mut is_armed = false;
    engine
        .wait_with(None, |timers, now, _| {
            if !is_armed {
                let id = timers.create(ClockBase::Monotonic, 3).unwrap();
                timers.arm(id, now.ns(ClockBase::Monotonic) + MS, 0).unwrap();
                is_armed = true;
            }
            times.source().advance(Span::from_micros(1));
            now_ns(&times) < SECOND
        })
        .unwrap();
    assert_eq!(expired(&mut engine), [3]);
    assert!(now_ns(&times) < 9 * MS);
    // Nor the limit.
    let woken = wait_in_a_storm(&mut engine, &times, Some(20 * MS as u64));
    assert_eq!((woken, now_ns(&times) / MS), (DeviceWaitEnd::Limit, 20));
}

#[test]
fn a_storm_on_a_tick_bound_engine_waits_for_the_tick() {
    let (mut engine, times) = exact();
    tick_bound(&mut engine);
    expired(&mut engine);
    armed(&mut engine, ClockBase::Monotonic, 1, now_ns(&times) + 100_000);
    let before = engine.statistics().wakes;
    wait_in_a_storm(&mut engine, &times, None);
    assert_eq!((expired(&mut engine), engine.statistics().wakes), (vec![1], before + 1));
    let tick_ns = DEFAULT_TICK.span_ceil().nanos();
    assert!(now_ns(&times) <= tick_ns + 1_000, "{} ns", now_ns(&times));
}
