//! The page in a memfd, as another process finds it.

use std::process::Command;
use std::time::Duration;

use super::super::properties::{Observed, quiet};
use super::super::{Clock, MaintenanceThread, ReferenceClock, Status};
use super::*;
use crate::timekeeping::double::{Double, Drift};

const SECOND_NS: u64 = 1_000_000_000;

fn shared(observed: &Observed) -> File {
    File::from(observed.clock.share().unwrap())
}

/// Words of our own making, as a file.
fn forged(words: usize, header: &[(usize, u64)]) -> File {
    let shared = SharedWords::create(c"hourglass-test", words).unwrap();
    for (index, value) in header {
        shared.words()[*index].store(*value, Ordering::Release);
    }
    File::from(shared.as_fd().try_clone_to_owned().unwrap())
}

const GOOD: [(usize, u64); 5] = [(0, MAGIC), (1, VERSION), (2, BYTES), (3, ARCHITECTURE), (16, 1)];

#[test]
fn what_is_no_page_is_refused_with_what_to_do() {
    let open = |file: &File| PageReader::open_on(file, Double::new(0, Drift::Constant(0)));
    let with = |index: usize, value: u64| {
        let mut header = GOOD;
        header.iter_mut().filter(|w| w.0 == index).for_each(|w| w.1 = value);
        open(&forged(WORDS, &header))
    };
    assert!(with(0, MAGIC).is_ok());
    let not = with(0, 0x7f).unwrap_err();
    assert!(matches!(not, OpenPageError::NotAPage { found: 0x7f }), "{not}");
    let version = with(1, VERSION + 1).unwrap_err();
    assert!(
        matches!(version, OpenPageError::OtherVersion { found, bytes: BYTES } if found == VERSION + 1)
    );
    assert!(version.to_string().contains("release"), "{version}");
    assert!(matches!(with(2, 1024).unwrap_err(), OpenPageError::OtherVersion { .. }));
    let machine = with(3, 243).unwrap_err();
    assert!(matches!(machine, OpenPageError::OtherArchitecture { found: 243 }));
    let counter = with(16, 4).unwrap_err();
    assert!(matches!(counter, OpenPageError::OtherCounter { found: SourceId::HPET }));
    assert!(counter.to_string().contains("hpet"), "{counter}");
    let short = open(&forged(WORDS - 1, &GOOD)).unwrap_err();
    assert!(matches!(short, OpenPageError::Truncated { found: 504 }), "{short}");
    let unsealed = open(&File::open("/proc/self/exe").unwrap()).unwrap_err();
    assert!(matches!(unsealed, OpenPageError::NotSealed), "{unsealed}");
}

#[test]
fn a_page_of_another_time_namespace_is_refused() {
    let mut header = GOOD.to_vec();
    // Slope one, valid for ever, an hour ahead.
    header.extend([(16, 1 | 60 << 16), (18, u64::MAX / 2), (19, 1 << 60)]);
    let double = Double::new(4, Drift::Constant(0));
    assert!(PageReader::open_on(&forged(WORDS, &header), double.clone()).is_ok());
    header.push((20, 3_600 * SECOND_NS));
    let error = PageReader::open_on(&forged(WORDS, &header), double).unwrap_err();
    assert!(matches!(error, OpenPageError::OtherTimeline { .. }), "{error}");
}

#[test]
fn a_reader_follows_the_writer_and_leaves_a_dead_one() {
    let mut observed = Observed::new(1, Drift::Constant(30_000));
    observed.settle();
    let file = shared(&observed);
    let reader = PageReader::open_on(&file, observed.double.clone()).unwrap();
    let mut last = 0;
    for _ in 0..10_000 {
        observed.double.pass_ns(20_000_000);
        observed.clock.maintain();
        let before = observed.double.truth_ns();
        let bounds = reader.now_bounded();
        let after = observed.double.truth_ns();
        assert!(bounds.earliest <= after && bounds.latest >= before, "{bounds:?}");
        assert_eq!(bounds.status, Status::Steady);
        for now in [reader.now(), reader.now_ordered()] {
            assert!(now >= last);
            last = now;
        }
        assert!(reader.recent() <= last);
        assert!(!reader.writer().expired);
    }
    assert_eq!(reader.writer().pid, u64::from(std::process::id()));
    // The writer dies.
    drop(observed.clock);
    observed.double.pass_ns(100 * SECOND_NS);
    assert!(reader.writer().expired);
    let before = observed.double.truth_ns();
    let bounds = reader.now_bounded();
    assert_eq!(bounds.status, Status::OsClock);
    assert!(bounds.earliest <= observed.double.truth_ns() && bounds.latest >= before);
    assert!(reader.now() >= last);
}

#[test]
fn a_writer_that_dies_in_the_midst_leaves_the_line_before() {
    let mut observed = Observed::new(2, Drift::Constant(0));
    observed.settle();
    let words = SharedWords::create(c"hourglass-test", WORDS).unwrap();
    let ours = shared(&observed);
    let theirs = ReadOnlyWords::map(&ours, WORDS).unwrap();
    for index in 0..WORDS {
        words.words()[index].store(theirs.load(index, Ordering::Relaxed), Ordering::Relaxed);
    }
    words.words()[word::TURN].fetch_or(calibration_page::SWITCHING, Ordering::SeqCst);
    let file = File::from(words.as_fd().try_clone_to_owned().unwrap());
    let reader = PageReader::open_on(&file, observed.double.clone()).unwrap();
    let before = observed.double.truth_ns();
    let bounds = reader.now_bounded();
    assert_eq!(bounds.status, Status::Steady);
    assert!(bounds.earliest <= observed.double.truth_ns() && bounds.latest >= before);
    observed.double.pass_ns(100 * SECOND_NS);
    assert_eq!(reader.now_bounded().status, Status::OsClock);
}

#[test]
fn a_source_that_the_reader_does_not_have_is_not_read() {
    let mut header = GOOD.to_vec();
    // Drawn over the OS clock when it was opened, over an unknown counter afterwards.
    header.extend([(16, 1 | 60 << 16), (18, u64::MAX / 2), (19, 1 << 60)]);
    let shared = SharedWords::create(c"hourglass-test", WORDS).unwrap();
    header.iter().for_each(|(i, value)| shared.words()[*i].store(*value, Ordering::Relaxed));
    let file = File::from(shared.as_fd().try_clone_to_owned().unwrap());
    let double = Double::new(3, Drift::Constant(0));
    let reader = PageReader::open_on(&file, double.clone()).unwrap();
    shared.words()[16].store(4, Ordering::Relaxed);
    let (before, reference_state) = (double.truth_ns(), reader.now());
    assert!((before..=double.truth_ns()).contains(&reference_state));
    assert!(reader.writer().expired);
}

/// Reads the page that the test below shares; alone it has nothing to do.
#[test]
fn the_other_process() {
    let Ok(path) = std::env::var("HOURGLASS_TEST_PAGE") else { return };
    let reader = PageReader::open(&File::open(path).unwrap()).unwrap();
    let mut last = 0;
    for _ in 0..200_000 {
        let before = Native.reference_ns(ReferenceClock::Monotonic);
        let bounds = reader.now_bounded();
        let after = Native.reference_ns(ReferenceClock::Monotonic);
        assert!(bounds.earliest <= after && bounds.latest >= before, "{bounds:?}");
        assert!(reader.now() >= last);
        last = reader.now();
    }
    assert_ne!(reader.writer().pid, u64::from(std::process::id()));
}

#[test]
fn another_process_reads_the_page() {
    let clock = std::sync::Arc::new(Clock::with(quiet()));
    let _helper = MaintenanceThread::start(std::sync::Arc::clone(&clock)).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let page = clock.share().unwrap();
    let path =
        format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&page));
    // By these words where the processor is emulated.
    let runner = std::env::var("HOURGLASS_TEST_RUNNER").unwrap_or_default();
    let mut words: Vec<String> = runner.split_whitespace().map(str::to_owned).collect();
    words.push(std::env::current_exe().unwrap().into_os_string().into_string().unwrap());
    let status = Command::new(&words[0])
        .args(&words[1..])
        .args(["--exact", "timekeeping::share::tests::the_other_process"])
        .env("HOURGLASS_TEST_PAGE", path)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}
