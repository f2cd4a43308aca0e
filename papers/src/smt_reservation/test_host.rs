//! Where the evaluation runs: CPUs, what stops whom, how fast steps are.
//!
//! Owns: finding hardware threads of one core or two CPUs that stand for them, measuring the steps of
//! each computation and the stoppers. Must not: run a trial.

use hourglass_documents::CpuSet;
use hourglass_documents::paper::MeasurementKind;
use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::smt::stopper::latency::{StopTrialSetup, choose};
use hourglass_reserve::smt::stopper::{StopLatency, Stopper, StopperKind, StopperRequest, open};
use hourglass_reserve::smt::topology::{SharingLevel, Topology};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;

use super::super::wakeups::why_not_real_time;
use super::contention::CoRunner;
use super::jobs::WorkKind;
use super::trial::WATCHED_PERCENT;
use super::workloads::{Computation, DctWork, MotionEstimation, Product, WordLookup, step_ps};

/// `SCHED_FIFO` priority of the real-time process, above what else may be real-time on the machine, and of
/// the monitor, which is above it.
pub(super) const REAL_TIME: u8 = 90;
pub(super) const MONITOR: u8 = 95;

/// Steps by which memory is touched before anything is measured.
pub(super) const WARM_UP: u64 = 40_000;

/// Trials by which a stopper is judged; a thousand give a 99.9th percentile.
const STOPS: u32 = 1_000;
const STOPS_MS: u64 = 2_500;

#[derive(Debug)]
pub(super) struct SmtTestHost {
    pub(super) cpu: u32,
    /// The CPU that shares with it, or stands for one that does.
    pub(super) sibling: u32,
    pub(super) emulated: bool,
    pub(super) stopping: StopLatency,
    pub(super) guardian: Guardian,
    /// How long a step of each phase takes, ps.
    phases: [u64; WorkKind::ALL.len()],
    /// The same of each co-runner.
    co_runners: [u64; CoRunner::ALL.len()],
}

impl SmtTestHost {
    /// This machine. Takes some 3 s.
    ///
    /// # Errors
    /// One line: what is missing, and what would mend it.
    pub(super) fn for_this_machine() -> Result<SmtTestHost, String> {
        // In a thread of its own, which has the real-time class until it ends.
        let made = std::thread::Builder::new().name("smt-rig".into()).spawn(SmtTestHost::make);
        match made.map_err(|error| error.to_string())?.join() {
            Ok(rig) => rig,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn make() -> Result<SmtTestHost, String> {
        let (cpu, sibling, emulated) = places()?;
        let guardian = Guardian::start().map_err(|error| format!("no guardian: {error}"))?;
        let shares: CpuSet = [sibling].into_iter().collect();
        let mut setup = StopTrialSetup::new(&shares).map_err(|error| error.to_string())?;
        setup = StopTrialSetup { trials: STOPS, limit_ms: STOPS_MS, priority: MONITOR, ..setup };
        // A victim that is stopped for good: what is measured is the same for any other.
        let kinds = [StopperKind::Cgroup2Freeze, StopperKind::Sigstop, StopperKind::Cgroup1Freezer];
        let chosen = choose(&kinds, &StopperRequest::processes([]), &setup, &guardian)
            .map_err(|error| error.to_string())?;
        let stopping = chosen.measured;
        drop(chosen);
        take_place(cpu)?;
        Ok(SmtTestHost {
            cpu,
            sibling,
            emulated,
            stopping,
            guardian,
            phases: WorkKind::ALL.map(|kind| step_ps(phase(kind).as_mut())),
            co_runners: CoRunner::ALL.map(|kind| step_ps(co_runner(kind).as_mut())),
        })
    }

    pub(super) fn how(&self) -> MeasurementKind {
        if self.emulated { MeasurementKind::Emulated } else { MeasurementKind::Measured }
    }

    pub(super) fn phase_ps(&self, kind: WorkKind) -> u64 {
        self.phases.get(kind.place()).copied().unwrap_or(1)
    }

    pub(super) fn co_runner_ps(&self, kind: CoRunner) -> u64 {
        let place = CoRunner::ALL.iter().position(|other| *other == kind).unwrap_or(0);
        self.co_runners.get(place).copied().unwrap_or(1)
    }

    pub(super) fn stopper(&self, pids: &[u32]) -> Result<Box<dyn Stopper>, String> {
        let wanted = StopperRequest::processes(pids.iter().copied());
        open(self.stopping.stopper, &wanted, &self.guardian).map_err(|error| error.to_string())
    }

    pub(super) fn words(&self) -> String {
        let StopLatency { stopper, p50_ns, p999_ns, .. } = self.stopping;
        let stopping = format!(
            "slack is watched up to {WATCHED_PERCENT} % of the period, since the kernel keeps 5 % of each second from \
             real-time threads; co-runners stopped by {stopper} in {:.1} us, {:.1} us at p99.9, measured",
            p50_ns as f64 / 1e3,
            p999_ns as f64 / 1e3
        );
        let (cpu, sibling) = (self.cpu, self.sibling);
        if self.emulated {
            format!(
                "real-time process on CPU {cpu}, others on CPUs {cpu} and {sibling}, which share no \
                 core: contention is emulated and slows both sides, and work is scaled to the CPU's \
                 speed as it goes; {stopping}"
            )
        } else {
            format!(
                "real-time process on CPU {cpu}, others on CPUs {cpu} and {sibling}, two hardware \
                 threads of one core; {stopping}"
            )
        }
    }
}

/// The CPUs: two hardware threads of one core where this process may run on such, else the two last
/// that it may run on, since interrupts of devices go to the first. Whether contention is emulated.
fn places() -> Result<(u32, u32, bool), String> {
    let allowed = thread::affinity().map_err(|error| format!("no affinity: {error}"))?;
    let topology = Topology::default();
    for cpu in allowed.iter().rev() {
        let Ok(shares) = topology.shares(*cpu, &SharingLevel::Siblings) else { continue };
        if let Some(sibling) = shares.cpus.iter().find(|other| allowed.contains(other)) {
            return Ok((*cpu, sibling, false));
        }
    }
    match allowed.as_slice() {
        [.., sibling, cpu] => Ok((*cpu, *sibling, true)),
        _ => Err("this process may run on one CPU only; allow it a second one (taskset)".into()),
    }
}

/// The calling thread becomes the real-time process: priority before CPU.
///
/// # Errors
/// Why not, and what would grant it.
pub(super) fn take_place(cpu: u32) -> Result<(), String> {
    sched::set(Attributes::Fifo(REAL_TIME))
        .map_err(|error| why_not_real_time(&error, REAL_TIME))?;
    thread::set_affinity([cpu]).map_err(|error| format!("CPU {cpu}: {error}"))
}

pub(super) fn phase(kind: WorkKind) -> Box<dyn Computation> {
    match kind {
        WorkKind::Product => Box::new(Product::<f64>::new()),
        WorkKind::Motion => Box::new(MotionEstimation::new()),
        WorkKind::Cosines => Box::new(DctWork::new()),
        WorkKind::Words => Box::new(WordLookup::new()),
    }
}

pub(super) fn co_runner(kind: CoRunner) -> Box<dyn Computation> {
    match kind {
        CoRunner::Integer => Box::new(Product::<i32>::new()),
        CoRunner::Float => Box::new(Product::<f64>::new()),
        CoRunner::Compile => Box::new(WordLookup::new()),
    }
}
