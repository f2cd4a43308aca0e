//! A long simulation, alone in its process so that memory can be asked for.

use hourglass_sim::{self as sim, Class, Jitter, SimSettings, System, Thread};

/// A day of simulated time: what is kept does not grow with it. What one number a job would take is
/// three times the limit.
#[test]
fn a_day_takes_no_more_memory_than_a_minute() {
    let day = 86_400_000_000_000;
    let periods = [20u64, 50, 70, 110, 130].map(|ms| ms * 1_000_000);
    let mut threads: Vec<Thread> =
        periods.iter().map(|t| Thread::periodic(t / 6, *t).with_class(Class::Edf)).collect();
    threads[0].jitter = Jitter::Random(1_000_000);
    let resident = || -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let before = resident();
    let mut system = System::new(1);
    system.threads = threads;
    let outcome = sim::run(&system, SimSettings::until(day)).unwrap();
    assert!(outcome.jobs > 8_000_000 && outcome.threads.iter().all(|t| t.missed == 0));
    if let (Some(before), Some(after)) = (before, resident()) {
        assert!(after.saturating_sub(before) < 20_000, "{before} kB, then {after} kB");
    }
}
