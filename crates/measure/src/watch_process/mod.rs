//! Threads of other processes, watched from outside: what kept them from running.
//!
//! Owns: whom to look at (`whom`), looking again and again, what the looks add up to (`tally`) and what they miss
//! (`unseen`), who had the CPU instead by counts (`others`) or by the kernel's events (`traced`), the run folder (`folder`).
//! Must not: change anything about those who are watched.
//!
//! Every look reads the kernel's counts of each thread in `/proc`, which needs no privilege. Looking costs processor
//! time that the watched may want: a look takes at most a twentieth of the interval, which grows where that is not
//! enough, and the caller's thread keeps to CPUs that the watched may not use, where there is one.

mod command;
mod folder;
mod kernel_tracer;
mod model;
mod process_selector;
mod quotas;
mod system_sampler;
mod thread_totals;
mod unseen;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hourglass_clock::timekeeping::{Native, ReferenceClock, Timebase};
use hourglass_documents::document::{Premise, Warning};
use hourglass_documents::task_model::ModelDocument;
use hourglass_documents::watched::{WatchedProcess, WatchedReport, WatchedSample};
use hourglass_machine::advice::machine;
use hourglass_machine::facts::HostReader;
use hourglass_machine::refusal::Refusal;
use hourglass_reserve::command::LaunchError;
use hourglass_runs::store::{CreateError, RunFolder, WriteError};
use hourglass_sys::{signal, thread as os};
use hourglass_time::Span;
use hourglass_trace::model::CountReckoning;

pub use command::CommandRequest;
use command::{PendingCommand, RunningCommand};
use kernel_tracer::KernelTracer;
use process_selector::Finder;
pub use process_selector::{ProcessNotFound, ProcessSelector};
use quotas::QuotaCounts;
use system_sampler::SystemSampler;
use thread_totals::ThreadTotals;
use unseen::CpuTime;

/// A shorter interval would leave no time to sleep.
pub const SHORTEST: Span = Span::from_millis(10);
/// Time between two checks for signals.
const ATTENTION_NS: u64 = 50_000_000;
/// Samples take at most one part in `SHARE` of the time.
const SHARE: u64 = 20;
/// Looks at threads that are kept for a folder, the first ones; each takes 96 bytes.
const MOST_LOOKS: usize = 1 << 20;
/// Nanoseconds in the unit of the times at which threads began.
const BEGUN_NS: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub struct WatchRequest {
    pub whom: ProcessSelector,
    /// From one look to the next; taken as at least [`SHORTEST`].
    pub every: Span,
    /// From the first look to the last one; `None` until a signal asks to stop, or all have ended.
    pub length: Option<Span>,
    /// Record the kernel's switches too, which needs root.
    pub trace: bool,
    /// Reckon what the counts say of each thread's activations, and not who else had its CPU.
    pub model: bool,
    /// Keep it in this folder, which must not exist.
    pub folder: Option<PathBuf>,
    pub command_line: Vec<String>,
}

/// Why nothing is watched. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum WatchFailure {
    #[error(transparent)]
    NotFound(#[from] ProcessNotFound),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Folder(#[from] CreateError),
    #[error("{}: {}; {}", .0.what, .0.reason, .0.remedy)]
    Refused(Refusal),
}

#[derive(Debug)]
pub struct WatchFinished {
    pub report: WatchedReport,
    /// What the counts say of activations, if that was asked.
    pub model: Option<ModelDocument>,
    pub folder: Option<Result<PathBuf, WriteError>>,
    pub signal: Option<i32>,
}

/// Watches threads, and tells `each` after every look what was found so far, until that breaks off.
///
/// # Errors
/// See [`WatchFailure`]. A folder that cannot be written afterwards is no failure.
pub fn watch(
    request: &WatchRequest,
    mut each: impl FnMut(&WatchedReport) -> ControlFlow<()>,
) -> Result<WatchFinished, WatchFailure> {
    let reader = HostReader::new(Path::new("/"));
    let (pending, mut finder) = find(&request.whom, &reader)?;
    finder.find(&reader)?;
    // Before there is a folder: a program that ends by a signal leaves it half-written.
    let _ = signal::catch_stop();
    let folder = request.folder.clone().map(RunFolder::create).transpose()?;
    let keeps = folder.is_some();
    let host = (request.trace || keeps).then(|| reader.read());
    let traced = match &host {
        Some(host) if request.trace => {
            Some(KernelTracer::begin(host, keeps).map_err(WatchFailure::Refused)?)
        }
        _ => None,
    };
    let mut session = WatchSession::new(request, reader, finder, traced);
    let home = session.first_look();
    let mut command = pending.map(PendingCommand::open).transpose()?;
    while session.wait(command.as_mut()) {
        let ended = command.as_ref().is_some_and(RunningCommand::has_ended);
        session.sample();
        if each(&session.report()).is_break() || ended || session.is_over() {
            break;
        }
    }
    if let Some(home) = home {
        // Refused only if these CPUs went away meanwhile.
        let _ = os::set_affinity(home);
    }
    let (command, signal) = match command {
        Some(command) => command.finish(),
        None => (None, signal::stop_asked()),
    };
    let (report, model, recorded) = session.finish(signal.is_some());
    let report = WatchedReport { command, ..report };
    let kept = folder
        .zip(host)
        .map(|(folder, host)| folder::keep(folder, request, host, &report, recorded));
    Ok(WatchFinished { report, model, folder: kept, signal })
}

/// Starts the command to be watched, if one is; it waits at its gate.
fn find(
    whom: &ProcessSelector,
    reader: &HostReader,
) -> Result<(Option<PendingCommand>, Finder), LaunchError> {
    match whom {
        ProcessSelector::Command(request) => {
            let command = PendingCommand::start(request)?;
            command.arrive(reader);
            let finder = Finder::of_command(whom, command.pid());
            Ok((Some(command), finder))
        }
        _ => Ok((None, Finder::new(whom))),
    }
}

#[derive(Debug)]
struct Process {
    name: String,
    quotas: QuotaCounts,
    /// Of a process of which all threads are watched, where they have times.
    cpu_time: Option<CpuTime>,
    ended: bool,
}

struct WatchSession {
    reader: HostReader,
    finder: Finder,
    /// Whether activations are reckoned.
    models: bool,
    /// Whether nice values count within a session only.
    autogroup: bool,
    others: SystemSampler,
    traced: Option<KernelTracer>,
    processes: BTreeMap<u32, Process>,
    threads: BTreeMap<u32, ThreadTotals>,
    /// CPU time of the processes that a command started and waited for.
    children: CpuTime,
    asked_ns: u64,
    every_ns: u64,
    length_ns: u64,
    /// `CLOCK_MONOTONIC` at the first look.
    begin_ns: u64,
    /// The same on the clock of the times at which threads began.
    begun: u64,
    due_ns: u64,
    now_ns: u64,
    samples: u64,
    warnings: Vec<Warning>,
    kept: Option<Vec<WatchedSample>>,
}

impl WatchSession {
    fn new(
        request: &WatchRequest,
        reader: HostReader,
        finder: Finder,
        traced: Option<KernelTracer>,
    ) -> WatchSession {
        let asked_ns = request.every.max(SHORTEST).nanos_or_zero();
        WatchSession {
            autogroup: reader.autogroup() == Some(true),
            reader,
            finder,
            models: request.model,
            others: SystemSampler::default(),
            traced,
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            children: CpuTime::default(),
            asked_ns,
            every_ns: asked_ns,
            length_ns: request.length.map_or(u64::MAX, Span::nanos_or_zero),
            begin_ns: 0,
            begun: Native.reference_ns(ReferenceClock::Boottime) / BEGUN_NS,
            due_ns: 0,
            now_ns: 0,
            samples: 0,
            warnings: Vec::new(),
            kept: request.folder.as_ref().map(|_| Vec::new()),
        }
    }

    /// Looks for the first time, and leaves the CPUs of those who are watched; returns those of before.
    fn first_look(&mut self) -> Option<Vec<u32>> {
        self.begin_ns = monotonic_ns();
        self.sample();
        let home = os::affinity().ok()?;
        let mut theirs: Vec<u32> = Vec::new();
        for tid in self.threads.keys() {
            theirs.extend(os::affinity_of(*tid).unwrap_or_default());
        }
        let last: Vec<u32> = self.threads.values().filter_map(ThreadTotals::cpu).collect();
        let free = |taken: &[u32]| -> Vec<u32> {
            home.iter().copied().filter(|cpu| !taken.contains(cpu)).collect()
        };
        let away =
            Some(free(&theirs)).filter(|cpus| !cpus.is_empty()).unwrap_or_else(|| free(&last));
        if away.is_empty() || os::set_affinity(away).is_err() {
            self.warnings.push(Warning {
                id: "watch-shares-cpu".to_owned(),
                text: "the watched threads run on all CPUs that this program may use, which takes \
                       a little of their time at every sample"
                    .to_owned(),
                remedy: "a longer --interval; or taskset this program to another CPU".to_owned(),
            });
            return None;
        }
        Some(home)
    }

    /// Sleeps until the next look; false if it is time to end.
    fn wait(&self, mut command: Option<&mut RunningCommand>) -> bool {
        loop {
            if command.as_ref().is_some_and(|command| command.has_ended()) {
                return true;
            }
            if signal::stop_asked().is_some() {
                return false;
            }
            let now_ns = monotonic_ns().saturating_sub(self.begin_ns);
            if self.now_ns >= self.length_ns {
                return false;
            }
            let due_ns = self.due_ns.min(self.length_ns);
            let Some(left_ns @ 1..) = due_ns.checked_sub(now_ns) else { return true };
            match &mut command {
                Some(command) => command.sleep(Some(left_ns)),
                None => std::thread::sleep(Duration::from_nanos(left_ns.min(ATTENTION_NS))),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.threads.values().all(ThreadTotals::has_ended)
    }

    fn sample(&mut self) {
        self.now_ns = monotonic_ns().saturating_sub(self.begin_ns);
        for (pid, tid) in self.finder.again(&self.reader, self.now_ns) {
            self.add_thread(pid, tid);
        }
        let begin_ns = used_ns();
        let cpu_ns: Vec<_> =
            self.processes.keys().map(|pid| self.reader.process_cpu_ns(*pid)).collect();
        let command = self.finder.command;
        let children = command.and_then(|pid| Some((pid, self.reader.children_cpu_ns(pid)?)));
        for tally in self.threads.values_mut() {
            tally.sample(&self.reader, || monotonic_ns().saturating_sub(self.begin_ns));
            if let (Some(traced), Some(budget)) = (&mut self.traced, tally.reservation()) {
                traced.reserve(tally.tid, budget);
            }
            if let Some(kept) = self.kept.as_mut().filter(|kept| kept.len() < MOST_LOOKS) {
                kept.extend(tally.at_last_look());
            }
        }
        for ((pid, process), cpu_ns) in self.processes.iter_mut().zip(cpu_ns) {
            let was_ended = process.ended;
            process.ended =
                self.threads.values().all(|tally| tally.pid != *pid || tally.has_ended());
            if !process.ended {
                process.quotas.take(self.reader.quota_stopped(*pid), self.now_ns);
            }
            let times = process.cpu_time.as_mut().zip(cpu_ns);
            // That of a command is there until this program has waited for it.
            let is_there = if command == Some(*pid) { !was_ended } else { !process.ended };
            let times = times.filter(|_| is_there);
            if let Some((times, cpu_ns)) = times {
                times.take(cpu_ns, unseen::ran_ns(&self.threads, |of| of == *pid), self.now_ns);
            } else if self.samples == 0 && self.finder.whom.has_all_of(*pid) {
                process.cpu_time = self.reader.process_cpu_ns(*pid).map(CpuTime::new);
            }
        }
        if let Some((pid, cpu_ns)) = children {
            let seen_ns = unseen::ran_ns(&self.threads, |of| of != pid);
            self.children.take(cpu_ns, seen_ns, self.now_ns);
        }
        let took_ns = used_ns().saturating_sub(begin_ns);
        match &mut self.traced {
            Some(traced) => traced.take(self.begin_ns),
            None if self.models => {}
            None => self.others.sample(&self.reader, self.now_ns, false, &mut self.threads),
        }
        self.samples += 1;
        self.every_ns = self.asked_ns.max(took_ns.saturating_mul(SHARE));
        self.due_ns = self.now_ns.saturating_add(self.every_ns);
    }

    fn add_thread(&mut self, pid: u32, tid: u32) {
        if self.threads.contains_key(&tid) {
            return;
        }
        let at_ns = monotonic_ns().saturating_sub(self.begin_ns);
        let Some(counts) = self.reader.thread(pid, tid) else { return };
        if let Some(traced) = &mut self.traced {
            traced.follow(tid, at_ns, &counts);
        }
        let born = self.samples > 0 && counts.begun >= self.begun;
        let mut totals = ThreadTotals::new(pid, tid, at_ns, counts, born);
        totals.reckoning = self.models.then(|| match born {
            true => CountReckoning::since_begin(),
            false => CountReckoning::default(),
        });
        self.threads.insert(tid, totals);
        let reader = &self.reader;
        self.processes.entry(pid).or_insert_with(|| Process {
            name: reader.thread_name(pid, pid).unwrap_or_default(),
            quotas: QuotaCounts::new(reader.quota_stopped(pid)),
            cpu_time: None,
            ended: false,
        });
    }

    fn report(&self) -> WatchedReport {
        let mut premises: Vec<Premise> = Vec::new();
        let counted = !self.threads.values().any(ThreadTotals::lacks_times);
        let processes = self.processes.iter().map(|(pid, process)| {
            let mut report = WatchedProcess {
                pid: *pid,
                // A program may have become another one meanwhile.
                name: self.threads.get(pid).map_or(&process.name, ThreadTotals::name).clone(),
                ended: process.ended,
                ..WatchedProcess::default()
            };
            process.quotas.fill(&mut report);
            premises.extend(process.quotas.trouble(&report));
            if let Some(times) = process.cpu_time.filter(|_| counted) {
                times.fill(&mut report);
                premises.extend(times.trouble(&report));
            }
            report
        });
        let processes = processes.collect();
        premises.extend(self.children.trouble_of_children().filter(|_| counted));
        let mut warnings = self.warnings();
        warnings.extend(premises.iter().map(Warning::from));
        let mut threads: Vec<_> = self.threads.values().map(ThreadTotals::report).collect();
        if let Some(traced) = &self.traced {
            let at_ns = i64::try_from(self.now_ns).unwrap_or(i64::MAX);
            threads.iter_mut().for_each(|thread| traced.fill(thread, at_ns, self.begin_ns));
        }
        threads.sort_by_key(|thread| {
            let delay = thread.delays.as_ref().map(|delays| delays.total_ns);
            (std::cmp::Reverse(delay.or(thread.wait_ns)), thread.tid)
        });
        WatchedReport {
            how: if self.traced.is_some() { "trace" } else { "proc" }.to_owned(),
            interval_ns: self.every_ns,
            elapsed_ns: self.now_ns,
            looks: self.samples,
            processes,
            threads,
            events_lost: self.traced.as_ref().map(KernelTracer::lost),
            warnings,
            premises,
            interrupted: false,
            command: None,
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.warnings.clone();
        if self.every_ns > self.asked_ns.saturating_mul(2) {
            warnings.push(Warning {
                id: "interval-stretched".to_owned(),
                text: format!(
                    "a sample takes {} us, so that samples are {} ms apart instead of {} ms, which limits them to \
                     a twentieth of a CPU",
                    self.every_ns / SHARE / 1_000,
                    self.every_ns / 1_000_000,
                    self.asked_ns / 1_000_000
                ),
                remedy: "watch fewer threads, or ask for a longer --interval".to_owned(),
            });
        }
        if self.autogroup && self.threads.values().any(ThreadTotals::is_nice) {
            warnings.push(machine::autogroup_warning());
        }
        warnings.extend(self.others.warning().filter(|_| self.traced.is_none()));
        if self.threads.values().any(ThreadTotals::lacks_times) {
            warnings.push(Warning {
                id: "no-schedstat".to_owned(),
                text: "this kernel does not count how long threads run and wait for a CPU"
                    .to_owned(),
                remedy: "use a kernel with CONFIG_SCHED_INFO=y, or boot with delayacct; or --trace as root"
                    .to_owned(),
            });
        }
        warnings
    }

    fn finish(
        mut self,
        interrupted: bool,
    ) -> (WatchedReport, Option<ModelDocument>, folder::WatchRecording) {
        if self.traced.is_none() && !self.models {
            self.others.sample(&self.reader, self.now_ns, true, &mut self.threads);
        }
        let troubles = self.traced.as_mut().map(|traced| traced.end(self.begin_ns, self.now_ns));
        let mut report = self.report();
        report.interrupted = interrupted;
        report.warnings.extend(troubles.into_iter().flatten());
        let model = self.models.then(|| model::of(&self.threads, &report));
        let recorded = folder::WatchRecording {
            begin_ns: self.begin_ns,
            kernel: self.traced.map(KernelTracer::into_parts),
            cpus: self.threads.iter().map(|(tid, totals)| (*tid, totals.cpus().clone())).collect(),
            samples: self.kept.unwrap_or_default(),
        };
        (report, model, recorded)
    }
}

fn monotonic_ns() -> u64 {
    Native.reference_ns(ReferenceClock::Monotonic)
}

/// Processor time that the calling thread has used: what looking costs, however long it took.
fn used_ns() -> u64 {
    os::rusage_time_ns()
}
