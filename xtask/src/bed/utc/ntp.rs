//! chronyd keeps the guest's clock: steps and slews behind its back, servers that are lost, far away on one side, or wrong by
//! an error that they admit, its own death, and leap seconds that the kernel makes, chronyd slews or the server smears.

use std::net::UdpSocket;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::super::debian::Package;
use super::super::expectation::Expectation::{ExitCode, Says, Shows};
use super::super::{Packaged, Published, TestBed, passes, step};
use super::{MODULES, NETWORK, Phase, UtcBed, now_ns};

pub(in crate::bed) const UTC: UtcBed = UtcBed {
    bed: &BED,
    port: 21_123,
    serve,
    relay: None,
    premise,
    held_up: None,
    is_proof: |phase, source| {
        matches!(phase, "leap-inserted-near" | "leap-deleted-near") && source == "utc_bounded"
    },
};

/// `ntp_port` and `date_wait` are in the environment of its shell: where chronyd asks for the time, and how long that takes to
/// have another date.
pub(in crate::bed) const BED: TestBed = TestBed {
    name: "utc",
    purpose: "UTC within its bound by this machine's clock, while chronyd keeps the guest's and all befalls it",
    #[rustfmt::skip]
    machine: &[
        "-smp", "1", "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
    ],
    modules: MODULES,
    packaged: &[
        Packaged { package: CHRONY, program: "usr/sbin/chronyd" },
        Packaged { package: CHRONY, program: "usr/bin/chronyc" },
    ],
    published: &[Published { name: "clock-bound-d", version: "2.0.3", program: "clockbound" }],
    // Or, where this machine is busy, the guest takes its TSC for unstable; that is another clock source, and then the kernel
    // forgets a leap second (`ntp_clear`), as it does in the phase `leap-forgotten`.
    kernel_arguments: "tsc=reliable ntp_port=21123 date_wait=0",
    tests: &["runs"],
    // chronyd bounds its error by the delay of its best measurement, and rests on all: where those take seconds, it is wrong.
    is_prompt: true,
    processor_limit: Duration::from_secs(86_400),
    steps: &[
        passes("network", NETWORK),
        step("chronyd", CHRONYD, &[ExitCode(0), Shows("Leap status : Normal")]),
        step("readings", READINGS, &[ExitCode(0), Says("test result: ok. 1 passed")]),
    ],
    ..TestBed::PLAIN
};

const CHRONY: Package = Package { name: "chrony", suite: None };

/// Also what the rounds start it by: with `makestep` at the beginning, at any time and never, and with leap seconds that it
/// slews, by 100,000 ppm and by fewer than the kernel's bound grows.
const CHRONYD: &str = "\
    mkdir -p /etc /var/lib /var/run/chrony; chmod 750 /var/run/chrony; echo root:x:0:0::/:/bin/sh >/etc/passwd; \
    for steps in 3 -1 0 -slewed -slewed-slowly; do { echo server 10.0.2.2 port $ntp_port iburst minpoll 0 maxpoll 2; \
    echo user root; echo rtcsync; echo bindcmdaddress /var/run/chrony/chronyd.sock; case $steps in \
    -slewed) echo makestep 0.1 3; echo leapsecmode slew;; \
    -slewed-slowly) echo makestep 0.1 3; echo leapsecmode slew; echo maxslewrate 400;; \
    *) echo makestep 0.1 $steps;; esac; \
    echo pidfile /tmp/chronyd.pid; } >/tmp/chrony$steps.conf; done; \
    echo start >/tmp/phase; chronyd -d -f /tmp/chrony3.conf >/tmp/chronyd.log 2>&1 & \
    chronyc -n -h 127.0.0.1 waitsync 120 0.1 0 1; code=$?; cat /tmp/chronyd.log; \
    chronyc -n -h 127.0.0.1 tracking; \
    clockbound --max-drift-rate 50 --disable-clock-disruption-support >/tmp/clockbound.log 2>&1 & sleep 3; \
    tail -n 5 /tmp/clockbound.log; exit $code";

/// The phases, over and over: what each is is said to the other side, whose server does its part ([`premise`]). The server has
/// another date as soon as it hears of it, chronyd once it is started anew.
const READINGS: &str = r#"
phase() { echo $1 >/tmp/phase; sleep $2; }
chrony() { rm -f /tmp/chronyd.pid; chronyd -d -f /tmp/chrony$1.conf >>/tmp/chronyd.log 2>&1 & }
stop() { kill $1 $(pidof chronyd); sleep 1; }
date_of() { phase premise-date-$1 $date_wait; stop -15; adjtimex -t 10000 -f 0; chrony $2
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
    phase server-lost 45
    phase server-back 8
    phase admitted-error 25
    phase far-on-one-side 35
    phase settled-again 8
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
code=$?; dmesg | grep -i -e 'leap second' -e clocksource; tail -n 200 /tmp/chronyd.log; tail -n 30 /tmp/clockbound.log; tail -n 100 /tmp/rounds.log; exit $code"#;

/// The premise of the bound that a phase breaks, of which a wrong reading says nothing then.
pub(super) fn premise(phase: &str, source: &str) -> Option<&'static str> {
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

/// A server of stratum 1 (RFC 5905), which does to the guest what its phase says.
fn serve(socket: &UdpSocket, phase: &Mutex<Phase>) {
    let begun = Instant::now();
    let mut asked = [0; 128];
    while let Ok((length, from)) = socket.recv_from(&mut asked) {
        let phase = phase.lock().map(|phase| phase.clone()).unwrap_or_default();
        if phase.over {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
