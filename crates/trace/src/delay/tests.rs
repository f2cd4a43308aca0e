use super::*;

fn event(ns: i64, cpu: u32, kind: Kind, (a, b): (u32, u32), value: u64) -> KernelEvent {
    KernelEvent { ns, ticks: 0, value, cpu, a, b, kind }
}

/// `from` leaves the CPU to `to`; `state` is 0 if it could go on.
fn switch(ns: i64, cpu: u32, from: u32, to: u32, state: u64) -> KernelEvent {
    event(ns, cpu, Kind::Switch, (from, to), state)
}

fn waking(ns: i64, tid: u32, cpu: u32) -> KernelEvent {
    event(ns, 0, Kind::Waking, (tid, cpu), 0)
}

fn migrate(ns: i64, tid: u32, from: u32, to: u32) -> KernelEvent {
    event(ns, 0, Kind::Migrate, (tid, to), u64::from(from))
}

fn follow(first: InitialState, events: &[KernelEvent], until: i64) -> (Delays, Vec<DelayEvent>) {
    let (mut delays, mut seen) = (Delays::default(), Vec::new());
    delays.follow(70, 0, first);
    events.iter().for_each(|event| delays.event(event, |one| seen.push(one)));
    delays.end(until, |one| seen.push(one));
    (delays, seen)
}

fn delays_of(seen: &[DelayEvent]) -> Vec<&Delay> {
    seen.iter()
        .filter_map(|one| match one {
            DelayEvent::Delayed(_, delay) => Some(delay),
            DelayEvent::Ran(..) => None,
        })
        .collect()
}

#[test]
fn a_woken_thread_waits_for_two_others_and_is_then_put_aside() {
    let events = [
        switch(5, 1, 0, 8, 0),
        waking(10, 70, 1),
        switch(40, 1, 8, 9, 1),
        switch(45, 1, 9, 70, 0),
        switch(100, 1, 70, 8, 0),
        switch(130, 1, 8, 70, 0),
        switch(150, 1, 70, 0, 1),
    ];
    let (_, seen) = follow(InitialState::Other, &events, 200);
    let first = Delay {
        from_ns: 10,
        to_ns: 45,
        cpu: 1,
        after_wait: true,
        occupants: vec![(8, 30), (9, 5)],
    };
    let second =
        Delay { from_ns: 100, to_ns: 130, cpu: 1, after_wait: false, occupants: vec![(8, 30)] };
    let ran =
        |from_ns, to_ns, onset| DelayEvent::Ran(70, RunSegment { from_ns, to_ns, cpu: 1, onset });
    let expected = [
        DelayEvent::Delayed(70, first.clone()),
        ran(45, 100, IntervalStart::Start),
        DelayEvent::Delayed(70, second.clone()),
        ran(130, 150, IntervalStart::Gap),
    ];
    assert_eq!(seen, expected);
    let mut tally = DelayTally::default();
    [first.clone(), second].into_iter().for_each(|delay| tally.push(delay));
    assert_eq!((tally.lengths().count, tally.lengths().total_ns, tally.after_wait), (2, 65, 1));
    assert_eq!((tally.worst.as_ref(), tally.occupants()), (Some(&first), vec![(8, 60), (9, 5)]));
}

#[test]
fn a_thread_that_is_moved_waits_for_its_new_cpu() {
    let events = [
        switch(1, 1, 0, 8, 0),
        switch(2, 2, 0, 9, 0),
        waking(10, 70, 1),
        migrate(30, 70, 1, 2),
        switch(60, 2, 9, 70, 1),
    ];
    let (delays, seen) = follow(InitialState::Other, &events, 60);
    assert_eq!(delays_of(&seen)[0].occupants, [(9, 30), (8, 20)]);
    assert_eq!((delays_of(&seen)[0].cpu, delays.migrations(70)), (2, 1));
}

/// Without this a thread that never got its CPU had no delay at all.
#[test]
fn what_lasts_until_the_end_counts() {
    let never = [switch(5, 1, 8, 9, 0), switch(50, 1, 9, 8, 0)];
    let (_, seen) = follow(InitialState::Runnable(1), &never, 90);
    let expected = Delay {
        from_ns: 0,
        to_ns: 90,
        cpu: 1,
        after_wait: false,
        occupants: vec![(8, 45), (9, 45)],
    };
    assert_eq!(delays_of(&seen), [&expected]);
    // The events look alike at first sight, but the thread had the CPU.
    let (_, seen) = follow(InitialState::Runnable(1), &[switch(5, 1, 70, 9, 1)], 90);
    let ran = RunSegment { from_ns: 0, to_ns: 5, cpu: 1, onset: IntervalStart::Start };
    assert_eq!(seen, [DelayEvent::Ran(70, ran)]);
}

#[test]
fn a_stop_is_no_delay() {
    let events = [
        switch(10, 1, 0, 70, 0),
        switch(20, 1, 70, 0, 4),
        waking(500, 70, 1),
        switch(505, 1, 0, 70, 0),
        switch(600, 1, 70, 0, 8),
    ];
    let (delays, seen) = follow(InitialState::Other, &events, 700);
    assert_eq!(delays.stopped_ns(70, 700), 480 + 100);
    let lengths: Vec<u64> = delays_of(&seen).iter().map(|delay| delay.length_ns()).collect();
    assert_eq!(lengths, [5]);
    let (delays, _) = follow(InitialState::Stopped, &[waking(40, 70, 1)], 50);
    assert_eq!(delays.stopped_ns(70, 50), 40);
}

/// try_to_wake_up() may come between the end of a thread's turn and the event of its switch.
#[test]
fn a_waking_just_before_the_switch_ends_the_wait_that_begins_there() {
    let events = [
        switch(10, 1, 0, 70, 0),
        waking(19, 70, 1),
        switch(20, 1, 70, 8, 1),
        switch(50, 1, 8, 70, 1),
    ];
    let (_, seen) = follow(InitialState::Other, &events, 60);
    let lengths: Vec<u64> = delays_of(&seen).iter().map(|delay| delay.length_ns()).collect();
    assert_eq!(lengths, [30]);
}

#[test]
fn switches_that_are_not_there_are_counted() {
    let whole = [
        switch(10, 1, 0, 70, 0),
        switch(20, 1, 70, 8, 0),
        switch(30, 1, 8, 70, 0),
        switch(40, 1, 70, 8, 0),
    ];
    assert_eq!(follow(InitialState::Other, &whole, 50).0.missing(), 0);
    for missing in [1, 2] {
        let mut events = whole.to_vec();
        events.remove(missing);
        assert_eq!(follow(InitialState::Other, &events, 50).0.missing(), 1, "{missing}");
    }
}

#[test]
fn nothing_is_known_across_lost_events() {
    let lost = event(30, 1, Kind::Lost, (0, 0), 7);
    let events = [waking(10, 70, 1), lost, switch(90, 1, 8, 70, 0), switch(95, 1, 70, 8, 1)];
    let (delays, seen) = follow(InitialState::Other, &events, 100);
    assert_eq!((delays.lost(), delays_of(&seen).len(), seen.len()), (7, 0, 1));
}
