//! A scripted counter and a true reference, for tests of this module. Virtual time passes only by
//! reading, or when a test says so. The public simulated clock is [`crate::source`]'s.

use std::path::Path;
use std::sync::{Arc, Mutex};

use hourglass_dice::Dice;

use super::inline_string::InlineString;
use super::reference_rate::ReferenceRate;
use super::settings::FrequencyHint;
use super::timebase::{Discipline, Leap, ReferenceClock, SourceId, Timebase};

/// How the counter's rate leaves its nominal one, parts per billion against MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub(super) enum Drift {
    Constant(i64),
    /// The rate changes from 0 by this many ppb each second.
    Linear(f64),
    /// Amplitude (half of peak to peak), period in seconds.
    Periodic(f64, f64),
}

pub(super) const HERTZ: u64 = 2_300_000_000;
/// Time is stepped through in pieces, so that the drift is followed.
const PIECE_PS: u64 = 10_000_000_000;

#[derive(Debug)]
pub(super) struct State {
    dice: Dice,
    /// MONOTONIC, ps.
    truth_ps: u64,
    /// The counter, in 2^-20 ticks.
    counter: i128,
    /// RAW, 2^-20 ns.
    raw: i128,
    pub(super) drift: Drift,
    /// RAW's rate against MONOTONIC, and the counter's with it: what the kernel slews.
    pub(super) slew_ppb: i64,
    pub(super) frozen: bool,
    /// Half of what a read takes, ps; it samples in the middle.
    pub(super) half_read_ps: std::ops::Range<u64>,
    pub(super) suspended_ns: u64,
    pub(super) wall_ns: u64,
    pub(super) trusted: bool,
    pub(super) kernel: Discipline,
    pub(super) generation: u32,
    /// The stated frequency of the counter.
    pub(super) stated: Option<FrequencyHint>,
    /// The evidence that an examination finds.
    pub(super) against: Option<InlineString<48>>,
}

impl State {
    fn pass_piece(&mut self, ps: u64) {
        let seconds = self.truth_ps as f64 / 1e12;
        let drift_ppb = match self.drift {
            Drift::Constant(ppb) => ppb as f64,
            Drift::Linear(per_second) => per_second * seconds,
            Drift::Periodic(amplitude, period) => {
                amplitude * (seconds / period * std::f64::consts::TAU).sin()
            }
        };
        let slew = self.slew_ppb as f64;
        let ticks = ps as f64 * HERTZ as f64 / 1e12 * (1.0 + (drift_ppb + slew) / 1e9);
        let raw_ns = ps as f64 / 1e3 * (1.0 + slew / 1e9);
        if !self.frozen {
            self.counter += (ticks * f64::from(1 << 20)).round() as i128;
        }
        self.raw += (raw_ns * f64::from(1 << 20)).round() as i128;
        self.truth_ps += ps;
    }

    fn pass(&mut self, mut ps: u64) {
        while ps > 0 {
            let piece = ps.min(PIECE_PS);
            self.pass_piece(piece);
            ps -= piece;
        }
    }

    /// Half of a read; now and then the thread is interrupted.
    fn pass_a_read(&mut self) {
        let interrupted = self.dice.roll().is_multiple_of(5_000);
        let ps = if interrupted {
            self.dice.between(1_000_000, 100_000_000)
        } else {
            self.dice.between(self.half_read_ps.start, self.half_read_ps.end - 1)
        };
        self.pass(ps);
    }
}

/// The double; clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Double(Arc<Mutex<State>>);

impl Double {
    pub(super) fn new(seed: u64, drift: Drift) -> Double {
        println!("seed {seed}, {drift:?}");
        let mut dice = Dice::new(seed);
        let start_ns = dice.between(1_000_000, 1_000_000_000_000);
        Double(Arc::new(Mutex::new(State {
            truth_ps: start_ns * 1_000,
            counter: i128::from(dice.roll() >> 8) << 20,
            raw: i128::from(start_ns) << 20,
            dice,
            drift,
            slew_ppb: 0,
            frozen: false,
            half_read_ps: 4_000..7_000,
            suspended_ns: 0,
            wall_ns: 1_700_000_000_000_000_000,
            trusted: true,
            generation: 0,
            stated: None,
            against: None,
            kernel: Discipline {
                synchronised: false,
                max_error_ns: 0,
                correction: 0,
                slewing: false,
                leap: Leap::None,
            },
        })))
    }

    pub(super) fn with<T>(&self, script: impl FnOnce(&mut State) -> T) -> T {
        script(&mut self.0.lock().unwrap())
    }

    /// Lets time pass.
    pub(super) fn pass_ns(&self, ns: u64) {
        self.with(|s| s.pass(ns * 1_000));
    }

    pub(super) fn step_ticks(&self, ticks: i64) {
        self.with(|s| s.counter += i128::from(ticks) << 20);
    }

    /// MONOTONIC, without time passing.
    pub(super) fn truth_ns(&self) -> u64 {
        self.with(|s| s.truth_ps / 1_000)
    }
}

impl Timebase for Double {
    fn ticks(&self, source: SourceId) -> u64 {
        self.with(|s| {
            s.pass_a_read();
            let read = match source {
                SourceId::SIMULATED => (s.counter >> 20) as u64,
                _ => s.truth_ps / 1_000,
            };
            s.pass_a_read();
            read
        })
    }

    fn ticks_ordered(&self, source: SourceId) -> u64 {
        self.ticks(source)
    }

    fn ticks_enclosing(&self, source: SourceId) -> u64 {
        self.ticks(source)
    }

    fn reference_ns(&self, scale: ReferenceClock) -> u64 {
        self.with(|s| {
            s.pass_a_read();
            let monotonic = s.truth_ps / 1_000;
            let read = match scale {
                ReferenceClock::Monotonic => monotonic,
                ReferenceClock::Raw => (s.raw >> 20) as u64,
                ReferenceClock::Realtime => monotonic + s.wall_ns,
                ReferenceClock::Tai => monotonic + s.wall_ns + 37_000_000_000,
                ReferenceClock::Boottime => monotonic + s.suspended_ns,
            };
            s.pass_a_read();
            read
        })
    }

    fn supports(&self, source: SourceId) -> bool {
        matches!(source, SourceId::SIMULATED | SourceId::OS)
    }

    fn choose(&self, _root: &Path) -> SourceId {
        if self.with(|s| s.trusted) { SourceId::SIMULATED } else { SourceId::OS }
    }

    fn discipline(&self) -> Option<Discipline> {
        Some(self.with(|s| s.kernel))
    }

    fn generation(&self) -> u32 {
        self.with(|s| s.generation)
    }

    fn steering(&self, _source: SourceId) -> ReferenceRate {
        ReferenceRate::Generation(self.generation())
    }

    fn examine(&self, _source: SourceId, _root: &Path) -> Option<InlineString<48>> {
        self.with(|s| s.against)
    }

    fn stated(&self, _source: SourceId) -> Option<FrequencyHint> {
        self.with(|s| s.stated)
    }
}
