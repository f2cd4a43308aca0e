//! A clock in a program: cheap time stamps, a bound where it matters, and what happens when the
//! counter cannot be trusted any more.
//!
//! `cargo run --release -p hourglass-clock --example trading`

use std::sync::Arc;
use std::time::Duration;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::{MaintenanceThread, SourceId};
use hourglass_time::{Realtime, Tai};

fn main() -> std::io::Result<()> {
    // Nothing ran before this line, and nothing blocks here: the first read is usable at once.
    let clock = Arc::new(Clock::new());
    println!("first read {} ns", clock.now());

    // A thread calibrates from now on, so that no read ever has to.
    let helper = MaintenanceThread::start(Arc::clone(&clock))?;
    std::thread::sleep(Duration::from_millis(1_500));

    let order_sent = clock.now();
    let answered = clock.now_bounded();
    println!(
        "answered after {} ns, known to {} ns",
        answered.middle().saturating_sub(order_sent),
        answered.error_ns()
    );
    println!("wall clock {}, TAI {}", clock.read::<Realtime>(), clock.read::<Tai>());

    // Distrust, here by hand: time goes on without a step, and earlier times stay valid.
    let before = clock.now_ordered();
    if let Err(error) = clock.set_source(SourceId::OS) {
        eprintln!("{error}");
    }
    assert!(clock.now_ordered() >= before);
    println!("{}: {}", clock.source(), clock.trust().reason);
    for event in clock.events() {
        println!("  at {} ns: {}", event.at_ns, event.what);
    }
    drop(helper);
    Ok(())
}
