//! The wake-ups of an open run on its time line, and the stages of the latest of them.
//!
//! Owns: which wake-ups are held in memory, and which are reported one by one. Must not: join them with events
//! (`trace` does).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hourglass_documents::document::ThreadReport;
use hourglass_trace::KernelEvent;
use hourglass_trace::cause::{GapOccupants, OccupantShare, Successor};
use hourglass_trace::cpu_occupancy::{CpuOccupancy, Occupant};
use hourglass_trace::wakeup::{self, LateWakeUp, ObservedWakeUp, TimedWakeUp, WakeUp};

/// Wake-ups of all threads that are kept for their timelines, more than any picture shows: of each thread as many,
/// the latest ones.
const MOST_KEPT: usize = 400_000;

/// Wake-ups that are held for each thread at least.
const FEWEST_KEPT: usize = 1_000;

/// Wake-ups of a run that are reported one by one, at most.
const MAX_REPORTED: usize = 20;

/// The wake-ups of a thread while they are read. Memory: twice as many as are kept.
#[derive(Debug)]
pub(crate) struct LatestWakeUps {
    kept: Vec<TimedWakeUp>,
    most: usize,
}

impl LatestWakeUps {
    pub(crate) fn of_threads(threads: usize) -> LatestWakeUps {
        LatestWakeUps { kept: Vec::new(), most: (MOST_KEPT / threads.max(1)).max(FEWEST_KEPT) }
    }

    pub(crate) fn push(&mut self, wake_up: TimedWakeUp) {
        self.kept.push(wake_up);
        if self.kept.len() >= 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.most {
            let by_lateness = |one: &TimedWakeUp| (Reverse(one.latency_ns), one.woke_ns);
            self.kept.select_nth_unstable_by_key(self.most, by_lateness);
            self.kept.truncate(self.most);
        }
    }

    /// Those that were kept, in order of time.
    pub(crate) fn finish(mut self) -> Vec<TimedWakeUp> {
        self.cut();
        self.kept.sort_by_key(|one| one.woke_ns);
        self.kept
    }
}

/// The latest wake-ups of all threads, the latest first, taken apart by the kernel's events where there are any.
pub(crate) fn latest(
    threads: &[ThreadReport],
    wake_ups: &BTreeMap<u32, Vec<TimedWakeUp>>,
    events: &[KernelEvent],
    epoch_ns: u64,
) -> Vec<LateWakeUp> {
    let each = wake_ups.iter().flat_map(|(thread, all)| all.iter().map(move |one| (*thread, *one)));
    let mut all: Vec<(u32, TimedWakeUp)> = each.collect();
    let by_lateness =
        |(thread, one): &(u32, TimedWakeUp)| (Reverse(one.latency_ns), one.woke_ns, *thread);
    if all.len() > MAX_REPORTED {
        all.select_nth_unstable_by_key(MAX_REPORTED, by_lateness);
        all.truncate(MAX_REPORTED);
    }
    // In order of time, as they are joined with events.
    all.sort_unstable_by_key(|(thread, one)| (one.woke_ns, *thread));
    let tids: BTreeMap<u32, u32> =
        threads.iter().filter_map(|thread| Some((thread.id, thread.tid?))).collect();
    let woke = all.iter().map(|(thread, one)| ObservedWakeUp {
        // A wake-up without a thread: no event is joined with it.
        tid: tids.get(thread).copied().unwrap_or(KernelEvent::UNTOLD),
        ns: one.woke_ns,
    });
    let joined = wakeup::decompose(events.iter().copied(), woke, epoch_ns).map(Result::ok);
    let mut reports: Vec<LateWakeUp> = all
        .iter()
        .zip(joined)
        .map(|((thread, one), stages)| LateWakeUp {
            thread: *thread,
            woke_ns: one.woke_ns,
            latency_ns: one.latency_ns,
            stages,
            occupants: GapOccupants::default(),
        })
        .collect();
    say_who_ran(&mut reports, &tids, events);
    reports.sort_by_key(|one| (Reverse(one.latency_ns), one.woke_ns));
    reports
}

/// Notes who had the CPU between the expiry and the moment at which the thread saw the time.
fn say_who_ran(reports: &mut [LateWakeUp], tids: &BTreeMap<u32, u32>, events: &[KernelEvent]) {
    let of_run: BTreeMap<u32, u32> = tids.iter().map(|(id, tid)| (*tid, *id)).collect();
    let mut times: Vec<BTreeMap<Successor, u64>> = vec![BTreeMap::new(); reports.len()];
    let stages: Vec<(usize, WakeUp)> =
        reports.iter().enumerate().filter_map(|(place, one)| Some((place, one.stages?))).collect();
    let mut who_ran = CpuOccupancy::default();
    let mut note = |slice: hourglass_trace::cpu_occupancy::Slice| {
        let Occupant::Thread(number) = slice.who else { return };
        for (place, up) in stages.iter().filter(|(_, up)| up.cpu == slice.cpu && up.tid != number) {
            let ns = slice.within_ns(up.expiry_ns, up.user_ns);
            if ns > 0 {
                let who = of_run
                    .get(&number)
                    .map_or(Successor::Kernel(number), |id| Successor::OfRun(*id));
                *times[*place].entry(who).or_default() += ns;
            }
        }
    };
    let last = stages.iter().map(|(_, up)| up.user_ns).max().unwrap_or(i64::MIN);
    events.iter().for_each(|event| who_ran.take(event, &mut note));
    who_ran.finish(last, note);
    for (one, times) in reports.iter_mut().zip(times) {
        one.occupants =
            GapOccupants::from_shares(times.into_iter().map(|(who, ns)| OccupantShare { who, ns }));
    }
}

#[cfg(test)]
mod tests {
    use hourglass_trace::{KernelEventKind as Kind, Vector};

    use super::*;

    #[test]
    fn the_latest_are_kept_and_stay_in_order_of_time() {
        let mut latest = LatestWakeUps::of_threads(2);
        // Every hundredth is late, and far more come than are kept.
        for n in 0..1_000_000_i64 {
            let late_ns = if n % 100 == 0 { 5_000 } else { 10 + n.unsigned_abs() % 7 };
            latest.push(TimedWakeUp { woke_ns: n * 1_000, latency_ns: late_ns });
        }
        let kept = latest.finish();
        assert_eq!(kept.len(), MOST_KEPT / 2);
        assert_eq!(kept.iter().filter(|one| one.latency_ns == 5_000).count(), 10_000);
        assert!(kept.windows(2).all(|two| two[0].woke_ns < two[1].woke_ns));
    }

    fn event(ns: i64, kind: Kind, a: u32, b: u32, value: u64) -> KernelEvent {
        KernelEvent { ns, ticks: 0, value, cpu: 1, a, b, kind }
    }

    /// Thread 70, of the run's number 3, waits while 812 has the CPU: 30 us of its 50.
    #[test]
    fn who_had_the_cpu_is_said_of_the_latest() {
        const US: i64 = 1_000;
        let epoch_ns = 5_000_000_000;
        let expiry = epoch_ns + 100_000;
        let timer = Vector::LocalTimer.code();
        let events = [
            event(0, Kind::HrtimerStart, expiry as u32, (expiry >> 32) as u32, 9),
            event(US, Kind::Switch, 70, 0, 1),
            event(50 * US, Kind::Switch, 0, 812, 0),
            event(110 * US, Kind::VectorEntry, timer, 236, 0),
            event(111 * US, Kind::HrtimerEntry, 0, 0, 9),
            event(112 * US, Kind::Waking, 70, 1, 0),
            event(114 * US, Kind::HrtimerExit, 0, 0, 9),
            event(115 * US, Kind::VectorExit, timer, 236, 0),
            event(135 * US, Kind::Switch, 812, 70, 0),
        ];
        let mut report: ThreadReport = serde_json::from_value(serde_json::json!({
            "id": 3, "tid": 70, "workload": "LAT 1ms", "wake_up": "HR", "policy": "OTHER:0", "cpus": [1],
            "cpus_seen": [1], "cpu_time_ns": 0, "wall_ns": 0, "intervals": 0,
            "gaps": {"count": 0, "total_ns": 0, "p50_ns": 0, "p99_ns": 0, "p999_ns": 0, "max_ns": 0},
            "deadlines": null, "latency": null, "work": null, "records_dropped": 0, "migrations": 0,
        }))
        .unwrap();
        let one = |woke_ns, late_ns| TimedWakeUp { woke_ns, latency_ns: late_ns };
        let wake_ups = BTreeMap::from([(3, vec![one(90 * US, 1), one(150 * US, 50_000)])]);
        let reports = latest(&[report.clone()], &wake_ups, &events, epoch_ns);
        let lateness: Vec<u64> = reports.iter().map(|one| one.latency_ns).collect();
        assert_eq!(lateness, [50_000, 1]);
        let stages = reports[0].stages.unwrap().stages_ns();
        assert_eq!(stages, [10, 1, 1, 23, 15, 50].map(|us| us * US));
        let ran: Vec<OccupantShare> = reports[0].occupants.iter().collect();
        // From the expiry on, without the interrupt's 5 us.
        assert_eq!(ran, [OccupantShare { who: Successor::Kernel(812), ns: 30_000 }]);
        assert_eq!((reports[1].stages, reports[1].occupants.longest()), (None, None));
        // Without the kernel's number nothing is joined.
        report.tid = None;
        assert!(latest(&[report], &wake_ups, &events, epoch_ns)[0].stages.is_none());
    }
}
