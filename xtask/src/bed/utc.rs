//! UTC between its bounds, while a real chronyd keeps the guest's clock and everything befalls it: steps and slews behind its
//! back, servers that are lost, far away on one side, or wrong by an error that they admit, its own death, and leap seconds
//! that the kernel makes, chronyd slews or the server smears.
//!
//! The reference is this machine's clock, which nothing of this changes: it is served to the guest as the time of a
//! stratum-1 server, at another date where a leap second is to come ([`Scale`]), and brackets each reading. A reading whose
//! latest is before the bracket's begin, or whose earliest is after its end, is wrong for certain.

mod scale;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hourglass_skip::Requirement;

use self::scale::Scale;
use super::debian::Package;
use super::expectation::Expectation::{ExitCode, Says, Shows};
use super::{Packaged, TestBed, boot, passes, step};
use crate::failure::StepFailure;
use crate::workspace::Workspace;

/// Of this machine, which the guest sees as 10.0.2.2.
const NTP: u16 = 21_123;
const REPORTS: u16 = 21_124;
pub(super) const MINUTES: f64 = 12.0;
/// Without a report for this long there is none any more; before the first one the guest boots.
const SILENCE: Duration = Duration::from_secs(60);
const BOOT: Duration = Duration::from_secs(480);
/// As long as one that has not heard the end asks once more.
const AFTERWARDS: Duration = Duration::from_secs(3);

pub(super) const BED: TestBed = TestBed {
    name: "utc",
    purpose: "UTC within its bound by this machine's clock, while chronyd keeps the guest's and all befalls it",
    #[rustfmt::skip]
    machine: &[
        "-smp", "1", "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
    ],
    modules: &[
        "virtio",
        "virtio_ring",
        "virtio_pci_legacy_dev",
        "virtio_pci_modern_dev",
        "virtio_pci",
        "failover",
        "net_failover",
        "virtio_net",
    ],
    packaged: &[
        Packaged { package: CHRONY, program: "usr/sbin/chronyd" },
        Packaged { package: CHRONY, program: "usr/bin/chronyc" },
    ],
    // Or, where this machine is busy, the guest takes its TSC for unstable; that is another clock source, and then the kernel
    // forgets a leap second (`ntp_clear`), as it does in the phase `leap-forgotten`.
    kernel_arguments: "tsc=reliable",
    tests: &["runs"],
    processor_limit: Duration::from_secs(86_400),
    steps: &[
        passes("network", NETWORK),
        step("chronyd", CHRONYD, &[ExitCode(0), Shows("Leap status : Normal")]),
        step("readings", READINGS, &[ExitCode(0), Says("test result: ok. 1 passed")]),
    ],
    ..TestBed::PLAIN
};

const CHRONY: Package = Package { name: "chrony", suite: None };

const NETWORK: &str = "\
    for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net; \
    do insmod /lib/modules/$module.ko || exit 1; done; \
    ifconfig lo 127.0.0.1 up; ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up; ifconfig eth0";

/// Also what the rounds start it by: with `makestep` at the beginning, at any time and never, and with leap seconds that it
/// slews, by 100,000 ppm and by fewer than the kernel's bound grows.
const CHRONYD: &str = "\
    mkdir -p /etc /var/lib /var/run; echo root:x:0:0::/:/bin/sh >/etc/passwd; \
    for steps in 3 -1 0 -slewed -slewed-slowly; do { echo server 10.0.2.2 port 21123 iburst minpoll 0 maxpoll 2; \
    echo user root; echo rtcsync; echo bindcmdaddress /; case $steps in \
    -slewed) echo makestep 0.1 3; echo leapsecmode slew;; \
    -slewed-slowly) echo makestep 0.1 3; echo leapsecmode slew; echo maxslewrate 400;; \
    *) echo makestep 0.1 $steps;; esac; \
    echo pidfile /tmp/chronyd.pid; } >/tmp/chrony$steps.conf; done; \
    echo start >/tmp/phase; chronyd -d -f /tmp/chrony3.conf >/tmp/chronyd.log 2>&1 & \
    chronyc -n -h 127.0.0.1 waitsync 60 0.1 0 1; code=$?; cat /tmp/chronyd.log; \
    chronyc -n -h 127.0.0.1 tracking; exit $code";

/// The phases, over and over: what each is is said to the other side, whose server does its part ([`premise`]). The server has
/// another date as soon as it hears of it, chronyd once it is started anew.
const READINGS: &str = r#"
phase() { echo $1 >/tmp/phase; sleep $2; }
chrony() { rm -f /tmp/chronyd.pid; chronyd -d -f /tmp/chrony$1.conf >>/tmp/chronyd.log 2>&1 & }
stop() { kill $1 $(pidof chronyd); sleep 1; }
date_of() { phase premise-date-$1 0; stop -15; adjtimex -t 10000 -f 0; chrony $2
    chronyc -n -h 127.0.0.1 waitsync 15 0.1 0 1; sleep 5; }
leap() { date_of $1 $2; phase leap-$1 40; }
rounds() { while true; do for steps in 3 -1; do
    leap inserted 3
    leap deleted 3
    leap slewed -slewed
    leap slewed-slowly -slewed-slowly
    leap smeared 3
    date_of forgotten 3; phase leap-forgotten 0
    for source in hpet tsc; do echo $source >/sys/devices/system/clocksource/clocksource0/current_clocksource; done; sleep 40
    date_of none $steps
    phase settled 8
    phase admitted-error 25
    phase far-on-one-side 35
    phase settled-again 8
    phase server-lost 45
    phase server-back 8
    phase premise-set-back 0; date -s @$(date +%s); sleep 18
    phase premise-set-forward 0; date -s @$(($(date +%s)+1)); sleep 18
    phase premise-rate-changed 0; adjtimex -f 32768000; sleep 12
    phase premise-tick-changed 0; adjtimex -t 10050; sleep 12
    phase settled-after 8
    phase killed 0; stop -9; sleep 12
    phase started-again 0; adjtimex -t 10000 -f 0; chrony $steps; sleep 12
    phase premise-set-far 0; date -s @$(($(date +%s)+7)); sleep 20
    phase killed-in-a-slew 0; stop -15; date -s @$(($(date +%s)+1)); chrony 0; sleep 6; stop -9; adjtimex; sleep 40
    phase started-anew 0; adjtimex -t 10000 -f 0; chrony -1; sleep 12
    phase ended 0; stop -15; sleep 8
done; done; }
rounds >/tmp/rounds.log 2>&1 &
HOURGLASS_UTC_REPORTS=10.0.2.2:21124 runs --exact utc::utc_is_read_for_another_clock --nocapture
code=$?; dmesg | grep -i -e 'leap second' -e clocksource; tail -n 200 /tmp/chronyd.log; tail -n 100 /tmp/rounds.log; exit $code"#;

pub(super) fn run(
    workspace: &Workspace,
    binary: Option<PathBuf>,
    minutes: f64,
    record: Option<&Path>,
) -> Result<(), StepFailure> {
    let open = |port| {
        UdpSocket::bind(("127.0.0.1", port)).map_err(|error| {
            let free =
                Requirement::runs("UDP ports 21123 and 21124", "! ss -uln | grep -q ':2112[34] '");
            StepFailure::Unable(free, format!("UDP port {port} of this machine: {error}"))
        })
    };
    let phase = Arc::new(Mutex::new(Phase::default()));
    let (server, told) = (open(NTP)?, open(REPORTS)?);
    let heard = Arc::clone(&phase);
    // Both end with this process, of which the bed is the last work.
    thread::spawn(move || serve(&server, &heard));
    let reports = thread::spawn(move || collect(&told, minutes, &phase));
    boot(workspace, &BED, binary)?;
    let tally = reports.join().unwrap_or_default();
    let document = tally.document(minutes);
    println!("{document}");
    if let Some(path) = record {
        fs::write(path, &document).map_err(|e| StepFailure::file(path, &e))?;
    }
    let why = match (tally.wrong(), tally.unproved()) {
        ((_, 0), _) => "nothing was vouched for".to_owned(),
        ((0, _), None) => return Ok(()),
        ((0, _), Some(phase)) => format!("nothing was vouched for in {phase}"),
        ((wrong, _), _) => format!("{wrong} readings are wrong"),
    };
    Err(StepFailure::Broken(format!("bed utc: {why}")))
}

/// What the guest is at, and the time that is served meanwhile.
#[derive(Clone, Debug, Default)]
struct Phase {
    name: String,
    scale: Scale,
}

impl Phase {
    fn hear(&mut self, name: &str, now_ns: i64) {
        if self.name != name {
            self.scale = Scale::of(name, now_ns).unwrap_or(self.scale);
            name.clone_into(&mut self.name);
        }
    }
}

/// The premise of the bound that a phase breaks, of which a wrong reading says nothing then.
fn premise(phase: &str, source: &str) -> Option<&'static str> {
    // Only chronyd itself tells its latest measurement.
    let is_of_kernel = matches!(source, "kernel" | "utc_bounded");
    match phase {
        "admitted-error" | "far-on-one-side" | "settled-again" if is_of_kernel => {
            Some("chronyd's estimate is within the bound that it states to the kernel")
        }
        _ if phase.starts_with("leap-slewed") && is_of_kernel => {
            Some("the kernel is told of a leap second that is announced")
        }
        _ if phase.starts_with("leap-forgotten") => Some(
            "the kernel's clock is not set, nor its source changed, once a leap second is announced",
        ),
        // Before the new chronyd is there its rate is put back, as after a slew whose daemon is dead.
        _ if phase.starts_with("premise-") || phase.starts_with("started-") => {
            Some("no other program sets the clock or changes its rate")
        }
        _ => None,
    }
}

/// This machine's time, ns since 1970.
fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// A server of stratum 1 (RFC 5905), which does to the guest what its phase says.
fn serve(socket: &UdpSocket, phase: &Mutex<Phase>) {
    let begun = Instant::now();
    let mut asked = [0; 128];
    while let Ok((length, from)) = socket.recv_from(&mut asked) {
        let phase = phase.lock().map(|phase| phase.clone()).unwrap_or_default();
        if length < 48 || phase.name == "server-lost" {
            continue;
        }
        // Sawteeth whose periods have nothing to do with those of questions.
        let saw =
            |period_ms: u128| (begun.elapsed().as_millis() % period_ms * 1_000 / period_ms) as i64;
        let (error_ns, admitted_ms) = match phase.name.as_str() {
            // Within 40 ms, 50 of which are admitted.
            "admitted-error" => ((saw(17_000) - 500) * 80_000, 50),
            _ => (0, 1),
        };
        if phase.name == "far-on-one-side" {
            thread::sleep(Duration::from_millis(saw(7_300).unsigned_abs() * 150 / 1_000));
        }
        let now_ns = now_ns();
        let mut bytes = reply(&asked, phase.scale.label(now_ns) + error_ns, admitted_ms);
        bytes[0] |= phase.scale.indicator(now_ns) << 6;
        let _ = socket.send_to(&bytes, from);
    }
}

/// `time_ns` is both when it was asked and when it answers.
fn reply(asked: &[u8], time_ns: i64, dispersion_ms: u32) -> [u8; 48] {
    const TO_1900_S: u64 = 2_208_988_800;
    let ns = time_ns.unsigned_abs();
    let fraction = (u128::from(ns % 1_000_000_000) << 32) / 1_000_000_000;
    let stamp = ((ns / 1_000_000_000 + TO_1900_S) << 32) | fraction as u64;
    let mut bytes = [0; 48];
    // Version 4, server, stratum 1, as often as is asked, 2^-20 s.
    bytes[..4].copy_from_slice(&[0x24, 1, asked[2], (-20i8).cast_unsigned()]);
    bytes[8..12].copy_from_slice(&((dispersion_ms << 16).div_ceil(1_000)).to_be_bytes());
    bytes[12..16].copy_from_slice(b"HOST");
    bytes[24..32].copy_from_slice(&asked[40..48]);
    for at in [16, 32, 40] {
        bytes[at..at + 8].copy_from_slice(&stamp.to_be_bytes());
    }
    bytes
}

/// Answers reports with the time, and judges what is in them.
fn collect(socket: &UdpSocket, minutes: f64, phase: &Mutex<Phase>) -> Tally {
    let mut tally = Tally::default();
    let mut first = None;
    let mut report = [0; 2048];
    let mut wait = BOOT;
    let answer = |text: &str, to: SocketAddr| socket.send_to(text.as_bytes(), to);
    loop {
        let _ = socket.set_read_timeout(Some(wait));
        let Ok((length, from)) = socket.recv_from(&mut report) else { return tally };
        let until_ns = now_ns();
        let begun = *first.get_or_insert_with(Instant::now);
        wait = wait.min(SILENCE);
        let text = String::from_utf8_lossy(&report[..length]).into_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [since, name, readings @ ..] = words.as_slice()
            && let (Ok(since_ns), false) = (since.parse(), readings.is_empty())
        {
            let scale = phase.lock().map_or(Scale::default(), |mut phase| {
                phase.hear(name, until_ns);
                phase.scale
            });
            tally.add(name, scale, readings, since_ns, until_ns);
        }
        if begun.elapsed().as_secs_f64() > minutes * 60.0 {
            let _ = answer("end", from);
            wait = AFTERWARDS;
            continue;
        }
        let _ = answer(&now_ns().to_string(), from);
    }
}

/// Of one source in one phase.
#[derive(Debug, Default, PartialEq)]
struct Row {
    readings: u64,
    bounded: u64,
    wrong: u64,
    /// By how much at most, ns.
    wrong_by_ns: i64,
    /// Half the width of the narrowest and of the widest bound, ns.
    least_ns: Option<i64>,
    most_ns: i64,
}

#[derive(Debug, Default)]
struct Tally {
    rows: BTreeMap<(String, String), Row>,
    /// The widest bracket, and their sum, ns.
    widest_ns: i64,
    total_ns: i64,
    turns: i64,
}

impl Tally {
    /// `NAME EARLIEST LATEST` of each source, read between two times of this machine.
    fn add(&mut self, phase: &str, scale: Scale, readings: &[&str], since_ns: i64, until_ns: i64) {
        let phase = match phase.starts_with("leap-") {
            true => format!("{phase}{}", scale.part(since_ns, until_ns)),
            false => phase.to_owned(),
        };
        self.widest_ns = self.widest_ns.max(until_ns - since_ns);
        self.total_ns += until_ns - since_ns;
        self.turns += 1;
        for found in readings.chunks_exact(3) {
            let row = self.rows.entry((phase.clone(), found[0].to_owned())).or_default();
            row.readings += 1;
            let (Ok(earliest), Ok(latest)) = (found[1].parse::<i64>(), found[2].parse::<i64>())
            else {
                continue;
            };
            let half_ns = (latest - earliest) / 2;
            let wrong_ns = scale.misses((earliest, latest), since_ns, until_ns);
            row.bounded += 1;
            row.least_ns = Some(row.least_ns.map_or(half_ns, |least| least.min(half_ns)));
            row.most_ns = row.most_ns.max(half_ns);
            if wrong_ns > 0 {
                row.wrong += 1;
                row.wrong_by_ns = row.wrong_by_ns.max(wrong_ns);
            }
        }
    }

    /// Wrong readings where every premise held, and all that had a bound.
    fn wrong(&self) -> (u64, u64) {
        let held = self.rows.iter().filter(|((phase, source), _)| premise(phase, source).is_none());
        let wrong = held.map(|(_, row)| row.wrong).sum();
        (wrong, self.rows.values().map(|row| row.bounded).sum())
    }

    /// A leap second of the kernel's at which nothing was vouched for, so that nothing could be wrong.
    fn unproved(&self) -> Option<&str> {
        let of_kernel = |phase: &str, source: &str| {
            matches!(phase, "leap-inserted-near" | "leap-deleted-near") && source == "utc_bounded"
        };
        let mut rows = self.rows.iter();
        let found =
            rows.find(|((phase, source), row)| of_kernel(phase, source) && row.bounded == 0);
        found.map(|((phase, _), _)| phase.as_str())
    }

    fn document(&self, minutes: f64) -> String {
        let mean_ns = self.total_ns / self.turns.max(1);
        let mut text = format!(
            "{{\n  \"schema\": \"hourglass.bed-utc/1\",\n  \"minutes\": {minutes},\n  \"turns\": {},\n  \
             \"bracket_mean_ns\": {mean_ns},\n  \"bracket_max_ns\": {},\n  \"wrong\": {},\n  \"rows\": [",
            self.turns,
            self.widest_ns,
            self.wrong().0
        );
        for (at, ((phase, source), row)) in self.rows.iter().enumerate() {
            let least = row.least_ns.map_or("null".to_owned(), |least| least.to_string());
            let broken =
                premise(phase, source).map_or("null".to_owned(), |text| format!("\"{text}\""));
            let _ = write!(
                text,
                "{}\n    {{\"phase\": \"{phase}\", \"source\": \"{source}\", \"premise_broken\": {broken}, \"readings\": {}, \
                 \"bounded\": {}, \"wrong\": {}, \"wrong_by_ns\": {}, \"error_min_ns\": {least}, \"error_max_ns\": {}}}",
                if at == 0 { "" } else { "," },
                row.readings,
                row.bounded,
                row.wrong,
                row.wrong_by_ns,
                row.most_ns
            );
        }
        text + "\n  ]\n}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_wrong_when_no_moment_of_its_bracket_is_in_it() {
        let mut tally = Tally::default();
        for (earliest, latest) in
            [("100", "200"), ("0", "99"), ("0", "100"), ("151", "200"), ("150", "200")]
        {
            tally.add(
                "settled",
                Scale::default(),
                &["kernel", earliest, latest, "chronyd", "-", "-"],
                100,
                150,
            );
        }
        tally.add("premise-set-back", Scale::default(), &["kernel", "0", "10"], 100, 150);
        assert_eq!(tally.wrong(), (2, 6));
        let row = &tally.rows[&("settled".to_owned(), "kernel".to_owned())];
        assert_eq!((row.readings, row.bounded, row.wrong_by_ns, row.least_ns), (5, 5, 1, Some(24)));
        let text = tally.document(1.5);
        assert!(
            text.contains("\"premise_broken\": \"no other program")
                && text.contains("\"wrong_by_ns\": 90"),
            "{text}"
        );
    }

    #[test]
    fn a_leap_second_has_to_be_vouched_for() {
        let scale = Scale::of("premise-date-inserted", 0).unwrap();
        let at = 35_000_000_000;
        let label = scale.label(at);
        for (found, unproved) in [("-", Some("leap-inserted-near")), (&*label.to_string(), None)] {
            let mut tally = Tally::default();
            tally.add("leap-inserted", scale, &["utc_bounded", found, found], at, at);
            assert_eq!((tally.unproved(), tally.wrong().0), (unproved, 0));
        }
        let mut tally = Tally::default();
        let late = (label + 1_000_000_000).to_string();
        tally.add(
            "leap-slewed",
            scale,
            &["utc_bounded", &late, &late, "chronyd", &late, &late],
            at,
            at,
        );
        assert_eq!(tally.wrong(), (1, 2));
    }

    #[test]
    fn a_server_answers_what_was_asked() {
        let mut asked = [7; 48];
        asked[2] = 4;
        let bytes = reply(&asked, 1_500_000_000, 50);
        assert_eq!(bytes[..4], [0x24, 1, 4, 0xec]);
        // 50 ms of 2^16 a second, rounded up.
        assert_eq!(bytes[8..12], 3_277u32.to_be_bytes());
        assert_eq!(bytes[24..32], [7; 8]);
        assert_eq!(
            bytes[40..48],
            [(2_208_988_801u32).to_be_bytes(), (1u32 << 31).to_be_bytes()].concat()
        );
    }
}
