//! Causes summed up for the run document.

use std::collections::BTreeMap;

use hourglass_documents::Cause;
use hourglass_documents::document::{CauseReport, OccupantReport};

use super::attribution::RanByCause;
use super::gap::{AttributedGap, GapOccupants, OccupantShare, Successor};
use crate::GapStatistics;

/// Sums up gaps by their causes.
///
/// Memory: some tens of kilobytes for each cause, and some bytes for each thread of the machine.
#[derive(Clone, Debug, Default)]
pub struct CauseTally {
    causes: BTreeMap<Cause, Sum>,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    lengths: GapStatistics,
    believed_ns: f64,
    ran: BTreeMap<Successor, u64>,
}

impl CauseTally {
    pub fn push(&mut self, gap: &AttributedGap) {
        let sum = self.causes.entry(gap.cause).or_default();
        let length = gap.length_ns();
        sum.lengths.push(length);
        sum.believed_ns += gap.confidence() * length as f64;
        for share in gap.occupants.iter() {
            let all = sum.ran.entry(share.who).or_default();
            *all = all.saturating_add(share.ns);
        }
    }

    /// Who had the CPU in all gaps that were added, where more is known than the gaps name.
    pub fn know(&mut self, ran: &RanByCause) {
        for (cause, all) in ran {
            if let Some(sum) = self.causes.get_mut(cause) {
                sum.ran.clone_from(all);
            }
        }
    }

    /// One report for each cause, by total time lost, the most first. A cause's confidence is the
    /// mean of its gaps', weighted by their lengths.
    pub fn reports(&self) -> Vec<CauseReport> {
        let report = |(cause, sum): (&Cause, &Sum)| {
            let lengths = sum.lengths.report();
            let mean = sum.believed_ns / (lengths.total_ns.max(1) as f64);
            CauseReport {
                cause: cause.name().to_owned(),
                count: lengths.count,
                total_ns: lengths.total_ns,
                p50_ns: lengths.p50_ns,
                max_ns: lengths.max_ns,
                confidence: (mean * 1e4).round() / 1e4,
                ran: ran(&sum.ran),
            }
        };
        let mut reports: Vec<CauseReport> = self.causes.iter().map(report).collect();
        reports.sort_by_key(|report| std::cmp::Reverse(report.total_ns));
        reports
    }
}

/// The occupants with the most CPU time. Their names are not known here.
fn ran(all: &BTreeMap<Successor, u64>) -> Vec<OccupantReport> {
    let most =
        GapOccupants::from_shares(all.iter().map(|(who, ns)| OccupantShare { who: *who, ns: *ns }));
    let report = |share: OccupantShare| {
        let (thread, tid) = match share.who {
            Successor::OfRun(thread) => (Some(thread), None),
            Successor::Kernel(number) => (None, Some(number)),
        };
        OccupantReport { thread, tid, name: None, total_ns: share.ns }
    };
    most.iter().map(report).collect()
}
