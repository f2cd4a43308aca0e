//! Tasks whose first jobs are counted, several looked at in one instruction.
//!
//! Owns: [`VectorTasks`] and its rounds, which count releases before the end of a busy window. Numbers of a kind lie
//! side by side and no branch depends on them: compilers make vector instructions of that. Where all periods
//! are short, times are kept in 32 binary digits, and what is above is known from a time close by. Must not:
//! know when a window is over.

use crate::exact_fraction::high_half;

/// Times below this can be added eight times over without a sign: 36 years.
pub(super) const NEAR: u64 = 1 << 60;

/// How many rounds that count a job of a task come before one that counts all, which costs more.
pub(super) const SHORT_ROUNDS: u32 = 5;

/// Tasks a block.
const WIDTH: usize = 4;

/// The integer type of times.
pub(super) trait Digits: Copy {
    const NONE: Self;
    /// Periods of at most this can be kept, where the shares of all tasks are at most 1 together.
    const LONGEST: u64;
    fn cut(time: u64) -> Self;
    /// The time that these are the lower digits of, which is close to another.
    fn whole(self, close: u64) -> u64;
    /// All ones if this time is before another, which is close, else zeros.
    fn before(self, other: Self) -> Self;
    /// The sum, if the other number is all ones below, else this number.
    fn plus_if(self, added: Self, condition: Self) -> Self;
}

impl Digits for u32 {
    const NONE: u32 = 0;
    const LONGEST: u64 = 1 << 30;

    #[inline]
    fn cut(time: u64) -> u32 {
        time as u32
    }

    #[inline]
    fn whole(self, close: u64) -> u64 {
        close.wrapping_add_signed(self.wrapping_sub(close as u32).cast_signed().into())
    }

    #[inline]
    fn before(self, other: u32) -> u32 {
        (self.wrapping_sub(other).cast_signed() >> (u32::BITS - 1)).cast_unsigned()
    }

    #[inline]
    fn plus_if(self, added: u32, condition: u32) -> u32 {
        self.wrapping_add(added & condition)
    }
}

impl Digits for u64 {
    const NONE: u64 = 0;
    const LONGEST: u64 = u64::MAX;

    #[inline]
    fn cut(time: u64) -> u64 {
        time
    }

    #[inline]
    fn whole(self, _: u64) -> u64 {
        self
    }

    #[inline]
    fn before(self, other: u64) -> u64 {
        (self.wrapping_sub(other).cast_signed() >> (u64::BITS - 1)).cast_unsigned()
    }

    #[inline]
    fn plus_if(self, added: u64, condition: u64) -> u64 {
        self.wrapping_add(added & condition)
    }
}

/// Tasks side by side, one in each lane; unused lanes have a cost of 0.
#[derive(Clone, Copy, Debug)]
struct Block<N> {
    /// When the first job that is not counted is released.
    next: [N; WIDTH],
    period: [N; WIDTH],
    cost: [N; WIDTH],
}

#[derive(Clone, Debug)]
pub(super) struct VectorTasks<N> {
    blocks: Vec<Block<N>>,
    /// The [`crate::exact_fraction::inverse`] of each period.
    inverses: Vec<[u64; WIDTH]>,
    count: usize,
    /// Of each task the first release that is not counted is at most a period from here.
    at: u64,
}

impl<N: Digits> VectorTasks<N> {
    pub(super) fn with_capacity(tasks: usize) -> VectorTasks<N> {
        let blocks = tasks.div_ceil(WIDTH);
        let (blocks, inverses) = (Vec::with_capacity(blocks), Vec::with_capacity(blocks));
        VectorTasks { blocks, inverses, count: 0, at: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a task of which all jobs before `next` are counted, which is at most a period after `end`, before
    /// which nothing is left to count. The inverse is [`crate::exact_fraction::inverse`] of its period.
    pub(super) fn push(&mut self, end: u64, next: u64, (cost, period): (u64, u64), inverse: u64) {
        self.at = end;
        let lane = self.count % WIDTH;
        if lane == 0 {
            let none = [N::NONE; WIDTH];
            self.blocks.push(Block { next: none, period: none, cost: none });
            self.inverses.push([0; WIDTH]);
        }
        if let (Some(block), Some(inverses)) = (self.blocks.last_mut(), self.inverses.last_mut()) {
            block.next[lane] = N::cut(next);
            block.period[lane] = N::cut(period);
            block.cost[lane] = N::cut(cost);
            inverses[lane] = inverse;
        }
        self.count += 1;
    }

    /// The earliest release that is not counted.
    pub(super) fn earliest(&self) -> u64 {
        let all = self.blocks.iter().flat_map(|block| block.next).take(self.count);
        all.map(|next| next.whole(self.at)).min().unwrap_or(u64::MAX)
    }

    /// Counts releases before `end`, which their work moves on, of every task one a round. Gives the end and
    /// how many rounds there was anything to count in; after [`SHORT_ROUNDS`] something may be left. The end
    /// and the sum of costs are below [`NEAR`].
    #[inline(never)]
    pub(super) fn short_rounds(&mut self, end: u64) -> (u64, u32) {
        let mut end = end;
        for rounds in 0..SHORT_ROUNDS {
            if end.saturating_sub(self.at) > N::LONGEST {
                break;
            }
            let work = short_round(&mut self.blocks, N::cut(end));
            if work == 0 {
                self.at = end;
                return (end, rounds);
            }
            end += work;
        }
        (end, SHORT_ROUNDS)
    }

    /// Counts of every task all releases before `time`, or all but one, and gives their work. The time and the
    /// sum of costs are below [`NEAR`].
    #[inline(never)]
    pub(super) fn long_round(&mut self, time: u64) -> u64 {
        let at = std::mem::replace(&mut self.at, time);
        let mut work = 0u64;
        for (block, inverse) in self.blocks.iter_mut().zip(&self.inverses) {
            for (lane, inverse) in inverse.iter().enumerate() {
                let next = block.next[lane].whole(at);
                let due = next.before(time);
                let late = time.wrapping_sub(next).wrapping_sub(1) & due;
                let jobs = high_half(late, *inverse) + (due & 1);
                work = work.wrapping_add(jobs.wrapping_mul(block.cost[lane].whole(0)));
                let later = jobs.wrapping_mul(block.period[lane].whole(0));
                block.next[lane] = N::cut(next.wrapping_add(later));
            }
        }
        work
    }

    /// The same whatever the numbers; `None` if one does not fit.
    #[cold]
    pub(super) fn far_round(&mut self, time: u64) -> Option<u64> {
        let mut work = 0u64;
        for lane in 0..self.count {
            let (block, lane) = (&mut self.blocks[lane / WIDTH], lane % WIDTH);
            let next = block.next[lane].whole(self.at);
            let period = block.period[lane].whole(0);
            if next < time {
                let jobs = (time - next).div_ceil(period);
                block.next[lane] = N::cut(next.checked_add(jobs.checked_mul(period)?)?);
                work = work.checked_add(jobs.checked_mul(block.cost[lane].whole(0))?)?;
            }
        }
        self.at = time;
        Some(work)
    }
}

/// Counts one release before `end` of every task that has one, and gives their work.
#[inline]
fn short_round<N: Digits>(blocks: &mut [Block<N>], end: N) -> u64 {
    let mut work = [N::NONE; WIDTH];
    for block in blocks {
        for (lane, work) in work.iter_mut().enumerate() {
            let due = block.next[lane].before(end);
            *work = work.plus_if(block.cost[lane], due);
            block.next[lane] = block.next[lane].plus_if(block.period[lane], due);
        }
    }
    work.iter().map(|work| work.whole(0)).sum()
}
