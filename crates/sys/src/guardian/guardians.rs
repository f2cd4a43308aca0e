//! The processes of a guardian, and the thread of the maker that replaces one that was killed.
//!
//! There are two: one does the work, the other takes over as soon as it ends, without the maker. The thread sleeps until
//! either ends, and starts another one then, which shares the same page.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::GuardianUnavailable;
use super::process::{
    END, GuardianProcess, GuardianSetup, LOOK, PRIORITY, put_all_back, wait_for, wait_on, wake_all,
};
use super::record::Record;
use super::table::Table;
use crate::eventfd::EventFd;
use crate::pidfd::PidFd;
use crate::sched::{self, Attributes};
use crate::{caller_state, signal, thread};

/// The one that does the work, and the one that waits for its end.
const POSTS: usize = 2;

/// As `ps` shows the thread; at most 15 bytes.
const NAME: &str = "hourglass-watch";

/// Its stack: it calls little.
const STACK: usize = 128 << 10;

/// Pause before another attempt to start one, where the kernel refused.
const AGAIN_MS: libc::c_int = 50;

/// State shared by maker, thread and guardians.
#[derive(Debug)]
pub(super) struct GuardianPair {
    pub(super) table: Table,
    pub(super) record: Option<Record>,
    maker: PidFd,
    /// Only ever changed by the thread, while it runs. Held for single steps, and during no fork.
    posts: Mutex<[Option<GuardianProcess>; POSTS]>,
    replaced: AtomicU64,
    end: EventFd,
}

impl GuardianPair {
    /// Starts both, and the thread. `record` has what the page has.
    ///
    /// # Errors
    /// No descriptors, memory or processes left.
    pub(super) fn start(record: Option<Record>) -> io::Result<(Arc<GuardianPair>, JoinHandle<()>)> {
        let guardians = Arc::new(GuardianPair {
            table: Table::new()?,
            record,
            maker: PidFd::open(std::process::id())?,
            posts: Mutex::default(),
            replaced: AtomicU64::new(0),
            end: EventFd::new()?,
        });
        let filled = guardians.fill();
        if !guardians.is_alive() {
            filled?;
        }
        guardians.record.iter().for_each(Record::appear);
        let own = Arc::clone(&guardians);
        let thread = std::thread::Builder::new().name(NAME.to_owned()).stack_size(STACK);
        // It must not take signals that are meant for the program.
        let thread = signal::with_all_blocked(|| thread.spawn(move || own.watch()));
        match thread {
            Ok(thread) => Ok((guardians, thread)),
            Err(error) => {
                guardians.dismiss();
                Err(error)
            }
        }
    }

    fn posts(&self) -> MutexGuard<'_, [Option<GuardianProcess>; POSTS]> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The descriptors that tell their ends.
    fn files(&self) -> [RawFd; POSTS] {
        self.posts()
            .each_ref()
            .map(|post| post.as_ref().map_or(-1, |post| post.file.as_fd().as_raw_fd()))
    }

    /// Their processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.posts().iter().flatten().map(|post| post.pid.unsigned_abs()).collect()
    }

    /// Whether one of them lives now. Costs a system call.
    pub(super) fn is_alive(&self) -> bool {
        let posts = self.posts();
        let files =
            posts.each_ref().map(|post| post.as_ref().map(|post| post.file.as_fd().as_raw_fd()));
        let ended = wait_on(files.map(|file| file.unwrap_or(-1)), 0);
        files.iter().zip(ended).any(|(file, ended)| file.is_some() && !ended)
    }

    /// How many were started for one that had ended.
    pub(super) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Acquire)
    }

    /// Asks them to look at the promises.
    ///
    /// # Errors
    /// [`GuardianUnavailable`]: none hears it.
    pub(super) fn check_promises(&self) -> io::Result<()> {
        let posts = self.posts();
        let heard = posts.iter().flatten().filter(|post| post.line.say(LOOK).is_ok()).count();
        if heard > 0 { Ok(()) } else { Err(GuardianUnavailable.into()) }
    }

    pub(super) fn stop(&self) {
        self.end.post();
    }

    /// Ends them, and waits until what is left has been put back. The thread must have ended.
    pub(super) fn dismiss(&self) {
        let posts = std::mem::take(&mut *self.posts());
        for post in posts.iter().flatten() {
            // A child of this process that was forked without `exec` may have the line as well.
            let _ = post.line.say(END);
            // One that another program has stopped would not end.
            let _ = post.file.resume();
        }
        for GuardianProcess { pid, line, .. } in posts.into_iter().flatten() {
            drop(line);
            wait_for(pid);
        }
        // Nothing is left, unless they were killed.
        put_all_back(&self.table, self.record.as_ref());
    }

    fn watch(&self) {
        caller_state::never_cancelled();
        // Refused where real-time policies are; then it may have to wait for its turn.
        let _ =
            sched::set(Attributes::Fifo(PRIORITY)).or_else(|_| sched::set(Attributes::Other(0)));
        let _ = thread::set_affinity(0..1024);
        let mut wait_ms = if self.is_full() { -1 } else { AGAIN_MS };
        loop {
            let [one, other] = self.files();
            if wait_on([self.end.as_fd().as_raw_fd(), one, other], wait_ms)[0] {
                return;
            }
            self.remove_dead();
            // Tried again where it is refused.
            let _ = self.fill();
            wait_ms = if self.is_full() { -1 } else { AGAIN_MS };
            if !self.is_alive() {
                // Without a guardian they would stay stopped if this process were killed now.
                wake_all(&self.table);
                self.table.count_woken();
            }
        }
    }

    fn is_full(&self) -> bool {
        self.posts().iter().all(Option::is_some)
    }

    fn remove_dead(&self) {
        for (place, ended) in wait_on(self.files(), 0).into_iter().enumerate() {
            if ended && let Some(post) = self.posts()[place].take() {
                wait_for(post.pid);
                self.replaced.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Starts those that are missing.
    fn fill(&self) -> io::Result<()> {
        for place in 0..POSTS {
            if self.posts()[place].is_some() {
                continue;
            }
            let partner = self
                .posts()
                .iter()
                .flatten()
                .next()
                .map(|post| post.file.try_clone())
                .transpose()?;
            let (table, record) = (&self.table, self.record.as_ref());
            let duty =
                GuardianSetup { table, record, maker: &self.maker, partner: partner.as_ref() };
            let post = duty.begin()?;
            self.posts()[place] = Some(post);
        }
        Ok(())
    }
}
