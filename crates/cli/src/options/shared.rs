//! Options that `run`, `latency` and `noise` take alike.

use std::path::PathBuf;

use hourglass_documents::CpuSet;
use hourglass_documents::load::LoadSpec;

use super::{Applied, OptionDef, OptionValues, flag, value};
use crate::compat::HostCpus;
use crate::exit::Stop;
use crate::lab::{Limit, LoadOptions, RunOptions};
use crate::result_files::ResultFiles;
use crate::settings::Settings;

/// What a command that measures collects from its line.
pub(crate) trait Measuring {
    /// The unit of a bare number that is a limit; empty where a unit must be given.
    const LIMIT_UNIT: &str;

    fn request(&mut self) -> &mut RunOptions;

    fn settings(&mut self) -> &mut Settings;

    fn files(&mut self) -> &mut ResultFiles;
}

/// What `latency` and `noise` collect beside that.
pub(crate) trait PeerMeasuring: Measuring {
    fn json_file(&mut self) -> &mut Option<PathBuf>;

    fn machine(&self) -> &HostCpus;

    fn load(&mut self) -> &mut LoadDraft;
}

/// `--load` and `--load-cpus`, as given.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadDraft {
    spec: Option<LoadSpec>,
    cpus: Option<CpuSet>,
}

impl LoadDraft {
    /// The load, if any is asked for.
    ///
    /// # Errors
    /// CPUs without a load.
    pub(crate) fn finish(self) -> Result<Option<LoadOptions>, Stop> {
        match (self.spec, self.cpus) {
            (Some(spec), cpus) => Ok(Some(LoadOptions { spec, cpus })),
            (None, Some(_)) => Err(Stop::usage("--load-cpus: there is no load; give --load SPEC")),
            (None, None) => Ok(None),
        }
    }
}

pub(crate) const fn json_or_file<T: PeerMeasuring>() -> OptionDef<T> {
    value(
        "--json[=FILE]",
        "prints one JSON document (hourglass.run/1) and nothing else, or writes it to FILE",
        |to: &mut T, given| {
            match given.value() {
                Some(file) => *to.json_file() = Some(file.into()),
                None => to.settings().json = true,
            }
            Ok(())
        },
    )
}

pub(crate) const fn openmetrics<T: Measuring>() -> OptionDef<T> {
    value(
        "--openmetrics FILE",
        "also write the result as metrics to FILE, for Prometheus by node_exporter's textfile \
         collector",
        |to: &mut T, given| {
            to.files().openmetrics = Some(given.text().into());
            Ok(())
        },
    )
}

pub(crate) const fn junit<T: Measuring>() -> OptionDef<T> {
    value(
        "--junit FILE",
        "also write the limits to FILE as test cases in JUnit's XML, for CI servers",
        |to: &mut T, given| {
            to.files().junit = Some(given.text().into());
            Ok(())
        },
    )
}

pub(crate) const fn load<T: PeerMeasuring>() -> OptionDef<T> {
    value(
        "--load SPEC",
        "loads the machine beside the measurement: all, or KIND[:NUMBER],... with the kinds cpu, cache, \
         memory, io, timer, switch: cpu:2,io:1; by stress-ng where it is installed",
        |to: &mut T, given| {
            let spec = given.text().parse().map_err(|error| given.wrong(error))?;
            to.load().spec = Some(spec);
            Ok(())
        },
    )
}

pub(crate) const fn load_cpus<T: PeerMeasuring>() -> OptionDef<T> {
    value(
        "--load-cpus CPUS",
        "CPUS on which the load may run [default: all with which this command was started, the \
         measured ones too]",
        |to: &mut T, given| {
            to.load().cpus = Some(given.cpus(to.machine())?);
            Ok(())
        },
    )
}

pub(crate) const fn peer_trace<T: PeerMeasuring>() -> OptionDef<T> {
    flag(
        "--trace",
        "records the kernel's events of the measured CPUs, so that causes are named by them; needs \
         root",
        trace,
    )
}

pub(crate) const fn peer_best_effort<T: PeerMeasuring>() -> OptionDef<T> {
    flag(
        "--best-effort",
        "continues without a priority that the machine refuses, and warns",
        best_effort,
    )
}

pub(crate) fn trace<T: Measuring>(to: &mut T) {
    to.request().trace = true;
}

pub(crate) fn best_effort<T: Measuring>(to: &mut T) {
    to.request().spec.best_effort = true;
}

pub(crate) fn json<T: Measuring>(to: &mut T) {
    to.settings().json = true;
}

pub(crate) fn quiet<T: Measuring>(to: &mut T) {
    to.settings().quiet = true;
}

pub(crate) fn color<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    given.word().map(|color| to.settings().color = color)
}

pub(crate) fn folder<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    given.folder().map(|folder| to.request().folder = Some(folder))
}

pub(crate) fn records<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    given.number("number of records").map(|records| to.request().spec.records = records)
}

pub(crate) fn stop_on_gap<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    let gap = given.time(T::LIMIT_UNIT)?;
    to.request().spec.guard.stop_on_gap = Some(gap);
    Ok(())
}

pub(crate) fn stop_on_latency<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    let latency = given.time(T::LIMIT_UNIT)?;
    to.request().spec.guard.stop_on_latency = Some(latency);
    Ok(())
}

pub(crate) fn max_gap<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    let gap = given.time(T::LIMIT_UNIT)?;
    limit(to, Limit::MaxGap(gap))
}

pub(crate) fn max_latency<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    let latency = given.time(T::LIMIT_UNIT)?;
    limit(to, Limit::MaxLatency(latency))
}

pub(crate) fn max_misses<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    let misses = given.number("number of periods")?;
    limit(to, Limit::MaxMisses(misses))
}

pub(crate) fn percentile<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    let percentile = Limit::percentile(given.text()).map_err(|error| given.wrong(error))?;
    limit(to, percentile)
}

fn limit<T: Measuring>(to: &mut T, limit: Limit) -> Applied {
    to.request().gates.set(limit);
    Ok(())
}

pub(crate) fn on_hit<T: Measuring>(to: &mut T, given: &OptionValues<'_>) -> Applied {
    to.request().gates.on_hit = Some(given.text().to_owned());
    Ok(())
}
