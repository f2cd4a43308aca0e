//! A calibration page whose writer is another process, and is killed (SIGKILL) at any moment.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hourglass_clock::timekeeping::{
    Clock, ClockSettings, Native, PageReader, SourceId, Start, Status, Timebase, WallReference,
};
use hourglass_sys::clock::{ClockId, now_ns};

/// Where the writer says by which descriptor its page is to be had.
const ANSWER: &str = "HOURGLASS_TEST_ANSWER";
/// Set if the writer is to change its source all the time, so that it is often killed in the midst
/// of a switch.
const RESTLESS: &str = "HOURGLASS_TEST_RESTLESS";
/// A writer ends by itself after this time if it is not killed.
const LIFETIME: Duration = Duration::from_secs(60);
/// For how long a line holds: what a dead writer leaves behind ends then.
const INTERVAL_NS: u64 = 20_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// The processor's counter, or what there is.
fn some_source() -> SourceId {
    let counters = [SourceId::TSC, SourceId::CNTVCT];
    counters.into_iter().find(|s| Native.supports(*s)).unwrap_or(SourceId::OS)
}

/// The other process; alone it has nothing to do.
#[test]
fn the_writer() {
    let Ok(answer) = std::env::var(ANSWER) else { return };
    let settings = ClockSettings {
        start: Start::With(some_source()),
        longest_interval_ns: INTERVAL_NS,
        look_every_ns: u64::MAX,
        ..ClockSettings::DEFAULT
    };
    let clock = Clock::with(settings);
    let _ = clock.now();
    let page = clock.share().unwrap();
    let fresh = format!("{answer}.part");
    std::fs::write(&fresh, page.as_raw_fd().to_string()).unwrap();
    std::fs::rename(fresh, answer).unwrap();
    let end = Instant::now() + LIFETIME;
    let restless = std::env::var_os(RESTLESS).is_some();
    while Instant::now() < end {
        clock.maintain();
        if restless {
            clock.set_source(SourceId::OS).unwrap();
            clock.set_source(some_source()).unwrap();
            // The cheapest switches: half of the time goes into them.
            for wall_ns in 0..500 {
                let monotonic_ns = clock.now();
                clock.set_wall(WallReference { monotonic_ns, wall_ns, error_ns: 0 });
            }
        }
    }
}

/// A writer, killed at the latest when this is dropped.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This program once more; by the words of `HOURGLASS_TEST_RUNNER` where the processor is emulated.
fn ourselves() -> Command {
    let runner = std::env::var("HOURGLASS_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().map(OsString::from).collect::<Vec<OsString>>();
    words.push(std::env::current_exe().unwrap().into_os_string());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Starts a writer and opens its page as another process would.
fn start(folder: &Path, restless: bool) -> (Writer, File) {
    let answer = folder.join("answer");
    let mut command = ourselves();
    command.args(["--exact", "page_writer::the_writer"]).env(ANSWER, &answer).stdout(Stdio::null());
    if restless {
        command.env(RESTLESS, "1");
    }
    let writer = Writer(command.spawn().unwrap());
    let end = Instant::now() + PATIENCE;
    let descriptor = loop {
        match std::fs::read_to_string(&answer) {
            Ok(text) => break text,
            Err(_) => assert!(Instant::now() < end, "the writer did not start"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    std::fs::remove_file(answer).unwrap();
    let page = File::open(format!("/proc/{}/fd/{descriptor}", writer.0.id())).unwrap();
    (writer, page)
}

/// Reads: in order, and inside the bounds.
fn look(reader: &PageReader, last_ns: &mut u64) -> Status {
    look_beside(reader, last_ns, None)
}

/// The same beside a writer that may have been kept from going on in the midst of a switch, at the earliest since
/// `begun`: its line may begin behind times read meanwhile, by a sixteenth of the pause (`PageReader`).
fn look_beside(reader: &PageReader, last_ns: &mut u64, begun: Option<Instant>) -> Status {
    for ns in [reader.now(), reader.now_ordered()] {
        let pause_ns = begun.map_or(0, |begun| u64::try_from(begun.elapsed().as_nanos()).unwrap());
        assert!(ns + pause_ns / 16 >= *last_ns, "{ns} after {last_ns}");
        *last_ns = ns;
    }
    let before_ns = now_ns(ClockId::Monotonic);
    let bounds = reader.now_bounded();
    let after_ns = now_ns(ClockId::Monotonic);
    let inside = bounds.earliest <= after_ns && bounds.latest >= before_ns;
    assert!(inside, "{bounds:?} without {before_ns}..{after_ns}");
    bounds.status
}

fn look_for(reader: &PageReader, last_ns: &mut u64, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        look(reader, last_ns);
    }
}

/// The kernel's clock serves once the last line is at its end.
fn assert_left(reader: &PageReader, last_ns: &mut u64) {
    let end = Instant::now() + PATIENCE;
    while look(reader, last_ns) != Status::OsClock {
        assert!(Instant::now() < end, "a dead writer's line has no end: {:?}", reader.writer());
    }
    look_for(reader, last_ns, Duration::from_millis(5));
}

#[test]
fn a_page_whose_writer_was_killed_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, page) = start(folder.path(), false);
    let reader = PageReader::open(&page).unwrap();
    let mut last_ns = 0;
    look_for(&reader, &mut last_ns, Duration::from_millis(50));
    let living = reader.writer();
    assert_eq!(living.pid, u64::from(writer.0.id()));
    writer.0.kill().unwrap();
    writer.0.wait().unwrap();
    assert_left(&reader, &mut last_ns);
    let dead = reader.writer();
    assert!(dead.expired || some_source() == SourceId::OS, "{dead:?}");
    // The page has no writer any more.
    assert_eq!((dead.pid, reader.writer()), (living.pid, dead));
    // The page outlives its writer; who opens it only now is sent to the OS clock as well.
    let late = PageReader::open(&page).unwrap();
    assert_eq!(look(&late, &mut last_ns), Status::OsClock);
}

/// Killed forty times, often in the midst of a switch: readers never see half of a line.
#[test]
fn a_writer_killed_at_any_moment_leaves_a_whole_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut torn = 0;
    for round in 0..40u64 {
        let (mut writer, page) = start(folder.path(), true);
        let reader = PageReader::open(&page).unwrap();
        let mut last_ns = 0;
        let (begun, time) = (Instant::now(), Duration::from_micros(1_000 + round * 137));
        while begun.elapsed() < time {
            look_beside(&reader, &mut last_ns, Some(begun));
        }
        writer.0.kill().unwrap();
        writer.0.wait().unwrap();
        torn += u64::from(is_switching(&page));
        assert_left(&reader, &mut last_ns);
    }
    println!("{torn} of 40 were killed in the midst of a switch");
}

/// Bit 0 of the page's word 8 (the layout is documented in `timekeeping::page`).
fn is_switching(page: &File) -> bool {
    use std::os::unix::fs::FileExt;
    let mut turn = [0; 8];
    page.read_exact_at(&mut turn, 64).unwrap();
    u64::from_ne_bytes(turn) & 1 != 0
}
