//! What [`ntp`] does, to a guest whose chronyd has its time from another guest's, of stratum 2. That one alone hears this
//! machine: what is said there of a server's error, and of how far it is, has to come through.

use super::super::expectation::Expectation::{ExitCode, Says, Shows};
use super::super::{TestBed, passes, step};
use super::{NETWORK, RELAY, UtcBed, ntp};

pub(in crate::bed) const UTC: UtcBed =
    UtcBed { bed: &BED, relay: Some(&SERVER), premise, ..ntp::UTC };

pub(in crate::bed) const BED: TestBed = TestBed {
    name: "utc-relay",
    purpose: "UTC within its bound by this machine's clock, while chronyd keeps the guest's by another guest's chronyd",
    kernel_arguments: "tsc=reliable ntp_port=21128 date_wait=12",
    ..ntp::BED
};

const SERVER: TestBed = TestBed {
    name: "utc-relay-server",
    purpose: "the guest in between",
    #[rustfmt::skip]
    machine: &[
        "-smp", "1", "-netdev", "user,id=net,hostfwd=udp:127.0.0.1:21128-:123",
        "-device", "virtio-net-pci,netdev=net,romfile=",
    ],
    published: &[],
    kernel_arguments: "tsc=reliable",
    steps: &[
        passes("network", NETWORK),
        step("server", CHRONYD, &[ExitCode(0), Shows("Leap status : Normal")]),
        step("relay", READINGS, &[ExitCode(0), Says("test result: ok. 1 passed")]),
    ],
    ..ntp::BED
};

/// It steps whenever it is another date.
const CHRONYD: &str = "\
    mkdir -p /etc /var/lib /var/run/chrony; chmod 750 /var/run/chrony; echo root:x:0:0::/:/bin/sh >/etc/passwd; \
    { echo server 10.0.2.2 port 21123 iburst minpoll 0 maxpoll 2; echo user root; echo rtcsync; echo allow all; \
    echo bindcmdaddress /var/run/chrony/chronyd.sock; echo makestep 0.1 -1; echo pidfile /tmp/chronyd.pid; \
    } >/tmp/chrony.conf; chronyd -d -f /tmp/chrony.conf >/tmp/chronyd.log 2>&1 & \
    chronyc -n -h 127.0.0.1 waitsync 60 0.1 0 1; code=$?; cat /tmp/chronyd.log; chronyc -n -h 127.0.0.1 tracking; exit $code";

const READINGS: &str = "\
    HOURGLASS_UTC_REPORTS=10.0.2.2:21127 runs --exact utc::utc_is_read_for_another_clock --nocapture; \
    code=$?; tail -n 200 /tmp/chronyd.log; exit $code";

/// Nothing befalls the guest in between but another date, and what the server does. To its clients chronyd states what it
/// states to its kernel: the delay of its best measurement, while its estimate rests on all.
fn premise(phase: &str, source: &str) -> Option<&'static str> {
    let own = source.strip_prefix(RELAY);
    let befalls_the_other =
        ["premise-", "started-", "leap-"].iter().any(|of| phase.starts_with(of))
            && !phase.starts_with("premise-date");
    match own {
        Some(_) if befalls_the_other => None,
        None if ["admitted-error", "far-on-one-side", "settled-again"].contains(&phase) => {
            Some("chronyd's estimate is within the bound that it states to its clients")
        }
        _ => ntp::premise(phase, own.unwrap_or(source)),
    }
}
