//! Requests under tokio that are slow for different reasons: one waits for another service, one blocks its worker,
//! one computes. Which of them did the scheduler take off the CPU?
//!
//! `cargo run --release -p hourglass-tracing --example tokio_request`

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hourglass_tracing::{Loss, WitnessLayer};
use tracing::instrument::{Instrument, WithSubscriber};
use tracing::{Dispatch, Span, info_span};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;

const WORKERS: usize = 2;
const REQUESTS: usize = 20;
const LONG: Duration = Duration::from_millis(5);

/// How a request spends its time.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Awaits,
    Blocks,
    Computes,
}

const KINDS: [Kind; 3] = [Kind::Awaits, Kind::Blocks, Kind::Computes];

impl Kind {
    /// A span has a name of its own for each kind.
    fn span(self) -> Span {
        match self {
            Kind::Awaits => info_span!("awaits"),
            Kind::Blocks => info_span!("blocks"),
            Kind::Computes => info_span!("computes"),
        }
    }

    async fn handle(self) {
        match self {
            // Other requests use the worker meanwhile.
            Kind::Awaits => tokio::time::sleep(LONG).await,
            // No other request can use it: a file, a lock of std, a library that knows nothing of tokio.
            Kind::Blocks => thread::sleep(LONG),
            Kind::Computes => {
                let until = Instant::now() + LONG / 5;
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

/// What the requests of each kind lost.
type Losses = BTreeMap<&'static str, Vec<Loss>>;

fn requests() -> Result<Losses, Box<dyn std::error::Error>> {
    let losses = Arc::new(Mutex::new(Losses::new()));
    let kept = Arc::clone(&losses);
    let layer = WitnessLayer::new()?.without_events().on_loss(move |span, loss| {
        if let Ok(mut losses) = kept.lock() {
            losses.entry(span.name()).or_default().push(*loss);
        }
    });
    let dispatch = Dispatch::new(Registry::default().with(layer));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(WORKERS).enable_time().build()?.block_on(async {
        let spawn = |kind: Kind| {
            let span = tracing::dispatcher::with_default(&dispatch, || kind.span());
            let request = kind.handle().instrument(span);
            tokio::spawn(request.with_subscriber(dispatch.clone()))
        };
        let all: Vec<_> = (0..REQUESTS).flat_map(|_| KINDS.map(spawn)).collect();
        for request in all {
            request.await?;
        }
        Ok::<(), tokio::task::JoinError>(())
    })?;
    let losses = losses.lock().map(|losses| losses.clone());
    Ok(losses.unwrap_or_default())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let losses = requests()?;
    for kind in ["awaits", "blocks", "computes"] {
        let of_it = losses.get(kind).map_or(&[][..], Vec::as_slice);
        print!("{kind:<9} {:>2} of {REQUESTS} disturbed", of_it.len());
        match of_it.iter().max_by_key(|loss| loss.off_cpu.latest()) {
            Some(loss) => println!("; longest {}, {}", loss.off_cpu.latest(), loss.cause),
            None => println!(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each request that blocks is found, and no request is charged for what it awaits.
    #[test]
    fn the_requests_that_block_are_found() {
        let losses = requests().unwrap();
        let blocks = &losses["blocks"];
        assert_eq!(blocks.len(), REQUESTS, "{losses:?}");
        for loss in blocks {
            let most = loss.off_cpu.latest().nanos().unsigned_abs();
            assert!(u128::from(most) >= LONG.as_nanos() && loss.switches.voluntary > 0, "{loss:?}");
        }
        // Polls of these take microseconds; a busy host may disturb any, but not each of them for as long.
        let awaits = losses.get("awaits").map_or(&[][..], Vec::as_slice);
        let long = awaits.iter().filter(|loss| {
            u128::from(loss.off_cpu.latest().nanos().unsigned_abs()) >= LONG.as_nanos()
        });
        assert!(long.count() < REQUESTS, "{losses:?}");
    }
}
