//! The worst spans, written when a signal comes or a span lost too much.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use hourglass_sys::{futex, signal};
use hourglass_witness::sites::Sites;

/// How long the thread sleeps at most before it looks whether it should end.
const ATTENTION_NS: u64 = 60_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpTarget {
    Stderr,
    /// The end of this file, which is made if it is not there.
    File(PathBuf),
}

impl DumpTarget {
    /// Writes the worst spans there.
    ///
    /// # Errors
    /// The file cannot be opened or written.
    pub fn dump(&self, sites: &Sites) -> io::Result<()> {
        // As one piece: others may write there, too.
        let mut text = Vec::new();
        sites.dump(&mut text)?;
        match self {
            DumpTarget::Stderr => io::stderr().lock().write_all(&text),
            DumpTarget::File(path) => {
                OpenOptions::new().create(true).append(true).open(path)?.write_all(&text)
            }
        }
    }
}

/// A thread that sleeps until a dump is asked for, and writes it. Dropped, it ends; a signal that comes later is
/// caught and does nothing.
#[derive(Debug)]
pub struct Dumper {
    sites: Sites,
    over: Arc<AtomicBool>,
    process: u32,
    thread: Option<JoinHandle<()>>,
}

impl Dumper {
    /// Starts the thread. It dumps when [`Sites::request_dump`] is called, when a span loses more than the settings
    /// allow, and when `signal` comes, if one is given. A dump that cannot be written is left out.
    ///
    /// # Errors
    /// The signal cannot be caught, or the machine refuses a thread.
    pub fn start(sites: &Sites, to: DumpTarget, signal: Option<i32>) -> io::Result<Dumper> {
        if let Some(number) = signal {
            signal::latch(number, sites.dump_request())?;
        }
        let over = Arc::new(AtomicBool::new(false));
        let (ended, own) = (Arc::clone(&over), sites.clone());
        let work = move || {
            loop {
                // A wake-up for another reason only costs one more check.
                let _ = futex::wait_for(own.dump_request(), 0, ATTENTION_NS);
                let asked = own.take_asked();
                if ended.load(Ordering::Acquire) {
                    break;
                }
                if asked {
                    // A failed dump has no caller to report to.
                    let _ = to.dump(&own);
                }
            }
        };
        let thread = thread::Builder::new().name("hourglass-dump".to_owned()).spawn(work)?;
        Ok(Dumper { sites: sites.clone(), over, process: process::id(), thread: Some(thread) })
    }
}

impl Drop for Dumper {
    fn drop(&mut self) {
        if self.process != process::id() {
            // A forked child has no such thread.
            return;
        }
        self.over.store(true, Ordering::Release);
        self.sites.request_dump();
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, it has ended.
            let _ = thread.join();
        }
    }
}
