//! What this command uses of the layer below, by one set of names, and how its runs are printed.

use std::io;

use anyhow::Result;
use hourglass_model::Interval;
use hourglass_model::document::RunDocument;

pub(crate) use hourglass_host::clock_devices;
pub(crate) use hourglass_host::clocks::clocks;
pub(crate) use hourglass_host::doctor;
pub(crate) use hourglass_host::facts as host;
pub(crate) use hourglass_host::idle_latency::may_hold as may_hold_idle_latency;
pub(crate) use hourglass_host::{Refusal, permitted_cpus, usual_cpus};
pub(crate) use hourglass_lab::cache_cost;
pub(crate) use hourglass_lab::clock_watch::{self, ClockWatchOptions as ClockWatch};
pub(crate) use hourglass_lab::compare;
pub(crate) use hourglass_lab::fleet;
pub(crate) use hourglass_lab::infer::{CpuTimeline, cpu_occupancy};
pub(crate) use hourglass_lab::reserved_folder::ReservedFolder;
pub(crate) use hourglass_lab::sched::sim;
pub(crate) use hourglass_lab::store::{LatencyError, TraceError, WriteError};
pub(crate) use hourglass_lab::task_input;
pub(crate) use hourglass_lab::watch_process;
pub(crate) use hourglass_lab::workload::spec::MOST_THREADS;
pub(crate) use hourglass_lab::workload::{
    LiveThreads, RunSpec, SpecError, Steps, ThreadSpec, models, wake,
};
pub(crate) use hourglass_lab::workload_file;
pub(crate) use hourglass_lab::{ClockPolicy, SourceName, UnknownClockPolicy, UnknownSource};
pub(crate) use hourglass_lab::{
    ExperimentObserver, Finished, Gates, Limit, LiveView, OpenRun, RunContents, RunFailure,
    RunOptions, open_run, run,
};
pub(crate) use hourglass_lab::{give_up_capabilities, hand_on, shows_lines};
pub(crate) use hourglass_reserve::session as reserve;
pub(crate) use hourglass_theory as theory;
pub(crate) use hourglass_theory::sweep;

use crate::output::Source;

/// A run that has just ended.
impl Source for Finished {
    fn document(&self) -> &RunDocument {
        &self.document
    }

    fn each_interval(&mut self, each: impl FnMut(Interval) -> io::Result<()>) -> Result<()> {
        Ok(self.intervals().try_for_each(each)?)
    }

    fn each_lateness(
        &mut self,
        thread: u32,
        each: impl FnMut(u64) -> io::Result<()>,
    ) -> Result<()> {
        Ok(self.latencies_ps(thread).try_for_each(each)?)
    }
}

/// A run in a folder.
impl Source for OpenRun {
    fn document(&self) -> &RunDocument {
        &self.document
    }

    fn each_interval(&mut self, mut each: impl FnMut(Interval) -> io::Result<()>) -> Result<()> {
        for interval in self.intervals()? {
            each(interval?)?;
        }
        Ok(())
    }

    fn each_lateness(
        &mut self,
        thread: u32,
        mut each: impl FnMut(u64) -> io::Result<()>,
    ) -> Result<()> {
        for lateness in self.latencies_ps(thread)? {
            each(lateness?)?;
        }
        Ok(())
    }
}
