//! Jobs in the row of a thread: releases, deadlines, what ran too late, and what never ran.
//!
//! Owns: how many of them a row of pixels can show. Memory: a few numbers for each column.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hourglass_trace::{Interval, IntervalStart, JobRecord};

use super::legend::LegendEntry;
use super::page::pixels;
use super::row::{Row, RowSegment};
use super::view::TimeRange;

/// Releases closer than this, in pixels on average, are not drawn.
pub(super) const LEAST_DISTANCE: u32 = 6;

/// The stripes of what ran too late, which those see who do not see its colour.
pub(super) const PATTERN: &str = "<defs><pattern id=\"hg-over\" width=\"5\" height=\"5\" \
     patternUnits=\"userSpaceOnUse\"><path class=\"hg-stripe\" d=\"M-1 6L6 -1M-1 1L1 -1M4 6L6 4\"/></pattern></defs>\n";

/// What a picture shows of the jobs of a thread.
#[derive(Debug, Default)]
pub(super) struct JobRow {
    /// Releases and deadlines that were met, by column: a time in it.
    releases: BTreeMap<u32, i64>,
    met: BTreeMap<u32, i64>,
    missed: BTreeMap<u32, i64>,
    lost: BTreeMap<u32, i64>,
    released: u64,
    missed_count: u64,
    lost_count: u64,
    /// When jobs went on after their deadlines, ascending and apart.
    late_spans: Vec<(i64, i64)>,
    late: Row,
}

/// A row's jobs that are ready to be drawn.
#[derive(Debug, Default)]
pub(super) struct DrawnJobs {
    pub(super) releases: Vec<i64>,
    pub(super) met: Vec<i64>,
    pub(super) missed: Vec<i64>,
    pub(super) lost: Vec<i64>,
    pub(super) late: Vec<RowSegment>,
    pub(super) missed_count: u64,
    pub(super) lost_count: u64,
    /// Releases, and deadlines that were met, are too many to be drawn.
    pub(super) crowded: bool,
}

impl JobRow {
    /// Takes a job of a run that ended at `end_ns`. Jobs come in the order in which they run.
    pub(super) fn push(&mut self, view: &TimeRange, job: &JobRecord, end_ns: i64) {
        let mark = |marks: &mut BTreeMap<u32, i64>, ns: i64| {
            let inside = (view.from_ns..=view.to_ns).contains(&ns);
            if inside {
                marks.entry(view.column(ns)).or_insert(ns);
            }
            u64::from(inside)
        };
        if job.lost {
            self.lost_count += mark(&mut self.lost, job.release_ns);
            return;
        }
        self.released += mark(&mut self.releases, job.release_ns);
        if job.is_missed(end_ns) {
            self.missed_count += mark(&mut self.missed, job.deadline_ns);
        } else {
            mark(&mut self.met, job.deadline_ns);
        }
        let Some((from, to)) = job.late_span(end_ns) else { return };
        let (from, to) = (from.max(view.from_ns), to.min(view.to_ns));
        match self.late_spans.last_mut() {
            _ if from >= to => {}
            // What lies within one column cannot be told apart.
            Some(last) if view.column(from) <= view.column(last.1) => last.1 = last.1.max(to),
            _ => self.late_spans.push((from, to)),
        }
    }

    /// Takes what of an interval ran too late.
    pub(super) fn push_interval(&mut self, view: &TimeRange, interval: &Interval) {
        let first = self.late_spans.partition_point(|(_, to)| *to <= interval.start_ns);
        let spans = self.late_spans.iter().skip(first);
        for (from, to) in spans.take_while(|(from, _)| *from < interval.end_ns) {
            let late = Interval {
                start_ns: interval.start_ns.max(*from),
                end_ns: interval.end_ns.min(*to),
                onset: IntervalStart::Wait,
                ..*interval
            };
            self.late.push(view, &late);
        }
    }

    pub(super) fn finish(self, view: &TimeRange) -> DrawnJobs {
        let crowded = self.released.saturating_mul(LEAST_DISTANCE.into()) > view.columns.into();
        let times = |marks: BTreeMap<u32, i64>| marks.into_values().collect();
        let unless_crowded =
            |marks: BTreeMap<u32, i64>| if crowded { Vec::new() } else { times(marks) };
        DrawnJobs {
            releases: unless_crowded(self.releases),
            met: unless_crowded(self.met),
            missed: times(self.missed),
            lost: times(self.lost),
            late: self.late.finish(view).0,
            missed_count: self.missed_count,
            lost_count: self.lost_count,
            crowded,
        }
    }
}

/// A mark of a job, and where it stands.
#[derive(Clone, Copy)]
pub(super) enum JobMark {
    /// An arrow up, above the bar.
    Release,
    /// An arrow down, below the bar.
    Deadline,
    /// A cross above the bar.
    Lost,
}

impl JobMark {
    /// Its path at `x`, of a bar from `top` to `bottom`.
    pub(super) fn path(self, x: f64, top: u32, bottom: u32) -> String {
        let at = pixels(x);
        match self {
            JobMark::Release => {
                format!("M{at} {bottom}V{}m-3 4l3 -4l3 4", top.saturating_sub(8))
            }
            JobMark::Deadline => format!("M{at} {bottom}v8m-3 -4l3 4l3 -4"),
            JobMark::Lost => {
                format!("M{} {}l6 6m0 -6l-6 6", pixels(x - 3.0), top.saturating_sub(8))
            }
        }
    }
}

/// What the signs of these rows mean.
pub(super) fn legend(rows: &BTreeMap<u32, DrawnJobs>) -> Vec<LegendEntry> {
    let all = || rows.values();
    let mark = |class: &str, mark: JobMark, (top, bottom), text: String| LegendEntry {
        sign: format!("<path class=\"{class}\" d=\"{}\"/>", mark.path(7.0, top, bottom)),
        text,
    };
    let count = |of: fn(&DrawnJobs) -> u64| all().map(of).fold(0, u64::saturating_add);
    let (missed, lost) = (count(|row| row.missed_count), count(|row| row.lost_count));
    let mut entries = Vec::new();
    if all().any(|row| !row.releases.is_empty()) {
        entries.push(mark("hg-job", JobMark::Release, (8, 11), "release of a job".to_owned()));
    }
    if all().any(|row| !row.met.is_empty()) {
        entries.push(mark("hg-job", JobMark::Deadline, (0, 1), "deadline".to_owned()));
    }
    if missed > 0 {
        let text = format!("missed deadline ({missed})");
        entries.push(mark("hg-job hg-missed", JobMark::Deadline, (0, 1), text));
    }
    if all().any(|row| !row.late.is_empty()) {
        let mut sign = String::new();
        for paint in ["currentColor", "url(#hg-over)"] {
            let _ = write!(
                sign,
                "<rect class=\"hg-over\" fill=\"{paint}\" width=\"14\" height=\"10\"/>"
            );
        }
        entries.push(LegendEntry { sign, text: "ran after its deadline".to_owned() });
    }
    if lost > 0 {
        let text = format!("lost period ({lost}): its job never ran");
        entries.push(mark("hg-job hg-missed", JobMark::Lost, (10, 10), text));
    }
    if all().any(|row| row.crowded) {
        let text = format!(
            "releases closer than {LEAST_DISTANCE} pixels are not drawn, nor deadlines met"
        );
        entries.push(LegendEntry { sign: String::new(), text });
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: TimeRange = TimeRange { from_ns: 0, to_ns: 1_000, columns: 100 };

    fn job(release_ns: i64, finished_ns: i64) -> JobRecord {
        JobRecord {
            thread: 0,
            release_ns,
            deadline_ns: release_ns + 100,
            started_ns: Some(release_ns),
            finished_ns: Some(finished_ns),
            lost: false,
        }
    }

    #[test]
    fn only_what_ran_after_the_deadline_is_late() {
        let mut row = JobRow::default();
        row.push(&VIEW, &job(0, 90), 1_000);
        row.push(&VIEW, &job(200, 350), 1_000);
        row.push(&VIEW, &JobRecord { lost: true, ..job(400, 0) }, 1_000);
        for (from, to) in [(0, 90), (200, 260), (290, 320), (340, 350)] {
            row.push_interval(&VIEW, &Interval::new(0, 0, from, to, IntervalStart::Gap));
        }
        let drawn = row.finish(&VIEW);
        assert_eq!(drawn.releases, [0, 200]);
        assert_eq!((drawn.met, drawn.missed, drawn.lost), (vec![100], vec![300], vec![400]));
        let late: Vec<_> = drawn.late.iter().map(|piece| (piece.from_ns, piece.to_ns)).collect();
        assert_eq!(late, [(300, 320), (340, 350)]);
    }

    #[test]
    fn marks_that_no_pixel_separates_are_left_out_but_for_misses() {
        let mut row = JobRow::default();
        for release in 0..500 {
            row.push(&VIEW, &job(release * 2, release * 2 + 101), 1_000);
        }
        let drawn = row.finish(&VIEW);
        assert!(drawn.crowded && drawn.releases.is_empty() && drawn.met.is_empty());
        assert!(drawn.missed.len() <= 101 && drawn.missed_count > 400);
        let text: Vec<String> =
            legend(&BTreeMap::from([(0, drawn)])).into_iter().map(|entry| entry.text).collect();
        assert!(text.iter().any(|text| text.contains("are not drawn")), "{text:?}");
    }
}
