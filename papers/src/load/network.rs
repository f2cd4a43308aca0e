//! A TCP stream at full speed, received on the CPU that is measured (section 5.4).
//!
//! The sender runs on other CPUs, the receiver on the measured one. Between them lies a pair of virtual
//! Ethernet devices, each in a network namespace of its own, and the kernel is set to process what comes in
//! on the measured CPU: it does so in an interrupt from the sender's CPU, as for a network card. Where
//! namespaces are refused, the stream goes over the loopback device instead: there the kernel receives on the
//! sender's CPU, so that only the receiver's system calls are left of the load.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread::{affinity, id, set_affinity};

use super::veth_link;

/// Bytes of one read and one write, as netperf uses by default with these buffers.
const PIECE: usize = 64 << 10;

/// A blocked read or write looks so often at whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// Setting up is given up after this.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// Over a pair of virtual Ethernet devices, with receive processing on the measured CPU.
    Veth,
    /// Over the loopback device, since namespaces are not to be had; and why.
    Loopback(String),
}

/// A stream that goes on until this is dropped; then threads, namespaces and devices are gone.
#[derive(Debug)]
pub struct NetworkLoad {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
    path: Path,
}

#[derive(Clone)]
struct ConnectionShared {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    cpu: u32,
    nice: i8,
}

impl NetworkLoad {
    /// A stream that is received on `cpu`. Returns once data flow.
    ///
    /// # Errors
    /// One line that says why there is no stream, not even over loopback.
    pub fn onto(cpu: u32) -> Result<NetworkLoad, String> {
        match NetworkLoad::start_load(Path::Veth, cpu) {
            Ok(load) => Ok(load),
            Err(why) => NetworkLoad::start_load(Path::Loopback(why), cpu),
        }
    }

    fn start_load(path: Path, cpu: u32) -> Result<NetworkLoad, String> {
        let ends = ConnectionShared {
            stop: Arc::default(),
            received: Arc::default(),
            cpu,
            nice: i8::try_from(sched::nice()).unwrap_or(0),
        };
        let apart = path == Path::Veth;
        let (to_receiver, from_sender) = channel();
        let (to_sender, from_receiver) = channel();
        let (errors, failures) = channel();
        let (stop, received) = (Arc::clone(&ends.stop), Arc::clone(&ends.received));
        let mut load = NetworkLoad { stop, received, threads: Vec::new(), path };
        let (own, sender) = (ends.clone(), errors.clone());
        load.start("load-in", errors, move || receive(&own, apart, &from_sender, &to_sender))?;
        load.start("load-out", sender, move || send(&ends, apart, &to_receiver, &from_receiver))?;
        load.await_data(&failures)?;
        Ok(load)
    }

    fn start(
        &mut self,
        name: &str,
        errors: Sender<String>,
        end: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), String> {
        let life = move || {
            if let Err(why) = end() {
                // Once data flow, no error is received any more: the load has ended early, which the throughput shows.
                let _ = errors.send(why);
            }
        };
        let builder = thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(life).map_err(|error| format!("no thread: {error}"))?;
        self.threads.push(thread);
        Ok(())
    }

    fn await_data(&self, failures: &Receiver<String>) -> Result<(), String> {
        let begin = Instant::now();
        while self.received_bytes() == 0 {
            if let Ok(why) = failures.recv_timeout(Duration::from_millis(2)) {
                return Err(why);
            }
            if begin.elapsed() > PATIENCE {
                return Err("no data came".to_owned());
            }
        }
        Ok(())
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }
}

impl Drop for NetworkLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // They do not panic.
            let _ = thread.join();
        }
    }
}

impl ConnectionShared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// The time-sharing class, whatever the starter has, and these CPUs.
    fn settle(&self, cpus: &[u32]) -> Result<(), String> {
        let placed = sched::set(Attributes::Other(self.nice)).and_then(|()| {
            if cpus.is_empty() { Ok(()) } else { set_affinity(cpus.iter().copied()) }
        });
        placed.map_err(|error| format!("the load cannot run on CPU {}: {error}", self.cpu))
    }
}

fn receive(
    ends: &ConnectionShared,
    apart: bool,
    from_sender: &Receiver<u32>,
    to_sender: &Sender<SocketAddr>,
) -> Result<(), String> {
    ends.settle(&[ends.cpu])?;
    let sender = from_sender.recv_timeout(PATIENCE).map_err(|_| "no sender".to_owned())?;
    let address = if apart {
        veth_link::enter()?;
        veth_link::lay(sender, ends.cpu)?;
        veth_link::RECEIVER
    } else {
        Ipv4Addr::LOCALHOST
    };
    let failed = |error: std::io::Error| format!("no stream: {error}");
    let listener = TcpListener::bind((address, 0)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let _ = to_sender.send(listener.local_addr().map_err(failed)?);
    let begin = Instant::now();
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(failed(error)),
            Err(_) if ends.stopped() || begin.elapsed() > PATIENCE => {
                return Err("the sender did not call".to_owned());
            }
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    };
    stream.set_nonblocking(false).map_err(failed)?;
    stream.set_read_timeout(Some(LOOK)).map_err(failed)?;
    let mut piece = vec![0; PIECE];
    while !ends.stopped() {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                ends.received.fetch_add(count as u64, Ordering::AcqRel);
            }
            Err(error) if is_pause(&error) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

fn send(
    ends: &ConnectionShared,
    apart: bool,
    to_receiver: &Sender<u32>,
    from_receiver: &Receiver<SocketAddr>,
) -> Result<(), String> {
    let mut elsewhere = affinity().unwrap_or_default();
    elsewhere.retain(|cpu| *cpu != ends.cpu);
    ends.settle(&elsewhere)?;
    if apart {
        veth_link::enter()?;
    }
    let _ = to_receiver.send(id());
    let Ok(address) = from_receiver.recv_timeout(PATIENCE) else {
        // The receiver tells why.
        return Ok(());
    };
    if apart {
        veth_link::take_end()?;
    }
    let failed = |error: std::io::Error| format!("no stream: {error}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_write_timeout(Some(LOOK)).map_err(failed)?;
    let piece = vec![0x55; PIECE];
    while !ends.stopped() {
        match stream.write(&piece) {
            Ok(_) => {}
            Err(error) if is_pause(&error) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn megabytes_in(load: &NetworkLoad) -> u64 {
        let before = load.received_bytes();
        thread::sleep(Duration::from_millis(200));
        (load.received_bytes() - before) >> 20
    }

    #[test]
    fn data_flow_and_nothing_is_left() {
        let devices = || std::fs::read_dir("/sys/class/net").unwrap().count();
        let before = devices();
        let cpu = affinity().unwrap().last().copied().unwrap();
        for _ in 0..2 {
            let load = NetworkLoad::onto(cpu).unwrap();
            assert!(megabytes_in(&load) >= 1, "{:?}", load.path());
            assert_eq!(devices(), before, "{:?}", load.path());
        }
        assert_eq!(devices(), before);
        let refused = Path::Loopback("for a test".to_owned());
        let load = NetworkLoad::start_load(refused.clone(), cpu).unwrap();
        assert!(megabytes_in(&load) >= 1 && *load.path() == refused);
    }

    #[test]
    fn a_cpu_that_is_not_there() {
        assert!(NetworkLoad::onto(1_000).unwrap_err().contains("CPU 1000"));
    }
}
