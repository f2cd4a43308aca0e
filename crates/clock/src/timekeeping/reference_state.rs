//! What the reference tells of itself, held against readings: what a line may rest on.

use super::bound::Status;
use super::event::What;
use super::line::Hold;
use super::sample::{Backwards, Fit, Sample, narrowest};
use super::settings::Settings;
use super::steering::{ReferenceLine, Steering};
use super::timebase::{Scale, SourceId, Timebase};
use super::timekeeper::{Context, Timekeeper};

/// What the reference tells of its rate, as far as readings agree.
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
    Contradicted(What),
}

/// What a line is drawn by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    pub(super) fit: Fit,
    /// Bound on the slope's relative error from now on, 2^-32.
    pub(super) growth: u64,
    pub(super) anchor: Sample,
    pub(super) hold: Hold,
    /// What serves in place of [`Status::Steady`].
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
    ) -> Result<ReferenceState, Backwards> {
        for _ in 0..TRIES {
            let line = match base.steering(source) {
                Steering::Untold => return Ok(ReferenceState::Nothing),
                Steering::Generation(generation) => {
                    return Ok(ReferenceState::Generation(generation));
                }
                Steering::Line(line) => line,
            };
            let sample = narrowest(base, source, Scale::Monotonic, self.grain, 1, 0)?;
            if base.generation() != line.generation {
                continue;
            }
            let (error_ns, bound_ns) = line.distance(&sample);
            return Ok(if error_ns.unsigned_abs() <= bound_ns {
                ReferenceState::Line(line)
            } else if self.agreed {
                ReferenceState::Contradicted(What::Residual { error_ns, bound_ns })
            } else {
                ReferenceState::Nothing
            });
        }
        Ok(ReferenceState::Nothing)
    }

    /// What the next line is drawn by: the reference's own line where that is known, since then
    /// nothing has to be allowed for but its steps; else what was measured.
    pub(super) fn basis(&self, settings: &Settings, fit: Fit, sample: Sample) -> Basis {
        let own = match self.reference_state {
            ReferenceState::Line(line) => line.slope().map(|slope| (line, slope)),
            _ => None,
        };
        if let Some((line, slope)) = own {
            return Basis {
                fit: Fit { slope, error: line.unit(), ..fit },
                growth: line.unit(),
                anchor: line.anchor(&sample, slope),
                hold: Hold::Under(line.generation),
                steady: Status::Steady,
            };
        }
        let growth = fit.error.saturating_add(settings.allowance(self.kernel));
        let (hold, steady) = match self.reference_state {
            ReferenceState::Generation(generation) => (Hold::Under(generation), Status::Steady),
            _ if settings.allowance_ppb.is_some() => (Hold::Always, Status::Assumed),
            _ => (Hold::Never, Status::Steady),
        };
        Basis { fit, growth, anchor: sample, hold, steady }
    }

    /// Whether the reference changed its rate since the line was drawn, or may have.
    pub(super) fn is_unheld<B: Timebase>(&self, context: &Context<'_, B>) -> bool {
        let line = context.page.written().line;
        matches!(line.hold, Hold::Under(_)) && super::read::confirmed(context.base, &line).is_none()
    }
}
