//! linuxptp 4: ptp4l keeps the clock of a network card, `/dev/ptp0`, by the grandmaster of [`ptp`], and phc2sys the
//! guest's by that one. Beside what befalls the master, either clock is set behind their backs, either daemon dies, and ptp4l
//! stamps by software for a while.
//!
//! The clock's rate is this machine's, and never changed: QEMU's igb lets it jump by twice the change times its age.

use std::time::Duration;

use super::super::debian::Package;
use super::super::expectation::Expectation::{ExitCode, Says, Shows};
use super::super::{Kernel, Packaged, TestBed, guest, passes, step};
use super::{NETWORK, UtcBed, ptp};

pub(in crate::bed) const UTC: UtcBed = UtcBed { bed: &BED, is_proof, ..ptp::UTC };

pub(in crate::bed) const BED: TestBed = TestBed {
    name: "utc-phc",
    purpose: "UTC within its bound by this machine's clock, while ptp4l keeps a network card's clock and phc2sys the guest's",
    emulator: guest::X86_64_WITH_PTP_CLOCK,
    // Its modules are not compressed.
    kernel: Kernel::Debian(Package { name: "linux-image-amd64", suite: Some("bookworm") }),
    #[rustfmt::skip]
    machine: &[
        "-smp", "1", "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
        "-netdev", "socket,id=ptp,udp=127.0.0.1:21125,localaddr=127.0.0.1:21126",
        "-device", "igb,netdev=ptp,romfile=",
    ],
    #[rustfmt::skip]
    modules: &[
        "virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover", "net_failover",
        "virtio_net", "i2c-algo-bit", "dca", "igb",
    ],
    packaged: &[
        Packaged { package: LINUXPTP_4, program: "usr/sbin/ptp4l" },
        Packaged { package: LINUXPTP_4, program: "usr/sbin/phc2sys" },
        Packaged { package: LINUXPTP_4, program: "usr/sbin/phc_ctl" },
    ],
    kernel_arguments: "tsc=reliable iomem=relaxed",
    tests: &["runs"],
    processor_limit: Duration::from_secs(86_400),
    is_prompt: true,
    steps: &[
        passes("network", NETWORK),
        passes("card", CARD),
        passes("seen", SEEN),
        step("ptp4l", PTP4L, &[ExitCode(0), Shows("UNCALIBRATED to SLAVE")]),
        step(
            "hardware-clock",
            "seen comparison hourglass clocks --utc",
            &[ExitCode(0), Shows("/dev/ptp0"), Shows("comparison")],
        ),
        step(
            "as-anybody",
            "seen 'ptp4l tells root alone' su anybody -c 'hourglass clocks --utc'",
            &[Says("ptp4l tells root alone")],
        ),
        step("without-device", WITHOUT_DEVICE, &[Says("/dev/ptp0 cannot be read")]),
        step("readings", READINGS, &[ExitCode(0), Says("test result: ok. 1 passed")]),
    ],
    ..TestBed::PLAIN
};

const LINUXPTP_4: Package = Package { name: "linuxptp", suite: Some("trixie") };

/// QEMU's igb has the next packet stamped once RXSATRH was read, which the card does without and the driver does not read.
const CARD: &str = "\
    for module in i2c-algo-bit dca igb; do insmod /lib/modules/$module.ko || exit 1; done; ls -l /dev/ptp0 || exit 1; \
    mkdir -p /etc; echo anybody:x:65534:65534::/:/bin/sh >/etc/passwd; \
    rm -f /dev/mem; ln -s $(readlink -f /sys/class/net/eth1/device)/resource0 /dev/mem; devmem 0xb630 || exit 1; \
    while true; do devmem 0xb630; usleep 70000; done >/dev/null 2>&1 &";

/// Looks again until a text is there: on a busy host ptp4l falls back to UNCALIBRATED for seconds, in which nobody vouches.
const SEEN: &str = r#"
cat >/bin/seen <<'END'
#!/bin/sh
text=$1; shift
for look in $(seq 30); do "$@" >/tmp/seen 2>&1; code=$?; grep -q "$text" /tmp/seen && break; sleep 1; done
cat /tmp/seen; exit $code
END
chmod 755 /bin/seen"#;

/// The offset is stepped out, not slewed, where it is above the jitter of an emulated network.
const PTP4L: &str = "\
    ifconfig eth1 up; mkdir -p /var/run; \
    for stamping in hardware software; do { echo '[global]'; echo clientOnly 1; echo time_stamping $stamping; \
    echo network_transport L2; echo delay_mechanism E2E; echo logMinDelayReqInterval -2; echo tx_timestamp_timeout 500; \
    case $stamping in hardware) echo max_frequency 1; echo step_threshold 0.003;; esac; \
    echo pi_proportional_const 0.7; echo pi_integral_const 0.3; \
    echo '[eth1]'; } >/tmp/$stamping.conf; done; \
    echo start >/tmp/phase; ptp4l -f /tmp/hardware.conf -m >/tmp/ptp4l.log 2>&1 & \
    phc2sys -s eth1 -w -m >/tmp/phc2sys.log 2>&1 & \
    for second in $(seq 90); do grep -q 's2 freq' /tmp/phc2sys.log && break; sleep 1; done; \
    cat /tmp/ptp4l.log /tmp/phc2sys.log; grep -q 's2 freq' /tmp/phc2sys.log";

const WITHOUT_DEVICE: &str = "\
    mv /dev/ptp0 /dev/elsewhere; seen '/dev/ptp0 cannot be read' hourglass clocks --utc; mv /dev/elsewhere /dev/ptp0";

/// The phases, over and over ([`ptp`]).
const READINGS: &str = r#"
phase() { echo $1 >/tmp/phase; sleep $2; }
start() { ptp4l -f /tmp/${1:-hardware}.conf -m >>/tmp/ptp4l.log 2>&1 & }
follow() { phc2sys -s eth1 -w -m >>/tmp/phc2sys.log 2>&1 & }
stop() { kill $1 $(pidof $2); sleep 1; }
date_of() { phase premise-date-$1 0; stop -15 'ptp4l phc2sys'; adjtimex -t 10000 -f 0; start; follow; sleep 19; }
leap() { date_of $1; phase leap-$1 40; }
rounds() { while true; do
    leap inserted
    leap deleted
    date_of none
    phase settled 20
    phase system-set-back 0; date -s @$(($(date +%s)-1)); sleep 10
    phase system-set-forward 0; date -s @$(($(date +%s)+3)); sleep 10
    phase system-followed-again 0; stop -15 phc2sys; follow; sleep 12
    phase system-alone 0; stop -9 phc2sys; adjtimex -f 32768000; sleep 12
    phase system-followed-anew 0; follow; sleep 12
    phase premise-hardware-set-forward 0; phc_ctl /dev/ptp0 adj 0.2; sleep 12
    phase premise-hardware-set-back 0; phc_ctl /dev/ptp0 -- adj -0.2; sleep 12
    phase settled-after 10
    phase admitted-error 72
    phase settled-again 10
    phase premise-path-changes 15
    phase far-on-one-side 20
    phase premise-path-changes-back 15
    phase master-lost 20
    phase master-back 12
    phase another-master 20
    phase first-master 12
    phase not-traceable 8
    phase utc-unknown 8
    phase settled-anew 8
    phase killed 0; stop -9 ptp4l; sleep 12
    phase premise-by-software 0; stop -15 phc2sys; adjtimex -t 10000 -f 0; start software; sleep 14
    phase by-software 15
    phase premise-by-hardware 0; stop -15 ptp4l; start; follow; sleep 19
    phase settled-by-hardware 8
done; }
rounds >/tmp/rounds.log 2>&1 &
HOURGLASS_UTC_REPORTS=10.0.2.2:21124 runs --exact utc::utc_is_read_for_another_clock --nocapture
code=$?; dmesg | grep -i -e 'leap second' -e clocksource; grep -v 's2 freq' /tmp/ptp4l.log | tail -n 200
grep -v ' s2 freq' /tmp/phc2sys.log | tail -n 60; tail -n 100 /tmp/rounds.log; exit $code"#;

fn is_proof(phase: &str, source: &str) -> bool {
    const VOUCHED: [&str; 4] = ["settled", "system-alone", "another-master", "by-software"];
    source == "ptp4l" && VOUCHED.contains(&phase)
}
