//! UTC with its bounds, held against the clock of another machine: what the bed `utc` runs in its guest.
//!
//! Each turn begins with a datagram whose answer has the other's time; the next datagram has that time again and what was
//! read in between, so that the other has both ends of a bracket by its own clock.

use std::fmt::Write;
use std::fs;
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hourglass_clock::Clock;
use hourglass_clock::utc::UtcKeeper;
use hourglass_measure::utc;

/// Who is told: `ADDRESS:PORT`. Without it the test tells itself.
const REPORTS: &str = "HOURGLASS_UTC_REPORTS";
/// What the guest does at the moment.
const PHASE: &str = "/tmp/phase";
const EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_millis(500);

/// What is read: `NAME EARLIEST LATEST` of each that vouches, `NAME - -` of the others.
fn readings(clock: &Clock, kept: &Clock) -> String {
    let mut text = String::new();
    let mut add = |name: &str, found: Option<(i64, i64)>| {
        let _ = match found {
            Some((earliest, latest)) => write!(text, " {name} {earliest} {latest}"),
            None => write!(text, " {name} - -"),
        };
    };
    for (name, clock) in [("utc_bounded", clock), ("utc_bounded/keeper", kept)] {
        let bounded = clock.utc_bounded().interval();
        add(name, bounded.map(|found| (found.earliest_ns, found.latest_ns)));
    }
    let found = utc::look();
    let (at, ns) = (found.realtime_ns.cast_signed(), u64::cast_signed);
    for source in &found.sources {
        add(&source.name, source.error_ns.map(ns).map(|error| (at - error, at + error)));
    }
    let ends = found.earliest_ns.zip(found.latest_ns);
    add("clocks--utc", ends.map(|(earliest, latest)| (ns(earliest), ns(latest))));
    text
}

/// What the other answers, at last.
fn answer(socket: &UdpSocket, told: &str) -> String {
    loop {
        // Answers to earlier questions, which came too late.
        socket.set_nonblocking(true).unwrap();
        while socket.recv(&mut [0; 64]).is_ok() {}
        socket.set_nonblocking(false).unwrap();
        let _ = socket.send(told.as_bytes());
        let mut answer = [0; 64];
        if let Ok(length) = socket.recv(&mut answer) {
            return str::from_utf8(&answer[..length]).unwrap().to_owned();
        }
    }
}

/// Reads until the other says that it is enough; returns the turns.
fn read_for(other: &str) -> u64 {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(other).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let clock = Clock::new();
    let kept = Arc::new(Clock::new());
    let _keeper = UtcKeeper::with(Arc::clone(&kept), UtcKeeper::sources()).unwrap();
    for turns in 0.. {
        let since = answer(&socket, "0 ask");
        if since == "end" {
            return turns;
        }
        let found = readings(&clock, &kept);
        let phase = fs::read_to_string(PHASE).unwrap_or_default();
        let phase = phase.split_whitespace().next().unwrap_or("none");
        if answer(&socket, &format!("{since} {phase}{found}")) == "end" {
            return turns + 1;
        }
        thread::sleep(EVERY);
    }
    0
}

/// This machine's clock by itself, which is in every bound on UTC.
fn told_here() -> (String, thread::JoinHandle<usize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let now = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(now.as_nanos()).unwrap()
    };
    let thread = thread::spawn(move || {
        let mut bounds = 0;
        for turn in 0..=10 {
            let mut report = [0; 1024];
            let (length, from) = socket.recv_from(&mut report).unwrap();
            let until = now();
            let report = str::from_utf8(&report[..length]).unwrap();
            let words: Vec<&str> = report.split(' ').collect();
            let since: i64 = words[0].parse().unwrap();
            for found in words[2..].chunks(3).filter(|found| found[1] != "-") {
                let [earliest, latest] = [1, 2].map(|at: usize| found[at].parse::<i64>().unwrap());
                assert!(earliest <= until && latest >= since, "{report}: {since} {until}");
            }
            bounds += words[2..].chunks(3).count();
            let answer = if turn < 10 { now().to_string() } else { "end".to_owned() };
            socket.send_to(answer.as_bytes(), from).unwrap();
        }
        bounds
    });
    (address, thread)
}

#[test]
fn utc_is_read_for_another_clock() {
    if let Ok(other) = std::env::var(REPORTS) {
        println!("{} turns", read_for(&other));
        return;
    }
    let (address, told) = told_here();
    assert_eq!(read_for(&address), 5);
    // utc_bounded with a keeper and without, four sources, and the narrowest of those.
    assert_eq!(told.join().unwrap(), 5 * 7);
}
