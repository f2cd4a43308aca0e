//! Answers of ptp4l, well formed and not; a master and a clock that follows it, simulated.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hourglass_dice::{Dice, seed};
use hourglass_sys::credentials;

use super::*;

const S: u64 = 1_000_000_000;
const NOW: u64 = 1_800_000_000 * S;
const GRANDMASTER: [u8; 8] = [8; 8];

/// A ptp4l: the bodies that it sends, by ID, and how it goes wrong.
#[derive(Clone)]
struct Fake {
    domain: u8,
    bodies: Vec<(u16, Vec<u8>)>,
    spoil: fn(u16, &mut Vec<u8>),
}

impl Fake {
    /// Follows a grandmaster of 250 ns: 100 ns off, 4 us of path, half a second after a Sync.
    fn new() -> Fake {
        let mut default = vec![0; 20];
        put(&mut default, 2, &1u16.to_be_bytes());
        put(&mut default, 10, &[7; 8]);
        let mut current = vec![0; 18];
        put(&mut current, 0, &1u16.to_be_bytes());
        put(&mut current, 10, &(4_000i64 << 16).to_be_bytes());
        let mut parent = vec![0; 32];
        put(&mut parent, 19, &[6, 0x22]);
        put(&mut parent, 24, &GRANDMASTER);
        let mut port = vec![0; 26];
        put(&mut port, 10, &[9]);
        put(&mut port, 23, &[1]);
        let mut status = vec![0; 50];
        put(&mut status, 0, &(-100i64).to_be_bytes());
        put(&mut status, 8, &((NOW - S / 2) as i64).to_be_bytes());
        put(&mut status, 41, &[1]);
        put(&mut status, 42, &GRANDMASTER);
        let mut properties = vec![0; 12];
        properties.extend(*b"\x04eth0\0");
        let bodies = [
            (0x2000, default),
            (0x2001, current),
            (0x2002, parent),
            (0x2003, vec![0, 37, 0x1c, 0x20]),
            (0x2004, port),
            (0xc000, status),
            (0xc004, properties),
        ];
        Fake { domain: 0, bodies: bodies.into(), spoil: |_, _| {} }
    }

    fn with(&self, id: u16, at: usize, bytes: &[u8]) -> Fake {
        let mut changed = self.clone();
        let body = changed.bodies.iter_mut().find(|(known, _)| *known == id).unwrap();
        put(&mut body.1, at, bytes);
        changed
    }

    /// Its clock is `/dev/ptp3`, of TAI, and read half a second after the Sync, too.
    fn on_hardware(&self) -> Fake {
        let ingress = ((NOW + 37 * S - S / 2) as i64).to_be_bytes();
        let mut changed = self.with(0xc004, 11, &[1]).with(0xc000, 8, &ingress);
        let mut hardware = vec![0; 16];
        hardware[13] = 3;
        changed.bodies.push((0xc009, hardware));
        changed
    }

    fn spoiled(&self, spoil: fn(u16, &mut Vec<u8>)) -> Fake {
        Fake { spoil, ..self.clone() }
    }

    /// What it answers; nothing in other domains.
    fn answer(&self, asked: &[u8]) -> Option<Vec<u8>> {
        if asked[4] != self.domain || asked[46] != 0 || asked.len() != 54 {
            return None;
        }
        let id = word(asked, 52);
        let mut bytes = asked.to_vec();
        bytes[46] = 2;
        match self.bodies.iter().find(|(known, _)| *known == id) {
            Some((_, body)) => {
                bytes.extend(body);
                put(&mut bytes, 50, &(body.len() as u16 + 2).to_be_bytes());
            }
            None => {
                put(&mut bytes, 48, &[0, 2, 0, 8, 0, 6]);
                bytes.extend(id.to_be_bytes());
                bytes.extend([0; 4]);
            }
        }
        let length = bytes.len() as u16;
        put(&mut bytes, 2, &length.to_be_bytes());
        (self.spoil)(id, &mut bytes);
        (!bytes.is_empty()).then_some(bytes)
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The system clock at [`NOW`], and the device 2 us from where it should be, read within 600 ns.
fn at_now(clock: PtpClock) -> Result<Comparison, String> {
    Ok(match clock {
        PtpClock::System => Comparison { before_ns: NOW, device_ns: NOW, after_ns: NOW },
        PtpClock::Device(3) => {
            let device_ns = NOW + 37 * S;
            Comparison { before_ns: NOW - 2_300, device_ns, after_ns: NOW - 1_700 }
        }
        PtpClock::Device(number) => return Err(format!("no /dev/ptp{number}")),
    })
}

/// Asks the fake on a socket, where one is, below a root that `prepare` fills; a busy machine may delay its answers.
fn ask(fake: &Fake, place: &str, prepare: impl FnOnce(&Path)) -> UtcAnswer {
    ask_within(WITHIN * 100, fake, place, prepare)
}

fn ask_within(
    within: Duration,
    fake: &Fake,
    place: &str,
    prepare: impl FnOnce(&Path),
) -> UtcAnswer {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("var/run")).unwrap();
    prepare(root);
    let server = UnixDatagram::bind(root.join(place)).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut asked = [0; 100];
            while !ended.load(Ordering::Relaxed) {
                let Ok((length, from)) = server.recv_from(&mut asked) else { continue };
                if let Some(answer) = fake.answer(&asked[..length]) {
                    let _ = server.send_to_addr(&answer, &from);
                }
            }
        });
        let owner = credentials::real();
        let source = Ptp4l { root: root.to_str().unwrap(), owner, within, compare: &at_now };
        let answer = source.ask();
        ended.store(true, Ordering::Relaxed);
        answer
    })
}

fn said(fake: &Fake) -> Result<UtcStatement, String> {
    ask(fake, PLACES[0], |_| {}).said
}

#[test]
fn a_clock_that_follows_is_vouched_for_by_the_sum_of_its_parts() {
    let found = said(&Fake::new()).unwrap();
    // Offset, path delay, accuracy, rounding; half a second at 100 ppm and at 16 offsets a second.
    let rate = 100_000 + 1_600;
    assert_eq!(found.error_ns, 100 + 4_000 + 250 + 2 + 50_811);
    // As long as it can have been, if the clock was that slow.
    assert_eq!((found.growth_ppb, found.age_ns), (rate, S / 2 + rate));
    // The device is 2 us from the system clock, and its reading up to 0.3 us from the middle.
    let found = said(&Fake::new().on_hardware()).unwrap();
    assert_eq!(found.error_ns, 100 + 4_000 + 250 + 2 + 2_300 + 50_811);
    assert_eq!((found.growth_ppb, found.age_ns), (500_000, S / 2 + rate));
}

#[test]
fn a_grandmaster_is_as_accurate_as_it_announces() {
    let itself = Fake::new().with(0xc000, 38, &[0; 4]).with(0x2004, 10, &[6]);
    // The system clock is served as it is, and the flag would say that it is TAI.
    assert!(said(&itself).unwrap_err().contains("gives CLOCK_REALTIME out as TAI"));
    assert_eq!(said(&itself.with(0x2003, 2, &[0x10])).unwrap().error_ns, 252);
    assert!(said(&itself.with(0x2003, 2, &[0])).unwrap_err().contains("not traceable"));
    let found = said(&itself.on_hardware().with(0xc000, 38, &[0; 4])).unwrap();
    assert_eq!((found.error_ns, found.age_ns), (252 + 2_300, 0));
}

/// What a ptp4l says, and a part of why it bounds nothing.
fn without_bound() -> Vec<(Fake, &'static str)> {
    let good = Fake::new();
    let hard = good.on_hardware();
    let flags = |flags| good.with(0x2003, 2, &[flags]);
    vec![
        (good.with(0x2002, 20, &[0xfe]), "clockAccuracy 0xfe"),
        (good.with(0x2002, 20, &[0x31]), "clockAccuracy 0x31"),
        (good.with(0x2002, 20, &[0x16]), "clockAccuracy 0x16"),
        (good.with(0x2004, 10, &[8]), "port state UNCALIBRATED"),
        (good.with(0x2004, 10, &[4]), "port state LISTENING"),
        (good.with(0x2004, 10, &[99]), "port state unknown"),
        (good.with(0x2004, 23, &[2]), "delay_mechanism E2E"),
        (good.with(0x2000, 2, &[0, 0]), "0 ports"),
        (good.with(0x2000, 2, &[1, 0]), "256 ports"),
        (flags(0x18), "currentUtcOffsetValid 0"),
        (flags(0x14), "ptpTimescale 0"),
        (flags(0x0c), "timeTraceable 0"),
        (flags(0x1d), "leap second"),
        // Behind one, linuxptp 3.1 goes on by the earlier offset: found by the bed `utc-ptp`.
        (good.with(0x2003, 0, &[0, 38]), "38 s ahead of UTC"),
        (good.with(0x2003, 0, &[0, 36]), "36 s ahead of UTC"),
        (flags(0x1e), "leap second"),
        (flags(0x5c), "uncertain"),
        (good.with(0x2001, 0, &[0, 3]), "2 boundary clocks"),
        (good.with(0x2001, 10, &[0xff; 8]), "negative"),
        (good.with(0xc000, 8, &[0; 8]), "no Sync"),
        (good.with(0xc000, 8, &[0xff; 8]), "still to come"),
        (good.with(0xc000, 8, &((NOW + 1) as i64).to_be_bytes()), "still to come"),
        (good.with(0xc000, 8, &((NOW - 31 * S) as i64).to_be_bytes()), "31 s ago"),
        (good.with(0xc000, 0, &(i64::MIN).to_be_bytes()), "off the master"),
        (good.with(0xc000, 42, &[9]), "changes at this moment"),
        (good.with(0xc004, 11, &[2]), "not known (2)"),
        (good.with(0xc004, 11, &[1]), "use linuxptp 4"),
        (hard.with(0xc009, 13, &[4]), "no /dev/ptp4"),
        (hard.with(0xc009, 10, &[0xff; 4]), "names no PTP clock"),
        (hard.with(0xc009, 14, &[1]), "virtual clock"),
        // Stamps of another clock than the one that is read.
        (hard.with(0xc000, 8, &(NOW as i64).to_be_bytes()), "37 s ago"),
        (good.spoiled(|_, bytes| bytes.truncate(53)), "a message of 53 bytes"),
        (good.spoiled(|_, bytes| bytes.truncate(1)), "a message of 1 bytes"),
        (good.spoiled(|_, bytes| bytes.truncate(bytes.len() - 1)), "a message of"),
        (
            good.spoiled(|id, bytes| {
                if id == 0xc000 {
                    bytes.drain(60..80);
                }
            }),
            "a message of",
        ),
        (good.spoiled(|_, bytes| bytes[31] ^= 1), "does not answer"),
        (
            good.spoiled(|id, bytes| {
                if id == 0xc000 {
                    bytes.clear()
                }
            }),
            "does not answer",
        ),
        (good.spoiled(|_, bytes| bytes.clear()), "does not answer"),
        (good.spoiled(|_, bytes| bytes[0] = 0x0b), "no management message"),
        (good.spoiled(|_, bytes| bytes[1] = 1), "no management message"),
        (good.spoiled(|_, bytes| bytes[46] = 4), "another thing"),
        (good.spoiled(|_, bytes| bytes[53] ^= 1), "another thing"),
        (good.spoiled(|_, bytes| bytes[49] = 9), "type 9"),
        (Fake { bodies: good.bodies[..5].into(), ..good.clone() }, "TIME_STATUS_NP: not supported"),
        (Fake { bodies: Vec::new(), ..good.clone() }, "DEFAULT_DATA_SET: not supported"),
    ]
}

#[test]
fn what_bounds_nothing_is_refused_with_its_reason() {
    for (row, (fake, cause)) in without_bound().into_iter().enumerate() {
        let begun = Instant::now();
        let within = if cause == "does not answer" { WITHIN } else { WITHIN * 100 };
        let why = ask_within(within, &fake, PLACES[0], |_| {}).said.unwrap_err();
        assert!(why.contains(cause), "row {row}, {cause}: {why}");
        assert!(!why.contains('\n'), "row {row}: {why}");
        // 0.1 s, and what a busy machine takes.
        assert!(begun.elapsed() < Duration::from_secs(5), "row {row}: {:?}", begun.elapsed());
    }
}

#[test]
fn other_domains_and_several_ports_are_found() {
    let far = Fake { domain: 44, ..Fake::new() };
    let answer = ask(&far, PLACES[0], |_| {});
    assert!(answer.said.is_ok(), "{:?}", answer.said);
    assert!(answer.evidence.iter().any(|row| row.id == "domain" && row.found == "44"));
    // Three ports, of which the second one follows; the fake tells them apart by the target of the question.
    let by_port = Fake::new().with(0x2000, 2, &[0, 3]).spoiled(|id, bytes| {
        if id == 0x2004 && bytes[43] != 2 {
            bytes[64] = 6;
        }
    });
    let answer = ask(&by_port, PLACES[0], |_| {});
    assert!(answer.said.is_ok(), "{:?}", answer.said);
    let states = answer.evidence.iter().find(|row| row.id == "port_state").unwrap();
    assert_eq!(states.found, "MASTER, SLAVE, MASTER");
    assert!(said(&Fake::new().with(0x2000, 2, &[0, 2])).unwrap_err().contains("SLAVE, SLAVE"));
}

/// Before linuxptp 4 the device is that of the interface; the socket for everybody tells neither.
#[test]
fn the_clock_is_known_or_not_vouched_for() {
    let mut hard = Fake::new().on_hardware();
    hard.bodies.pop();
    let device = |root: &Path| {
        std::fs::create_dir_all(root.join("sys/class/net/eth0/device/ptp/ptp3")).unwrap();
    };
    assert!(ask(&hard, PLACES[0], device).said.is_ok());
    let mut reserved = Fake::new();
    reserved.bodies.pop();
    let class = |root: &Path, name: &str| {
        std::fs::create_dir_all(root.join("sys/class").join(name)).unwrap();
    };
    assert!(ask(&reserved, PLACES[1], |root| class(root, "ptp")).said.is_ok());
    assert!(ask(&reserved, PLACES[1], |root| class(root, "net")).said.is_ok());
    let why = ask(&reserved, PLACES[1], |root| class(root, "ptp/ptp0")).said.unwrap_err();
    assert!(why.contains("ask as root"), "{why}");
    let why = ask(&reserved, PLACES[1], |_| {}).said.unwrap_err();
    assert!(why.contains("root alone"), "{why}");
}

/// Found by the bed `utc-phc`: a container that has ptp4l's socket, and not its device.
#[test]
fn a_device_that_cannot_be_read_has_a_remedy() {
    let why = compared(PtpClock::Device(u32::MAX)).unwrap_err();
    assert!(why.starts_with("/dev/ptp4294967295 cannot be read: "), "{why}");
    let kinds = [
        (ErrorKind::NotFound, "give this container the device"),
        (ErrorKind::PermissionDenied, "ask as root"),
        (ErrorKind::WouldBlock, "ask again"),
        (ErrorKind::InvalidInput, "start ptp4l anew"),
    ];
    for (kind, wanted) in kinds {
        assert!(remedy(&kind.into()).contains(wanted), "{kind}");
    }
    assert!(why.ends_with(remedy(&ErrorKind::NotFound.into())), "{why}");
}

#[test]
fn a_socket_of_another_user_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let owner = credentials::real();
    let source =
        |owner| Ptp4l { root: root.to_str().unwrap(), owner, within: WITHIN, compare: &at_now };
    let why = |owner| source(owner).ask().said.unwrap_err();
    assert!(why(owner).starts_with("no ptp4l at "), "{}", why(owner));
    std::fs::create_dir_all(root.join("var/run")).unwrap();
    let place = root.join(PLACES[0]);
    std::fs::write(&place, "").unwrap();
    assert!(why(owner).contains("is no socket"), "{}", why(owner));
    std::fs::remove_file(&place).unwrap();
    drop(UnixDatagram::bind(&place).unwrap());
    assert!(why(owner).contains("has ended"), "{}", why(owner));
    assert!(why(owner + 1).contains("belongs to the user"), "{}", why(owner + 1));
}

/// Its queue is full after some questions, and the next one would wait for good.
#[test]
fn a_server_that_reads_nothing_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("var/run")).unwrap();
    let hung = UnixDatagram::bind(root.join(PLACES[0])).unwrap();
    let owner = credentials::real();
    let source = Ptp4l { root: root.to_str().unwrap(), owner, within: WITHIN, compare: &at_now };
    let begun = Instant::now();
    for _ in 0..3 {
        let why = source.ask().said.unwrap_err();
        assert!(why.contains("does not answer"), "{why}");
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(hung);
}

/// What other programs send to the socket before it is connected is dropped, and nothing after that arrives.
#[test]
fn only_ptp4l_can_answer() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("server");
    let server = UnixDatagram::bind(&place).unwrap();
    let mut socket =
        ManagementSocket::open(&place, credentials::real(), WITHIN * 100).map_err(|e| e.1).unwrap();
    socket.send(b"x").unwrap();
    let (_, own) = server.recv_from(&mut [0; 1]).unwrap();
    let own = SocketAddr::from_abstract_name(own.as_abstract_name().unwrap()).unwrap();
    let stranger = UnixDatagram::unbound().unwrap();
    assert!(stranger.send_to_addr(b"lie", &own).is_err());
    server.send_to_addr(b"true", &own).unwrap();
    assert_eq!(socket.receive(Duration::from_secs(1)), Ok(Some(b"true".to_vec())));
}

#[test]
fn accuracies_are_those_of_the_standard() {
    // IEEE 1588-2008, table 6; in ns, rounded up.
    for (accuracy, ns) in [
        (0x17, 1),
        (0x1d, 1),
        (0x1e, 3),
        (0x1f, 10),
        (0x20, 25),
        (0x21, 100),
        (0x22, 250),
        (0x23, 1_000),
        (0x24, 2_500),
        (0x28, 250_000),
        (0x2b, 10_000_000),
        (0x2f, S),
        (0x30, 10 * S),
    ] {
        assert_eq!(bound::accuracy_ns(accuracy), Ok(ns), "{accuracy:#x}");
    }
}

/// A master and a clock that follows it, over a path of two delays: whatever is between two clocks in truth is within
/// the bound, and often would not be without the path's delay.
#[test]
fn the_true_offset_is_within_the_bound() {
    let seed = seed();
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    let (mut wider, mut tight) = (0, 0);
    for _ in 0..50_000 {
        let mut between = |low: i64, high: i64| low + dice.below((high - low + 1) as u64) as i64;
        let hardware = between(0, 1) == 1;
        // All in ns. The grandmaster is off TAI by this, within 250 ns.
        let master = between(-250, 250);
        let (there, back) = (between(0, 50_000), between(0, 50_000));
        let off = between(-20_000, 20_000);
        // A Sync goes there, a Delay_Req goes back.
        let (t1, t2) = (master, there + off);
        let (t3, t4) = (there + off, there + back + master);
        let delay_twice = (t2 - t1) + (t4 - t3);
        let path_delay = delay_twice << 15;
        let offset = t2 - t1 - delay_twice.div_euclid(2);
        let log = between(-7, 4) as i8;
        // Since then the clock went on at its own rate, and its offset was taken out at no more than that rate.
        let age = between(0, 3_000_000_000);
        let own_ppb = between(-100_000, 100_000);
        let slew_ppb = between(0, 16) * -offset;
        let gone = age * own_ppb / S as i64
            + (i128::from(age) * i128::from(slew_ppb) / i128::from(S)) as i64;
        let clock_off = off + gone;
        let utc = NOW as i64 + between(0, S as i64);
        let arrived = utc - age + off;
        let (compared, system_off, ingress) = if hardware {
            let system_off = between(-30_000, 30_000);
            let (first, last) = (between(0, 5_000), between(0, 5_000));
            let at = |ns: i64| (utc + ns + system_off) as u64;
            let device_ns = (utc + 37 * S as i64 + clock_off) as u64;
            let compared = Comparison { before_ns: at(-first), device_ns, after_ns: at(last) };
            (compared, system_off, arrived + 37 * S as i64)
        } else {
            let ns = (utc + clock_off) as u64;
            let compared = Comparison { before_ns: ns, device_ns: ns, after_ns: ns };
            (compared, clock_off, arrived)
        };
        let state = PtpState {
            domain: 0,
            ports: vec![Port { state: 9, log_sync_interval: log, delay_mechanism: 1 }],
            follows: true,
            grandmaster: GRANDMASTER,
            class: 6,
            accuracy: 0x22,
            steps_removed: 1,
            path_delay,
            offset_ns: offset,
            ingress_ns: ingress,
            utc_offset_s: 37,
            flags: 0x1c,
        };
        let clock = if hardware { PtpClock::Device(0) } else { PtpClock::System };
        let Ok(said) = state.statement(clock, compared, Leap::None, 5) else {
            // A clock that ran back by more than its age.
            assert!(age < 1_000_000, "seed {seed}: {state:?}");
            continue;
        };
        let wrong = system_off.unsigned_abs();
        assert!(wrong <= said.error_ns, "seed {seed}: {wrong} beyond {said:?} of {state:?}, {age}");
        let delay = path_delay.unsigned_abs() >> 16;
        wider += u32::from(wrong > said.error_ns - delay);
        tight += u32::from(said.error_ns < 200_000);
    }
    assert!(wider > 0 && tight > 100, "{wider} {tight}");
}

#[test]
fn strange_bytes_are_survived() {
    let seed = seed();
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..dice.below(600)).map(|_| dice.below(256) as u8).collect();
        let _ = strange(&bytes);
    }
    // What is nearly an answer.
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for id in [0x2000, 0x2004, 0x2001, 0x2002, 0x2003, 0xc000, 0xc004, 0xc009] {
            let mut asked = vec![0; 54];
            put(&mut asked, 0, &[0x0d, 2]);
            put(&mut asked, 49, &[1]);
            put(&mut asked, 52, &u16::to_be_bytes(id));
            let number = [0x2000, 0x2004, 0x2001, 0x2002, 0x2003, 0xc000, 0xc004, 0xc009];
            asked[31] = number.iter().position(|known| *known == id).unwrap() as u8;
            let answer = Fake::new().on_hardware().answer(&asked).unwrap();
            bytes.push(answer.len() as u8);
            bytes.extend(answer);
        }
        for _ in 0..dice.below(4) {
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] = dice.below(256) as u8;
        }
        let _ = strange(&bytes);
    }
}
