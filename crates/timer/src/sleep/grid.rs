//! Ticks at equal distances, on an absolute grid, and what becomes of those that are missed.

use hourglass_time::Span;

/// What to do when ticks were missed: when one is taken after the time of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// Leave them out: the next tick is the first one on the grid that is still to come.
    #[default]
    Skip,
    /// Make up for them: every tick is given, those that are late at once.
    Burst,
    /// Begin a new grid: the next tick is a period after the late one.
    Delay,
}

/// A period that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeriodError {
    /// Zero or negative.
    #[error("a period of {0:?} never ends; give one of at least 1 ns")]
    NotPositive(Span),
    /// The rate is 0 Hz.
    #[error("0 Hz never ticks; give a rate from 1 to 1,000,000,000 Hz")]
    NoRate,
    /// Shorter than the clock's unit.
    #[error("{0} Hz is more than a tick a nanosecond; give a rate from 1 to 1,000,000,000 Hz")]
    TooFast(u64),
}

/// A tick that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// How many ticks were given before.
    pub number: u64,
    /// When it was due, ns.
    pub scheduled_ns: u64,
    /// How many ticks after it were left out, its successors being late already: 0 with
    /// [`MissedTicks::Burst`], which leaves none out.
    pub lost: u64,
}

/// Ticks at equal distances. Each is computed from the beginning, so that no error adds up, also
/// where a period is not a whole number of nanoseconds (3 Hz); none is before its exact time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    origin_ns: u64,
    /// The rate: this number of ticks in `nanos`.
    ticks: u64,
    nanos: u64,
    next: u64,
    missed: MissedTicks,
    given: u64,
    lost: u64,
}

impl Grid {
    pub(super) fn every(
        origin_ns: u64,
        period: Span,
        missed: MissedTicks,
    ) -> Result<Grid, PeriodError> {
        match period.nanos_or_zero() {
            0 => Err(PeriodError::NotPositive(period)),
            nanos => Ok(Grid { origin_ns, ticks: 1, nanos, next: 1, missed, given: 0, lost: 0 }),
        }
    }

    pub(super) fn hz(origin_ns: u64, hz: u64, missed: MissedTicks) -> Result<Grid, PeriodError> {
        const SECOND_NS: u64 = 1_000_000_000;
        match hz {
            0 => Err(PeriodError::NoRate),
            1..=SECOND_NS => Ok(Grid {
                origin_ns,
                ticks: hz,
                nanos: SECOND_NS,
                next: 1,
                missed,
                given: 0,
                lost: 0,
            }),
            _ => Err(PeriodError::TooFast(hz)),
        }
    }

    pub(super) fn set_missed(&mut self, missed: MissedTicks) {
        self.missed = missed;
    }

    /// When the next tick is due, ns, rounded up.
    pub(super) fn next_ns(&self) -> u64 {
        let after = u128::from(self.next) * u128::from(self.nanos);
        let after = after.div_ceil(u128::from(self.ticks));
        self.origin_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX))
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn take(&mut self, now_ns: u64) -> Tick {
        let scheduled_ns = self.next_ns();
        let passed = u128::from(now_ns.saturating_sub(self.origin_ns)) * u128::from(self.ticks);
        let passed = u64::try_from(passed / u128::from(self.nanos)).unwrap_or(u64::MAX);
        let late = passed.saturating_sub(self.next);
        let lost = if self.missed == MissedTicks::Burst { 0 } else { late };
        match self.missed {
            MissedTicks::Burst | MissedTicks::Skip => {
                self.next = self.next.saturating_add(lost).saturating_add(1);
            }
            MissedTicks::Delay => {
                self.origin_ns = now_ns.max(scheduled_ns);
                self.next = 1;
            }
        }
        let number = self.given;
        self.given += 1;
        self.lost = self.lost.saturating_add(lost);
        Tick { number, scheduled_ns, lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn every_ms(missed: MissedTicks) -> Grid {
        Grid::every(0, Span::MILLISECOND, missed).unwrap()
    }

    /// Taken on time, then 3.5 periods late, then on time: as tokio's documentation of
    /// `MissedTickBehavior` shows it.
    #[test]
    fn missed_ticks_are_counted() {
        for (missed, times, lost) in
            [(MissedTicks::Skip, [1, 2, 6, 7], 3), (MissedTicks::Burst, [1, 2, 3, 4], 0)]
        {
            let mut grid = every_ms(missed);
            let mut due = vec![grid.next_ns()];
            grid.take(MS);
            due.push(grid.next_ns());
            grid.take(5 * MS + MS / 2);
            due.push(grid.next_ns());
            grid.take(6 * MS);
            due.push(grid.next_ns());
            assert_eq!((due, grid.lost()), (times.map(|ms| ms * MS).to_vec(), lost), "{missed:?}");
        }
        let mut grid = every_ms(MissedTicks::Delay);
        grid.take(MS);
        assert_eq!(grid.next_ns(), 2 * MS);
        let late = grid.take(5 * MS + MS / 2);
        assert_eq!((late.lost, late.scheduled_ns, late.number), (3, 2 * MS, 1));
        assert_eq!(grid.next_ns(), 6 * MS + MS / 2);
    }

    /// 3 Hz: a third of a second is no number of nanoseconds, and a million of them are exact.
    #[test]
    fn no_error_adds_up() {
        let mut grid = Grid::hz(7, 3, MissedTicks::Burst).unwrap();
        for tick in 1..=3_000_000u64 {
            let due = grid.next_ns() - 7;
            assert!(u128::from(due) * 3 >= u128::from(tick) * 1_000_000_000);
            assert!((u128::from(due) - 1) * 3 < u128::from(tick) * 1_000_000_000);
            grid.take(grid.next_ns());
        }
        assert_eq!(grid.next_ns() - 7, 1_000_000_333_333_334);
    }

    #[test]
    fn the_ends_of_the_range() {
        assert!(matches!(
            Grid::every(0, Span::ZERO, MissedTicks::Skip),
            Err(PeriodError::NotPositive(_))
        ));
        assert!(matches!(
            Grid::every(0, Span::MIN, MissedTicks::Skip),
            Err(PeriodError::NotPositive(_))
        ));
        assert_eq!(Grid::hz(0, 0, MissedTicks::Skip), Err(PeriodError::NoRate));
        assert_eq!(Grid::hz(0, u64::MAX, MissedTicks::Skip), Err(PeriodError::TooFast(u64::MAX)));
        let mut grid = Grid::every(u64::MAX - 5, Span::MAX, MissedTicks::Burst).unwrap();
        assert_eq!(grid.next_ns(), u64::MAX);
        grid.take(u64::MAX);
        assert_eq!(grid.next_ns(), u64::MAX);
        let mut fast = Grid::hz(0, 1_000_000_000, MissedTicks::Skip).unwrap();
        assert_eq!(fast.take(u64::MAX).lost, u64::MAX - 1);
    }
}
