//! What is kept of wake-ups, and what it says.

use hourglass_documents::paper::{PaperFigure, Point, Series};
use hourglass_trace::statistics::quantile_of;

use super::super::downsample::Downsampler;
use super::super::drawing::measurements;
use super::super::printed::Table;

/// How late each wake-up was. Recording allocates nothing within the room.
#[derive(Debug)]
pub(crate) struct LatencySamples {
    ns: Vec<u64>,
    /// Wake-ups before their time; they count as on time.
    pub(crate) early: u64,
    /// Times that passed while an earlier wake-up was still awaited.
    pub(crate) lost: u64,
}

/// Least, greatest and what lies between, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) min_ns: f64,
    pub(crate) max_ns: f64,
    pub(crate) mean_ns: f64,
    pub(crate) median_ns: f64,
    pub(crate) p99_ns: f64,
}

impl LatencySamples {
    /// Nothing yet; the memory for `wake_ups` is there, and in use.
    pub(crate) fn with_room(wake_ups: usize) -> LatencySamples {
        // Written to, so that no page is missing later.
        let mut ns = vec![1; wake_ups];
        ns.clear();
        LatencySamples { ns, early: 0, lost: 0 }
    }

    /// A thread that was to run at `wanted_ns` ran at `now_ns`, when `passed` further times were
    /// past.
    #[inline]
    pub(crate) fn record(&mut self, now_ns: u64, wanted_ns: u64, passed: u64) {
        self.early += u64::from(now_ns < wanted_ns);
        self.lost += passed;
        self.ns.push(now_ns.saturating_sub(wanted_ns));
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        let (least, greatest) = (sorted.first()?, sorted.last()?);
        let sum: u128 = sorted.iter().map(|ns| u128::from(*ns)).sum();
        Some(Summary {
            count: sorted.len() as u64,
            min_ns: *least as f64,
            max_ns: *greatest as f64,
            mean_ns: sum as f64 / sorted.len() as f64,
            median_ns: quantile_of(&sorted, 0.5)? as f64,
            p99_ns: quantile_of(&sorted, 0.99)? as f64,
        })
    }

    /// Some of them for a figure, and of how many each the extremes and one at random are kept.
    pub(crate) fn points(&self) -> (Vec<Point>, u64) {
        let mut thinned = Downsampler::default();
        self.ns.iter().for_each(|ns| thinned.push(*ns));
        (thinned.drawn(1.0), thinned.stretch())
    }
}

pub(crate) fn summary_of(late: &Result<LatencySamples, String>) -> Result<Summary, String> {
    let summary = late.as_ref().map(LatencySamples::summary).map_err(Clone::clone)?;
    summary.ok_or_else(|| "there was no wake-up".to_owned())
}

pub(crate) fn figure(
    table: &Table,
    loops: u64,
    ways: &[(String, Option<f64>, &Result<LatencySamples, String>)],
) -> PaperFigure {
    let mut thinning = 1;
    let mut series = Vec::new();
    for (name, paper_us, late) in ways {
        let (points, stretch) = late.as_ref().map_or((Vec::new(), 1), LatencySamples::points);
        thinning = thinning.max(stretch);
        series.push(Series {
            name: name.clone(),
            paper_mean_ns: paper_us.map(|us| us * 1e3),
            mean_ns: late.as_ref().ok().and_then(LatencySamples::summary).map(|all| all.mean_ns),
            points,
        });
    }
    let count = if ways.iter().any(|(.., late)| late.is_ok()) { loops } else { 0 };
    measurements((&table.id, &table.title), ("latency", "wake-up", count), thinning, series)
}
