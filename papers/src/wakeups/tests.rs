//! Being woken on this machine: never early, whatever else; upper bounds cannot be promised.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_time::Span;
use hourglass_timer::event::Resolution;

use super::*;

const MILLISECOND: u64 = 1_000_000;
const TICK: Span = Span::from_millis(4);

fn plan(loops: u64, loaded: bool) -> WakeUpPlan {
    WakeUpPlan { interval_ns: MILLISECOND, loops, turn: 7, phases_ns: 4 * MILLISECOND, loaded }
}

fn sleep() -> WakerFactory {
    Box::new(|| Ok(Box::new(Sleep)))
}

fn posix() -> WakerFactory {
    Box::new(|| Ok(Box::new(PosixSignal::new().map_err(|error| error.to_string())?)))
}

fn engine(device: Device, resolution: Resolution) -> WakerFactory {
    Box::new(move || Ok(Box::new(EngineWaker::new(device, resolution, TICK)?)))
}

fn never() -> bool {
    false
}

#[test]
fn no_thread_is_woken_early() {
    let ways = vec![
        sleep(),
        posix(),
        engine(Device::Sleep, Resolution::High),
        engine(Device::PosixTimer, Resolution::High),
        engine(Device::Sleep, Resolution::TickBound),
        engine(Device::PosixTimer, Resolution::TickBound),
    ];
    let session = measure(plan(16, false), ways, never).unwrap();
    assert_eq!((session.found.len(), session.hogs), (6, 0));
    for (way, late) in session.found.iter().enumerate() {
        let late = late.as_ref().unwrap();
        let summary = late.summary().unwrap();
        assert_eq!((summary.count, late.early), (16, 0), "way {way}");
        assert!(summary.min_ns <= summary.median_ns && summary.median_ns <= summary.max_ns);
        assert_eq!(late.points().0.len(), 16);
    }
}

/// Bound to ticks of 4 ms, 1 ms apart: most times pass while the engine waits for a tick.
#[test]
fn below_the_tick_times_are_lost() {
    let ways = vec![engine(Device::Sleep, Resolution::TickBound)];
    let session = measure(plan(14, false), ways, never).unwrap();
    let late = session.found[0].as_ref().unwrap();
    assert!(late.lost >= 14, "{} of 14 turns of four", late.lost);
}

#[test]
fn what_is_missing_or_fails_says_why() {
    #[derive(Debug)]
    struct BrokenTimer;
    impl Waker for BrokenTimer {
        fn begin(&mut self, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn wait(&mut self, _: u64) -> io::Result<WaitEnd> {
            Err(io::Error::other("it is broken"))
        }
        fn end(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let ways: Vec<WakerFactory> =
        vec![Box::new(|| Err("none left".into())), Box::new(|| Ok(Box::new(BrokenTimer))), sleep()];
    let session = measure(plan(3, false), ways, never).unwrap();
    let said = |at: usize| session.found[at].as_ref().unwrap_err().as_str();
    assert_eq!((said(0), said(1)), ("none left", "it failed: it is broken"));
    assert_eq!(session.found[2].as_ref().unwrap().summary().unwrap().count, 3);
}

#[test]
fn a_stop_ends_it_with_the_load() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    fn soon() -> bool {
        ASKED.fetch_add(1, Ordering::Relaxed) >= 5
    }
    assert!(measure(plan(1_000_000, true), vec![sleep(), posix()], soon).is_none());
    assert_eq!(loads(), HashSet::new());
}

#[test]
fn the_load_comes_and_goes() {
    let hogs = CpuHogs::on(&hourglass_sys::thread::affinity().unwrap()[..1]);
    assert_eq!(hogs.count(), 1);
    drop(hogs);
    assert_eq!(CpuHogs::none().count(), 0);
}

fn loads() -> HashSet<String> {
    let cpus = hourglass_sys::thread::affinity().unwrap();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let last = format!("load-{}", cpus.last().unwrap());
    // The first CPU's may be that of the test beside this one.
    tasks.filter_map(name).filter(|name| cpus.len() > 1 && name.trim() == last).collect()
}

/// The phases of the first turns fill a tick evenly: neighbours are at most twice as far apart
/// as in equal steps.
#[test]
fn turns_begin_at_all_phases_of_a_tick() {
    let stretch = 4 * MILLISECOND;
    let mut phases: Vec<u64> = (0..20).map(|number| phase(number, stretch)).collect();
    assert_eq!((phase(0, stretch), phase(7, 0)), (0, 0));
    phases.sort_unstable();
    phases.push(stretch);
    for pair in phases.windows(2) {
        assert!(pair[1] - pair[0] <= 2 * stretch / 20, "{phases:?}");
    }
}

#[test]
fn what_lateness_says() {
    let mut late = LatencySamples::with_room(4);
    assert_eq!(late.summary(), None);
    for (now, passed) in [(110, 0), (90, 0), (400, 3), (120, 0)] {
        late.record(now, 100, passed);
    }
    assert_eq!((late.early, late.lost), (1, 3));
    let summary = late.summary().unwrap();
    let expected = Summary {
        count: 4,
        min_ns: 0.0,
        max_ns: 300.0,
        mean_ns: 82.5,
        median_ns: 10.0,
        p99_ns: 300.0,
    };
    assert_eq!(summary, expected);
}
