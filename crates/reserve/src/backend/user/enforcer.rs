//! The thread that enforces one reservation: it sleeps, looks, obeys the decisions, and tells.
//!
//! Owns: its policy and CPU, the times at which it wakes, putting everything back at the end. It runs
//! above all that it raises. Where the reserved work has one CPU, it runs there: when it looks, the
//! work does not run, and its processor time is up to date. Elsewhere a change of priority brings it
//! up to date (the kernel does so otherwise at the tick only).
//! Must not: decide; `Budget` does.

mod run;

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::futex::{self, WakeReason};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;

use self::run::Run;
use super::budget::BudgetTerms;
use super::guardian_lost;
use super::member_set::{MemberSet, Moved, Queue};
use crate::guardian::HeartbeatPromise;
use crate::supply::{Spent, Supply};

/// Above every raised thread, below the guardian.
pub(super) const PRIORITY: u8 = 95;

/// As `ps` shows it; at most 15 bytes.
pub(in crate::backend) const NAME: &str = "hourglass-keep";

/// Before anything is raised, it must have woken so often, and all within the time.
const PROOFS: u32 = 3;
const PROOF_SLEEP_NS: u64 = 300_000;
const PROVEN_WITHIN: Duration = Duration::from_secs(2);

/// Members of a group that stays raised inherit the priority. A member that sets a policy itself is raised again after
/// this time.
const RAISED_AGAIN_NS: u64 = 100_000_000;

/// Number of periods that a look may be late, within limits, until the guardian lowers the work. It is longer than
/// occasional delays of a thread, and shorter than a user waits for a thread that is not held to its budget.
const ABSENT_PERIODS: u64 = 4;
const ABSENT_NS: (u64, u64) = (100_000_000, 2_000_000_000);

fn patience(terms: &BudgetTerms) -> u64 {
    terms.period_ns.saturating_mul(ABSENT_PERIODS).clamp(ABSENT_NS.0, ABSENT_NS.1)
}

/// The report of the thread about its work.
#[derive(Clone, Debug, Default)]
pub struct EnforcerReport {
    /// What was delivered.
    pub supply: Supply,
    /// When the first period began, ns of `CLOCK_MONOTONIC`.
    pub first_ns: u64,
    /// Periods whose processor time could not be separated, since the look at their end came too late.
    pub left_out: u64,
    /// Looks so far.
    pub looks: u64,
    /// What it took; `keeper_ns` is the processor time of the thread itself.
    pub spent: Spent,
    /// How late the latest look was, ns.
    pub latest_ns: u64,
    /// The first order that the kernel refused.
    pub fault: Option<String>,
    /// How many it refused; each was given again until it was taken.
    pub refused: u64,
    /// How often the thread was away until the guardian lowered the work.
    pub absent: u64,
    /// The last period that was missed was so since the thread itself had the CPU for half of the slack or more.
    pub busy: bool,
    /// The most threads at a time that belong to another user, and are not raised ([`crate::ownership`]).
    pub foreign: u64,
    /// Members that left the CPUs of the reservation.
    pub moved: Moved,
}

/// Ends the period that lasts for the reserved work, which is not dispatched as such until the next one: suspended if
/// the reservation is hard, at timesharing priority if it is soft. What a yield is in the papers' model, for threads
/// of this process, since a `sched_yield` cannot be seen from outside the kernel.
#[derive(Clone, Debug)]
pub struct EndPeriod(Arc<EnforcerShared>);

impl EndPeriod {
    /// Ends it. Costs a system call; the caller may go on for the tens of microseconds that the keeper takes to wake.
    /// When the reservation has ended it does nothing.
    pub fn end(&self) {
        let EnforcerShared { bell, .. } = &*self.0;
        if bell.compare_exchange(0, YIELDED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            futex::wake(bell, u32::MAX);
        }
    }
}

/// Bits of the bell: the end is requested; the work is done with the period.
const ENDED: u32 = 1;
const YIELDED: u32 = 2;

#[derive(Debug, Default)]
struct EnforcerShared {
    /// 0, [`ENDED`] or [`YIELDED`].
    bell: AtomicU32,
    report: Mutex<EnforcerReport>,
    /// Terms from the next period on.
    change: Mutex<Option<BudgetTerms>>,
    /// What other reservations may take of the time until a deadline, ns, and how many share a CPU with this one.
    planned_ns: AtomicU64,
    sharers: AtomicU64,
}

struct EnforcerTask {
    team: MemberSet,
    terms: BudgetTerms,
    pledge: HeartbeatPromise,
    several: bool,
    begun: SyncSender<io::Result<()>>,
}

/// The thread. Dropping it ends the reservation.
#[derive(Debug)]
pub(super) struct BudgetEnforcer {
    shared: Arc<EnforcerShared>,
    work: Option<SyncSender<EnforcerTask>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl BudgetEnforcer {
    /// Starts the thread on `cpus` and waits until it has proven that it runs there.
    ///
    /// # Errors
    /// EPERM where FIFO is refused; `TimedOut` if others keep it from its CPUs.
    pub(super) fn start(cpus: &[u32]) -> io::Result<BudgetEnforcer> {
        let shared = Arc::new(EnforcerShared::default());
        let (work, works) = sync_channel(1);
        let (proven, proof) = sync_channel(1);
        let (own, cpus) = (Arc::clone(&shared), cpus.to_vec());
        let life = move || live(&own, &cpus, &proven, &works);
        let thread = std::thread::Builder::new().name(NAME.to_owned()).spawn(life)?;
        let enforcer = BudgetEnforcer { shared, work: Some(work), thread: Some(thread) };
        match proof.recv_timeout(PROVEN_WITHIN) {
            Ok(proven) => proven.map(|()| enforcer),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the enforcer has ended")),
            Err(RecvTimeoutError::Timeout) => {
                // The thread ends when it gets its CPU; that wait has no bound.
                enforcer.abandon();
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Raises the team, and keeps it to its terms from now on. `several`: it may run on another CPU
    /// than this thread.
    ///
    /// # Errors
    /// What the kernel answers to the first raising; then everything has been put back.
    pub(super) fn enforce(
        &mut self,
        team: MemberSet,
        terms: BudgetTerms,
        pledge: HeartbeatPromise,
        several: bool,
    ) -> io::Result<()> {
        let ended = || io::Error::other("the enforcer has ended");
        let (begun, answer) = sync_channel(1);
        let work = self.work.take().ok_or_else(ended)?;
        work.send(EnforcerTask { team, terms, pledge, several, begun }).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())?
    }

    pub(super) fn ender(&self) -> EndPeriod {
        EndPeriod(Arc::clone(&self.shared))
    }

    pub(super) fn change(&self, terms: BudgetTerms) {
        *self.shared.change.lock().unwrap_or_else(PoisonError::into_inner) = Some(terms);
    }

    /// What other reservations may take of the time until each deadline from now on, ns, and how many share a CPU with this
    /// one: their enforcers take time, too.
    pub(super) fn plan(&self, planned_ns: u64, sharers: u64) {
        self.shared.planned_ns.store(planned_ns, Ordering::Relaxed);
        self.shared.sharers.store(sharers, Ordering::Relaxed);
    }

    pub(super) fn report(&self) -> EnforcerReport {
        self.shared.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the reservation and waits until everything has been put back.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.ring();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the enforcer panicked")))
    }

    fn ring(&self) {
        self.shared.bell.store(ENDED, Ordering::Release);
        futex::wake(&self.shared.bell, u32::MAX);
    }

    fn abandon(mut self) {
        self.ring();
        self.thread = None;
    }
}

impl Drop for BudgetEnforcer {
    fn drop(&mut self) {
        self.work = None;
        // `end` returns the error; `drop` has no caller that could receive it.
        let _ = self.end();
    }
}

fn live(
    shared: &EnforcerShared,
    cpus: &[u32],
    proven: &SyncSender<io::Result<()>>,
    works: &Receiver<EnforcerTask>,
) -> io::Result<()> {
    let armed = arm(shared, cpus);
    let refused = armed.is_err();
    if proven.send(armed).is_err() || refused {
        return Ok(());
    }
    match works.recv() {
        Ok(work) => keep(shared, work),
        Err(_) => Ok(()),
    }
}

/// Policy first: a timesharing thread that moves to a CPU full of real-time work starves there.
fn arm(shared: &EnforcerShared, cpus: &[u32]) -> io::Result<()> {
    sched::set(Attributes::Fifo(PRIORITY))?;
    thread::set_affinity(cpus.iter().copied())?;
    for _ in 0..PROOFS {
        sleep_until(shared, now_ns(ClockId::Monotonic).saturating_add(PROOF_SLEEP_NS));
    }
    Ok(())
}

impl EnforcerShared {
    /// Whether the work is done with the period, which is then no longer said; false if the end is asked for.
    fn yielded(&self) -> bool {
        self.bell.compare_exchange(YIELDED, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// False if the bell rings.
fn sleep_until(shared: &EnforcerShared, deadline_ns: u64) -> bool {
    loop {
        match futex::wait_until(&shared.bell, 0, deadline_ns) {
            Ok(WakeReason::Timeout) => return true,
            Ok(WakeReason::Changed) => return false,
            // A signal, or a wake-up that may be for the bell; the word tells.
            Ok(WakeReason::Woken | WakeReason::Signal) => {}
            // Never for a word of this process; better to end than to poll.
            Err(_) => return false,
        }
    }
}

fn keep(shared: &EnforcerShared, work: EnforcerTask) -> io::Result<()> {
    let EnforcerTask { mut team, terms, pledge, several, begun } = work;
    let patience_ns = patience(&terms);
    let after = |ns: u64| now_ns(ClockId::Monotonic).saturating_add(ns);
    // Before a member is raised: later acts of guardians are seen, and they are promised a look.
    let woken = team.woken();
    let raised = guardian_lost::begin(
        || sleep_until(shared, after(guardian_lost::PAUSE_NS)),
        || {
            pledge.until(after(patience_ns))?;
            team.raise(false, Queue::default())
        },
    );
    if let Err(error) = raised {
        let _ = team.put_back();
        let _ = begun.send(Err(error));
        return Ok(());
    }
    let mut run = Run::begin(team, terms, pledge, several, woken);
    run.tell(shared);
    let _ = begun.send(Ok(()));
    let mut next = Some(run.look(shared));
    while let Some(due) = next.take() {
        if sleep_until(shared, due) {
            run.woke(due);
        } else if !shared.yielded() {
            break;
        } else {
            run.budget.end_period();
        }
        next = (!run.has_ended()).then(|| run.look(shared));
    }
    run.end(shared)
}
