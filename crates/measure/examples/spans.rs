//! Requests of two threads, recorded into a run folder: which were slow by their own code, and which because the
//! machine took their thread away. `cargo run --release -p hourglass-measure --example spans -- DIR`, and then
//! `hourglass show DIR`, `hourglass report DIR -o page.html`, `hourglass export DIR --perfetto spans.pftrace`.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use hourglass_measure::spans::{Site, SpanRecording, ThreadSites};

/// Some 50 to 200 us of work, and a wait now and then.
fn handle(here: &ThreadSites, [parse, store]: [Site; 2], number: u64) {
    here.run(parse, || {
        for turn in 0..20_000 + number % 5 * 10_000 {
            black_box(turn);
        }
    });
    if number.is_multiple_of(50) {
        here.run(store, || thread::sleep(Duration::from_micros(500)));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("give a folder that is to be made")?;
    let recording = SpanRecording::start(folder, SpanRecording::SETTINGS)?;
    let sites = recording.sites().clone();
    let request = sites.site("request");
    let inner = ["parse", "store"].map(|name| sites.site(name));
    thread::scope(|scope| {
        for worker in 0..2 {
            let work = || {
                let here = sites.current_thread().expect("the thread goes on");
                for number in 0..2_000 {
                    here.run(request, || handle(&here, inner, number));
                }
            };
            let name = format!("worker-{worker}");
            thread::Builder::new().name(name).spawn_scoped(scope, work).expect("a thread");
        }
    });
    sites.dump(std::io::stdout().lock())?;
    println!("kept in {}", recording.finish()?.path().display());
    Ok(())
}
