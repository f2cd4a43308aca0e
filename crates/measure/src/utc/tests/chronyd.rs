//! Replies of chronyd, well formed and not.

use hourglass_dice::{Dice, seed};

use super::*;

const SEQUENCE: u32 = 77;

/// `coefficient * 2^(exponent - 25)`.
fn number(exponent: i32, coefficient: i32) -> u32 {
    (exponent.cast_unsigned() << 25) | (coefficient.cast_unsigned() & 0x1ff_ffff)
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Synchronised, 1/8 s slow, root delay 1/2 s, root dispersion 1/4 s, skew 2 ppm, residual -1 ppm.
fn reply() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..2].copy_from_slice(&[VERSION, REPLY]);
    put(&mut bytes, 4, (u32::from(TRACKING) << 16) | u32::from(TRACKING_REPLY));
    put(&mut bytes, 16, SEQUENCE);
    put(&mut bytes, 28, 0x0a00_0001);
    put(&mut bytes, 52, 3 << 16);
    put(&mut bytes, 56, 0x7fff_ffff);
    put(&mut bytes, 60, 1_000);
    put(&mut bytes, 64, 5);
    put(&mut bytes, 68, number(1, -(1 << 21)));
    put(&mut bytes, 84, number(2, -(1 << 23)));
    put(&mut bytes, 88, number(3, 1 << 23));
    put(&mut bytes, 92, number(1, 1 << 23));
    put(&mut bytes, 96, number(0, 1 << 23));
    bytes
}

#[test]
fn a_report_bounds_the_clock_by_correction_dispersion_and_half_the_delay() {
    let tracking = Tracking::of(&reply(), SEQUENCE).unwrap();
    let said = tracking.statement(9, 1_002_000_000_005).unwrap();
    let error_ns = 125_000_000 + 250_000_000 + 250_000_000;
    let growth_ppb = 2_000 + 1_000 + MAX_CLOCK_ERROR_PPB;
    assert_eq!(said, UtcStatement { error_ns, growth_ppb, at_ns: 9, age_ns: 2_000_000_000 });
}

#[test]
fn a_clock_that_follows_none_is_not_vouched_for() {
    for (at, value) in [(52, 0), (52, 16 << 16), (52, (3 << 16) | 3), (52, (3 << 16) | 1)]
        .into_iter()
        .chain([(28, 0), (28, LOCAL)])
    {
        let mut bytes = reply();
        put(&mut bytes, at, value);
        let tracking = Tracking::of(&bytes, SEQUENCE).unwrap();
        assert!(tracking.statement(0, 0).is_err(), "{at} {value:#x}");
    }
}

#[test]
fn what_is_no_report_is_refused() {
    let good = reply();
    assert!(Tracking::of(&good, SEQUENCE + 1).is_err());
    assert!(Tracking::of(&[&good[..], &[0]].concat(), SEQUENCE).is_err());
    for length in 0..LENGTH {
        assert!(Tracking::of(&good[..length], SEQUENCE).is_err(), "{length}");
    }
    let huge = number(63, (1 << 24) - 1);
    for (at, value) in [(0, 0), (4, 0), (8, 1 << 16), (64, 1_000_000_000), (56, 9), (92, huge)]
        .into_iter()
        .chain([(96, number(0, -1)), (88, number(0, -1))])
    {
        let mut bytes = reply();
        put(&mut bytes, at, value);
        assert!(Tracking::of(&bytes, SEQUENCE).is_err(), "{at} {value:#x}");
    }
}

#[test]
fn random_bytes_never_stop_it_and_never_narrow_a_bound_below_its_parts() {
    let mut dice = Dice::new(seed());
    for _ in 0..20_000 {
        let mut bytes = reply();
        for byte in &mut bytes[28..] {
            *byte = dice.roll() as u8;
        }
        let Ok(tracking) = Tracking::of(&bytes, SEQUENCE) else { continue };
        let Ok(said) = tracking.statement(dice.roll(), dice.roll()) else { continue };
        assert!(said.error_ns >= tracking.correction_ns.max(tracking.root_dispersion_ns));
    }
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..dice.below(200)).map(|_| dice.roll() as u8).collect();
        assert!(Tracking::of(&bytes, dice.roll() as u32).is_err(), "{bytes:?}");
    }
}

#[test]
fn a_server_is_asked_and_answers() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = server.local_addr().unwrap().port();
    let answered = std::thread::spawn(move || {
        let mut asked = [0; LENGTH + 1];
        let (length, from) = server.recv_from(&mut asked).unwrap();
        let mut bytes = reply();
        bytes[16..20].copy_from_slice(&asked[8..12]);
        server.send_to(&bytes, from).unwrap();
        (length, asked[..6].to_vec())
    });
    let said = Chronyd(port).ask();
    assert_eq!(answered.join().unwrap(), (LENGTH, vec![VERSION, REQUEST, 0, 0, 0, 33]));
    assert_eq!(said.said.map(|said| said.error_ns), Ok(625_000_000));
    // Its socket is closed by now.
    let away = Chronyd(port).ask().said.unwrap_err();
    assert!(away.contains("no chronyd"), "{away}");
}
