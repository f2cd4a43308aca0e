//! What the device is programmed for: the first of all, ticks, or nothing.

use super::*;

#[test]
fn arming_behind_the_first_programs_nothing() {
    let (mut engine, times) = exact();
    let first = armed(&mut engine, ClockBase::Monotonic, 0, 10 * SECOND);
    engine.wait(Some(1)).unwrap();
    let before = programmed(&engine);
    for i in 1..1_000 {
        let base = ClockBase::ALL[i as usize % 4];
        let id = armed(&mut engine, base, i, 10 * SECOND + i64::from(i));
        if i % 3 == 0 {
            assert_eq!(engine.timers().cancel(id), Ok(true));
        }
        engine.wait(Some(now_ns(&times) as u64 + 1)).unwrap();
    }
    assert_eq!(programmed(&engine), before);
    assert_eq!(engine.next_wake_ns(), 10 * SECOND as u64);
    // The first of all changes: once for each change.
    engine.timers().arm(first, 11 * SECOND, 0).unwrap();
    engine.wait(Some(now_ns(&times) as u64 + 1)).unwrap();
    armed(&mut engine, ClockBase::Realtime, 0, 5 * SECOND);
    engine.wait(Some(now_ns(&times) as u64 + 1)).unwrap();
    assert_eq!(programmed(&engine), before + 2);
}

/// Section 9 there, over a day: no tick without a use, bound to a tick or not.
#[test]
fn an_idle_engine_is_not_woken() {
    for high in [true, false] {
        let (mut engine, times) = exact();
        if !high {
            tick_bound(&mut engine);
        }
        let before = (programmed(&engine), engine.statistics().wakes);
        assert_eq!(engine.wait(Some(20 * HOUR as u64)).unwrap(), DeviceWaitEnd::Limit);
        assert_eq!(engine.next_wake_ns(), u64::MAX);
        assert_eq!(programmed(&engine), before.0);
        armed(&mut engine, ClockBase::Monotonic, 1, 21 * HOUR + 1);
        engine.wait(None).unwrap();
        let late = if high { 0 } else { 4 * MS - 1 };
        assert_eq!(now_ns(&times), 21 * HOUR + 1 + late);
        assert_eq!(expired(&mut engine), [1]);
        assert_eq!(programmed(&engine), before.0 + 1);
        assert_eq!(engine.statistics().wakes, before.1 + 2);
        let counts = engine.device().unwrap().counts();
        assert_eq!((counts.steps, counts.spurious), (0, 0));
        // Nothing left: a simulated wait would never end, and says so.
        let never = DeviceError::NeverEnds("sim");
        assert_eq!(engine.wait(None), Err(EngineError::Device(never)));
    }
}

/// Section 7 there: without high resolution timers "are bound to jiffy tick boundaries again".
#[test]
fn bound_to_a_tick_timers_expire_at_ticks_only() {
    let (mut engine, times) = exact();
    tick_bound(&mut engine);
    let begin = now_ns(&times);
    for i in 0..40 {
        armed(&mut engine, ClockBase::Monotonic, i, begin + 1 + 777_777 * i64::from(i));
    }
    let mut seen = 0;
    while seen < 40 {
        // Woken between ticks, nothing expires.
        let between = now_ns(&times) as u64 + 1_500_000;
        let woken = engine.wait(Some(between)).unwrap();
        let at = now_ns(&times);
        let count = engine.expire(100, |_, fired| {
            assert!(fired.expiry_ns <= at && at - fired.expiry_ns < 4 * MS, "{fired:?} at {at}");
            assert_eq!(fired.now_ns % (4 * MS), 0);
        });
        assert!(count == 0 || woken == EVENT && at % (4 * MS) == 0, "{count} at {at}");
        seen += count;
    }
    // Armed for the past between two ticks it waits for the next one.
    engine.wait(Some(now_ns(&times) as u64 + 100)).unwrap();
    armed(&mut engine, ClockBase::Monotonic, 0, 5);
    assert_eq!(expired(&mut engine), []);
    engine.wait(None).unwrap();
    assert_eq!((expired(&mut engine), now_ns(&times) % (4 * MS)), (vec![0], 0));
}

#[test]
fn the_resolution_changes_both_ways_with_timers_armed() {
    let (mut engine, times) = exact();
    for i in 1..=30 {
        armed(&mut engine, ClockBase::ALL[i as usize % 4], i, i64::from(i) * 10 * MS + 1);
    }
    let mut seen = run(&mut engine, &times, 100 * MS + 5);
    engine.source_lost();
    seen.extend(run(&mut engine, &times, 200 * MS + 5));
    engine.source_valid();
    seen.extend(run(&mut engine, &times, 400 * MS));
    assert_eq!(seen.len(), 30);
    for (at, name) in seen {
        let due = i64::from(name) * 10 * MS + 1;
        // The one due at 200.000001 ms found the engine at its tick, and precise 5 ns later.
        let bound_to = match name {
            11..=19 => (due + 4 * MS - 1) / (4 * MS) * (4 * MS),
            20 => 200 * MS + 5,
            _ => due,
        };
        assert_eq!(at, bound_to, "{name}");
    }
    assert_eq!(engine.resolution(), Resolution::High);
}

/// Section 6.2 there: devices of the system serve the tick only, so that an engine on one is bound
/// to it; those that only tick rest while nothing is wanted.
#[test]
fn devices_of_the_system_tick() {
    for config in [SimEventConfig::i8254(), SimEventConfig::mc146818()] {
        let name = config.name;
        let (mut engine, times) = machine::engine::<u32>(config);
        assert_eq!(engine.resolution(), Resolution::TickBound, "{name}");
        assert_eq!(engine.wait(Some(HOUR as u64)).unwrap(), DeviceWaitEnd::Limit);
        let counts = engine.device().unwrap().counts();
        assert_eq!((counts.events, counts.steps), (0, 0), "{name}");
        for i in 1..100 {
            armed(&mut engine, ClockBase::Realtime, i, HOUR + i64::from(i) * 7_777_777);
        }
        let seen = run(&mut engine, &times, HOUR + SECOND);
        for ((at, name), i) in seen.iter().zip(1..) {
            let late = at - (HOUR + i64::from(*name) * 7_777_777);
            assert!(*name == i && (0..4 * MS + 3_000).contains(&late), "{name}: {late}");
        }
        assert_eq!(seen.len(), 99);
        let ended = engine.device().unwrap().counts();
        engine.wait(Some(2 * HOUR as u64)).unwrap();
        assert_eq!(engine.device().unwrap().counts().events, ended.events, "{name}");
    }
}

/// Section 9 there: "skipping ticks". Each tick that nothing waits for is counted; in high
/// resolution no tick is skipped.
#[test]
fn ticks_that_are_skipped_are_counted() {
    let (mut engine, times) = exact();
    tick_bound(&mut engine);
    armed(&mut engine, ClockBase::Monotonic, 1, SECOND);
    assert_eq!(run(&mut engine, &times, SECOND), [(SECOND, 1)]);
    // 250 ticks, the last of which was served.
    assert_eq!(engine.statistics().ticks_skipped, 249);
    engine.source_valid();
    armed(&mut engine, ClockBase::Monotonic, 2, 3 * SECOND);
    assert_eq!(run(&mut engine, &times, 3 * SECOND), [(3 * SECOND, 2)]);
    assert_eq!(engine.statistics().ticks_skipped, 249);
    engine.source_lost();
    armed(&mut engine, ClockBase::Monotonic, 3, 4 * SECOND);
    assert_eq!(run(&mut engine, &times, 4 * SECOND), [(4 * SECOND, 3)]);
    assert_eq!(engine.statistics().ticks_skipped, 249 + 249);
}

#[test]
fn what_is_past_is_due_at_once_and_programs_nothing() {
    let (mut engine, times) = exact();
    engine.wait(Some(500)).unwrap();
    armed(&mut engine, ClockBase::Monotonic, 1, 400);
    assert_eq!((engine.wait(None).unwrap(), now_ns(&times)), (EVENT, 500));
    assert_eq!((expired(&mut engine), programmed(&engine)), (vec![1], 0));
}
