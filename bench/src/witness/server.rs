//! A server under load, whose requests are witnessed or not: what that costs of its throughput.
//!
//! One worker of tokio's on a CPU of its own answers requests over TCP; on another CPU a client keeps many connections
//! busy, so that the worker rarely waits. A request is the hardest that there is: read, compute, write, all of it
//! within `follow`, so that a span goes on over two polls or more.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hourglass_sys::thread::{affinity, set_affinity};
use hourglass_witness::follow;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

use crate::document::Row;
use crate::paired::Rounds;

/// The goal: throughput within one part in a hundred.
const GOAL: f64 = 1.01;
const CONNECTIONS: usize = 64;
const LENGTH: Duration = Duration::from_millis(300);
const BYTES: usize = 64;
/// What a request computes: nothing, and as long as a small document takes to be parsed and made.
const WORK: [(&str, Duration); 2] =
    [("server_echo", Duration::ZERO), ("server_20us", Duration::from_micros(20))];

pub(super) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let cpus = affinity()?;
    let (client, server) = (*cpus.first().context("no CPU")?, *cpus.last().context("no CPU")?);
    if client == server {
        eprintln!("witness: the server and its client share a CPU");
    }
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_io().on_thread_start(move || {
        // Only the figures are worse where it fails.
        let _ = set_affinity([server]);
    });
    let runtime = runtime.build()?;
    let mut rows = Vec::new();
    for (case, work) in WORK {
        let lost = Arc::new(AtomicU64::new(0));
        let witnessed = listen(&runtime, work, Some(&lost))?;
        let plain = listen(&runtime, work, None)?;
        let mut found = Rounds::of(vec!["hourglass", "without"]);
        for _ in 0..rounds {
            found.try_round(|subject| {
                let address = if subject == 0 { witnessed } else { plain };
                std::thread::spawn(move || load(address, client))
                    .join()
                    .unwrap_or_else(|_| anyhow::bail!("the client panicked"))
            })?;
        }
        let mut of_it = found.rows(case, "ns");
        of_it.iter_mut().for_each(|row| row.set_goal("without", GOAL));
        rows.extend(of_it);
        rows.push(Row::alone(
            &format!("{case}_disturbed"),
            "hourglass",
            lost.load(Ordering::Relaxed) as f64,
            "requests",
        ));
    }
    Ok(rows)
}

fn listen(runtime: &Runtime, work: Duration, lost: Option<&Arc<AtomicU64>>) -> Result<SocketAddr> {
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let address = listener.local_addr()?;
    let lost = lost.map(Arc::clone);
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, work, lost.clone()));
        }
    });
    Ok(address)
}

async fn serve(mut stream: TcpStream, work: Duration, lost: Option<Arc<AtomicU64>>) {
    let _ = stream.set_nodelay(true);
    loop {
        let answered = match &lost {
            None => answer(&mut stream, work).await,
            Some(lost) => {
                let (answered, loss) = follow(answer(&mut stream, work)).await;
                if loss.is_some() {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
                answered
            }
        };
        // The client has gone.
        if answered.is_err() {
            return;
        }
    }
}

async fn answer(stream: &mut TcpStream, work: Duration) -> std::io::Result<()> {
    let mut request = [0; BYTES];
    stream.read_exact(&mut request).await?;
    let until = Instant::now() + work;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    stream.write_all(&request).await
}

/// Keeps all connections busy for a while; ns a request.
fn load(address: SocketAddr, cpu: u32) -> Result<f64> {
    set_affinity([cpu])?;
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (requests, length) = runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let begun = Instant::now();
        let tasks: Vec<_> =
            streams.into_iter().map(|stream| tokio::spawn(ask(stream, begun))).collect();
        let mut requests = 0;
        for task in tasks {
            requests += task.await??;
        }
        anyhow::Ok((requests, begun.elapsed()))
    })?;
    ensure!(requests > 0, "the server answered nothing");
    Ok(length.as_nanos() as f64 / requests as f64)
}

async fn ask(mut stream: TcpStream, begun: Instant) -> Result<u64> {
    let mut bytes = [7; BYTES];
    let mut requests = 0;
    while begun.elapsed() < LENGTH {
        stream.write_all(&bytes).await?;
        stream.read_exact(&mut bytes).await?;
        requests += 1;
    }
    Ok(requests)
}
