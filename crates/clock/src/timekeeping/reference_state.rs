//! What the reference tells of itself, held against readings: what a line may rest on.

use super::bound::Status;
use super::event::ClockEventKind;
use super::line::LineValidity;
use super::reference_rate::{ReferenceLine, ReferenceRate};
use super::sample::{BackwardStep, ClockSample, SlopeFit, narrowest};
use super::settings::ClockSettings;
use super::timebase::{ReferenceClock, SourceId, Timebase};
use super::timekeeper::{Context, Timekeeper};

/// The reference's statement of its rate, as far as readings agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceState {
    /// Nothing that would be true.
    Nothing,
    /// When its rate changes, but not what it is.
    Generation(u32),
    /// The line by which it makes its clock of the counter that serves.
    Line(ReferenceLine),
    /// A line that explained its clock before, and does not any more: the counter is not what the
    /// reference reads.
    Contradicted(ClockEventKind),
}

/// The basis of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineBasis {
    pub(super) fit: SlopeFit,
    /// Bound on the slope's relative error from now on, 2^-32.
    pub(super) growth: u64,
    pub(super) anchor: ClockSample,
    pub(super) hold: LineValidity,
    /// The status in place of [`Status::Steady`].
    pub(super) steady: Status,
}

/// How often readings are tried that fall into one generation.
const TRIES: u32 = 8;

impl Timekeeper {
    /// Asks the reference, and holds what it tells against a reading of both; about 0.2 us.
    ///
    /// # Errors
    /// The counter went backwards.
    pub(super) fn ask_reference<B: Timebase>(
        &self,
        base: &B,
        source: SourceId,
    ) -> Result<ReferenceState, BackwardStep> {
        for _ in 0..TRIES {
            let line = match base.steering(source) {
                ReferenceRate::Untold => return Ok(ReferenceState::Nothing),
                ReferenceRate::Generation(generation) => {
                    return Ok(ReferenceState::Generation(generation));
                }
                ReferenceRate::Line(line) => line,
            };
            let sample = narrowest(base, source, ReferenceClock::Monotonic, self.grain, 1, 0)?;
            if base.generation() != line.generation {
                continue;
            }
            let (error_ns, bound_ns) = line.distance(&sample);
            return Ok(if error_ns.unsigned_abs() <= bound_ns {
                ReferenceState::Line(line)
            } else if self.agreed {
                ReferenceState::Contradicted(ClockEventKind::Residual { error_ns, bound_ns })
            } else {
                ReferenceState::Nothing
            });
        }
        Ok(ReferenceState::Nothing)
    }

    /// What the next line is drawn by: the reference's own line where that is known, since then
    /// nothing has to be allowed for but its steps; else what was measured.
    pub(super) fn basis(
        &self,
        settings: &ClockSettings,
        fit: SlopeFit,
        sample: ClockSample,
    ) -> LineBasis {
        let own = match self.reference_state {
            ReferenceState::Line(line) => line.slope().map(|slope| (line, slope)),
            _ => None,
        };
        if let Some((line, slope)) = own {
            return LineBasis {
                fit: SlopeFit { slope, error: line.unit(), ..fit },
                growth: line.unit(),
                anchor: line.anchor(&sample, slope),
                hold: LineValidity::Under(line.generation),
                steady: Status::Steady,
            };
        }
        let growth = fit.error.saturating_add(settings.allowance(self.kernel));
        let (hold, steady) = match self.reference_state {
            ReferenceState::Generation(generation) => {
                (LineValidity::Under(generation), Status::Steady)
            }
            _ if settings.allowance_ppb.is_some() => (LineValidity::Always, Status::Assumed),
            _ => (LineValidity::Never, Status::Steady),
        };
        LineBasis { fit, growth, anchor: sample, hold, steady }
    }

    /// Whether the reference changed its rate since the line was drawn, or may have.
    pub(super) fn is_unheld<B: Timebase>(&self, context: &Context<'_, B>) -> bool {
        let line = context.page.written().line;
        matches!(line.validity, LineValidity::Under(_))
            && super::slow_path::confirmed(context.base, &line).is_none()
    }
}
