//! How quotas stopped a process while it was watched, look by look: it may come under other quotas at any time.

use hourglass_documents::document::Premise;
use hourglass_documents::premise::PremiseKind;
use hourglass_documents::watched::WatchedProcess;
use hourglass_machine::facts::ThrottleCounts;

#[derive(Clone, Debug, Default)]
pub(super) struct QuotaCounts {
    last: Option<ThrottleCounts>,
    /// Periods, and for how long, ns, where the kernel tells; `None` without a quota so far.
    stopped: Option<(u64, Option<u64>)>,
    others_at_ns: Option<u64>,
}

impl QuotaCounts {
    pub(super) fn new(first: Option<ThrottleCounts>) -> QuotaCounts {
        let stopped = first.as_ref().map(|first| (0, first.ns.map(|_| 0)));
        QuotaCounts { last: first, stopped, others_at_ns: None }
    }

    /// Takes the counts of a look that began at `at_ns`, of a process that goes on.
    pub(super) fn take(&mut self, now: Option<ThrottleCounts>, at_ns: u64) {
        let files = |stopped: &Option<ThrottleCounts>| -> Vec<String> {
            let quotas = stopped.iter().flat_map(|stopped| &stopped.quotas);
            quotas.map(|quota| quota.file.clone()).collect()
        };
        if files(&self.last) != files(&now) {
            self.others_at_ns.get_or_insert(at_ns);
            if let Some(now) = &now {
                self.stopped.get_or_insert((0, now.ns.map(|_| 0)));
            }
        } else if let (Some(last), Some(now), Some((periods, ns))) =
            (&self.last, &now, &mut self.stopped)
        {
            *periods = periods.saturating_add(now.periods.saturating_sub(last.periods));
            let more = now.ns.zip(last.ns).map(|(now, last)| now.saturating_sub(last));
            *ns = ns.zip(more).map(|(ns, more)| ns.saturating_add(more));
        }
        self.last = now;
    }

    pub(super) fn fill(&self, process: &mut WatchedProcess) {
        process.quota_throttled = self.stopped.map(|(periods, _)| periods);
        process.quota_throttled_ns = self.stopped.and_then(|(_, ns)| ns);
    }

    /// That stops are missing, a premise that did not hold.
    pub(super) fn trouble(&self, process: &WatchedProcess) -> Option<Premise> {
        let at_ns = self.others_at_ns?;
        let text = format!(
            "{} ({}) came under other quotas (moved to another control group, or cpu.max was set): time stopped by quotas \
             between the samples around that is not counted",
            process.name, process.pid
        );
        Some(PremiseKind::QuotaChanged.broken(text, at_ns))
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::host::CpuQuota;

    use super::*;

    fn stopped(group: &str, periods: u64) -> Option<ThrottleCounts> {
        let quota = CpuQuota { file: group.to_owned(), quota_us: 5_000, period_us: 50_000 };
        let ns = Some(periods * 1_000);
        (!group.is_empty()).then(|| ThrottleCounts { periods, ns, quotas: vec![quota] })
    }

    /// Each group's counts are of all that were ever in it: only what grew while the process was seen there is its own.
    #[test]
    fn counts_of_two_groups_are_not_taken_from_each_other() {
        type Looks = &'static [(&'static str, u64)];
        let rows: [(Looks, Option<u64>, Option<u64>); 6] = [
            (&[("a", 70), ("a", 75), ("a", 80)], Some(10), None),
            (&[("", 0), ("", 0)], None, None),
            (&[("", 0), ("a", 500), ("a", 503)], Some(3), Some(1)),
            (&[("a", 3), ("b", 500), ("b", 501)], Some(1), Some(1)),
            (&[("a", 500), ("a", 502), ("b", 3), ("a", 900)], Some(2), Some(2)),
            (&[("a", 500), ("", 0), ("", 0)], Some(0), Some(1)),
        ];
        for (looks, periods, others) in rows {
            let mut looks = looks.iter().map(|(group, periods)| stopped(group, *periods));
            let mut counts = QuotaCounts::new(looks.next().unwrap());
            looks.zip(1..).for_each(|(look, at_ns)| counts.take(look, at_ns));
            let mut process = WatchedProcess::default();
            counts.fill(&mut process);
            let ns = periods.map(|periods| periods * 1_000);
            assert_eq!((process.quota_throttled, process.quota_throttled_ns), (periods, ns));
            let trouble = counts.trouble(&process);
            assert_eq!(trouble.map(|premise| premise.at_ns), others, "{periods:?}");
        }
    }
}
