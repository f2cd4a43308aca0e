//! Whether a counter may still be trusted: what is looked at whenever a line is due.

use super::clock_offsets::{Offset, difference};
use super::event::ClockEventKind;
use super::linearity::{self, Rows};
use super::reference_rate::ReferenceLine;
use super::reference_state::ReferenceState;
use super::sample::{ClockSample, SlopeFit};
use super::slope::{relative, relative_from_ppb, share_of};
use super::timebase::{ReferenceClock, Timebase};
use super::timekeeper::{Context, Timekeeper};

pub(super) enum CheckOutcome {
    /// Counter and reference agree; the slope may be off by `doubt` (2^-32) more than its samples say.
    Sound { doubt: u64 },
    /// The counter is sound, but the reference runs at another rate than was measured.
    Predicted(ProvisionalSlope),
    /// The counter must not be used.
    Distrust(ClockEventKind),
}

/// A slope that is more guessed than measured, with an error that says so.
pub(super) struct ProvisionalSlope(pub(super) SlopeFit);

/// The machine was suspended if BOOTTIME gained more than this on MONOTONIC. Suspending takes longer.
const SUSPENDED_NS: i64 = 1_000_000;
/// Between samples further apart nothing is promised about drift,
const LONGEST_CHECK_NS: u64 = 32_000_000_000;
/// but no counter that is fit drifts by more than this.
const PAUSED_PPB: u64 = 500_000;
/// How far a stretch between samples may be off for no reason, ns: two roundings.
const ROUNDING_NS: u64 = 2;

impl Timekeeper {
    /// Looks at everything that may speak against the counter.
    pub(super) fn check<B: Timebase>(
        &mut self,
        context: &Context<'_, B>,
        sample: &ClockSample,
        raw: &ClockSample,
        now_ns: u64,
    ) -> CheckOutcome {
        let boottime = Offset::measure(context.base, ReferenceClock::Boottime);
        let before = self.boottime;
        let slept_ns = boottime.ns.saturating_sub(before.ns);
        if before.is_known() && boottime.is_known() && slept_ns > SUSPENDED_NS {
            return CheckOutcome::Distrust(ClockEventKind::Suspended {
                ns: slept_ns.unsigned_abs(),
            });
        }
        let every_ns = context.settings.look_every_ns;
        if let Some(what) = self.watcher.check_machine(context.settings.root(), now_ns, every_ns) {
            return CheckOutcome::Distrust(what);
        }
        let (Some(latest), Some(fit)) = (self.row.latest().copied(), self.fit) else {
            return CheckOutcome::Sound { doubt: 0 };
        };
        let ticks = sample.ticks.wrapping_sub(latest.ticks);
        if ticks > u64::MAX / 2 {
            return CheckOutcome::Distrust(ClockEventKind::NegativeStep {
                ticks: ticks.wrapping_neg(),
            });
        }
        let kernel = context.base.discipline();
        let allowance =
            context.settings.allowance(self.kernel).max(context.settings.allowance(kernel));
        let correction = self.rate_change(kernel);
        self.kernel = kernel;
        // By the reference, so that a counter that steps far is not taken for a long pause.
        let paused = sample.ns.saturating_sub(latest.ns) > LONGEST_CHECK_NS;
        let doubt = if paused { relative_from_ppb(PAUSED_PPB) } else { 0 };
        let allowance = allowance.saturating_add(doubt);
        let stretch = SampleInterval::new(&latest, sample, fit, allowance);
        match self.reference_state {
            ReferenceState::Contradicted(what) => return CheckOutcome::Distrust(what),
            // The line explains one sample; a counter that changes slowly shows over many.
            ReferenceState::Line(_) if correction == 0 && stretch.is_within() => {
                return self.check_row(sample, raw, allowance, now_ns, fit);
            }
            ReferenceState::Line(line) => {
                return self.by_line(fit, &line, correction, now_ns, &stretch);
            }
            ReferenceState::Nothing | ReferenceState::Generation(_) => {}
        }
        let raw_stretch = self.raw_stretch(raw, allowance);
        let is_counter_sound = raw_stretch.as_ref().is_some_and(SampleInterval::is_within);
        if correction != 0 && !(is_counter_sound && stretch.is_beyond(correction)) {
            return self.after_rate_change(fit, correction, now_ns, &stretch);
        }
        if stretch.is_within() {
            return self.check_row(sample, raw, allowance, now_ns, fit);
        }
        // Only a clock without slewing shows which of the two left its rate, and only beyond what brackets explain.
        if let Some(raw) = raw_stretch.filter(SampleInterval::is_within) {
            if !stretch.is_apart_from(&raw) {
                return CheckOutcome::Sound { doubt: stretch.doubt() };
            }
            self.log.note(now_ns, ClockEventKind::ReferenceSlewed { error_ns: stretch.error_ns });
            return CheckOutcome::Predicted(ProvisionalSlope(
                stretch.measured_anew(&latest, sample, fit),
            ));
        }
        CheckOutcome::Distrust(stretch.residual())
    }

    /// Whether the counter kept its rate over all samples of the last half minute: what hides in the
    /// brackets of one interval.
    fn check_row(
        &mut self,
        sample: &ClockSample,
        raw: &ClockSample,
        allowance: u64,
        now_ns: u64,
        fit: SlopeFit,
    ) -> CheckOutcome {
        let rows = ((&self.row, sample), (&self.raw_row, raw));
        match linearity::check_linearity(rows.0, rows.1, allowance, LONGEST_CHECK_NS) {
            Rows::Straight => CheckOutcome::Sound { doubt: 0 },
            Rows::Doubtful(doubt) => CheckOutcome::Sound { doubt },
            Rows::CounterBent(bend) => CheckOutcome::Distrust(bend.residual()),
            Rows::ReferenceBent(bend) => {
                self.log.note(now_ns, ClockEventKind::ReferenceSlewed { error_ns: bend.error_ns });
                let error = fit.error.saturating_add(bend.doubt());
                CheckOutcome::Predicted(ProvisionalSlope(SlopeFit { error, ..fit }))
            }
        }
    }

    /// How much faster (2^-32) the kernel makes its clock run than at the last check.
    fn rate_change(&self, kernel: Option<super::timebase::Discipline>) -> i64 {
        match (self.kernel, kernel) {
            (Some(before), Some(now)) => now.correction.saturating_sub(before.correction),
            _ => 0,
        }
    }

    /// The kernel said that it changed the rate: the old slope with that change, until measured.
    fn after_rate_change(
        &mut self,
        fit: SlopeFit,
        correction: i64,
        now_ns: u64,
        stretch: &SampleInterval,
    ) -> CheckOutcome {
        if stretch.is_beyond(correction) {
            return CheckOutcome::Distrust(stretch.residual());
        }
        self.note_correction(now_ns, correction);
        let slope = fit.slope.slower(correction.saturating_neg(), 1 << 32);
        // A sixteenth of the change may be somewhere else than where it was said to be.
        let doubt = correction.unsigned_abs() / 16;
        CheckOutcome::Predicted(ProvisionalSlope(SlopeFit {
            slope,
            error: fit.error.saturating_add(doubt).saturating_add(1),
            ..fit
        }))
    }

    /// The reference's own line was just found true of the counter, so whatever the rate did, it was
    /// the reference's doing.
    fn by_line(
        &mut self,
        fit: SlopeFit,
        line: &ReferenceLine,
        correction: i64,
        now_ns: u64,
        stretch: &SampleInterval,
    ) -> CheckOutcome {
        if correction != 0 {
            self.note_correction(now_ns, correction);
        } else {
            self.log.note(now_ns, ClockEventKind::ReferenceSlewed { error_ns: stretch.error_ns });
        }
        let slope = line.slope().unwrap_or(fit.slope);
        CheckOutcome::Predicted(ProvisionalSlope(SlopeFit { slope, error: line.unit(), ..fit }))
    }

    fn note_correction(&mut self, now_ns: u64, correction: i64) {
        let ppb = (i128::from(correction) * 1_000_000_000) >> 32;
        self.log.note(
            now_ns,
            ClockEventKind::RateCorrected { ppb: i64::try_from(ppb).unwrap_or(i64::MAX) },
        );
    }

    fn raw_stretch(&self, raw: &ClockSample, allowance: u64) -> Option<SampleInterval> {
        let latest = self.raw_row.latest()?;
        Some(SampleInterval::new(latest, raw, self.raw_fit?, allowance))
    }
}

/// Two samples, what the slope predicts between them, and what may be between them.
struct SampleInterval {
    /// By the counter, ns.
    length_ns: u64,
    /// Counter minus clock, ns.
    error_ns: i64,
    /// What is allowed, ns.
    bound_ns: u64,
}

impl SampleInterval {
    fn new(
        first: &ClockSample,
        last: &ClockSample,
        fit: SlopeFit,
        allowance: u64,
    ) -> SampleInterval {
        let ticks = last.ticks.wrapping_sub(first.ticks);
        let length_ns = fit.slope.ns_floor(if ticks > u64::MAX / 2 { 0 } else { ticks });
        let by_clock_ns = difference(last.ns, first.ns);
        let by_counter_ns = i64::try_from(length_ns).unwrap_or(i64::MAX);
        let brackets = first.half_ticks.saturating_add(last.half_ticks);
        let drift_ns = share_of(length_ns, fit.error.saturating_add(allowance));
        SampleInterval {
            length_ns,
            error_ns: by_counter_ns.saturating_sub(by_clock_ns),
            bound_ns: fit.slope.ns_ceil(brackets).saturating_add(drift_ns + ROUNDING_NS),
        }
    }

    fn is_within(&self) -> bool {
        self.error_ns.unsigned_abs() <= self.bound_ns
    }

    /// Whether the error is more than a change of rate somewhere in the stretch explains.
    fn is_beyond(&self, correction: i64) -> bool {
        let explained_ns = share_of(self.length_ns, correction.unsigned_abs());
        self.error_ns.unsigned_abs() > self.bound_ns.saturating_add(explained_ns)
    }

    /// Whether two clocks disagree on the counter by more than is allowed for both together.
    fn is_apart_from(&self, other: &SampleInterval) -> bool {
        let allowed_ns = self.bound_ns.saturating_add(other.bound_ns);
        self.error_ns.abs_diff(other.error_ns) > allowed_ns
    }

    /// By how much the slope may be off more than its samples say, 2^-32.
    fn doubt(&self) -> u64 {
        relative(self.error_ns.unsigned_abs().saturating_add(self.bound_ns), self.length_ns)
    }

    fn residual(&self) -> ClockEventKind {
        ClockEventKind::Residual { error_ns: self.error_ns, bound_ns: self.bound_ns }
    }

    /// The slope over this stretch alone; how far it left the prediction is how far it is unsure.
    fn measured_anew(&self, first: &ClockSample, last: &ClockSample, fit: SlopeFit) -> SlopeFit {
        let doubt = relative(self.error_ns.unsigned_abs(), self.length_ns);
        let anew = SlopeFit::between(first, last).unwrap_or(fit);
        SlopeFit { error: anew.error.saturating_add(doubt), ..anew }
    }
}
