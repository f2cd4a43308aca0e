//! What this command uses of the layer below, by one set of names, and how its runs are printed.

use std::io;

use anyhow::Result;
use hourglass_documents::document::RunDocument;
use hourglass_trace::Interval;

pub(crate) use hourglass_machine::clock_devices;
pub(crate) use hourglass_machine::clocks::clocks;
pub(crate) use hourglass_machine::doctor;
pub(crate) use hourglass_machine::facts as host;
pub(crate) use hourglass_machine::idle_latency::may_hold as may_hold_idle_latency;
pub(crate) use hourglass_machine::{Refusal, permitted_cpus, usual_cpus};
pub(crate) use hourglass_measure::cache_cost;
pub(crate) use hourglass_measure::clock_watch::{self, ClockWatchOptions as ClockWatch};
pub(crate) use hourglass_measure::utc;
pub(crate) mod compare {
    pub(crate) use hourglass_measure::compare::{control, rounds};
    pub(crate) use hourglass_runs::compare::{Rules, folders};
}
pub(crate) use hourglass_measure::reserved_folder::ReservedFolder;
pub(crate) use hourglass_measure::task_input;
pub(crate) use hourglass_measure::watch_process;
pub(crate) use hourglass_measure::workload_file;
pub(crate) use hourglass_measure::{ClockPolicy, SourceName, UnknownClockPolicy, UnknownSource};
pub(crate) use hourglass_measure::{
    ExperimentObserver, Finished, Gates, Limit, LiveView, LoadOptions, RunFailure, RunOptions, run,
};
pub(crate) use hourglass_measure::{give_up_capabilities, hand_on, has_room, shows_lines};
pub(crate) use hourglass_reserve::session as reserve;
pub(crate) use hourglass_runs::fleet;
pub(crate) use hourglass_runs::store::{LatencyError, TraceError, WriteError};
pub(crate) use hourglass_runs::task_model;
pub(crate) use hourglass_runs::{OpenRun, RunContents, open_run};
pub(crate) use hourglass_sim as sim;
pub(crate) use hourglass_theory as theory;
pub(crate) use hourglass_theory::sweep;
pub(crate) use hourglass_trace::{CpuTimeline, cpu_occupancy};
pub(crate) use hourglass_workload::spec::MOST_THREADS;
pub(crate) use hourglass_workload::{
    LiveThreads, RunSpec, SpecError, Steps, ThreadSpec, models, wake,
};

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
