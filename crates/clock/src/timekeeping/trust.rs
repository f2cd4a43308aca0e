//! Whether what a running clock tells can be relied on, and why.

use super::bound::Status;
use super::clock::Clock;
use super::reference_state::ReferenceState;
use super::sample::SlopeFit;
use super::settings::ClockSettings;
use super::slope::share_of;
use super::timebase::{ReferenceClock, SourceId, Timebase};
use super::timekeeper::{Timekeeper, TimekeeperState};
use crate::trust::{Evidence, EvidenceVerdict, TrustReport};

/// A counter's rate against `CLOCK_MONOTONIC`, as measured over the last half minute at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredRate {
    /// Ticks a second.
    pub hertz: u64,
    /// How far the rate may be off, parts per billion rounded up: what brackets around reads leave
    /// open, without the drift allowed for. Once the samples kept reach back to it, a change of the
    /// rate by some four times this error is found; a smaller one may not be.
    pub error_ppb: u64,
}

impl<B: Timebase> Clock<B> {
    /// The rate of the counter that serves, and how well it is known; `None` while the OS clock
    /// serves. Takes a lock.
    #[must_use]
    pub fn rate(&self) -> Option<MeasuredRate> {
        self.timekeeper().fit.map(SlopeFit::rate)
    }

    /// Whether a counter serves that nothing speaks against; what happened, if one was left; and
    /// what was measured, item by item. Where it says no, the OS clock serves: the time is right,
    /// but a read costs more. For logs and people; takes a lock and allocates.
    #[must_use]
    pub fn trust(&self) -> TrustReport {
        let bounds = self.now_bounded();
        let now_ns = self.base.reference_ns(ReferenceClock::Monotonic);
        let timekeeper = self.timekeeper();
        let mut evidence = timekeeper.evidence(&self.settings, now_ns);
        let serves = self.line_status();
        let status = format!("{}, known to {} ns", status_name(serves), bounds.error_ns());
        evidence.push(Evidence::new("status", verdict_of(serves), status));
        TrustReport {
            trusted: timekeeper.source != SourceId::OS,
            reason: timekeeper.reason(serves),
            evidence,
        }
    }
}

fn verdict_of(status: Status) -> EvidenceVerdict {
    match status {
        Status::Steady | Status::Settling | Status::Assumed => EvidenceVerdict::Good,
        Status::OsClock => EvidenceVerdict::Neutral,
        Status::FailedOver => EvidenceVerdict::Bad,
    }
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::OsClock => "the OS clock serves",
        Status::Settling => "a counter serves, calibrated for less than a second",
        Status::Steady => "a counter serves",
        Status::FailedOver => "the OS clock serves in a counter's place",
        Status::Assumed => "a counter serves, at a rate that is assumed",
    }
}

/// Parts per billion of a share in 2^-32.
fn ppb(relative: u64) -> u64 {
    share_of(1_000_000_000, relative)
}

impl SlopeFit {
    fn rate(self) -> MeasuredRate {
        MeasuredRate { hertz: self.slope.ticks_floor(1_000_000_000), error_ppb: ppb(self.error) }
    }
}

impl Timekeeper {
    fn reason(&self, status: Status) -> String {
        let left = self.log.latest_failover().map(|event| &event.what);
        match (self.state, left) {
            (TimekeeperState::Measuring, _) if status == Status::Settling => {
                format!("{} serves, and its calibration narrows", self.source)
            }
            (TimekeeperState::Measuring, _) => {
                format!("{} serves, and nothing speaks against it", self.source)
            }
            (
                TimekeeperState::Fresh | TimekeeperState::Unjudged | TimekeeperState::Halfway(_),
                _,
            ) => "the machine is not judged yet".into(),
            (TimekeeperState::Waiting(_), Some(what)) => {
                format!("{what}; the counter is tried again")
            }
            _ if self.log.ends_with_choice() => "the OS clock was requested".into(),
            (_, Some(what)) => what.to_string(),
            (_, None) => "no counter is trusted here".into(),
        }
    }

    fn evidence(&self, settings: &ClockSettings, now_ns: u64) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let mut add = |id, verdict, found| evidence.push(Evidence::new(id, verdict, found));
        if let Some(fit) = self.fit {
            let MeasuredRate { hertz, error_ppb } = fit.rate();
            let found = format!(
                "{hertz} Hz to within {error_ppb} ppb, after {} s",
                now_ns.saturating_sub(self.adopted_ns) / 1_000_000_000,
            );
            add("rate", EvidenceVerdict::Good, found);
            add("drift_allowance", EvidenceVerdict::Neutral, {
                format!("{} ppb", ppb(settings.allowance(self.kernel)))
            });
        }
        if self.source != SourceId::OS {
            let (verdict, found) = match self.reference_state {
                ReferenceState::Line(_) => (EvidenceVerdict::Good, "seen by every bounded read"),
                ReferenceState::Generation(_) => (EvidenceVerdict::Good, "stated by the reference"),
                _ if settings.allowance_ppb.is_some() => {
                    (EvidenceVerdict::Neutral, "not stated; bounds allow for what the settings say")
                }
                _ => (EvidenceVerdict::Neutral, "not stated; bounded reads take the OS clock"),
            };
            add("rate_changes", verdict, found.into());
        }
        match self.stated {
            Some(stated) => {
                let tolerance_ppm = stated.tolerance_ppb / 1_000;
                let found = format!("{} Hz stated, within {tolerance_ppm} ppm", stated.hertz);
                let contradicted =
                    self.raw_fit.is_some_and(|fit| stated.contradicts(fit.slope, fit.error));
                add("prior", EvidenceVerdict::good_if(!contradicted), found);
            }
            None => add("prior", EvidenceVerdict::Unknown, "the frequency is not stated".into()),
        }
        match self.log.latest_failover() {
            Some(event) => {
                let serves_again = self.source != SourceId::OS;
                let verdict =
                    if serves_again { EvidenceVerdict::Neutral } else { EvidenceVerdict::Bad };
                add("left", verdict, event.what.to_string());
            }
            None => add("left", EvidenceVerdict::Good, "never".into()),
        }
        evidence
    }
}

#[cfg(test)]
mod tests {
    use hourglass_dice::Dice;

    use super::super::double::Drift;
    use super::super::event::EventKind;
    use super::super::properties::Observed;
    use crate::trust::EvidenceVerdict;

    #[test]
    fn trust_follows_what_happens() {
        let mut observed = Observed::new(21, Drift::Constant(0));
        let fresh = observed.clock.trust();
        assert!(!fresh.trusted && fresh.reason.contains("not judged"), "{fresh:?}");
        observed.live(&mut Dice::new(21), 3_000_000_000, 100_000_000);
        let steady = observed.clock.trust();
        assert_eq!(
            (steady.trusted, steady.reason.as_str()),
            (true, "sim serves, and nothing speaks against it")
        );
        assert!(steady.evidence.iter().all(|e| e.verdict != EvidenceVerdict::Bad), "{steady:?}");
        observed.double.step_ticks(-1_000_000_000);
        observed.double.pass_ns(20_000_000_000);
        observed.clock.maintain();
        let left = observed.clock.trust();
        assert!(!left.trusted && left.reason.starts_with("the counter was -4347"), "{left:?}");
        let status = left.evidence.iter().find(|e| e.id == "status").unwrap();
        assert_eq!(status.verdict, EvidenceVerdict::Bad);
    }

    /// Issue 3, item 2: what takes longer than microseconds to find out comes later.
    #[test]
    fn an_examination_leaves_a_counter_that_anything_speaks_against() {
        let mut observed = Observed::new(22, Drift::Constant(0));
        observed.live(&mut Dice::new(22), 3_000_000_000, 100_000_000);
        assert!(observed.clock.examine().trusted);
        observed.double.with(|s| s.against = Some("cross_cpu: 900 ns apart".into()));
        let left = observed.clock.examine();
        assert!(!left.trusted && left.reason.ends_with("cross_cpu: 900 ns apart"), "{left:?}");
        assert_eq!(observed.clock.count(EventKind::Untrusted), 1);
        observed.live(&mut Dice::new(23), 3_000_000_000, 100_000_000);
        assert_eq!(observed.clock.count(EventKind::Adopted), 1, "it is not tried again");
    }
}
