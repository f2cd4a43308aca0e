//! A clock, sleepers, timers, a witness, a recorder and a reservation together for long, held from outside against what
//! each of them promises; and nothing that grows.
//!
//! The test takes half a minute. `cargo xtask soak --hours N` sets `HOURGLASS_SOAK_S` and `HOURGLASS_SOAK_RECORD`.

mod facts;
mod footprint;
mod subject;

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hourglass_clock::timekeeping::PageReader;
use hourglass_skip::{Requirement, skip};
use hourglass_sys::clock::{ClockId, now_ns};
use serde_json::{Value, json};

use self::facts::{Fact, Tally};
use self::footprint::Growth;
use crate::calls::{command as called, json as parsed};
use crate::processes::{Killed, send, within};
use crate::reserve::{MARK, files_left, granted, groups_left, left_behind, marked};

/// Length, s. It may be a fraction.
const LENGTH: &str = "HOURGLASS_SOAK_S";

/// The file in which the result is kept.
const RECORD: &str = "HOURGLASS_SOAK_RECORD";

/// Tells the program which of its tests is the subject, and where it tells its facts.
const FOLDER: &str = "HOURGLASS_SOAK_FOLDER";

const SHORT: Duration = Duration::from_secs(20);

const SAMPLE: Duration = Duration::from_millis(500);

/// Lines that the subject has: one of each thread that tells something.
const LINES: usize = 6;

const BUDGET_NS: u64 = 4_000_000;
const PERIOD_NS: u64 = 40_000_000;

/// The recorder's period.
const RECORD_MS: u64 = 10;

fn monotonic_ns() -> u64 {
    now_ns(ClockId::Monotonic)
}

fn length() -> Duration {
    let said = std::env::var(LENGTH).ok().map(|text| text.parse().unwrap());
    said.map_or(SHORT, Duration::from_secs_f64)
}

fn command(words: &str, mark: &str) -> Command {
    let mut command = called(words);
    command.env(MARK, mark).stderr(Stdio::null());
    command
}

/// All that runs together.
struct Soak {
    folder: PathBuf,
    subject: Killed,
    recorder: Killed,
    reserved: Killed,
    document: PathBuf,
}

impl Soak {
    fn begin(folder: &Path, length: Duration, mark: &str) -> Soak {
        let mut subject = Command::new(std::env::current_exe().unwrap());
        subject.args(["--exact", "soak::is_watched", "--ignored", "--nocapture"]);
        subject.env(FOLDER, folder).env(LENGTH, length.as_secs_f64().to_string());
        subject.env(MARK, mark).stdin(Stdio::null()).stdout(Stdio::null());
        let record =
            format!("latency -q -t 1 -i {RECORD_MS}ms -D {}ms -o recorded", length.as_millis());
        let mut recorder = command(&record, mark);
        recorder.current_dir(folder).stdout(Stdio::null());
        let reserve = format!("reserve --json {BUDGET_NS}ns/{PERIOD_NS}ns --backend user --");
        let document = folder.join("reserved.json");
        let mut reserved = command(&reserve, mark);
        reserved.args(["sh", "-c", "while :; do :; done"]);
        reserved.stdout(File::create(&document).unwrap());
        let start = |command: &mut Command| Killed(command.spawn().unwrap());
        Soak {
            folder: folder.to_owned(),
            subject: start(&mut subject),
            recorder: start(&mut recorder),
            reserved: start(&mut reserved),
            document,
        }
    }
}

/// Processor time of the reserved process, by the kernel, and when it was read.
#[derive(Default)]
struct Received {
    samples: Vec<(u64, u64)>,
}

impl Received {
    fn sample(&mut self, pid: u32) {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        let received = text.split(' ').next().and_then(|ns| ns.parse().ok());
        self.samples.extend(received.map(|received| (monotonic_ns(), received)));
    }

    /// Windows of some seconds and all of it: in each whole period a budget, and no more than one more at either end and
    /// what a look is late, which is below a budget, or stands in the document (`late_ns`): where the host has the CPU, the
    /// kernel counts its time as the program's. A share of `missed` periods may be missing.
    fn wrong(&self, missed: u64, late_ns: u64) -> Vec<String> {
        const WINDOW: usize = 10;
        /// The kernel brings the time of a running thread up to date at its tick.
        const TICK_NS: u64 = 10_000_000;
        let mut wrong = Vec::new();
        let ends = self.samples.iter().zip(self.samples.iter().skip(WINDOW));
        let whole = self.samples.first().zip(self.samples.last());
        for ((begin, before), (end, after)) in ends.chain(whole) {
            let periods = (end - begin) / PERIOD_NS;
            let received = after - before;
            let most = BUDGET_NS * (periods + 3) + TICK_NS + late_ns;
            let least = (BUDGET_NS * periods.saturating_sub(1 + missed)).saturating_sub(TICK_NS);
            // A look that comes while the host has the CPU leaves a period a little short.
            if received > most || received < least / 100 * 95 {
                wrong.push(format!("{received} ns in {periods} periods of {BUDGET_NS} ns"));
            }
        }
        if self.samples.len() <= WINDOW {
            wrong.push(format!("the reserved process was seen {} times", self.samples.len()));
        }
        wrong.truncate(5);
        wrong
    }
}

/// Reads the subject's clock through its page, as another process, until that ends.
fn page(subject: u32, descriptor: u64) -> (u64, Vec<String>) {
    let path = format!("/proc/{subject}/fd/{descriptor}");
    let page = PageReader::open(&File::open(path).unwrap()).unwrap();
    let (mut readings, mut last, mut wrong) = (0, 0, Vec::new());
    while Path::new(&format!("/proc/{subject}/fd/{descriptor}")).exists() {
        let before = monotonic_ns();
        let bounds = page.now_bounded();
        let after = monotonic_ns();
        let now = page.now_ordered();
        if bounds.latest < before || bounds.earliest > after || now < last {
            wrong.push(format!("the page: {before} {bounds:?} {after}, {now} behind {last}"));
            wrong.truncate(5);
        }
        last = now;
        readings += 1;
        std::thread::sleep(Duration::from_millis(3));
    }
    (readings, wrong)
}

/// What each thread of the subject tells, until it closes its line.
fn follow(listener: &UnixListener, subject: u32) -> (Tally, u64) {
    std::thread::scope(|scope| {
        let lines: Vec<_> = (0..LINES)
            .map(|_| {
                let (mut line, _) = listener.accept().unwrap();
                scope.spawn(move || {
                    let first = Fact::read(&mut line);
                    let mut tally = Tally::default();
                    first.into_iter().for_each(|fact| tally.judge(fact));
                    let page = match first {
                        Some(Fact::Page { descriptor }) => {
                            Some(std::thread::spawn(move || page(subject, descriptor)))
                        }
                        _ => None,
                    };
                    tally.follow(line);
                    (tally, page.map(|page| page.join().unwrap()))
                })
            })
            .collect();
        let (mut all, mut readings) = (Tally::default(), 0);
        for line in lines {
            let (tally, page) = line.join().unwrap();
            all.add(tally);
            if let Some((read, wrong)) = page {
                readings += read;
                all.violations += wrong.len() as u64;
                all.wrong.extend(wrong);
            }
        }
        (all, readings)
    })
}

/// Samples all three until the subject has ended.
fn sample(soak: &mut Soak, length: Duration, mark: &str) -> (Vec<Growth>, Received) {
    let of = |name, process: &Killed| Growth::new(name, process.pid(), length, SAMPLE);
    let mut all = vec![
        of("subject", &soak.subject),
        of("recorder", &soak.recorder),
        of("reserve", &soak.reserved),
    ];
    let mut received = Received::default();
    let mut spinner = None;
    // What they do at their ends is their own.
    let until = Instant::now() + length.mul_f64(0.95);
    while Instant::now() < until {
        std::thread::sleep(SAMPLE);
        all.iter_mut().for_each(Growth::sample);
        let called = |pid: &u32| crate::name_of(*pid) == "sh\n";
        spinner = spinner.or_else(|| marked(mark).into_iter().find(called));
        spinner.into_iter().for_each(|pid| received.sample(pid));
    }
    (all, received)
}

/// Waits for an end; how it was, where it was not a good one.
fn end(name: &str, child: &mut Child, good: &[i32]) -> Option<String> {
    let mut ended = None;
    within(Duration::from_secs(60), || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    match ended {
        Some(status) if status.code().is_some_and(|code| good.contains(&code)) => None,
        status => Some(format!("{name} ended with {status:?}")),
    }
}

/// A kept run as `hourglass show` reads it.
fn shown(folder: &Path, name: &str) -> Value {
    let output = command(&format!("show --json {name}"), "").current_dir(folder).output().unwrap();
    parsed(&String::from_utf8_lossy(&output.stdout))
}

/// Wake-ups that were told or counted as lost, of those that there were.
fn recorded(folder: &Path, length: Duration) -> (Value, Vec<String>) {
    let run = shown(folder, "recorded");
    let latency = &run["threads"][0]["latency"];
    let of = |key: &str| latency[key].as_u64().unwrap_or_default();
    let (told, due) = (of("count") + of("lost"), length.as_millis() as u64 / RECORD_MS);
    let dropped = run["threads"][0]["records_dropped"].as_u64().unwrap_or(1);
    // The first and the last may be cut by begin and end.
    let holds = told.abs_diff(due) <= 2 && dropped == 0;
    let wrong = format!("the recorder has {told} of {due} wake-ups, and dropped {dropped} records");
    let document = json!({ "wake_ups": of("count"), "lost": of("lost"), "due": due });
    (document, if holds { Vec::new() } else { vec![wrong] })
}

/// What the witness says against what the program counted: each span, a loss of each that slept, and no longer in all than
/// the spans took.
fn witnessed(folder: &Path, tally: &Tally) -> (Value, Vec<String>) {
    let run = shown(folder, "spans");
    let manifest = fs::read_to_string(folder.join("spans/manifest.json")).unwrap_or_default();
    let result = parsed(&manifest)["result"].clone();
    let site = &result["sites"][0];
    let of = |key: &str| site[key].as_u64().unwrap_or_default();
    let (least, most) = (of("lost_least_ns"), of("lost_most_ns"));
    let checks = [
        ("it is shown", run["schema"] == "hourglass.run/1"),
        ("all spans", of("spans") == tally.spans && tally.spans > 0),
        ("each sleep", of("disturbed") >= tally.spans_slept / 10 * 9 && of("unknown") == 0),
        ("least and most", least <= most && least <= tally.spans_ns),
        ("most and the sleeps", most >= tally.spans_slept * 1_800_000),
    ];
    let wrong = checks.iter().filter(|(_, holds)| !holds);
    let wrong = wrong.map(|(what, _)| format!("the witness: {what}: {site} {tally:?}")).collect();
    let lost = json!([least, most]);
    (json!({ "spans": tally.spans, "disturbed": of("disturbed"), "lost_ns": lost }), wrong)
}

/// Periods in which more than five quarters of the budget were delivered, as the document has them: how much, and how many.
fn late_looks(supply: &Value) -> Vec<(u64, u64)> {
    let of = |step: &Value, key: &str| step[key].as_u64().unwrap_or_default();
    let steps = supply.as_array().into_iter().flatten();
    let steps = steps.map(|step| (of(step, "up_to_ns"), of(step, "periods")));
    steps.filter(|(up_to_ns, _)| *up_to_ns > BUDGET_NS / 4 * 5).collect()
}

fn run(folder: &Path, length: Duration, mark: &str) -> (Value, Vec<String>) {
    let listener = UnixListener::bind(folder.join("facts")).unwrap();
    let mut soak = Soak::begin(folder, length, mark);
    let (subject, reserve) = (soak.subject.pid(), soak.reserved.pid());
    let ((mut tally, page_readings), (growths, received)) = std::thread::scope(|scope| {
        let facts = scope.spawn(|| follow(&listener, subject));
        let sampled = sample(&mut soak, length, mark);
        (facts.join().unwrap(), sampled)
    });
    let mut wrong = std::mem::take(&mut tally.wrong);
    wrong.extend(end("subject", &mut soak.subject.0, &[0]));
    wrong.extend(end("recorder", &mut soak.recorder.0, &[0]));
    send("-TERM", reserve.into()).unwrap();
    wrong.extend(end("reserve", &mut soak.reserved.0, &[143]));
    let said = parsed(&fs::read_to_string(&soak.document).unwrap());
    let late = late_looks(&said["supply"]);
    let late_ns = late.iter().map(|(up_to_ns, periods)| (up_to_ns - BUDGET_NS) * periods).sum();
    let missed = said["missed"].as_u64().unwrap_or_default();
    wrong.extend(received.wrong(missed, late_ns));
    // A host that has the CPU for most of a period takes that from the process; what is wrong with the reserve takes more.
    let by_host = said["periods"].as_u64().unwrap_or_default() / 100;
    if said["kept"] != (missed == 0) || missed > by_host || said["broken_by"] != json!([]) {
        wrong.push(format!("not kept: {missed} missed, broken by {}", said["broken_by"]));
    }
    wrong.extend(growths.iter().flat_map(Growth::wrong));
    let (recorded, of_recorder) = recorded(&soak.folder, length);
    let (witnessed, of_witness) = witnessed(&soak.folder, &tally);
    wrong.extend([of_recorder, of_witness].concat());
    if !within(Duration::from_secs(20), || marked(mark).is_empty()) {
        wrong.push(format!("left behind: {:?} {:?}", marked(mark), left_behind(mark)));
    }
    let files = [groups_left(reserve), files_left(reserve)].concat();
    if !files.is_empty() {
        wrong.push(format!("left behind: {files:?}"));
    }
    let footprints = growths.iter().map(|one| (one.name.to_owned(), one.document()));
    let cpu = received.samples.first().zip(received.samples.last());
    let cpu = cpu.map(|(first, last)| [last.0 - first.0, last.1 - first.1]);
    let document = json!({
        "schema": "hourglass.soak/1",
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim(),
        "seconds": length.as_secs_f64(),
        "clock": { "readings": tally.clock_readings, "page_readings": page_readings, "width_max_ns": tally.clock_width_max_ns },
        "simulated_readings": tally.simulated_readings,
        "sleeps": tally.sleeps,
        "timers": { "expiries": tally.expiries, "overruns": tally.overruns, "waits": tally.waits },
        "reservation": { "wall_and_received_ns": cpu, "periods": said["periods"], "missed": said["missed"], "late_ns_and_periods": late },
        "recorder": recorded,
        "witness": witnessed,
        "footprints": footprints.collect::<Value>(),
        "violations": tally.violations,
        "wrong": wrong,
    });
    (document, wrong)
}

/// Not for itself: the program that [`all_together_for_long`] watches.
#[test]
#[ignore = "all_together_for_long runs it"]
fn is_watched() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    subject::run(Path::new(&folder), length());
}

#[test]
fn all_together_for_long() {
    let _alone = crate::alone();
    if crate::processes::allowed_cpus().len() < 2 {
        return skip(Requirement::SECOND_CPU, "there is no second CPU");
    }
    if !granted("user") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mark = format!("{}-soak", std::process::id());
    let (document, wrong) = run(home.path(), length(), &mark);
    let text = serde_json::to_string_pretty(&document).unwrap();
    println!("{text}");
    if let Some(path) = std::env::var_os(RECORD) {
        fs::write(path, format!("{text}\n")).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
