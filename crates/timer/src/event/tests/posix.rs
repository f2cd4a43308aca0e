//! What the signals of a POSIX timer must not do.

use super::*;

/// Its own thread, so that signals left over would end the process when the thread unblocks them.
fn attached(test: impl FnOnce(&mut PosixTimerEvent) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut device = PosixTimerEvent::new().unwrap();
            device.attach().unwrap();
            test(&mut device);
            device.detach();
        });
    });
}

#[test]
fn no_signals_left_has_a_name_and_a_remedy() {
    let error = from_create(&io::Error::from_raw_os_error(TRY_AGAIN));
    assert_eq!(error, DeviceError::SignalsExhausted);
    assert!(error.to_string().contains("ulimit -i"), "{error}");
    assert!(from_create(&io::Error::from_raw_os_error(22)) != error);
}

#[test]
fn only_real_time_signals_are_taken() {
    for asked in [0, -1, 10, 9_999] {
        let error = PosixTimerEvent::on_signal(asked).err().expect("refused");
        assert!(matches!(error, DeviceError::NotRealTime { .. }), "{error}");
    }
}

/// A signal on its way when the device goes is taken with it: unblocked, it would end the process.
#[test]
fn a_signal_left_over_is_taken_with_the_device() {
    attached(|device| send(id(), device.shared.signal).unwrap());
}

/// A kicker that saw the engine waiting, and comes to signal it only after the device is gone.
#[test]
fn a_late_kick_sends_no_signal() {
    attached(|device| {
        let signal = device.shared.signal;
        device.detach();
        let was_blocked = block(signal).unwrap();
        assert!(!was_blocked);
        assert!(device.shared.latch.begin_wait());
        device.kick().kick();
        assert_eq!(take(signal, Some(0)).unwrap(), None);
        unblock(signal).unwrap();
    });
}

/// Signals of a timer that was programmed anew may still come (kernels before 6.13), and the
/// timer for kicks signals too: neither is an event.
#[test]
fn a_stray_signal_is_no_event() {
    attached(|device| {
        let stray = expire_soon;
        let number = device.timers.as_ref().unwrap().kicks.number();
        device.set_mode(Mode::OneShot).unwrap();
        let delta_ns = 20_000_000;
        let at_ns = now() + delta_ns;
        device.set_next_event(at_ns).unwrap();
        stray(number).unwrap();
        send(id(), device.shared.signal).unwrap();
        assert_eq!(device.wait(None), Ok(DeviceWaitEnd::Event { periods: 1 }));
        assert!(now() >= at_ns);
        let period = crate::event::Period::new(delta_ns, 1).unwrap();
        let begin_ns = now();
        device.set_mode(Mode::Periodic(period)).unwrap();
        stray(number).unwrap();
        let DeviceWaitEnd::Event { periods } = device.wait(None).unwrap() else {
            panic!("no event")
        };
        assert!(periods > 0 && now() >= begin_ns + periods * delta_ns);
    });
}

/// A kick in a child made by `fork` must not make a timer of the child's own fire, which has the number
/// that the device's had in the parent; attached anew the device serves the child.
#[test]
fn a_kick_in_a_child_leaves_its_timers_alone() {
    attached(|device| {
        let signal = device.shared.signal;
        let number = device.timers.as_ref().unwrap().kicks.number();
        assert!(device.shared.latch.begin_wait());
        let said = fork::child_says(10_000, || {
            let mut own = Vec::new();
            while own.last().is_none_or(|own: &PosixTimer| own.number() != number) {
                own.push(PosixTimer::new(id(), signal).unwrap());
            }
            let own = own.last().unwrap();
            own.set_relative(60_000_000_000).unwrap();
            device.kick().kick();
            let is_left_alone = own.remaining().unwrap().0 > 0;
            device.attach().unwrap();
            device.kick().kick();
            is_left_alone && device.wait(None) == Ok(DeviceWaitEnd::Kicked)
        });
        assert!(said.unwrap(), "the child's timer fired, or its device did not");
    });
}
