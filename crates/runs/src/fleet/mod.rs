//! Measured folders put together: those of many nodes, or of many runs.
//!
//! Owns: which folders are found (`find`), that each run is there once and that all measured the same, adding them
//! (`merge`), and the summary by node ([`summary`]). Must not: draw, print.
//!
//! Histograms of single runs stand beside each other in one table, in an order that the runs themselves define. So what
//! is written does not depend on the order in which folders are named, nor on how many steps they were put together.
//! Folders are read one after the other; what stays in memory is a few hundred bytes for each thread of each run.

mod error;
mod find;
mod series;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::store::merged::{HistogramWriter, MergedFolder, NewMergedFolder, SeriesName, Step};
use hourglass_documents::histogram_steps::SIGNIFICANT_DIGITS;
use hourglass_documents::merged::{MERGED_SCHEMA, MergedDocument, MergedRun, MergedSeries};

pub use error::FleetError;
pub use find::{holds_runs, is_measured, is_merged};
pub use summary::summary;

use find::{PlannedRun, RunLocation};

/// Puts the runs in `folders` together in the new folder `out`. Each of `folders` is a run folder, one of runs put
/// together, or one that has such folders in it.
///
/// # Errors
/// A folder that is half-written, damaged, or of another kind; a run that is there twice; runs that did not measure
/// the same; `out` is there already, or cannot be written. Then nothing is written.
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<(), FleetError> {
    let found = find::find(folders)?;
    let (planned, merged) = find::plan(found)?;
    check(&planned)?;
    let folder = NewMergedFolder::create(out)?;
    let (runs, rows) = {
        let mut histograms = folder.histograms()?;
        let runs = add(planned, &merged, &mut histograms)?;
        (runs, histograms.finish()?)
    };
    folder.finish(&MergedDocument {
        schema: MERGED_SCHEMA.to_owned(),
        significant_digits: SIGNIFICANT_DIGITS,
        rows,
        runs,
    })?;
    Ok(())
}

/// That each run is there once, and that all measured the same; they are in order.
fn check(planned: &[PlannedRun]) -> Result<(), FleetError> {
    let mut by_epoch: Vec<&PlannedRun> = planned.iter().collect();
    by_epoch.sort_by_key(|one| one.epoch());
    for pair in by_epoch.windows(2) {
        if pair[0].epoch() == pair[1].epoch() {
            let (one, other) = (pair[0].place.path(), pair[1].place.path());
            return Err(FleetError::Double {
                run: pair[0].run.run.clone(),
                node: pair[0].run.node.clone(),
                path: one.min(other).to_path_buf(),
                other: one.max(other).to_path_buf(),
            });
        }
    }
    let Some(first) = planned.first() else { return Ok(()) };
    match planned.iter().find(|one| one.run.measured != first.run.measured) {
        None => Ok(()),
        Some(other) => Err(FleetError::Another {
            path: other.place.path().to_path_buf(),
            there: other.run.measured.join(", "),
            other: first.place.path().to_path_buf(),
            here: first.run.measured.join(", "),
        }),
    }
}

/// Writes the histograms of all runs in their order; gives the runs with their series.
fn add(
    planned: Vec<PlannedRun>,
    merged: &[MergedFolder],
    histograms: &mut HistogramWriter<'_>,
) -> Result<Vec<MergedRun>, FleetError> {
    // Each folder's rows are in the order in which they are asked for.
    let mut open = BTreeMap::new();
    for (number, folder) in merged.iter().enumerate() {
        open.insert(number, folder.steps()?);
    }
    let mut runs = Vec::with_capacity(planned.len());
    for PlannedRun { mut run, place } in planned {
        match place {
            RunLocation::Run(path) => {
                for (series, steps) in series::of_folder(&path)? {
                    write(histograms, &run, &series, &steps)?;
                    run.series.push(series);
                }
            }
            RunLocation::Merged(_, number) => {
                let Some(steps) = open.get_mut(&number) else { continue };
                for series in &run.series {
                    let name = SeriesName::of(&run, series);
                    steps.series(series, |step| {
                        histograms.write(&name, step).map_err(FleetError::from)
                    })?;
                }
            }
        }
        runs.push(run);
    }
    Ok(runs)
}

fn write(
    histograms: &mut HistogramWriter<'_>,
    run: &MergedRun,
    series: &MergedSeries,
    steps: &BTreeMap<u64, u64>,
) -> Result<(), FleetError> {
    let name = SeriesName::of(run, series);
    for (&lo_ns, &count) in steps {
        histograms.write(&name, Step { lo_ns, count })?;
    }
    Ok(())
}
