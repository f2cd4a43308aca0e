//! Options that `run`, `latency` and `noise` take alike.

use super::{Applied, OptionValues};
use crate::lab::{Limit, RunOptions};
use crate::settings::Settings;

/// What a command that measures collects from its line.
pub(crate) trait Measuring {
    /// The unit of a bare number that is a limit; empty where a unit must be given.
    const LIMIT_UNIT: &str;

    fn request(&mut self) -> &mut RunOptions;

    fn settings(&mut self) -> &mut Settings;
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
