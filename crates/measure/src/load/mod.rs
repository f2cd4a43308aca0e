//! A load beside a measurement (`--load`), so that a result is one of a loaded machine.
//!
//! Owns: starting it before the measurement, that it ended only afterwards, what it received, and that nothing of it is
//! left. Must not: put any of it under a real-time policy, or on CPUs that this process may not use.
//!
//! stress-ng makes it where it is installed: one process of it for each kind, with a process group of its own, which the
//! kernel ends with this process. Otherwise this program does, by child processes that the kernel ends likewise
//! ([`own`]). All are of the time-sharing class at nice 0.
//!
//! That it ran is part of the result. A kind did whose processes were all there at the end, and which received processor
//! time meanwhile, or was still waiting for a disk.

mod own;
mod stress_ng;

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use hourglass_documents::CpuSet;
use hourglass_documents::document::{Premise, RunResult, Warning};
use hourglass_documents::host::Host;
use hourglass_documents::load::{LoadFacts, LoadKind, LoadKindFacts, LoadSpec};
use hourglass_documents::premise::PremiseKind;
use hourglass_machine::usual_cpus;
use hourglass_reserve::command::Child;
use hourglass_sys::clock::cpu_time::ProcessTime;
use hourglass_sys::worker_process::Worker;

use crate::failure::RunFailure;

/// Why it did not run.
const ENDED: &str = "one of its processes ended";

/// What makes a load where stress-ng is not installed.
const OWN: &str = "hourglass";

/// A load that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    pub spec: LoadSpec,
    /// CPUs on which it may run; `None`: those with which this process was started.
    pub cpus: Option<CpuSet>,
}

/// A load that runs. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Load {
    version: Option<String>,
    cpus: CpuSet,
    parts: Vec<Part>,
    begun: Instant,
    /// Its kinds, when the measurement has ended.
    ended: Vec<LoadKindFacts>,
    broken: Vec<Premise>,
}

/// The processes of one kind.
#[derive(Debug)]
struct Part {
    facts: LoadKindFacts,
    maker: Maker,
    /// Those that were there when the measurement began.
    processes: Vec<u32>,
    /// Their processor time then, ns.
    before_ns: u64,
    broken: Option<Premise>,
}

#[derive(Debug)]
enum Maker {
    StressNg(Child),
    Own(Vec<Worker>),
}

/// A process as `/proc/PID/stat` has it.
struct ProcessStat {
    state: char,
    group: u32,
}

impl Load {
    /// Starts what is asked for, and returns when all of it runs.
    pub(crate) fn start(options: &LoadOptions, host: &Host) -> Result<Load, RunFailure> {
        let cpus = options.cpus.clone().unwrap_or_else(|| usual_cpus(host));
        let refused = |kind: LoadKind, error: io::Error| RunFailure::Load {
            kind: kind.name(),
            reason: error.to_string(),
        };
        let version = stress_ng::version();
        let (ended, broken) = (Vec::new(), Vec::new());
        let mut load =
            Load { version, cpus, parts: Vec::new(), begun: Instant::now(), ended, broken };
        let number = u32::try_from(load.cpus.len()).unwrap_or(u32::MAX);
        for (kind, number) in options.spec.kinds(number) {
            let (maker, does) = match load.version {
                Some(_) => stress_ng::start(kind, number, &load.cpus),
                None => own::start(kind, number, &load.cpus),
            }
            .map_err(|error| refused(kind, error))?;
            let facts = LoadKindFacts { kind, number, does, cpu_time_ns: 0, ran: false };
            let (processes, before_ns, broken) = (Vec::new(), 0, None);
            load.parts.push(Part { facts, maker, processes, before_ns, broken });
        }
        for part in &load.parts {
            part.wait_until_it_runs().map_err(|error| refused(part.facts.kind, error))?;
        }
        Ok(load)
    }

    /// The measurement is about to begin.
    pub(crate) fn begin(&mut self) {
        self.begun = Instant::now();
        for part in &mut self.parts {
            part.processes = part.maker.processes();
            part.before_ns = cpu_time_ns(&part.processes);
        }
    }

    /// Looks whether all of it is still there; returns what was not known to be broken.
    pub(crate) fn look(&mut self) -> Vec<Premise> {
        let at_ns = self.elapsed_ns();
        let ended = |part: &&mut Part| part.broken.is_none() && part.maker.has_ended();
        let found = self.parts.iter_mut().filter(ended).map(|part| part.broke(at_ns, ENDED));
        found.collect()
    }

    /// The measurement has ended: says what the load received, and ends it. Returns as [`Load::look`].
    pub(crate) fn end(&mut self) -> Vec<Premise> {
        let mut found = self.look();
        let at_ns = self.elapsed_ns();
        for part in &mut self.parts {
            if let Some(why) = part.judge().filter(|_| part.broken.is_none()) {
                found.push(part.broke(at_ns, why));
            }
            part.facts.ran = part.broken.is_none();
        }
        for Part { facts, broken, .. } in self.parts.drain(..) {
            self.ended.push(facts);
            self.broken.extend(broken);
        }
        found
    }

    /// After [`Load::end`]: puts what did not hold into `result`, and says what ran.
    pub(crate) fn fill(self, result: &mut RunResult) -> LoadFacts {
        let Load { version, cpus, ended: kinds, broken, .. } = self;
        result.warnings.extend(broken.iter().map(Warning::from));
        result.premises.extend(broken);
        let by = if version.is_some() { stress_ng::NAME } else { OWN };
        LoadFacts {
            by: by.to_owned(),
            version,
            cpus: cpus.to_string(),
            cpu_time_ns: kinds.iter().fold(0, |sum, kind| sum.saturating_add(kind.cpu_time_ns)),
            ran: kinds.iter().all(|kind| kind.ran),
            kinds,
        }
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Part {
    /// Compares its processes with those that there were, and their processor time; returns what does not hold.
    fn judge(&mut self) -> Option<&'static str> {
        let received_ns = cpu_time_ns(&self.processes).saturating_sub(self.before_ns);
        let state = |pid: &u32| stat(*pid).map(|stat| stat.state);
        let states: Vec<Option<char>> = self.processes.iter().map(state).collect();
        self.facts.cpu_time_ns = received_ns;
        if states.iter().any(|state| matches!(state, None | Some('Z' | 'X'))) {
            Some(ENDED)
        } else if states.iter().any(|state| matches!(state, Some('T' | 't'))) {
            Some("one of its processes was stopped")
        } else if received_ns == 0 && !states.contains(&Some('D')) {
            Some("it received no processor time")
        } else {
            None
        }
    }

    fn broke(&mut self, at_ns: u64, why: &str) -> Premise {
        let (kind, by) = (self.facts.kind.name(), self.maker.name());
        let text =
            format!("the load {kind} of {by} did not run to the end of the measurement: {why}");
        let premise = PremiseKind::LoadNotRun.broken(text, at_ns);
        self.broken = Some(premise.clone());
        premise
    }

    /// Waits until its processes are there and have received processor time.
    fn wait_until_it_runs(&self) -> io::Result<()> {
        for _ in 0..START_LOOKS {
            if self.maker.has_ended() {
                return Err(io::Error::other(self.maker.why_ended()));
            }
            let processes = self.maker.processes();
            let wanted = self.maker.number_of_processes(self.facts.number);
            if processes.len() >= wanted && processes.iter().all(|pid| cpu_time_ns(&[*pid]) > 0) {
                return Ok(());
            }
            std::thread::sleep(START_PAUSE);
        }
        // Whether it runs is judged again at the end.
        Ok(())
    }
}

/// How long a load may take to run, in looks.
const START_LOOKS: u32 = 500;
/// Between two of them.
const START_PAUSE: Duration = Duration::from_millis(10);

impl Maker {
    fn name(&self) -> &'static str {
        match self {
            Maker::StressNg(_) => stress_ng::NAME,
            Maker::Own(_) => OWN,
        }
    }

    fn processes(&self) -> Vec<u32> {
        match self {
            Maker::StressNg(child) => group(child.pid()),
            Maker::Own(workers) => workers.iter().map(Worker::pid).collect(),
        }
    }

    /// How many there are at least, for so many of the kind.
    fn number_of_processes(&self, number: u32) -> usize {
        match self {
            Maker::StressNg(_) => 1usize.saturating_add(number as usize),
            Maker::Own(workers) => workers.len(),
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Maker::StressNg(child) => child.file().has_ended().unwrap_or(true),
            Maker::Own(workers) => workers.iter().any(Worker::has_ended),
        }
    }

    fn why_ended(&self) -> String {
        match self {
            Maker::StressNg(_) => "stress-ng ended at once".to_owned(),
            Maker::Own(_) => "its process ended at once".to_owned(),
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        if let Maker::StressNg(child) = self {
            stress_ng::end(child);
        }
    }
}

fn cpu_time_ns(processes: &[u32]) -> u64 {
    let times = processes.iter().filter_map(|pid| ProcessTime::for_task(*pid).read_ns().ok());
    times.fold(0, u64::saturating_add)
}

/// The processes of a group that have not ended.
fn group(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let member = |pid: &u32| {
        stat(*pid).is_some_and(|stat| stat.group == group && !matches!(stat.state, 'Z' | 'X'))
    };
    pids.filter(member).collect()
}

/// `proc_pid_stat(5)`: fields 3 and 5. The name before them may hold anything, and is in parentheses.
fn stat(pid: u32) -> Option<ProcessStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some(ProcessStat { state, group })
}
