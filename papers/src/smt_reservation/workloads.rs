//! What the paper's processes compute.
//!
//! Owns: the computations, in steps of a fraction of a microsecond, and how long a step takes here. Must
//! not: know when they run. A step neither allocates nor locks nor panics: it also runs in children of
//! this process.

use std::hint::black_box;

use hourglass_sys::clock::{ClockId, now_ns};

pub(super) const SIZE: usize = 200;

/// Something that is computed for ever, a step at a time.
pub(super) trait Computation: Send {
    fn run(&mut self, steps: u64);
}

/// Products of two matrices, over and over, as Figure 6 writes them: not blocked, one factor by columns.
/// A step is one element of the product.
#[derive(Debug)]
pub(super) struct Product<T> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
    at: usize,
}

pub(super) trait MatrixElement: Copy + Send {
    fn add(self, one: Self, other: Self) -> Self;
    fn of(small: u16) -> Self;
}

impl MatrixElement for f64 {
    fn add(self, one: f64, other: f64) -> f64 {
        self + one * other
    }

    fn of(small: u16) -> f64 {
        f64::from(small) * 0.5
    }
}

impl MatrixElement for i32 {
    fn add(self, one: i32, other: i32) -> i32 {
        self.wrapping_add(one.wrapping_mul(other))
    }

    fn of(small: u16) -> i32 {
        i32::from(small)
    }
}

impl<T: MatrixElement> Product<T> {
    pub(super) fn new() -> Product<T> {
        let factor = |shift: usize| {
            (0..SIZE * SIZE)
                .map(|at| T::of(((at / SIZE + at % SIZE * shift) % 997) as u16))
                .collect()
        };
        Product { a: factor(3), b: factor(5), c: vec![T::of(0); SIZE * SIZE], at: 0 }
    }
}

impl<T: MatrixElement> Computation for Product<T> {
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            let (row, column) = (self.at / SIZE, self.at % SIZE);
            let of_a = self.a.iter().skip(column).step_by(SIZE);
            let of_b = self.b.iter().skip(row * SIZE).take(SIZE);
            let sum = of_a.zip(of_b).fold(T::of(0), |sum, (a, b)| sum.add(*a, *b));
            if let Some(element) = self.c.get_mut(self.at) {
                *element = black_box(sum);
            }
            self.at = (self.at + 1) % (SIZE * SIZE);
        }
    }
}

/// Slots of the table of names, a power of two, and characters of the text.
const NAMES: usize = 1 << 17;
const TEXT: usize = 1 << 18;

/// What stands in for a compiler: finds the words of a text and looks them up in a table far larger than
/// the first caches. A step is one word. A compiler cannot be slowed from outside as contention is
/// emulated, nor does it say when it runs.
#[derive(Debug)]
pub(super) struct WordLookup {
    text: Vec<u8>,
    table: Vec<u32>,
    at: usize,
}

impl WordLookup {
    pub(super) fn new() -> WordLookup {
        let mut seed = 2_006u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 16
        };
        let letter =
            |number: u32| if number.is_multiple_of(7) { b' ' } else { b'a' + (number % 26) as u8 };
        WordLookup {
            text: (0..TEXT).map(|_| letter(next())).collect(),
            table: vec![0; NAMES],
            at: 0,
        }
    }
}

impl Computation for WordLookup {
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            let mut hash = 0x811c_9dc5_u32;
            loop {
                let letter = self.text.get(self.at).copied().unwrap_or(b' ');
                self.at = (self.at + 1) % TEXT;
                if letter == b' ' {
                    break;
                }
                hash = (hash ^ u32::from(letter)).wrapping_mul(0x0100_0193);
            }
            // Linear probing, as a table of names has it, but not for ever.
            for probe in 0..8u32 {
                let slot = hash.wrapping_add(probe) as usize % NAMES;
                let Some(known) = self.table.get_mut(slot) else { break };
                if *known == hash || *known == 0 {
                    *known = hash;
                    break;
                }
            }
        }
    }
}

/// Edge of the picture, a quarter of the paper's in each direction, and of a block of it.
const PICTURE: usize = 128;
const BLOCK: usize = 16;

/// Motion estimation: how far blocks of a picture differ from those of the one before, at all places
/// near. A step is one comparison of two blocks.
#[derive(Debug)]
pub(super) struct MotionEstimation {
    now: Vec<u8>,
    before: Vec<u8>,
    at: usize,
    least: u32,
}

impl MotionEstimation {
    pub(super) fn new() -> MotionEstimation {
        let picture = |shift: usize| {
            (0..PICTURE * PICTURE).map(|at| ((at + shift) * (at >> 7) % 251) as u8).collect()
        };
        MotionEstimation { now: picture(0), before: picture(3), at: 0, least: u32::MAX }
    }
}

impl Computation for MotionEstimation {
    fn run(&mut self, steps: u64) {
        const PLACES: usize = PICTURE - BLOCK;
        for _ in 0..steps {
            let (x, y) = (self.at % PLACES, self.at / PLACES % PLACES);
            let mut difference = 0;
            for line in 0..BLOCK {
                let own = self.now.iter().skip(line * PICTURE).take(BLOCK);
                let other = self.before.iter().skip((y + line) * PICTURE + x).take(BLOCK);
                difference += own.zip(other).map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>();
            }
            self.least = black_box(self.least.min(difference));
            self.at = (self.at + 1) % (PLACES * PLACES);
        }
    }
}

const EIGHT: usize = 8;

/// The discrete cosine transformation of blocks, line by line. A step is one line of a block.
#[derive(Debug)]
pub(super) struct DctWork {
    factors: Vec<f64>,
    block: Vec<f64>,
    at: usize,
}

impl DctWork {
    pub(super) fn new() -> DctWork {
        let factor = |at: usize| {
            let angle = (at / EIGHT) as f64 * (2 * (at % EIGHT) + 1) as f64;
            (angle * std::f64::consts::PI / 16.0).cos() * 0.5
        };
        let all = EIGHT * EIGHT;
        DctWork {
            factors: (0..all).map(factor).collect(),
            block: (0..all).map(|at| (at * 37 % 255) as f64).collect(),
            at: 0,
        }
    }
}

impl Computation for DctWork {
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            let line = self.at * EIGHT;
            let mut transformed = [0.0; EIGHT];
            for (row, place) in transformed.iter_mut().enumerate() {
                let factors = self.factors.iter().skip(row * EIGHT).take(EIGHT);
                let samples = self.block.iter().skip(line).take(EIGHT);
                *place = factors.zip(samples).map(|(factor, sample)| factor * sample).sum();
            }
            for (sample, new) in self.block.iter_mut().skip(line).zip(transformed) {
                // Kept within the samples of a picture, so that they do not vanish.
                *sample = black_box(new % 255.0 + 1.0);
            }
            self.at = (self.at + 1) % EIGHT;
        }
    }
}

/// Rounds of a calibration, and how long each is at least, ns.
const ROUNDS: usize = 15;
const ROUND_NS: u64 = 500_000;

/// How long a step takes on this CPU, undisturbed, in picoseconds: the median of several rounds. Takes
/// some 10 ms.
pub(super) fn step_ps(work: &mut dyn Computation) -> u64 {
    let timed = |work: &mut dyn Computation, steps: u64| {
        let begun = now_ns(ClockId::Monotonic);
        work.run(steps);
        now_ns(ClockId::Monotonic) - begun
    };
    let mut steps = 1;
    while timed(work, steps) < ROUND_NS && steps < 1 << 40 {
        steps *= 2;
    }
    let mut rounds: Vec<u64> =
        (0..ROUNDS).map(|_| timed(work, steps).saturating_mul(1_000) / steps).collect();
    rounds.sort_unstable();
    rounds.get(ROUNDS / 2).copied().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 6: c[i][j] is the sum of a[k][j] b[i][k] over all k.
    #[test]
    fn the_product_is_one() {
        let mut product = Product::<i32>::new();
        product.run((SIZE * SIZE) as u64);
        for (i, j) in [(0, 0), (3, 199), (199, 7)] {
            let sum: i32 =
                (0..SIZE).map(|k| product.a[k * SIZE + j] * product.b[i * SIZE + k]).sum();
            assert_eq!(product.c[i * SIZE + j], sum);
        }
        assert_eq!(product.at, 0);
    }

    #[test]
    fn cosines_are_a_transformation() {
        let cosines = DctWork::new();
        let row = |row: usize| &cosines.factors[row * EIGHT..][..EIGHT];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert!(row(0).iter().all(|factor| (factor - 0.5).abs() < 1e-12));
        for other in 1..EIGHT {
            assert!(
                dot(row(0), row(other)).abs() < 1e-12
                    && (dot(row(other), row(other)) - 1.0).abs() < 1e-12
            );
        }
    }

    #[test]
    fn motion_is_found() {
        let mut motion = MotionEstimation::new();
        motion.before = motion.now.clone();
        motion.run(1);
        assert_eq!(motion.least, 0);
    }

    #[test]
    fn all_go_on_for_ever() {
        let all: [Box<dyn Computation>; 5] = [
            Box::new(Product::<f64>::new()),
            Box::new(Product::<i32>::new()),
            Box::new(WordLookup::new()),
            Box::new(MotionEstimation::new()),
            Box::new(DctWork::new()),
        ];
        for mut work in all {
            work.run(60_000);
            assert!(step_ps(work.as_mut()) > 100);
        }
    }
}
