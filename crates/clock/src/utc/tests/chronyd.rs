//! Replies of chronyd, well formed and not.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use hourglass_dice::{Dice, seed};
use hourglass_skip::{Requirement, skip};

use super::super::command_socket::SILENT;
use super::message::{REPLY, REQUEST, VERSION};
use super::*;

const SEQUENCE: u32 = 77;
/// Two seconds after the last update of [`reply`].
const LATER_NS: u64 = 1_002_000_000_005;

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
    put(&mut bytes, 4, (33 << 16) | 5);
    put(&mut bytes, 16, SEQUENCE);
    put(&mut bytes, 28, 0x0a00_0001);
    put(&mut bytes, 32, 0x0a00_0001);
    put(&mut bytes, 48, 1 << 16);
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

/// Of the source 10.0.0.1, 3 s ago: 1/2 s fast, 1/8 s of which it is not sure.
fn source() -> [u8; 76] {
    let mut bytes = [0; 76];
    bytes[..2].copy_from_slice(&[VERSION, REPLY]);
    put(&mut bytes, 4, (15 << 16) | 3);
    put(&mut bytes, 16, SEQUENCE);
    put(&mut bytes, 28, 0x0a00_0001);
    put(&mut bytes, 44, 1 << 16);
    put(&mut bytes, 60, 3);
    put(&mut bytes, 68, number(1, -(1 << 23)));
    put(&mut bytes, 72, number(0, 1 << 22));
    bytes
}

fn kernel(max_error_us: u64, frequency: i64) -> adjtimex::Discipline {
    adjtimex::Discipline {
        synchronised: true,
        max_error_us,
        est_error_us: 0,
        frequency,
        tick_us: TICK_US,
        slewing: false,
        leap: adjtimex::Leap::None,
    }
}

/// The bug: skew and residual frequency alone, while delays led the frequency astray by 230 ppm.
#[test]
fn a_frequency_that_fits_may_be_off_by_as_much_as_the_oscillator_allows() {
    let mut bytes = reply();
    put(&mut bytes, 80, number(9, 230 << 16));
    put(&mut bytes, 84, 0);
    put(&mut bytes, 88, 0);
    let tracking = read(&bytes).unwrap();
    assert_eq!(tracking.frequency_ppb, 230_000);
    for (rate, growth_ppb) in [
        (Oscillator::ASSUMED, 280_000),
        ([210_000, 212_000], 20_000),
        ([230_000, 230_100], MAX_CLOCK_ERROR_PPB),
        ([i64::MIN, i64::MAX], i64::MAX.unsigned_abs() + 230_001),
    ] {
        assert_eq!(tracking.growth_ppb(rate), growth_ppb, "{rate:?}");
    }
    // What was learnt is of half an hour.
    let old = Tracking { measured: Some(Measurement { error_ns: 0, age_s: 2_049 }), ..tracking };
    assert_eq!(old.statement(9, LATER_NS, [230_000; 2]).unwrap().growth_ppb, 280_000);
}

/// What takes the correction out goes on if chronyd ends: 7 ppm where the clock's own error is 3 ppm.
#[test]
fn a_slew_that_is_under_way_is_in_the_growth() {
    let mut bytes = reply();
    for (own_ppm, set_ppm, slew_ppb) in
        [(-3, 10, 7_000), (3, -10, 7_000), (3, 4, 7_000), (3, -3, 0)]
    {
        put(&mut bytes, 80, number(4, own_ppm << 21));
        let tracking = read(&bytes).unwrap();
        assert_eq!(tracking.frequency_ppb, i64::from(own_ppm) * 1_000);
        let said = tracking.assumed(9, LATER_NS).unwrap();
        let slewed = tracking.slewed_by(kernel(1, i64::from(set_ppm) << 16), said);
        assert_eq!(slewed.growth_ppb, said.growth_ppb + slew_ppb + 2);
    }
}

impl Tracking {
    fn assumed(&self, at_ns: u64, now_ns: u64) -> Result<UtcStatement, String> {
        self.statement(at_ns, now_ns, Oscillator::ASSUMED)
    }
}

/// A report and what it followed, read as from the socket.
fn read(bytes: &[u8]) -> Result<Tracking, String> {
    checked(bytes, TRACKING, SEQUENCE)?;
    let near = Measurement { error_ns: 1, age_s: 0 };
    Ok(Tracking { measured: Some(near), ..Tracking::of(bytes)? })
}

#[test]
fn the_latest_measurement_bounds_the_clock_too() {
    let report = read(&reply()).unwrap();
    assert!(report.is_of(&source()));
    let measured = Measurement::of(&source()).unwrap();
    assert_eq!(measured, Some(Measurement { error_ns: 625_000_000, age_s: 3 }));
    let said = Tracking { measured, ..report }.assumed(9, LATER_NS).unwrap();
    assert_eq!(said.error_ns, 125_000_000 + 625_000_000 + (3 + 1) * 50_000);
    let none = Tracking { measured: None, ..report }.assumed(9, LATER_NS);
    assert!(none.unwrap_err().contains("gone"));
    let mut never = source();
    put(&mut never, 60, NEVER);
    assert_eq!(Measurement::of(&never), Ok(None));
    put(&mut never, 28, 0x0a00_0002);
    assert!(!report.is_of(&never));
    // A clock of this machine, which has no address.
    let (mut clock, mut followed) = (reply(), source());
    put(&mut clock, 28, u32::from_be_bytes(*b"PPS\0"));
    put(&mut clock, 48, 0);
    put(&mut followed, 28, u32::from_be_bytes(*b"PPS\0"));
    assert!(read(&clock).unwrap().is_of(&followed) && !report.is_of(&followed));
}

#[test]
fn a_report_bounds_the_clock_by_correction_dispersion_and_half_the_delay() {
    let tracking = read(&reply()).unwrap();
    let said = tracking.assumed(9, LATER_NS).unwrap();
    let error_ns = 125_000_000 + 250_000_000 + 250_000_000;
    let growth_ppb = 50_000;
    let (age_ns, supersedes_kernel) = (2_000_000_000, true);
    assert_eq!(said, UtcStatement { error_ns, growth_ppb, at_ns: 9, age_ns, supersedes_kernel });
}

/// Of a time that is still to come, by more than what it will be corrected by (1/8 s): the clock was set back since.
#[test]
fn a_clock_that_was_set_back_is_not_vouched_for() {
    let tracking = read(&reply()).unwrap();
    let latest = 1_000_000_000_005 - 125_000_000 - AHEAD_NS;
    assert!(tracking.assumed(0, latest).is_ok());
    for now_ns in [latest - 1, latest - 3_600_000_000_000 / 4, 0] {
        assert_eq!(tracking.assumed(0, now_ns).unwrap_err(), STEPPED, "{now_ns}");
    }
    // What is off by more than anybody can say is no bound.
    let said = tracking.assumed(0, LATER_NS).unwrap();
    let said = UtcStatement { error_ns: FARTHEST_NS + 1, ..said };
    assert!(tracking.under(kernel(1, 0), said, LATER_NS).unwrap_err().contains("out of range"));
}

#[test]
fn a_clock_that_follows_none_is_not_vouched_for() {
    for (at, value) in [(52, 0), (52, 16 << 16), (52, (3 << 16) | 3), (52, (3 << 16) | 1)]
        .into_iter()
        .chain([(28, 0), (28, LOCAL)])
    {
        let mut bytes = reply();
        put(&mut bytes, at, value);
        let tracking = read(&bytes).unwrap();
        assert!(tracking.assumed(0, LATER_NS).is_err(), "{at} {value:#x}");
    }
}

#[test]
fn what_is_no_report_is_refused() {
    let good = reply();
    assert!(checked(&good, TRACKING, SEQUENCE + 1).is_err());
    assert!(read(&[&good[..], &[0]].concat()).is_err());
    for length in 0..LENGTH {
        assert!(read(&good[..length]).is_err(), "{length}");
    }
    let huge = number(63, (1 << 24) - 1);
    for (at, value) in [(0, 0), (4, 0), (8, 1 << 16), (64, 1_000_000_000), (56, 9), (92, huge)]
        .into_iter()
        .chain([(96, number(0, -1)), (88, number(0, -1))])
    {
        let mut bytes = reply();
        put(&mut bytes, at, value);
        assert!(read(&bytes).is_err(), "{at} {value:#x}");
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
        let Ok(tracking) = read(&bytes) else { continue };
        let rate = [dice.roll().cast_signed(), dice.roll().cast_signed()];
        let Ok(said) = tracking.statement(dice.roll(), u64::MAX, rate) else { continue };
        assert!(said.error_ns >= tracking.correction_ns.max(tracking.root_dispersion_ns));
    }
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..dice.below(200)).map(|_| dice.roll() as u8).collect();
        assert!(checked(&bytes, TRACKING, dice.roll() as u32).is_err(), "{bytes:?}");
    }
}

/// Answers as chronyd does until it gets an empty datagram, and returns the commands.
fn serve(server: &UdpSocket) -> Vec<u16> {
    let mut commands = Vec::new();
    loop {
        let mut asked = [0; LENGTH + 1];
        let (length, from) = server.recv_from(&mut asked).unwrap();
        if length == 0 {
            return commands;
        }
        assert_eq!(asked[..4], [VERSION, REQUEST, 0, 0]);
        let command = word(&asked, 4);
        let mut bytes = match command {
            33 => reply().to_vec(),
            14 => source()[..32].to_vec(),
            _ => source().to_vec(),
        };
        assert_eq!(length, bytes.len());
        if command == 14 {
            put(&mut bytes, 4, (14 << 16) | 2);
            put(&mut bytes, 28, 1);
        }
        bytes[16..20].copy_from_slice(&asked[8..12]);
        server.send_to(&bytes, from).unwrap();
        commands.push(command);
    }
}

#[test]
fn a_server_is_asked_and_answers() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = server.local_addr().unwrap();
    let answered = std::thread::spawn(move || serve(&server));
    // A machine may not run the server for 0.1 s.
    let said = |kernel: &dyn Fn() -> Option<adjtimex::Discipline>| {
        let asked = || Chronyd::at(to.port(), "/").answer(kernel).said.map(|said| said.error_ns);
        let is_late =
            |said: &Result<u64, String>| said == &Err("no answer within 0.1 s".to_owned());
        std::iter::repeat_with(asked).take(100).find(|said| !is_late(said)).unwrap()
    };
    assert_eq!(said(&|| Some(kernel(1, 0))), Ok(750_200_000));
    assert_eq!(said(&|| Some(kernel(SINCE_STEP_US, 0))), Err(STEPPED.to_owned()));
    assert_eq!(said(&|| None), Err(SANDBOXED.to_owned()));
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().send_to(&[], to).unwrap();
    // Tracking, how many sources, the first, tracking.
    assert!(answered.join().unwrap().ends_with(&[33, 14, 15, 33]));
    // Its socket is closed by now.
    let away = Chronyd::at(to.port(), "/dev/null/none").ask().said.unwrap_err();
    assert!(away.contains("no chronyd"), "{away}");
}

/// With `cmdport 0` it listens at its socket alone, and answers to a name beside it, which is gone afterwards.
#[test]
fn a_server_without_a_port_is_asked_through_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("chronyd.sock");
    let server = UnixDatagram::bind(&place).unwrap();
    let asked = Chronyd::at(free_port(), &place);
    let answered = std::thread::spawn(move || {
        let mut bytes = [0; LENGTH + 1];
        let (length, from) = server.recv_from(&mut bytes).unwrap();
        server.send_to(&[0; 7], from.as_pathname().unwrap()).unwrap();
        (server, bytes[..length].to_vec())
    });
    let answer = asked.ask();
    let (server, command) = answered.join().unwrap();
    assert_eq!((command.len(), word(&command, 4)), (LENGTH, 33));
    // An answer that is none is of one that is there.
    assert_eq!(answer.denies, UtcDenial::Kernel, "{answer:?}");
    let why = answer.said.unwrap_err();
    assert!(why == SILENT || why == "an answer of 7 bytes", "{why}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // One that was killed leaves its socket behind.
    drop(server);
    let answer = asked.ask();
    assert!(answer.said.unwrap_err().contains("no chronyd"));
    assert_eq!(answer.denies, UtcDenial::Nothing);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// One that serves this machine's time or asks that one, and leaves the clock alone (`-x`).
struct Daemon(Child);

impl Daemon {
    fn start(folder: &tempfile::TempDir, name: &str, lines: &str) -> Option<Daemon> {
        let file = folder.path().join(name);
        let pid = folder.path().join(format!("{name}.pid"));
        let own = format!("user root\nbindcmdaddress /\npidfile {}\n{lines}", pid.display());
        std::fs::write(&file, own).unwrap();
        let mut command = program("chronyd");
        command.args(["-x", "-d", "-U", "-f"]).arg(&file);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok().map(Daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Debian has daemons where users do not look for programs.
fn program(name: &str) -> Command {
    let daemons = std::path::Path::new("/usr/sbin").join(name);
    if daemons.is_file() { Command::new(daemons) } else { Command::new(name) }
}

fn free_port() -> u16 {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// What a chronyd says once `wanted` holds for it.
fn tracking(port: u16, wanted: impl Fn(&Tracking) -> bool) -> Tracking {
    let begun = Instant::now();
    loop {
        let found = Chronyd::at(port, "/").through(Chronyd::asked).map(|(found, _)| found);
        match found {
            Ok(found) if wanted(&found) => return found,
            _ if begun.elapsed() > Duration::from_secs(60) => panic!("still {found:?}"),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// What chronyc prints of it: seconds and parts per million.
fn chronyc(port: u16) -> Vec<String> {
    let mut command = program("chronyc");
    command.args(["-n", "-c", "-h", "127.0.0.1", "-p", &port.to_string(), "tracking"]);
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    said.trim().split(',').map(str::to_owned).collect()
}

/// A decimal number, as chronyc prints it, times `unit`.
fn decimal(text: &str, unit: f64) -> f64 {
    text.parse::<f64>().unwrap_or_else(|_| panic!("{text}")).abs() * unit
}

#[test]
fn a_chronyd_is_read_as_chronyc_reads_it() {
    let (server_port, server_asked, asked) = (free_port(), free_port(), free_port());
    let folder = tempfile::tempdir().unwrap();
    let client = format!("server 127.0.0.1 port {server_port} iburst minpoll 0 maxpoll 0");
    let client = Daemon::start(&folder, "client", &format!("port 0\ncmdport {asked}\n{client}\n"));
    let Some(_client) = client else {
        let there = "PATH=$PATH:/usr/sbin; command -v chronyd && command -v chronyc";
        return skip(Requirement::runs("chrony", there), "chronyd is not installed");
    };
    let free = tracking(asked, |_| true);
    assert_eq!(free.assumed(0, LATER_NS), Err("it is not synchronised".to_owned()), "{free:?}");

    let server = format!("local stratum 1\nallow 127.0.0.1\nport {server_port}\n");
    let server = Daemon::start(&folder, "server", &format!("cmdport {server_asked}\n{server}"));
    let own = tracking(server_asked, |found| found.reference != 0);
    assert!(own.assumed(0, LATER_NS).unwrap_err().contains("local clock alone"), "{own:?}");

    tracking(asked, |found| found.leap == 0 && found.reference == 0x7f00_0001);
    // Between two of its measurements.
    let (before, printed, after) = std::iter::repeat_with(|| {
        let before = tracking(asked, |_| true);
        (before, chronyc(asked), tracking(asked, |_| true))
    })
    .take(100)
    .find(|(before, _, after)| before.updated_ns == after.updated_ns)
    .unwrap();
    assert_eq!(
        (printed[0].as_str(), printed[2].as_str(), printed[13].as_str()),
        ("7F000001", "2", "Normal")
    );
    let ns = 1e9;
    for (name, low, text, unit, high) in [
        ("updated", before.updated_ns, &printed[3], ns, after.updated_ns),
        (
            "frequency",
            before.frequency_ppb.unsigned_abs(),
            &printed[7],
            1e3,
            after.frequency_ppb.unsigned_abs(),
        ),
        ("residual", before.residual_ppb, &printed[8], 1e3, after.residual_ppb),
        ("skew", before.skew_ppb, &printed[9], 1e3, after.skew_ppb),
        ("root delay", before.root_delay_ns, &printed[10], ns, after.root_delay_ns),
        ("root dispersion", before.root_dispersion_ns, &printed[11], ns, after.root_dispersion_ns),
    ] {
        let (text, low, high) = (decimal(text, unit), low as f64, high as f64);
        // Rounded up here, to the nearest there; a double has 2^-53 of 56 years.
        let loose = if name == "updated" { 1e3 } else { 1.01 };
        assert!(low - loose <= text && text <= high + loose, "{name}: {low} {text} {high}");
    }
    // It is worked off meanwhile.
    let (low, high) = (
        after.correction_ns.min(before.correction_ns),
        before.correction_ns.max(after.correction_ns),
    );
    let correction = decimal(&printed[4], ns);
    assert!(
        low as f64 - 1e3 <= correction && correction <= high as f64 + 1e3,
        "{low} {correction} {high}"
    );

    let measured = after.measured.unwrap();
    assert!(
        (1..1_000_000_000).contains(&measured.error_ns) && measured.age_s <= 60,
        "{measured:?}"
    );
    let bound = |found: &Tracking| found.assumed(0, found.updated_ns).unwrap().error_ns;
    assert!(bound(&after) >= after.root_dispersion_ns + after.root_delay_ns / 2);
    drop(server);
    let left = tracking(asked, |found| {
        found.root_dispersion_ns > after.root_dispersion_ns + 1_000
            && found.reference == 0x7f00_0001
    });
    assert!(left.assumed(0, left.updated_ns + 5).is_ok_and(|said| said.age_ns == 5), "{left:?}");
}

#[test]
fn a_clock_that_is_set_or_runs_off_is_not_vouched_for() {
    let kernel = |max_error_us, frequency, tick_us| adjtimex::Discipline {
        synchronised: true,
        max_error_us,
        est_error_us: 0,
        frequency,
        tick_us,
        slewing: false,
        leap: adjtimex::Leap::None,
    };
    let slewing = adjtimex::Discipline { slewing: true, ..kernel(1_234, 0, 10_000) };
    assert_eq!(refused(slewing, 9_000, 0), Some(OFFSET));
    for (max_error_us, frequency, tick_us, why) in [
        (1_234, 500 << 16, 10_000, None),
        (1_234, 0, 9_995, None),
        (1_234, -(500 << 16) - 1, 10_000, Some(FAST)),
        (1_234, 1, 10_005, Some(FAST)),
        // The one takes the other back.
        (1_234, -(300 << 16), 10_008, None),
        (15_999_999, 0, 10_000, None),
        // Another program began to count anew, and may have set the clock with the same call.
        (0, 0, 10_000, Some(ANOTHERS)),
        (1_500, 0, 10_000, Some(ANOTHERS)),
        (16_000_000, 0, 10_000, Some(STEPPED)),
        (1_234, i64::MIN, i64::MIN, Some(FAST)),
    ] {
        let kernel = kernel(max_error_us, frequency, tick_us);
        assert_eq!(refused(kernel, 9_000, 1_000), why, "{frequency} {tick_us}");
    }
}

/// chronyd that follows a pulse states 0 us itself; 3 s later its estimate has grown by as much as that explains.
#[test]
fn an_estimate_below_a_microsecond_begins_at_0() {
    for (max_error_us, estimate_ns, why) in [
        (0, 2_000, None),
        (0, 2_001, Some(ANOTHERS)),
        (1_500, 5_000, None),
        (1_500, 5_001, Some(ANOTHERS)),
    ] {
        assert_eq!(
            refused(kernel(max_error_us, 0), estimate_ns, 1_000),
            why,
            "{max_error_us} {estimate_ns}"
        );
    }
}

/// The bug: with `leapsecmode slew` the kernel's bound, of milliseconds, answered while the clock was a second off.
#[test]
fn a_leap_second_of_which_the_kernel_is_not_told_is_not_vouched_for() {
    use adjtimex::Leap;
    const MIDNIGHT_NS: u64 = 1_798_761_600_000_000_000;
    for (its, kernels, now_ns, why) in [
        (1, Leap::None, MIDNIGHT_NS - 1, Some(UNTOLD)),
        (1, Leap::None, MIDNIGHT_NS, Some(UNTOLD)),
        (2, Leap::None, MIDNIGHT_NS - NEAR_NS, Some(UNTOLD)),
        (1, Leap::None, MIDNIGHT_NS + NEAR_NS, Some(UNTOLD)),
        (1, Leap::None, MIDNIGHT_NS - NEAR_NS - 1, None),
        (1, Leap::None, MIDNIGHT_NS + NEAR_NS + 1, None),
        (0, Leap::None, MIDNIGHT_NS, None),
        (3, Leap::None, MIDNIGHT_NS, Some(UNTOLD)),
        // The kernel's bound is a second wider.
        (1, Leap::Announced, MIDNIGHT_NS - 1, None),
        (1, Leap::Running, MIDNIGHT_NS - 1, None),
    ] {
        let tracking = Tracking { leap: its, ..Tracking::of(&reply()).unwrap() };
        assert_eq!(untold(&tracking, kernels, now_ns), why, "{its} {kernels:?} {now_ns}");
    }
    let away = Tracking { leap: 3, reference: 0, ..Tracking::of(&reply()).unwrap() };
    assert_eq!(untold(&away, Leap::None, MIDNIGHT_NS), None);
    // Where the kernel alone announces one, the bound is wider around midnight.
    let tracking = Tracking::of(&reply()).unwrap();
    for (leap, now_ns, wider_ns) in [
        (Leap::Announced, MIDNIGHT_NS - 1, 1_000_000_000),
        (Leap::Announced, MIDNIGHT_NS - 3_600_000_000_000, 0),
        (Leap::Running, MIDNIGHT_NS + 5, 1_000_000_000),
        (Leap::None, MIDNIGHT_NS - 1, 0),
    ] {
        let said = UtcStatement {
            error_ns: 9,
            growth_ppb: 0,
            at_ns: 0,
            age_ns: 0,
            supersedes_kernel: true,
        };
        let kernel = adjtimex::Discipline { leap, ..kernel(1, 0) };
        let found = tracking.under(kernel, said, now_ns).unwrap();
        assert_eq!(found.error_ns, 9 + wider_ns, "{leap:?} {now_ns}");
    }
}
