//! linuxptp's ptp4l keeps the guest's clock by a grandmaster that is this machine: it is wrong by what it announces, far away
//! on one side, silent, another one, without a way to UTC, and goes through leap seconds; the guest's clock is set behind
//! ptp4l's back, and ptp4l dies.
//!
//! Frames of the guest's second card are datagrams here: IEEE 1588 goes by Ethernet, so that no part of a network is
//! needed in between.

mod messages;

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use self::messages::{Announced, Grandmaster};
use super::super::debian::Package;
use super::super::expectation::Expectation::{ExitCode, Says, Shows};
use super::super::{Packaged, TestBed, passes, step};
use super::{MODULES, NETWORK, Phase, UtcBed, now_ns};

pub(in crate::bed) const UTC: UtcBed = UtcBed {
    bed: &BED,
    port: 21_125,
    serve,
    relay: None,
    premise,
    held_up: Some("premise-path-held-up"),
    is_proof: |phase, source| source == "ptp4l" && ["settled", "another-master"].contains(&phase),
};

/// Where QEMU has the other end of the wire.
const GUEST: (&str, u16) = ("127.0.0.1", 21_126);

pub(in crate::bed) const BED: TestBed = TestBed {
    name: "utc-ptp",
    purpose: "UTC within its bound by this machine's clock, while ptp4l keeps the guest's and all befalls it",
    #[rustfmt::skip]
    machine: &[
        "-smp", "1", "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
        "-netdev", "socket,id=ptp,udp=127.0.0.1:21125,localaddr=127.0.0.1:21126",
        "-device", "virtio-net-pci,netdev=ptp,romfile=",
    ],
    modules: MODULES,
    packaged: &[Packaged { package: LINUXPTP, program: "usr/sbin/ptp4l" }],
    kernel_arguments: "tsc=reliable",
    tests: &["runs"],
    processor_limit: Duration::from_secs(86_400),
    is_prompt: true,
    steps: &[
        passes("network", NETWORK),
        step("ptp4l", PTP4L, &[ExitCode(0), Shows("UNCALIBRATED to SLAVE")]),
        step("readings", READINGS, &[ExitCode(0), Says("test result: ok. 1 passed")]),
    ],
    ..TestBed::PLAIN
};

const LINUXPTP: Package = Package { name: "linuxptp", suite: None };

/// The rounds start it anew by the same file: it steps at its begin, and later slews alone. By the constants for hardware, or it
/// estimates the rate for 16 s before it does anything.
const PTP4L: &str = "\
    ifconfig eth1 up; mkdir -p /var/run; { echo '[global]'; echo slaveOnly 1; echo time_stamping software; \
    echo network_transport L2; echo delay_mechanism E2E; echo logMinDelayReqInterval -2; \
    echo pi_proportional_const 0.7; echo pi_integral_const 0.3; echo '[eth1]'; } >/tmp/ptp4l.conf; \
    echo start >/tmp/phase; ptp4l -f /tmp/ptp4l.conf -m >/tmp/ptp4l.log 2>&1 & \
    for second in $(seq 60); do grep -q 'to SLAVE' /tmp/ptp4l.log && break; sleep 1; done; \
    cat /tmp/ptp4l.log; grep -q 'to SLAVE' /tmp/ptp4l.log";

/// The phases, over and over: what each is is said to the other side, which does its part ([`settings`]).
const READINGS: &str = r#"
phase() { echo $1 >/tmp/phase; sleep $2; }
start() { ptp4l -f /tmp/ptp4l.conf -m >>/tmp/ptp4l.log 2>&1 & }
stop() { kill $1 $(pidof ptp4l); sleep 1; }
date_of() { phase premise-date-$1 0; stop -15; adjtimex -t 10000 -f 0; start; sleep 14; }
leap() { date_of $1; phase leap-$1 40; }
rounds() { while true; do
    leap inserted
    leap deleted
    date_of none
    phase settled 20
    phase admitted-error 70
    phase settled-again 15
    phase premise-path-changes 15
    phase far-on-one-side 25
    phase premise-path-changes-back 15
    phase master-lost 25
    phase master-back 15
    phase another-master 25
    phase first-master 15
    phase not-traceable 10
    phase utc-unknown 10
    phase settled-anew 10
    phase premise-set-back 0; date -s @$(date +%s); sleep 30
    phase premise-rate-changed 0; adjtimex -f 32768000; sleep 12
    phase settled-after 8
    phase killed 0; stop -9; sleep 20
    phase premise-started-again 0; adjtimex -t 10000 -f 0; start; sleep 14
done; }
rounds >/tmp/rounds.log 2>&1 &
HOURGLASS_UTC_REPORTS=10.0.2.2:21124 runs --exact utc::utc_is_read_for_another_clock --nocapture
code=$?; dmesg | grep -i -e 'leap second' -e clocksource; tail -n 200 /tmp/ptp4l.log; tail -n 100 /tmp/rounds.log; exit $code"#;

fn premise(phase: &str, source: &str) -> Option<&'static str> {
    match phase {
        _ if phase.starts_with("premise-path") && source != "kernel" => {
            Some("a Sync takes no longer than twice the mean path delay")
        }
        _ if phase.starts_with("premise-") => {
            Some("ptp4l alone sets the clock and changes its rate")
        }
        _ => None,
    }
}

const EVERY_SYNC: Duration = Duration::from_millis(250);
const EVERY_ANNOUNCE: Duration = Duration::from_secs(1);
/// Far on one side: Syncs are that late, and nothing else.
const FAR: Duration = Duration::from_millis(60);

/// What the grandmaster does in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Settings {
    silent: bool,
    error_ns: i64,
    late: Duration,
    announced: Announced,
}

fn settings(phase: &Phase, now_ns: i64) -> Settings {
    let announced = Announced::of(&phase.scale, now_ns);
    let honest = Settings { silent: false, error_ns: 0, late: Duration::ZERO, announced };
    match phase.name.as_str() {
        "master-lost" => Settings { silent: true, ..honest },
        "admitted-error" => Settings {
            error_ns: swing_ns(now_ns - phase.begun_ns),
            announced: Announced { accuracy: Announced::WITHIN_25_MS, ..announced },
            ..honest
        },
        "premise-path-changes" | "far-on-one-side" => Settings { late: FAR, ..honest },
        "another-master" => Settings {
            error_ns: -2_000_000,
            announced: Announced { master: 2, accuracy: Announced::WITHIN_2_5_MS, ..announced },
            ..honest
        },
        "not-traceable" => {
            Settings { announced: Announced { traceable: false, ..announced }, ..honest }
        }
        "utc-unknown" => {
            Settings { announced: Announced { knows_utc: false, ..announced }, ..honest }
        }
        _ => honest,
    }
}

/// To 20 ms, to -20 ms and back within 68 s: no Sync is wrong by much while the announced accuracy is another one.
fn swing_ns(since_ns: i64) -> i64 {
    const QUARTER: i64 = 17_000_000_000;
    let at = since_ns.clamp(0, 4 * QUARTER);
    let distance = [0, 2 * QUARTER, 4 * QUARTER].map(|zero| (at - zero).abs()).into_iter().min();
    let height = distance.unwrap_or(0) * 20 / 17_000;
    if at < 2 * QUARTER { height } else { -height }
}

/// A grandmaster (IEEE 1588-2008), which does to the guest what its phase says.
fn serve(socket: &UdpSocket, phase: &Mutex<Phase>) {
    let (begun, mut master) = (Instant::now(), Grandmaster::default());
    let (mut sync_at, mut announce_at) = (begun, begun);
    let _ = socket.set_read_timeout(Some(Duration::from_millis(5)));
    let mut late: Option<(Instant, Vec<u8>)> = None;
    let mut frame = [0; 1_600];
    loop {
        let found = socket.recv_from(&mut frame);
        let here_ns = now_ns();
        let phase = phase.lock().map(|phase| phase.clone()).unwrap_or_default();
        if phase.over {
            return;
        }
        let settings = settings(&phase, here_ns);
        let tai_ns = |here_ns| phase.scale.tai(here_ns) + settings.error_ns;
        let send = |frame: &[u8]| socket.send_to(frame, GUEST);
        match found {
            Ok((length, _)) if !settings.silent => {
                if let Some(answer) =
                    master.delay_response(&frame[..length], settings.announced, tai_ns(here_ns))
                {
                    let _ = send(&answer);
                }
            }
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // Nobody is there yet, or any more.
                std::thread::sleep(EVERY_SYNC);
            }
            _ => {}
        }
        let now = Instant::now();
        if let Some((_, frame)) = late.take_if(|(at, _)| *at <= now) {
            let _ = send(&frame);
        }
        if settings.silent {
            continue;
        }
        if now >= announce_at {
            announce_at = now + EVERY_ANNOUNCE;
            let _ = send(&master.announce(settings.announced));
        }
        if now >= sync_at {
            sync_at = now + EVERY_SYNC;
            let frame = master.sync(settings.announced, tai_ns(now_ns()));
            match settings.late {
                Duration::ZERO => drop(send(&frame)),
                by => late = Some((now + by, frame)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_wrong_by_less_than_it_announces() {
        let all: Vec<i64> = (0..140).map(|second| swing_ns(second * 1_000_000_000)).collect();
        assert_eq!(
            [0, 17, 34, 51, 68, 90].map(|at| all[at]),
            [0, 20_000_000, 0, -20_000_000, 0, 0]
        );
        assert!(all.iter().all(|error| error.abs() <= 20_000_000));
        let phase = Phase { name: "another-master".into(), ..Phase::default() };
        let found = settings(&phase, 0);
        assert_eq!((found.error_ns, found.announced.accuracy), (-2_000_000, 0x2a));
    }
}
