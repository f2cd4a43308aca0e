//! UTC between its bounds, while a real daemon keeps the guest's clock and everything befalls it ([`ntp`], [`relay`], [`ptp`],
//! [`phc`]).
//!
//! The reference is this machine's clock, which nothing of this changes: it is served to the guest as the time of a
//! stratum-1 server or of a grandmaster, at another date where a leap second is to come ([`Scale`]), and brackets each reading.
//! A reading whose latest is before the bracket's begin, or whose earliest is after its end, is wrong for certain.

pub(super) mod ntp;
pub(super) mod phc;
pub(super) mod ptp;
pub(super) mod relay;
mod scale;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hourglass_skip::Requirement;

use self::scale::Scale;
use self::wire::Wire;
use super::{TestBed, boot};
use crate::failure::StepFailure;
use crate::workspace::Workspace;

/// Of this machine, which the guest sees as 10.0.2.2.
const REPORTS: u16 = 21_124;
/// The same for a guest that stands in between.
const RELAY_REPORTS: u16 = 21_127;
pub(super) const MINUTES: f64 = 12.0;
/// Of the guest's network cards.
const MODULES: &[&str] = &[
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
];

const NETWORK: &str = "\
    for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net; \
    do insmod /lib/modules/$module.ko || exit 1; done; \
    ifconfig lo 127.0.0.1 up; ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up; ifconfig eth0";

/// A daemon that keeps the guest's clock, and what befalls it.
#[derive(Debug)]
pub(super) struct UtcBed {
    pub(super) bed: &'static TestBed,
    /// Of this machine, where the time is served.
    port: u16,
    /// Serves the time as the phase says, until that is over.
    serve: fn(&UdpSocket, &Mutex<Phase>),
    /// Another guest, which alone is served, and serves the first one.
    relay: Option<&'static TestBed>,
    /// The premise of its bound that a phase breaks, of which a wrong reading of a source says nothing then.
    premise: fn(phase: &str, source: &str) -> Option<&'static str>,
    /// The phase of readings before which frames were held up on this machine, where that breaks a premise.
    held_up: Option<&'static str>,
    /// In which rows something has to be vouched for, or nothing could be wrong.
    is_proof: fn(phase: &str, source: &str) -> bool,
}

pub(super) fn run(
    utc_bed: &'static UtcBed,
    workspace: &Workspace,
    binary: Option<PathBuf>,
    minutes: f64,
    record: Option<&Path>,
) -> Result<(), StepFailure> {
    let open = |port| {
        UdpSocket::bind(("127.0.0.1", port)).map_err(|error| {
            let free =
                Requirement::runs("UDP ports 21123 to 21128", "! ss -uln | grep -q ':2112[3-8] '");
            StepFailure::Unable(free, format!("UDP port {port} of this machine: {error}"))
        })
    };
    let relay_reports = utc_bed.relay.map(|_| open(RELAY_REPORTS)).transpose()?;
    let sockets = (open(utc_bed.port)?, open(REPORTS)?, relay_reports);
    let time_server = TimeServer::start(utc_bed, sockets, minutes);
    let booted = match utc_bed.relay {
        Some(relay) => boot_behind(relay, workspace, utc_bed.bed, binary, &time_server.phase),
        None => boot(workspace, utc_bed.bed, binary),
    };
    let tally = time_server.end();
    if tally.turns == 0 {
        booted?;
        return Err(StepFailure::Broken(format!("bed {}: no report came", utc_bed.bed.name)));
    }
    // Also where a step is broken.
    let document = tally.document(minutes);
    println!("{document}");
    if let Some(path) = record {
        fs::write(path, &document).map_err(|e| StepFailure::file(path, &e))?;
    }
    booted?;
    let why = match (tally.wrong(), tally.unproved()) {
        ((_, 0), _) => "nothing was vouched for".to_owned(),
        ((0, _), None) => return Ok(()),
        ((0, _), Some(phase)) => format!("nothing was vouched for in {phase}"),
        ((wrong, _), _) => format!("{wrong} readings are wrong"),
    };
    Err(StepFailure::Broken(format!("bed {}: {why}", utc_bed.bed.name)))
}

/// Puts this thread before what else runs here, as [`TestBed::is_prompt`] the guest: a wire does not wait for a CPU.
fn be_prompt(utc_bed: &UtcBed) {
    if !utc_bed.bed.is_prompt {
        return;
    }
    let thread = fs::read_link("/proc/thread-self").unwrap_or_default();
    let thread = thread.file_name().unwrap_or_default();
    let _ = Command::new("chrt").args(["--rr", "-p", "1"]).arg(thread).output();
}

/// Boots the guest once the one that serves it has its time, and ends that one afterwards.
fn boot_behind(
    relay: &'static TestBed,
    workspace: &Workspace,
    bed: &TestBed,
    binary: Option<PathBuf>,
    phase: &Mutex<Phase>,
) -> Result<(), StepFailure> {
    let lock = || phase.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let own = binary.clone();
        let relaying = scope.spawn(move || boot(workspace, relay, own));
        while !relaying.is_finished() && !lock().relay.is_heard {
            thread::sleep(Duration::from_millis(100));
        }
        let booted = match relaying.is_finished() {
            true => Ok(()),
            false => boot(workspace, bed, binary),
        };
        lock().relay.is_over = true;
        let relayed = relaying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        booted.and(relayed)
    })
}

/// Of one end, or of the other where another guest stands in between.
type Sockets = (UdpSocket, UdpSocket, Option<UdpSocket>);

/// What serves the time and hears reports while the guest runs.
struct TimeServer {
    phase: Arc<Mutex<Phase>>,
    places: Vec<SocketAddr>,
    server: JoinHandle<()>,
    reports: JoinHandle<Tally>,
    relay_reports: Option<JoinHandle<Tally>>,
}

impl TimeServer {
    fn start(
        utc_bed: &'static UtcBed,
        (server, told, relay_told): Sockets,
        minutes: f64,
    ) -> TimeServer {
        let phase = Arc::new(Mutex::new(Phase::default()));
        let places = [Some(&server), Some(&told), relay_told.as_ref()].into_iter().flatten();
        let places = places.filter_map(|socket| socket.local_addr().ok()).collect();
        let [serving, hearing, relaying] = [(); 3].map(|()| Arc::clone(&phase));
        let server = thread::spawn(move || {
            be_prompt(utc_bed);
            (utc_bed.serve)(&server, &serving);
        });
        let reports = thread::spawn(move || collect(utc_bed, &told, Some(minutes), &hearing));
        let relay_reports =
            relay_told.map(|told| thread::spawn(move || collect(utc_bed, &told, None, &relaying)));
        TimeServer { phase, places, server, reports, relay_reports }
    }

    /// All ports are free then, for the next bed.
    fn end(self) -> Tally {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        if let Ok(socket) = UdpSocket::bind("127.0.0.1:0") {
            for place in &self.places {
                let _ = socket.send_to(&[], place);
            }
        }
        let _ = self.server.join();
        let join = |reports: JoinHandle<Tally>| {
            reports.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let mut tally = join(self.reports);
        tally.rows.extend(self.relay_reports.map(join).into_iter().flat_map(|relay| relay.rows));
        tally
    }
}

/// What the guest is at, and the time that is served meanwhile.
#[derive(Clone, Debug, Default)]
struct Phase {
    name: String,
    /// By this machine's clock.
    begun_ns: i64,
    scale: Scale,
    /// The guest has ended.
    over: bool,
    relay: Relay,
}

/// Of the guest that stands in between.
#[derive(Clone, Copy, Debug, Default)]
struct Relay {
    /// It has the time, and a program that reads it.
    is_heard: bool,
    /// Nobody is served by it any more.
    is_over: bool,
}

impl Phase {
    /// What a report is about; without a name it is of the guest in between.
    fn hear(&mut self, name: Option<&str>, now_ns: i64) -> Phase {
        match name {
            None => self.relay.is_heard = true,
            Some(name) if self.name != name => {
                self.scale = Scale::of(name, now_ns).unwrap_or(self.scale);
                name.clone_into(&mut self.name);
                self.begun_ns = now_ns;
            }
            Some(_) => {}
        }
        self.clone()
    }
}

/// This machine's time, ns since 1970.
fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// Answers reports with the time, and judges what is in them: of the guest for as long as is said, which says its phase, or
/// of the one that serves it.
fn collect(
    utc_bed: &'static UtcBed,
    socket: &UdpSocket,
    minutes: Option<f64>,
    phase: &Mutex<Phase>,
) -> Tally {
    be_prompt(utc_bed);
    let mut tally = Tally::of(utc_bed);
    let mut first = None;
    let mut wire = Wire::default();
    let mut report = [0; 2048];
    let lock = || phase.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Ok((length, from)) = socket.recv_from(&mut report) else { return tally };
        let until_ns = now_ns();
        if lock().over {
            return tally;
        }
        let begun = *first.get_or_insert_with(Instant::now);
        let text = String::from_utf8_lossy(&report[..length]).into_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [since, name, readings @ ..] = words.as_slice()
            && let (Ok(since_ns), false) = (since.parse(), readings.is_empty())
        {
            let now = lock().hear(minutes.map(|_| *name), until_ns);
            let whose = if minutes.is_some() { "" } else { RELAY };
            let is_prompt = wire.is_prompt(Instant::now()) || now.name.starts_with("premise-");
            let held_up = utc_bed.held_up.filter(|_| !is_prompt);
            let phase = held_up.unwrap_or(&now.name);
            tally.add(phase, now.scale, whose, readings, (since_ns, until_ns));
        }
        let is_over = match minutes {
            Some(minutes) => begun.elapsed().as_secs_f64() > minutes * 60.0,
            None => lock().relay.is_over,
        };
        let answer = if is_over { "end".to_owned() } else { now_ns().to_string() };
        let _ = socket.send_to(answer.as_bytes(), from);
    }
}

/// What a source of the guest in between is named by.
const RELAY: &str = "relay:";

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

#[derive(Debug)]
struct Tally {
    utc_bed: &'static UtcBed,
    rows: BTreeMap<(String, String), Row>,
    /// The widest bracket, and their sum, ns.
    widest_ns: i64,
    total_ns: i64,
    turns: i64,
    /// Of these, where frames were held up.
    held_up: i64,
}

impl Tally {
    fn of(utc_bed: &'static UtcBed) -> Tally {
        Tally { utc_bed, rows: BTreeMap::new(), widest_ns: 0, total_ns: 0, turns: 0, held_up: 0 }
    }

    /// `NAME EARLIEST LATEST` of each source, read between two times of this machine.
    fn add(
        &mut self,
        phase: &str,
        scale: Scale,
        whose: &str,
        readings: &[&str],
        (since_ns, until_ns): (i64, i64),
    ) {
        let phase = match phase.starts_with("leap-") {
            true => format!("{phase}{}", scale.part(since_ns, until_ns)),
            false => phase.to_owned(),
        };
        self.widest_ns = self.widest_ns.max(until_ns - since_ns);
        self.total_ns += until_ns - since_ns;
        self.turns += 1;
        self.held_up += i64::from(self.utc_bed.held_up.is_some_and(|held_up| held_up == phase));
        for found in readings.chunks_exact(3) {
            let row = self.rows.entry((phase.clone(), format!("{whose}{}", found[0]))).or_default();
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
        let held =
            self.rows.iter().filter(|((phase, source), _)| self.premise(phase, source).is_none());
        let wrong = held.map(|(_, row)| row.wrong).sum();
        (wrong, self.rows.values().map(|row| row.bounded).sum())
    }

    /// A phase in which nothing was vouched for where something had to be.
    fn unproved(&self) -> Option<&str> {
        let is_proof = |phase: &str, source: &str| (self.utc_bed.is_proof)(phase, source);
        let mut rows = self.rows.iter();
        let found = rows.find(|((phase, source), row)| is_proof(phase, source) && row.bounded == 0);
        let mut proofs = self.rows.keys().filter(|(phase, source)| is_proof(phase, source));
        match found {
            // Where they were held up, the phases have no rows of their own.
            None if self.held_up > 0 && proofs.next().is_none() => Some("any phase that proves it"),
            found => found.map(|((phase, _), _)| phase.as_str()),
        }
    }

    fn premise(&self, phase: &str, source: &str) -> Option<&'static str> {
        (self.utc_bed.premise)(phase, source)
    }

    fn document(&self, minutes: f64) -> String {
        let mean_ns = self.total_ns / self.turns.max(1);
        let mut text = format!(
            "{{\n  \"schema\": \"hourglass.bed-utc/1\",\n  \"bed\": \"{}\",\n  \"minutes\": {minutes},\n  \"turns\": {},\n  \
             \"held_up\": {},\n  \"bracket_mean_ns\": {mean_ns},\n  \"bracket_max_ns\": {},\n  \"wrong\": {},\n  \"rows\": [",
            self.utc_bed.bed.name,
            self.turns,
            self.held_up,
            self.widest_ns,
            self.wrong().0
        );
        for (at, ((phase, source), row)) in self.rows.iter().enumerate() {
            let least = row.least_ns.map_or("null".to_owned(), |least| least.to_string());
            let broken =
                self.premise(phase, source).map_or("null".to_owned(), |text| format!("\"{text}\""));
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
        let mut tally = Tally::of(&ntp::UTC);
        for (earliest, latest) in
            [("100", "200"), ("0", "99"), ("0", "100"), ("151", "200"), ("150", "200")]
        {
            let readings = ["kernel", earliest, latest, "chronyd", "-", "-"];
            tally.add("settled", Scale::default(), "", &readings, (100, 150));
        }
        tally.add("premise-set-back", Scale::default(), "", &["kernel", "0", "10"], (100, 150));
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

    /// The bug: who serves held its port until the process ended, so that no second bed of PTP could run.
    #[test]
    fn ports_are_free_once_a_bed_is_over() {
        let open = |place: &SocketAddr| UdpSocket::bind(place).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        // A grandmaster would be heard by the guest of a bed that runs meanwhile.
        let time_server =
            TimeServer::start(&relay::UTC, (open(&any), open(&any), Some(open(&any))), 1.0);
        let places = time_server.places.clone();
        let [guest, relay] = [1, 2].map(|at| {
            let socket = open(&any);
            socket.connect(places[at]).unwrap();
            socket
        });
        let told = |socket: &UdpSocket, report: &[u8]| {
            socket.send(report).unwrap();
            let mut answer = [0; 64];
            let length = socket.recv(&mut answer).unwrap();
            String::from_utf8_lossy(&answer[..length]).into_owned()
        };
        assert!(told(&guest, b"7 settled kernel 1 2").len() > 10);
        assert!(told(&relay, b"7 start kernel 1 2").len() > 10);
        time_server.phase.lock().unwrap().relay.is_over = true;
        assert_eq!(told(&relay, b"0 ask"), "end");
        let tally = time_server.end();
        let wrong =
            tally.rows.iter().map(|((phase, source), row)| (&**phase, &**source, row.wrong));
        // What the guest in between says is of the phase of the other one.
        assert_eq!(
            wrong.collect::<Vec<_>>(),
            [("settled", "kernel", 1), ("settled", "relay:kernel", 1)]
        );
        assert_eq!(tally.turns, 1);
        // A program that another test starts has a copy of each socket until it is executed.
        let is_free = |place: &SocketAddr| {
            thread::sleep(Duration::from_millis(5));
            UdpSocket::bind(place).is_ok()
        };
        assert!(places.iter().all(|place| (0..2_000).any(|_| is_free(place))));
    }

    #[test]
    fn what_has_to_be_vouched_for_is() {
        let scale = Scale::of("premise-date-inserted", 0).unwrap();
        let at = 35_000_000_000;
        let label = scale.label(at);
        for (found, unproved) in [("-", Some("leap-inserted-near")), (&*label.to_string(), None)] {
            let mut tally = Tally::of(&ntp::UTC);
            tally.add("leap-inserted", scale, "", &["utc_bounded", found, found], (at, at));
            assert_eq!((tally.unproved(), tally.wrong().0), (unproved, 0));
        }
        let mut tally = Tally::of(&ptp::UTC);
        let held_up = ptp::UTC.held_up.unwrap();
        tally.add(held_up, Scale::default(), "", &["ptp4l", "7", "7"], (7, 7));
        assert_eq!(tally.unproved(), Some("any phase that proves it"));
        tally.add("settled", Scale::default(), "", &["ptp4l", "7", "7"], (7, 7));
        assert_eq!((tally.unproved(), tally.held_up, tally.turns), (None, 1, 2));
        let mut tally = Tally::of(&ntp::UTC);
        let late = (label + 1_000_000_000).to_string();
        let readings = ["utc_bounded", &late, &late, "chronyd", &late, &late];
        tally.add("leap-slewed", scale, "", &readings, (at, at));
        assert_eq!(tally.wrong(), (1, 2));
    }
}
