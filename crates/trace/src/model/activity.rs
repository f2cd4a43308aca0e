//! What each followed thread did between two waits, from the kernel's events or from intervals.

use std::collections::BTreeMap;

use super::others::{LastSeen, OtherThreads, ReadyMoment};
use super::places::WaitPlace;
use super::reserved::{BudgetAccount, FollowedThread, THROTTLED};
use super::urgency::Levels;
use crate::{Interval, IntervalStart, KernelEvent, KernelEventKind as Kind};

/// Flags of a moment in an interrupt or a softirq (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`).
const IN_INTERRUPT: u64 = 0x8 | 0x10;
/// The idle thread of a CPU.
const IDLE: u64 = 0;
/// `TASK_STOPPED` and `TASK_TRACED` of `sched_switch`: a signal or a debugger holds the thread.
const STOPPED: u64 = 0x4 | 0x8;
/// `EXIT_DEAD` and `EXIT_ZOMBIE` of `sched_switch`: the thread has ended.
const ENDED: u64 = 0x10 | 0x20;
/// `TASK_UNINTERRUPTIBLE` of `sched_switch`: a wait for a device or for a lock of the kernel, not for work.
pub(super) const UNINTERRUPTIBLE: u64 = 0x2;
/// A signal that stops or continues a thread takes it this long at most; who runs longer has work to do.
const SIGNAL_NS: u64 = 50_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    #[default]
    Unknown,
    /// A timer or a device.
    Interrupt,
    Thread(u32),
}

impl Waker {
    fn thread(self) -> Option<u32> {
        match self {
            Waker::Thread(tid) => Some(tid),
            _ => None,
        }
    }
}

/// When a waker had been woken itself, and what it had run since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakerJob {
    pub at_ns: i64,
    /// When the first of those that woke each other up to it had been woken, of a lock that goes from one to the next its holder;
    /// `None` where that was not seen.
    pub begun_ns: Option<i64>,
    /// `None` where it was not seen to take the CPU.
    pub ran_ns: Option<u64>,
    /// It may be at work for the thread that it wakes, which wakes it too, or wakes one that does.
    pub may_answer: bool,
}

/// The time from a waking to the next wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// The waking, ns from the run's start.
    pub at_ns: i64,
    pub waker: Waker,
    /// What a waker that is followed was doing.
    pub by: Option<WakerJob>,
    /// The wait before it: since when, and the kernel's state in it.
    pub slept: Option<(i64, u64)>,
    /// In which system call; `None` where that was not recorded.
    pub place: Option<WaitPlace>,
    pub run_ns: u64,
    /// Time at most that its CPU was idle, or had threads which are not followed, while it was ready, or a more urgent one whose
    /// work was not over since.
    pub others_ns: u64,
    pub end_ns: i64,
    /// The thread still ran when it was woken: it had been released then, or before.
    pub is_late: bool,
    /// Whether it was seen from the waking to the wait, with each switch; else its time may be too long.
    pub is_whole: bool,
    /// Whether the wait that ends it was seen, whatever switches before that were not.
    pub is_ended: bool,
    /// Between two of different stretches events are missing.
    pub stretch: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub bursts: Vec<Burst>,
    /// Time on a CPU of which the waking was not seen: the longest without a wait.
    pub unwoken_ns: u64,
    /// How often such time was seen.
    pub unwoken: u64,
    pub holes: u32,
    pub has_ended: bool,
    /// Time for which a signal or a debugger held it, and how many releases behind that came while it still ran.
    pub stopped_ns: u64,
    pub late_by_stops: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Ready(i64),
    Running(i64),
    /// It left the CPU, and the switch is missing: to wait, or as the CPU was taken from it.
    Away,
    Waiting,
    Stopped(i64),
}

/// A waking of a thread that still ran, and what it had run by then.
#[derive(Clone, Copy, Debug)]
struct EarlyWaking {
    at_ns: i64,
    waker: Waker,
    place: Option<WaitPlace>,
    run_ns: u64,
    /// When the thread then left the CPU to wait, and the kernel's state.
    left: Option<(i64, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Follower {
    state: State,
    ready: Option<ReadyMoment>,
    open: Option<Burst>,
    /// Whether a switch to the thread is missing in what is open.
    is_patched: bool,
    /// It has not waited for an activation since it was stopped.
    is_behind_stop: bool,
    unwoken_ns: u64,
    slept: Option<(i64, u64)>,
    /// The last system call that it began, until it has waited in it.
    call: Option<WaitPlace>,
    /// That of the wait it is in, or was in last.
    place: Option<WaitPlace>,
    early: Option<EarlyWaking>,
    account: Option<BudgetAccount>,
    done: Activity,
}

/// The activity of threads, from events in the order of time.
pub fn of_events<E>(
    followed: impl IntoIterator<Item = impl Into<FollowedThread>>,
    events: impl IntoIterator<Item = Result<KernelEvent, E>>,
) -> Result<BTreeMap<u32, Activity>, E> {
    let followed: Vec<FollowedThread> = followed.into_iter().map(Into::into).collect();
    let mut levels = Levels::of(&followed);
    let mut threads: BTreeMap<u32, Follower> = followed.into_iter().map(Follower::of).collect();
    let mut current: BTreeMap<u32, u32> = BTreeMap::new();
    let mut seen: BTreeMap<u32, LastSeen> = BTreeMap::new();
    let mut others = OtherThreads::default();
    let mut last_ns = 0;
    for event in events {
        let event = event?;
        last_ns = event.ns;
        match event.kind {
            Kind::Switch => {
                let before = current.get(&event.cpu).filter(|tid| **tid != event.a);
                if let Some(thread) = before.and_then(|tid| threads.get_mut(tid)) {
                    thread.left_unseen();
                }
                let to_class = threads.get(&event.b).is_some_and(|thread| thread.account.is_some());
                if let Some(thread) = threads.get_mut(&event.a) {
                    let last = seen.get(&event.cpu).map(|last| last.without(event.a));
                    let state = thread.state_behind(event.value, to_class);
                    thread.leave(event.ns, state, last.unwrap_or(i64::MIN));
                    thread.ready = (event.value == 0).then(|| others.now(event.ns));
                }
                let is_other = |tid: u32| !threads.contains_key(&tid);
                others.switch(event.ns, event.cpu, is_other(event.a), is_other(event.b));
                if let Some(thread) = threads.get_mut(&event.b) {
                    thread.take_from(&event, &others, &mut levels);
                }
                for (tid, thread) in [event.a, event.b].map(|tid| (tid, threads.get(&tid))) {
                    levels.set(tid, thread.is_some_and(Follower::is_pending));
                }
                current.insert(event.cpu, event.b);
                seen.entry(event.cpu).or_default().switch(event.ns);
            }
            Kind::Waking => {
                let by = waker(&event).thread().and_then(|tid| threads.get(&tid)?.job(event.ns));
                if let Some(thread) = threads.get_mut(&event.a) {
                    if !matches!(thread.state, State::Ready(_)) {
                        thread.ready = Some(others.now(event.ns));
                    }
                    thread.wake(event.ns, waker(&event));
                    if let Some(open) = thread.open.as_mut().filter(|open| open.at_ns == event.ns) {
                        open.by = by;
                    }
                    levels.set(event.a, thread.is_pending());
                }
                if event.value != 0 {
                    seen.entry(event.cpu).or_default().see(event.ns, event.value >> 32);
                }
            }
            Kind::Call => {
                threads.entry(event.a).and_modify(|thread| thread.call = WaitPlace::of(&event));
            }
            // A thread that is given its budget may be moved then.
            Kind::Migrate => {
                if let Some(thread) = threads.get_mut(&event.a) {
                    thread.fill(event.ns, Some(others.now(event.ns)));
                    levels.set(event.a, thread.is_pending());
                }
            }
            Kind::Lost => {
                levels.lose();
                current.clear();
                others.lose();
                threads.values_mut().for_each(|thread| thread.lose(event.ns));
            }
            _ => {}
        }
    }
    Ok(threads.into_iter().map(|(tid, thread)| (tid, thread.end(last_ns))).collect())
}

fn waker(event: &KernelEvent) -> Waker {
    match event.value >> 32 {
        _ if event.value == 0 => Waker::Unknown,
        _ if event.value & IN_INTERRUPT != 0 => Waker::Interrupt,
        IDLE => Waker::Interrupt,
        tid => u32::try_from(tid).map_or(Waker::Unknown, Waker::Thread),
    }
}

impl Follower {
    fn of(thread: FollowedThread) -> (u32, Follower) {
        let account = thread.budget.map(BudgetAccount::of);
        (thread.tid, Follower { account, ..Follower::default() })
    }

    /// What a switch from it means, to a thread of the deadline class or not.
    fn state_behind(&self, state: u64, to_class: bool) -> u64 {
        if state == 0 && self.account.is_some() && !to_class { THROTTLED } else { state }
    }

    /// What it does at `ns`, when it wakes another one: it has the CPU then, also where it was not seen to take it.
    fn job(&self, ns: i64) -> Option<WakerJob> {
        let Burst { at_ns, run_ns, waker, by, .. } = *self.open.as_ref()?;
        let ran_ns = match self.state {
            State::Running(since_ns) => Some(run_ns.saturating_add(length(since_ns, ns))),
            State::Ready(_) => None,
            _ => return None,
        };
        let alone = (!matches!(waker, Waker::Thread(_))).then_some(at_ns);
        let begun_ns = by.map_or(alone, |by| by.begun_ns);
        Some(WakerJob { at_ns, begun_ns, ran_ns, may_answer: false })
    }

    /// What was seen of the thread so far does not go on.
    fn lose(&mut self, ns: i64) {
        if let State::Running(since_ns) = self.state {
            self.run(since_ns, ns);
        }
        self.close(ns, false);
        self.done.holes = self.done.holes.saturating_add(1);
        self.account.iter_mut().for_each(BudgetAccount::lose);
        (self.state, self.slept, self.early) = (State::Unknown, None, None);
        (self.call, self.place) = (None, None);
    }

    fn run(&mut self, since_ns: i64, ns: i64) {
        let ran = length(since_ns, ns);
        let sum = self.open.as_mut().map_or(&mut self.unwoken_ns, |open| &mut open.run_ns);
        *sum = sum.saturating_add(ran);
    }

    fn held_up(&mut self, ns: u64) {
        self.open.iter_mut().for_each(|open| open.others_ns = open.others_ns.saturating_add(ns));
    }

    fn held_up_at_least(&mut self, ns: u64) {
        self.open.iter_mut().for_each(|open| open.others_ns = open.others_ns.max(ns));
    }

    fn is_pending(&self) -> bool {
        matches!(self.state, State::Ready(_) | State::Running(_))
    }

    fn close(&mut self, ns: i64, is_whole: bool) {
        if let Some(open) = self.open.take() {
            let is_ended = is_whole;
            let is_whole = is_whole && !self.is_patched;
            self.done.bursts.push(Burst { end_ns: ns, is_whole, is_ended, ..open });
        } else if self.unwoken_ns > 0 {
            self.done.unwoken = self.done.unwoken.saturating_add(1);
            self.done.unwoken_ns = self.done.unwoken_ns.max(self.unwoken_ns);
        }
        (self.unwoken_ns, self.is_patched) = (0, false);
    }

    fn open(&mut self, at_ns: i64, waker: Waker, slept: Option<(i64, u64)>, run_ns: u64) {
        let stretch = self.done.holes;
        let place = slept.and(self.place);
        self.open = Some(Burst { at_ns, waker, slept, place, run_ns, stretch, ..Burst::default() });
        self.is_behind_stop = false;
    }

    /// Another thread leaves its CPU: a switch is missing, and what it ran since it took the CPU is not known.
    fn left_unseen(&mut self) {
        if !matches!(self.state, State::Running(_)) {
            return;
        }
        self.is_patched = true;
        self.state = State::Away;
        if let Some(early) = self.early.take() {
            self.wake(early.at_ns, early.waker);
        }
    }

    /// `last_ns` is the last switch of that CPU before.
    fn leave(&mut self, ns: i64, state: u64, last_ns: i64) {
        match self.state {
            State::Running(since_ns) => self.run(since_ns, ns),
            State::Unknown => {}
            // Some kernels record no switch from an idle CPU; the thread did not run before it could.
            State::Ready(since_ns) | State::Stopped(since_ns) => {
                self.run(since_ns.max(last_ns).min(ns), ns);
                self.is_patched = true;
            }
            State::Away => {
                let since_ns = self.open.as_ref().map_or(ns, |open| last_ns.max(open.at_ns));
                self.run(since_ns.min(ns), ns);
                self.is_patched = true;
            }
            State::Waiting if self.is_throttled() => {
                let since_ns = self.slept.map_or(ns, |(left_ns, _)| left_ns.max(last_ns)).min(ns);
                self.fill(since_ns, None);
                self.run(since_ns, ns);
                self.is_patched = true;
            }
            State::Waiting => self.lose(ns),
        }
        let early = self.early.take();
        self.done.has_ended |= state & ENDED != 0;
        if state & STOPPED != 0 {
            if let Some(early) = early.filter(|early| early.waker == Waker::Interrupt) {
                self.split(early);
            }
            return self.stop(ns);
        }
        if state == 0 {
            // It was about to wait when it was woken, and went on.
            if let Some(early) = early {
                self.split(early);
            }
            self.state = State::Ready(ns);
            return;
        }
        self.early = early.map(|early| EarlyWaking { left: Some((ns, state)), ..early });
        self.state = State::Waiting;
        let goes_on = self.is_behind_stop && self.open.is_none() && self.unwoken_ns <= SIGNAL_NS;
        if self.early.is_none() {
            // It goes back to the wait in which it was stopped.
            if goes_on && self.slept.is_some() {
                self.unwoken_ns = 0;
                return;
            }
            self.close(ns, true);
        }
        self.slept = Some((ns, state));
        // A page fault may come within the call.
        self.place = if state & UNINTERRUPTIBLE == 0 { self.call.take() } else { None };
    }

    /// What was open goes on when it may run again. Who was woken for the stop alone is in its wait as before.
    fn stop(&mut self, ns: i64) {
        let is_signal = |open: &&Burst| {
            matches!(open.waker, Waker::Thread(_))
                && open.slept.is_some()
                && open.run_ns <= SIGNAL_NS
        };
        if let Some(signal) = self.open.as_ref().filter(is_signal) {
            (self.slept, self.open) = (signal.slept, None);
        }
        (self.is_patched, self.is_behind_stop) = (self.open.is_some(), true);
        self.state = State::Stopped(ns);
    }

    /// Ends the burst at a waking that came while it ran, and begins the next one there.
    fn split(&mut self, early: EarlyWaking) {
        let all = self.open.as_ref().map_or(self.unwoken_ns, |open| open.run_ns);
        // What held up the job before it held up this one.
        let others_ns = self.open.as_ref().map_or(0, |open| open.others_ns);
        let before = self.open.as_mut().map_or(&mut self.unwoken_ns, |open| &mut open.run_ns);
        *before = early.run_ns;
        self.close(early.at_ns, true);
        let is_behind_stop = self.is_behind_stop;
        self.done.late_by_stops += u64::from(is_behind_stop);
        self.open(early.at_ns, early.waker, None, all.saturating_sub(early.run_ns));
        self.is_behind_stop = is_behind_stop;
        self.open.iter_mut().for_each(|open| (open.is_late, open.place) = (true, early.place));
        self.held_up(others_ns);
    }

    fn is_throttled(&self) -> bool {
        self.slept.is_some_and(|(_, state)| state == THROTTLED)
    }

    /// Where it had been throttled, it can run now: in its next job, or in the one before. Without a budget until now, it is
    /// ready since `ready`, if it does not run at once.
    fn fill(&mut self, ns: i64, ready: Option<ReadyMoment>) {
        let (State::Waiting, Some((left_ns, THROTTLED)), Some(account)) =
            (self.state, self.slept, &mut self.account)
        else {
            return;
        };
        let goes_on = account.goes_on(self.done.bursts.last(), left_ns, ns);
        if account.was_filled_at(ns) {
            self.ready = ready;
        }
        if !goes_on {
            return self.wake(ns, Waker::Interrupt);
        }
        if self.done.bursts.last().is_some_and(|last| last.end_ns == left_ns) {
            self.open = self.done.bursts.pop();
            self.is_patched = self.open.as_ref().is_some_and(|open| !open.is_whole);
        }
        (self.state, self.slept) = (State::Ready(ns), None);
    }

    /// It takes a CPU from what ran there.
    fn take_from(&mut self, event: &KernelEvent, others: &OtherThreads, levels: &mut Levels) {
        self.fill(event.ns, None);
        self.take(event.ns);
        if let Some(since) = self.ready.take() {
            levels.set(event.b, true);
            levels.take(event.b, &since, others, (event.ns, event.cpu));
            self.held_up(others.since(&since, event.ns, event.cpu));
        }
        self.held_up_at_least(levels.held_ns(event.b));
    }

    fn take(&mut self, ns: i64) {
        self.left_unseen();
        match (self.state, self.early.take()) {
            // The waking was recorded before the switch that it ended.
            (
                State::Waiting,
                Some(EarlyWaking { at_ns, waker, left: Some((left_ns, state)), .. }),
            ) => {
                self.close(left_ns, true);
                self.open(at_ns.max(left_ns), waker, Some((left_ns, state)), 0);
            }
            // A waking is missing.
            (State::Waiting, _) => self.lose(ns),
            _ => {}
        }
        self.state = State::Running(ns);
    }

    fn wake(&mut self, ns: i64, waker: Waker) {
        match self.state {
            State::Running(mut since_ns) => {
                // It was about to wait once before, and went on.
                if let Some(early) = self.early.take() {
                    self.split(early);
                    since_ns = since_ns.max(early.at_ns);
                    self.state = State::Running(since_ns);
                }
                let run_ns = self.open.as_ref().map_or(self.unwoken_ns, |open| open.run_ns);
                let run_ns = run_ns.saturating_add(length(since_ns, ns));
                let place = self.call;
                self.early = Some(EarlyWaking { at_ns: ns, waker, place, run_ns, left: None });
            }
            State::Ready(_) => {}
            State::Stopped(since_ns) => {
                let held_ns = length(since_ns, ns);
                self.done.stopped_ns = self.done.stopped_ns.saturating_add(held_ns);
                self.state = State::Ready(ns);
            }
            State::Away => {
                self.close(ns, false);
                self.open(ns, waker, None, 0);
                self.state = State::Ready(ns);
            }
            State::Waiting | State::Unknown => {
                if let Some(early) = self.early.take() {
                    self.split(early);
                    self.close(early.left.map_or(ns, |(left_ns, _)| left_ns), true);
                }
                let slept = self.slept.take();
                self.open(ns, waker, slept, 0);
                self.state = State::Ready(ns);
            }
        }
    }

    fn end(mut self, ns: i64) -> Activity {
        if let State::Running(since_ns) = self.state {
            self.run(since_ns, ns);
        }
        let early = self.early.take();
        if let Some(early) = early {
            self.split(early);
        }
        let left_ns = early.and_then(|early| early.left).map_or(ns, |(left_ns, _)| left_ns);
        self.close(left_ns, self.state == State::Waiting);
        self.done
    }
}

/// The activity of threads by their numbers in the run, from intervals in the order of their starts. What woke a
/// thread is unknown there, and when: the start of its time on a CPU stands for it.
pub fn of_intervals<'a>(
    intervals: impl IntoIterator<Item = &'a Interval>,
) -> BTreeMap<u32, Activity> {
    let mut threads: BTreeMap<u32, Activity> = BTreeMap::new();
    for interval in intervals {
        let bursts = &mut threads.entry(interval.thread).or_default().bursts;
        let run_ns = length(interval.start_ns, interval.end_ns);
        match bursts.last_mut() {
            Some(burst) if interval.onset != IntervalStart::Wait => {
                burst.run_ns = burst.run_ns.saturating_add(run_ns);
                burst.end_ns = interval.end_ns;
            }
            last => {
                let before = last.map(|burst| {
                    (burst.is_whole, burst.is_ended) = (true, true);
                    (burst.end_ns, 1)
                });
                let (at_ns, end_ns) = (interval.start_ns, interval.end_ns);
                bursts.push(Burst { at_ns, slept: before, run_ns, end_ns, ..Burst::default() });
            }
        }
    }
    threads
}

pub(super) fn length(from_ns: i64, to_ns: i64) -> u64 {
    u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0)
}
