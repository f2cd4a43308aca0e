//! Who keeps a clock: decides what is drawn next. One thread at a time has it.

use super::bound::Status;
use super::calibration_page::{Content, Page};
use super::check::{CheckOutcome, ProvisionalSlope};
use super::clock_offsets::{Offset, RawRate};
use super::event::{ClockEventKind, Log};
use super::granularity::{self, MovementState};
use super::line::ClockLine;
use super::line_fit::{self, LineParameters};
use super::machine_watch::Watcher;
use super::reference_state::{LineBasis, ReferenceState};
use super::sample::{BackwardStep, ClockSample, SampleWindow, SlopeFit, narrowest};
use super::settings::{ClockSettings, FrequencyHint, Start};
use super::share::SharedPage;
use super::slope::{RELATIVE_BITS, Slope, relative_from_ppb};
use super::timebase::{Discipline, ReferenceClock, SourceId, Timebase};
use super::wall_clock::Wall;

/// The data on which a timekeeper works.
pub(super) struct Context<'a, B> {
    pub(super) page: &'a Page,
    pub(super) base: &'a B,
    pub(super) settings: &'a ClockSettings,
}

/// The source that serves, and the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimekeeperState {
    Fresh,
    /// The OS clock serves until the machine is judged.
    Unjudged,
    /// The OS clock serves between the two first brackets of this counter, because no time passes:
    /// it is simulated.
    Halfway(SourceId),
    Measuring,
    /// The OS clock serves until this time (ns), when the machine is judged again.
    Waiting(u64),
    /// The OS clock serves until the caller selects a source.
    Resting,
}

/// How long the OS clock serves before the machine is judged.
const JUDGED_AFTER_NS: u64 = 1_000_000;
/// How long the OS clock serves, after a temporary fault, before sources are checked again.
const JUDGED_AGAIN_AFTER_NS: u64 = 1_000_000_000;
/// The first interval between calibrations; they double.
const FIRST_INTERVAL_NS: u64 = 1_000_000;
/// Distance of the two brackets that begin a calibration.
const FIRST_WINDOW_NS: u64 = 10_000;
/// The longest window that a slope is taken over.
const LONGEST_WINDOW_NS: u64 = 32_000_000_000;
/// A counter is steady after a calibration of this length.
const STEADY_AFTER_NS: u64 = 1_000_000_000;
/// The usual initial bound: two brackets and the margin for unordered reads.
const USUAL_BOUND_NS: u64 = 80;
/// How far MONOTONIC may run from RAW: NTP's 500 ppm and another 500 ppm by `adjtime`.
const SLEWED_AT_MOST_PPB: u64 = 1_000_000;
/// Brackets of a calibration at most; a bracket as narrow as the narrowest before ends it.
const TRIES: u32 = 64;
/// The same at the beginning.
const FIRST_TRIES: u32 = 8;

/// The state of a clock that readers do not see.
#[derive(Debug)]
pub(super) struct Timekeeper {
    pub(super) state: TimekeeperState,
    pub(super) source: SourceId,
    pub(super) epoch: u32,
    /// When the counter was adopted, ns.
    pub(super) adopted_ns: u64,
    /// When the line was drawn, ns.
    drawn_ns: u64,
    pub(super) interval_ns: u64,
    pub(super) row: SampleWindow,
    pub(super) raw_row: SampleWindow,
    pub(super) fit: Option<SlopeFit>,
    pub(super) raw_fit: Option<SlopeFit>,
    /// The common step of the counter and the reference, ticks.
    pub(super) grain: u64,
    /// A half-width that is worth stopping at.
    enough_ticks: u64,
    /// The stated frequency of the counter, once it was read.
    pub(super) stated: Option<FrequencyHint>,
    sampled: bool,
    /// Whether the counter was chosen by hand: then the settings say nothing of it.
    chosen_by_caller: bool,
    pub(super) kernel: Option<Discipline>,
    /// What the reference stated last about its rate,
    pub(super) reference_state: ReferenceState,
    /// and whether that ever was its own line, and true, since the counter was adopted.
    pub(super) agreed: bool,
    raw_rate: RawRate,
    realtime: Offset,
    pub(super) boottime: Offset,
    pub(super) watcher: Watcher,
    pub(super) log: Log,
    pub(super) wall: Wall,
    pub(super) shared: Option<SharedPage>,
}

impl Timekeeper {
    pub(super) const NEW: Timekeeper = Timekeeper {
        state: TimekeeperState::Fresh,
        source: SourceId::OS,
        epoch: 0,
        adopted_ns: 0,
        drawn_ns: 0,
        interval_ns: FIRST_INTERVAL_NS,
        row: SampleWindow::EMPTY,
        raw_row: SampleWindow::EMPTY,
        fit: None,
        raw_fit: None,
        grain: 1,
        enough_ticks: 0,
        stated: None,
        sampled: false,
        chosen_by_caller: false,
        kernel: None,
        reference_state: ReferenceState::Nothing,
        agreed: false,
        raw_rate: RawRate::UNKNOWN,
        realtime: Offset::UNKNOWN,
        boottime: Offset::UNKNOWN,
        watcher: Watcher::NEW,
        log: Log::EMPTY,
        wall: Wall::FOLLOWING,
        shared: None,
    };

    /// Does what is due; if `overdue`, whatever the time. Returns whether a line was drawn.
    pub(super) fn update<B: Timebase>(&mut self, context: &Context<'_, B>, overdue: bool) -> bool {
        let now_ns = context.base.reference_ns(ReferenceClock::Monotonic);
        match self.state {
            TimekeeperState::Fresh => match context.settings.start {
                Start::With(source) if context.base.supports(source) => {
                    self.start_source(context, source)
                }
                Start::With(source) => {
                    self.log.note(now_ns, ClockEventKind::Unsupported(source));
                    self.fall_back_to_os_clock(
                        context,
                        TimekeeperState::Resting,
                        Status::OsClock,
                        0,
                    )
                }
                Start::Judged => self.fall_back_to_os_clock(
                    context,
                    TimekeeperState::Unjudged,
                    Status::OsClock,
                    0,
                ),
            },
            TimekeeperState::Unjudged => self.select_source(context),
            TimekeeperState::Waiting(until_ns) if now_ns >= until_ns => self.select_source(context),
            TimekeeperState::Halfway(source) => self.complete_start(context, source),
            TimekeeperState::Measuring
                if overdue || self.is_due(now_ns) || self.is_unheld(context) =>
            {
                if !overdue {
                    self.sample_reference(context, self.source);
                }
                self.refit(context)
            }
            TimekeeperState::Measuring => false,
            TimekeeperState::Waiting(_) | TimekeeperState::Resting => {
                self.update_on_os_clock(context)
            }
        }
    }

    /// Whether three quarters of the interval are over: who is called often enough redraws before
    /// any reader finds the line at its end.
    fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.drawn_ns) >= self.interval_ns / 4 * 3
    }

    /// When something is due again, ns from now.
    pub(super) fn next_ns(&self, now_ns: u64) -> u64 {
        let due_ns = match self.state {
            TimekeeperState::Fresh => now_ns,
            TimekeeperState::Unjudged | TimekeeperState::Halfway(_) => {
                self.drawn_ns.saturating_add(JUDGED_AFTER_NS)
            }
            TimekeeperState::Measuring => self.drawn_ns.saturating_add(self.interval_ns / 4 * 3),
            TimekeeperState::Waiting(until_ns) => until_ns,
            TimekeeperState::Resting => self.drawn_ns.saturating_add(JUDGED_AGAIN_AFTER_NS),
        };
        due_ns.saturating_sub(now_ns)
    }

    fn select_source<B: Timebase>(&mut self, context: &Context<'_, B>) -> bool {
        match context.base.choose(context.settings.root()) {
            SourceId::OS => {
                self.fall_back_to_os_clock(context, TimekeeperState::Resting, Status::OsClock, 0)
            }
            source => {
                self.sample_reference(context, source);
                self.start_source(context, source)
            }
        }
    }

    /// The frequency in the settings for the counter that they choose.
    fn prior(&self, settings: &ClockSettings) -> Option<FrequencyHint> {
        settings.prior.filter(|_| !self.chosen_by_caller)
    }

    /// Changes to another source by hand, whatever was found before.
    pub(super) fn change_by_hand<B: Timebase>(&mut self, context: &Context<'_, B>, to: SourceId) {
        let now_ns = context.base.reference_ns(ReferenceClock::Monotonic);
        self.log.note(now_ns, ClockEventKind::ByHand { from: self.source, to });
        self.chosen_by_caller = true;
        self.sampled = false;
        self.start_source(context, to);
    }

    /// Reads the stated frequency of the counter, once for each judgement.
    fn sample_reference<B: Timebase>(&mut self, context: &Context<'_, B>, source: SourceId) {
        if !self.sampled {
            self.sampled = true;
            self.stated = self.prior(context.settings).or_else(|| context.base.stated(source));
        }
    }

    /// Two brackets some microseconds apart, and a line with the wide bound that they allow.
    pub(super) fn start_source<B: Timebase>(
        &mut self,
        context: &Context<'_, B>,
        source: SourceId,
    ) -> bool {
        if source == SourceId::OS {
            return self.fall_back_to_os_clock(
                context,
                TimekeeperState::Resting,
                Status::OsClock,
                0,
            );
        }
        if let Err(back) = self.first_bracket(context.base, source) {
            return self.went_back(context, back);
        }
        match granularity::watch(context.base, source, FIRST_WINDOW_NS) {
            MovementState::Nothing => self.fall_back_to_os_clock(
                context,
                TimekeeperState::Halfway(source),
                Status::OsClock,
                0,
            ),
            MovementState::Stuck => {
                let now_ns = context.base.reference_ns(ReferenceClock::Monotonic);
                self.fail_over(context, now_ns, ClockEventKind::Stuck(source))
            }
            MovementState::Moving { grain } => {
                self.row.widen(grain.saturating_sub(self.grain));
                self.raw_row.widen(grain.saturating_sub(self.grain));
                self.grain = grain;
                self.complete_start(context, source)
            }
        }
    }

    fn went_back<B: Timebase>(&mut self, context: &Context<'_, B>, back: BackwardStep) -> bool {
        let now_ns = context.base.reference_ns(ReferenceClock::Monotonic);
        self.fail_over(context, now_ns, ClockEventKind::NegativeStep { ticks: back.ticks })
    }

    fn first_bracket<B: Timebase>(
        &mut self,
        base: &B,
        source: SourceId,
    ) -> Result<(), BackwardStep> {
        self.row = SampleWindow::EMPTY;
        self.raw_row = SampleWindow::EMPTY;
        self.raw_fit = None;
        self.reference_state = ReferenceState::Nothing;
        self.agreed = false;
        self.watcher = Watcher::NEW;
        self.grain = 1;
        self.row.push(narrowest(
            base,
            source,
            ReferenceClock::Monotonic,
            self.grain,
            FIRST_TRIES,
            0,
        )?);
        self.raw_row.push(narrowest(
            base,
            source,
            ReferenceClock::Raw,
            self.grain,
            FIRST_TRIES,
            0,
        )?);
        Ok(())
    }

    /// The second bracket and the first line.
    fn complete_start<B: Timebase>(&mut self, context: &Context<'_, B>, source: SourceId) -> bool {
        let bracket = |scale| narrowest(context.base, source, scale, self.grain, FIRST_TRIES, 0);
        let (latest, raw) = (bracket(ReferenceClock::Monotonic), bracket(ReferenceClock::Raw));
        let (latest, raw) = match (latest, raw) {
            (Ok(latest), Ok(raw)) => (latest, raw),
            (Err(back), _) | (_, Err(back)) => return self.went_back(context, back),
        };
        let first = self.row.latest().copied();
        let fit = first.and_then(|first| SlopeFit::between(&first, &latest));
        let (Some(first), Some(fit)) = (first, fit) else {
            let now_ns = context.base.reference_ns(ReferenceClock::Monotonic);
            return self.fail_over(context, now_ns, ClockEventKind::Stuck(source));
        };
        self.row.push(latest);
        self.raw_row.push(raw);
        self.raw_fit = self.raw_row.fit(LONGEST_WINDOW_NS);
        let fit = match narrowed(self.prior(context.settings), fit, self.raw_fit) {
            Ok(fit) => fit,
            Err(what) => return self.fail_over(context, latest.ns, what),
        };
        match self.ask_reference(context.base, source) {
            Ok(reference_state) => self.reference_state = reference_state,
            Err(back) => return self.went_back(context, back),
        }
        self.enough_ticks = first.half_ticks.min(latest.half_ticks);
        self.kernel = context.base.discipline();
        if self.state != TimekeeperState::Measuring || self.source != source {
            self.epoch = self.epoch.wrapping_add(1);
            self.log.note(latest.ns, ClockEventKind::Adopted(source));
        }
        self.source = source;
        self.state = TimekeeperState::Measuring;
        self.adopted_ns = latest.ns;
        self.interval_ns = FIRST_INTERVAL_NS;
        let basis = self.basis(context.settings, fit, latest);
        self.fit = Some(fit);
        self.measure_scales(context, latest.ns);
        self.publish_line(context, &basis)
    }

    /// Checks for reasons to stop trusting; without any it draws a new line.
    fn refit<B: Timebase>(&mut self, context: &Context<'_, B>) -> bool {
        let (source, enough) = (self.source, self.enough_ticks);
        let bracket = |scale| narrowest(context.base, source, scale, self.grain, TRIES, enough);
        let (sample, raw) = (bracket(ReferenceClock::Monotonic), bracket(ReferenceClock::Raw));
        let (sample, raw, reference_state) =
            match (sample, raw, self.ask_reference(context.base, source)) {
                (Ok(sample), Ok(raw), Ok(reference_state)) => (sample, raw, reference_state),
                (Err(back), ..) | (_, Err(back), _) | (.., Err(back)) => {
                    return self.went_back(context, back);
                }
            };
        let rates = (self.reference_state, reference_state);
        self.reference_state = reference_state;
        let now_ns = context.base.reference_ns(ReferenceClock::Monotonic);
        // Narrow brackets are rare on a busy machine: what is enough slowly widens again.
        let wider = self.enough_ticks.saturating_add(self.enough_ticks / 8).saturating_add(1);
        self.enough_ticks = sample.half_ticks.clamp(1, wider);
        let fit = match self.check(context, &sample, &raw, now_ns) {
            CheckOutcome::Distrust(what) => return self.fail_over(context, now_ns, what),
            // The samples belong to an earlier rate, and the present rate is not known.
            CheckOutcome::Sound { .. } | CheckOutcome::Predicted(_) if is_another_rate(rates) => {
                return self.start_source(context, source);
            }
            CheckOutcome::Predicted(fit) => self.predicted(sample, raw, fit),
            CheckOutcome::Sound { doubt } => {
                self.row.push(sample);
                self.raw_row.push(raw);
                let fit = self.row.fit(LONGEST_WINDOW_NS);
                fit.map(|fit| SlopeFit { error: fit.error.saturating_add(doubt), ..fit })
            }
        };
        self.raw_fit = self.raw_row.fit(LONGEST_WINDOW_NS).or(self.raw_fit);
        // After a long pause there is nothing but the latest sample within the longest window.
        let Some(fit) = fit else { return self.start_source(context, self.source) };
        // The stated frequency refers to a clock that is never slewed.
        let unslewed = self.raw_fit.unwrap_or(fit);
        if let Some(what) = self.stated.and_then(|stated| contradiction(stated, unslewed)) {
            return self.fail_over(context, now_ns, what);
        }
        let basis = self.basis(context.settings, fit, sample);
        self.interval_ns = self.next_interval(context.settings, &basis);
        self.fit = Some(fit);
        self.measure_scales(context, sample.ns);
        self.publish_line(context, &basis)
    }

    /// Begins the windows anew where the reference left what was measured.
    fn predicted(
        &mut self,
        sample: ClockSample,
        raw: ClockSample,
        fit: ProvisionalSlope,
    ) -> Option<SlopeFit> {
        self.row.push(sample);
        self.row.begin_again();
        self.raw_row.push(raw);
        self.interval_ns = FIRST_INTERVAL_NS / 2;
        Some(fit.0)
    }

    /// Twice the last one, as long as the bound stays below its target.
    fn next_interval(&self, settings: &ClockSettings, basis: &LineBasis) -> u64 {
        let growth = basis.growth.max(1);
        let bracket_ns = basis.fit.slope.ns_ceil(basis.anchor.half_ticks);
        let room_ns = settings.target_bound_ns.saturating_sub(USUAL_BOUND_NS.max(bracket_ns));
        let room = u128::from(room_ns) << RELATIVE_BITS;
        let allowed = u64::try_from(room / u128::from(growth)).unwrap_or(u64::MAX);
        let doubled = self.interval_ns.saturating_mul(2).min(settings.longest_interval_ns);
        allowed.min(doubled).max(FIRST_INTERVAL_NS)
    }

    fn publish_line<B: Timebase>(&mut self, context: &Context<'_, B>, basis: &LineBasis) -> bool {
        let steady = basis.anchor.ns.saturating_sub(self.adopted_ns) >= STEADY_AFTER_NS;
        let plan = LineParameters {
            source: self.source,
            status: if steady || basis.steady == Status::Assumed {
                basis.steady
            } else {
                Status::Settling
            },
            epoch: self.epoch,
            slope: basis.fit.slope,
            error: basis.growth,
            interval_ns: self.interval_ns,
            anchor: basis.anchor,
            floor_ns: context.page.recent_ns(),
            validity: basis.hold,
        };
        self.agreed |= matches!(self.reference_state, ReferenceState::Line(_));
        self.publish(context, |old| line_fit::over_counter(context.base, old, &plan))
    }

    /// Hands over to the OS clock. `floor_ns` is the latest time that readers may have received otherwise.
    pub(super) fn fall_back_to_os_clock<B: Timebase>(
        &mut self,
        context: &Context<'_, B>,
        stage: TimekeeperState,
        status: Status,
        floor_ns: u64,
    ) -> bool {
        if self.source != SourceId::OS {
            self.epoch = self.epoch.wrapping_add(1);
        }
        self.source = SourceId::OS;
        self.sampled = false;
        self.state = stage;
        self.fit = None;
        let floor_ns = floor_ns.max(context.page.recent_ns());
        let epoch = self.epoch;
        let look_again_ns = match stage {
            TimekeeperState::Unjudged | TimekeeperState::Halfway(_) => Some(JUDGED_AFTER_NS),
            TimekeeperState::Waiting(_) => Some(JUDGED_AGAIN_AFTER_NS),
            _ => None,
        };
        self.publish(context, |old| {
            line_fit::over_os(context.base, old, floor_ns, epoch, status, look_again_ns)
        })
    }

    /// Leaves a counter that was found wanting.
    pub(super) fn fail_over<B: Timebase>(
        &mut self,
        context: &Context<'_, B>,
        now_ns: u64,
        what: ClockEventKind,
    ) -> bool {
        // Up to its last sound sample the counter was within its bound, so no reader received a
        // time beyond the reference and that bound, unless the line itself says so.
        let line = context.page.written().line;
        let reported_ns = now_ns.saturating_add(line.bound_at(line.valid_for));
        let floor_ns = if self.source == SourceId::OS { 0 } else { reported_ns };
        let stage = if what.passes() {
            TimekeeperState::Waiting(now_ns.saturating_add(JUDGED_AGAIN_AFTER_NS))
        } else {
            TimekeeperState::Resting
        };
        let behind =
            matches!(what, ClockEventKind::NegativeStep { .. } | ClockEventKind::Residual { .. });
        self.log.note(now_ns, what);
        self.fall_back_to_os_clock(
            context,
            stage,
            Status::FailedOver,
            if behind { floor_ns } else { 0 },
        )
    }

    /// Updates the other clocks while the OS clock serves, and goes on absorbing.
    fn update_on_os_clock<B: Timebase>(&mut self, context: &Context<'_, B>) -> bool {
        self.kernel = context.base.discipline();
        self.measure_scales(context, context.base.reference_ns(ReferenceClock::Monotonic));
        let line = context.page.written().line;
        if line.slope == Slope::IDENTITY && self.state == TimekeeperState::Resting {
            return self.publish(context, |old| *old);
        }
        self.fall_back_to_os_clock(context, self.state, line.status, 0)
    }

    /// Measures the rate of differences, and how far the clocks are that may be set or go on in suspend; about
    /// 0.6 us.
    fn measure_scales<B: Timebase>(&mut self, context: &Context<'_, B>, now_ns: u64) {
        let base = context.base;
        let allowance = context.settings.allowance(self.kernel);
        let counter = self.raw_fit.filter(|_| self.source != SourceId::OS);
        let slewed = relative_from_ppb(SLEWED_AT_MOST_PPB);
        self.raw_rate = RawRate {
            slope: counter.map_or(Slope::IDENTITY, |fit| fit.slope),
            error: counter.map_or(slewed, |fit| fit.error.saturating_add(allowance)),
        };
        let realtime = Offset::measure(base, ReferenceClock::Realtime);
        if let Some(ns) = moved(self.realtime, realtime) {
            self.log.note(now_ns, ClockEventKind::WallSet { ns });
        }
        self.realtime = realtime;
        self.boottime = Offset::measure(base, ReferenceClock::Boottime);
    }

    /// Replaces what readers see.
    pub(super) fn publish<B: Timebase>(
        &mut self,
        context: &Context<'_, B>,
        mut line: impl FnMut(&ClockLine) -> ClockLine,
    ) -> bool {
        let (raw, wall) = (self.raw_rate, self.wall.line);
        let shared = self.shared.as_ref().and_then(SharedPage::words);
        context.page.set_generation_address(context.base.generation_address());
        let drawn = context.page.switch(shared, |old| Content { line: line(old), raw, wall });
        if let Some(content) = drawn {
            self.drawn_ns = context.base.reference_ns(ReferenceClock::Monotonic);
            context.page.set_recent(shared, content.line.base_ns);
            context.page.set_beat(shared, self.drawn_ns, self.log.total());
        }
        drawn.is_some()
    }
}

/// The movement of an offset, if it exceeds its bounds, ns.
pub(super) fn moved(before: Offset, now: Offset) -> Option<i64> {
    if !before.is_known() || !now.is_known() {
        return None;
    }
    let by_ns = now.ns.saturating_sub(before.ns);
    let noise_ns = before.bound_ns.saturating_add(now.bound_ns);
    (by_ns.unsigned_abs() > noise_ns).then_some(by_ns)
}

/// The event for a measured slope that contradicts the stated frequency.
fn contradiction(stated: FrequencyHint, fit: SlopeFit) -> Option<ClockEventKind> {
    let measured_hz = fit.slope.ticks_floor(1_000_000_000);
    let contradicts = stated.contradicts(fit.slope, fit.error);
    contradicts
        .then_some(ClockEventKind::PriorContradicted { stated_hz: stated.hertz, measured_hz })
}

/// Whether the reference says that its rate is another one, and not which.
fn is_another_rate((before, now): (ReferenceState, ReferenceState)) -> bool {
    matches!((before, now), (ReferenceState::Generation(a), ReferenceState::Generation(b)) if a != b)
}

/// The first slope, narrowed by what is said of the frequency if that agrees with what was measured
/// against a clock that is never slewed.
fn narrowed(
    prior: Option<FrequencyHint>,
    fit: SlopeFit,
    unslewed: Option<SlopeFit>,
) -> Result<SlopeFit, ClockEventKind> {
    let Some(prior) = prior else { return Ok(fit) };
    if let Some(what) = contradiction(prior, unslewed.unwrap_or(fit)) {
        return Err(what);
    }
    match prior.slope() {
        // What is stated may serve until more is measured, if it is the more certain; what was
        // measured then only had to be near.
        Some((slope, error)) if error < fit.error => {
            let apart = slope.distance(fit.slope).saturating_sub(fit.error);
            Ok(SlopeFit { slope, error: error.max(apart.saturating_add(1)), ..fit })
        }
        _ => Ok(fit),
    }
}
