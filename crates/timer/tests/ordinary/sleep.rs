//! Sleeping on this machine. Timing is asserted one-sided: never early on every sample, bounds above
//! only on the best of many, or generous enough for a machine that does other work.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use hourglass_clock::timekeeping::ClockSettings;
use hourglass_clock::{Clock, process};
use hourglass_dice::{Dice, seed};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::allocation::thread_counts;
use hourglass_sys::{sched, thread};
use hourglass_time::Span;
use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{
    Delay, HzProbe, KernelSleep, SleepEnd, SleepOutcome, SleepPolicy, SleeperSettings,
};

use crate::common::now as monotonic;
use crate::common::watching::wait_until_asleep;

const POLICIES: [SleepPolicy; 4] = [
    SleepPolicy::Learned,
    SleepPolicy::Thesis { hz: 1_000 },
    SleepPolicy::KernelOnly,
    SleepPolicy::SpinOnly,
];

const FOR_EVER: Span = Span::HOUR;
const SOON: Duration = Duration::from_secs(20);

/// By the kernel's own clock: beyond the stated bound of the sleeper's clock never, and where that
/// was asked for not at all.
#[test]
fn never_early_by_the_kernels_clock() {
    let mut dice = Dice::new(seed());
    for policy in POLICIES {
        for ends_when in [SleepEnd::Reached, SleepEnd::SurelyReached] {
            let mut sleeper = Sleeper::with(SleeperSettings {
                ends_when,
                ..SleeperSettings::with_policy(policy)
            });
            for _ in 0..150 {
                let deadline = monotonic() + dice.below(600_000);
                let slept = sleeper.sleep_until_ns(deadline);
                let now = monotonic();
                let bound = match ends_when {
                    SleepEnd::Reached => 2 * process::clock().now_bounded().error_ns() + 1,
                    SleepEnd::SurelyReached => 0,
                };
                assert!(now + bound >= deadline, "{policy}: {} ns early", deadline - now);
                assert!(slept.reached() && !slept.interrupted, "{policy}: {slept:?}");
                assert!(slept.woke_ns <= now + bound, "{policy}: {slept:?} at {now}");
            }
        }
    }
}

/// What the kernel's clock costs here at best, ns.
fn cost_of_a_read() -> u64 {
    (0..100).map(|_| (monotonic(), monotonic())).map(|(a, b)| b - a).min().unwrap_or(0)
}

/// Research 2.5: any kernel timer in the past costs 25 us on such a machine.
#[test]
fn a_past_deadline_does_not_enter_the_kernel() {
    for policy in POLICIES {
        let mut sleeper = Sleeper::with(SleeperSettings::with_policy(policy));
        let switches = thread::counters().voluntary;
        let best = (0..1_000)
            .map(|_| {
                let begun = monotonic();
                // More than the sleeper's clock may be behind.
                let slept = sleeper.sleep_until_ns(begun - 1_000_000);
                assert_eq!((slept.delay, slept.kernel_ns), (Delay::AlreadyPast, 0));
                monotonic() - begun
            })
            .min();
        // Of some reads of the clock; with an HPET each is a system call.
        let most = 5_000 + 8 * cost_of_a_read();
        assert!(best.is_some_and(|ns| ns < most), "{policy}: {best:?}, not below {most}");
        assert_eq!(thread::counters().voluntary, switches, "{policy}");
    }
}

/// Begins a sleep on another thread, lets `meanwhile` have the thread's id and the interrupter, and
/// gives what the sleep came to and for how long it lasted after that.
fn interrupted(policy: SleepPolicy, meanwhile: impl FnOnce(u32, &dyn Fn())) -> SleepOutcome {
    let mut sleeper = Sleeper::with(SleeperSettings::with_policy(policy));
    let interrupter = sleeper.interrupter();
    let (sender, receiver) = mpsc::channel();
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        sender.send(thread::id()).unwrap();
        done.send(sleeper.sleep_for(FOR_EVER)).unwrap();
    });
    let id = receiver.recv().unwrap();
    meanwhile(id, &|| interrupter.interrupt());
    finished.recv_timeout(SOON).expect("the interrupt ended nothing")
}

#[test]
fn an_interrupt_ends_the_kernel_phase() {
    for policy in [SleepPolicy::Learned, SleepPolicy::KernelOnly, SleepPolicy::Thesis { hz: 100 }] {
        let slept = interrupted(policy, |id, interrupt| {
            wait_until_asleep(id);
            interrupt();
        });
        assert!(slept.interrupted && !slept.reached(), "{slept:?}");
        assert!(slept.kernel_ns > 0 && slept.spin_ns == 0, "{slept:?}");
    }
}

#[test]
fn an_interrupt_ends_the_spin() {
    let slept = interrupted(SleepPolicy::SpinOnly, |id, interrupt| {
        wait_until_it_ran(id, 5_000_000);
        interrupt();
    });
    assert!(slept.interrupted && !slept.reached(), "{slept:?}");
    assert!(slept.kernel_ns == 0 && slept.spin_ns > 0, "{slept:?}");
}

/// Until a thread that does nothing else any more than spin has done so for some time, ns.
fn wait_until_it_ran(id: u32, length_ns: u64) {
    let path = format!("/proc/self/task/{id}/schedstat");
    let ran_ns = || -> Option<u64> {
        std::fs::read_to_string(&path).ok()?.split_whitespace().next()?.parse().ok()
    };
    // Kernels that do not count have only the time to go by.
    let Some(before_ns) = ran_ns() else { return std::thread::sleep(Duration::from_millis(100)) };
    let begun = monotonic();
    while ran_ns().is_some_and(|now_ns| now_ns < before_ns + length_ns) {
        assert!(monotonic() - begun < 20_000_000_000, "thread {id} does not run");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An interrupt at any moment of a sleep's beginning or of its end is not lost: whether before the
/// word is looked at, between that and the kernel's own look, or in the wait.
#[test]
fn no_interrupt_is_lost() {
    const TIMES: u64 = 3_000;
    let mut dice = Dice::new(seed());
    let mut sleeper = Sleeper::with(SleeperSettings::with_policy(SleepPolicy::KernelOnly));
    let interrupter = sleeper.interrupter();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for turn in 0..TIMES {
            let slept = sleeper.sleep_for(FOR_EVER);
            assert!(slept.interrupted && sleeper.clear());
            sender.send(turn).unwrap();
        }
    });
    for turn in 0..TIMES {
        let until = monotonic() + dice.below(60_000);
        while monotonic() < until {
            std::hint::spin_loop();
        }
        interrupter.interrupt();
        assert_eq!(receiver.recv_timeout(SOON), Ok(turn), "lost");
    }
}

/// In the published program all sleepers share one condition variable, and an interrupt wakes any
/// of them (research 1.1 f).
#[test]
fn only_the_interrupted_of_a_thousand_wakes() {
    const MANY: usize = 1_000;
    let woken = AtomicUsize::new(0);
    let ids: Vec<AtomicU32> = (0..MANY).map(|_| AtomicU32::new(0)).collect();
    let mut interrupters = Vec::with_capacity(MANY);
    std::thread::scope(|scope| {
        for own in &ids {
            let mut sleeper = Sleeper::with(SleeperSettings::with_policy(SleepPolicy::KernelOnly));
            interrupters.push(sleeper.interrupter());
            let woken = &woken;
            let small = std::thread::Builder::new().stack_size(64 << 10);
            let started = small.spawn_scoped(scope, move || {
                own.store(thread::id(), Ordering::Release);
                let slept = sleeper.sleep_for(FOR_EVER);
                assert!(slept.interrupted);
                woken.fetch_add(1, Ordering::AcqRel);
            });
            started.expect("a thousand threads");
        }
        let asleep = |index: usize| {
            while ids[index].load(Ordering::Acquire) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            wait_until_asleep(ids[index].load(Ordering::Acquire));
        };
        (0..MANY).for_each(asleep);
        let switches = || -> Vec<u64> { ids.iter().map(voluntary_switches).collect() };
        let before = switches();
        interrupters[MANY / 2].interrupt();
        let begun = monotonic();
        while woken.load(Ordering::Acquire) == 0 && monotonic() - begun < 20_000_000_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20));
        let alone = woken.load(Ordering::Acquire);
        let disturbed = before.iter().zip(switches()).enumerate();
        let disturbed = disturbed.filter(|(n, (a, b))| *n != MANY / 2 && **a != *b).count();
        // First let them go: a failing assertion would otherwise wait for an hour.
        interrupters.iter().for_each(|interrupter| interrupter.interrupt());
        assert_eq!((alone, disturbed), (1, 0));
    });
    assert_eq!(woken.load(Ordering::Acquire), MANY);
}

/// How often a thread of this process has gone to sleep; 0 if it has ended.
fn voluntary_switches(id: &AtomicU32) -> u64 {
    let path = format!("/proc/self/task/{}/status", id.load(Ordering::Acquire));
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn the_slack_is_as_before() {
    for policy in POLICIES {
        let mut sleeper = Sleeper::with(SleeperSettings::with_policy(policy));
        for slack in [12_345, 50_000, 1] {
            thread::set_timer_slack(slack).unwrap();
            assert!(sleeper.sleep_us(300).reached());
            assert_eq!(thread::timer_slack(), Some(slack), "{policy}");
        }
    }
}

/// Ten wake-ups without slack are earlier than ten with 5 ms of it, whatever else the machine does:
/// the best of them.
#[test]
fn the_kernel_wakes_without_slack() {
    thread::set_timer_slack(5_000_000).unwrap();
    let mut sleeper = Sleeper::with(SleeperSettings::with_policy(SleepPolicy::KernelOnly));
    let best = (0..50).map(|_| sleeper.sleep_us(200).miss_ns()).min();
    assert!(best.is_some_and(|ns| ns < 2_000_000), "{best:?}");
}

/// On a clock whose readers do not keep it, which would read files now and then.
#[test]
fn sleeping_allocates_nothing() {
    static CLOCK: Clock =
        Clock::with(ClockSettings { readers_refit: false, ..ClockSettings::DEFAULT });
    CLOCK.maintain();
    for policy in POLICIES {
        let mut sleeper =
            Sleeper::on(&CLOCK, KernelSleep::new(), SleeperSettings::with_policy(policy));
        let interrupter = sleeper.interrupter();
        let before = thread_counts();
        for length in [0, 1, 10, 50, 100, 300, 1_200] {
            assert!(sleeper.sleep_us(length).reached());
            assert!(sleeper.sleep_ticks(length).reached());
        }
        interrupter.interrupt();
        assert!(sleeper.sleep_us(1_000).interrupted && sleeper.clear());
        assert_eq!(thread_counts(), before, "{policy}");
    }
}

/// The least of the misses is that of a spin: tens of nanoseconds, where the kernel alone takes tens
/// of microseconds.
#[test]
fn the_best_of_many_is_precise() {
    let mut sleeper = Sleeper::new();
    let best = (0..300).map(|_| sleeper.sleep_us(300).miss_ns()).min();
    let most = 2_000 + 4 * cost_of_a_read();
    assert!(best.is_some_and(|ns| ns < most), "{best:?}, not below {most}");
    assert!(sleeper.margin_ns(1_000_000).is_some());
}

#[test]
fn real_time_threads_sleep_too() {
    let real_time = std::thread::spawn(|| {
        if sched::set(sched::Attributes::Fifo(10)).is_err() {
            return skip(Requirement::REAL_TIME, "SCHED_FIFO is refused here");
        }
        let mut sleeper = Sleeper::new();
        for _ in 0..50 {
            assert!(sleeper.sleep_us(500).reached());
        }
        assert!(sleeper.margin_ns(1_000_000).is_some());
        sched::set(sched::Attributes::Other(0)).unwrap();
        assert_eq!(sleeper.margin_ns(1_000_000), None);
    });
    real_time.join().unwrap();
}

#[test]
fn ticks_are_slept_out() {
    let clock = process::clock();
    let mut sleeper = Sleeper::new();
    for _ in 0..50 {
        let begun = clock.ticks();
        let slept = sleeper.sleep_ticks(700_000);
        let end = clock.ticks();
        assert!(begun.epoch != end.epoch || end.count - begun.count >= 700_000, "{slept:?}");
    }
}

/// Thesis section 5.3.1. What it finds depends on how the kernel counts; that it is not to be relied
/// on is said in any case.
#[test]
fn the_thesis_probe_ends_with_a_rate() {
    let probe = HzProbe::run(process::clock());
    assert!([100, 250, 300, 1_000].contains(&probe.hz), "{probe:?}");
    // Of 14.5 ms; the CPU clock also counts some of what a host takes.
    assert!(probe.counted_ns.iter().any(|ns| *ns < 60_000_000), "{probe:?}");
    assert!(probe.to_string().contains("unreliable") && !probe.policy().is_reliable());
}
