//! The real-time processes of the paper, as jobs of known length.
//!
//! Owns: what each job computes, for how long, and which progress it reports. Must not: run it.

use std::ops::Range;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum WorkKind {
        Product,
        Motion,
        Cosines,
        /// The rest of an encoder: looks things up in tables.
        Words,
    }
}

impl WorkKind {
    pub(super) const fn place(self) -> usize {
        self as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobPhase {
    pub(super) kind: WorkKind,
    /// How long it takes on a CPU that is not shared, ns.
    pub(super) ns: u64,
    pub(super) reported: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessJobs {
    /// The period, which is the deadline, ns.
    pub(super) period_ns: u64,
    /// Reserved of each, ns of a CPU that is not shared.
    pub(super) reserve_ns: u64,
    pub(super) jobs: Vec<Vec<JobPhase>>,
}

/// Section 5.2: 50 ms of products, 55 of every 70 ms reserved.
pub(super) fn product(periods: usize) -> ProcessJobs {
    let phase = JobPhase { kind: WorkKind::Product, ns: 50 * MS, reported: true };
    ProcessJobs { period_ns: 70 * MS, reserve_ns: 55 * MS, jobs: vec![vec![phase]; periods] }
}

/// Frames from one that is encoded by itself to the next, section 5.3: one after 11 others.
const GROUP: usize = 12;

/// Frames between two changes of scene, on average.
const SCENE: u64 = 60;

/// Frames of the whole video, 30 s of it.
pub(super) const FRAMES: usize = 900;

/// The frames of a short run: whole groups, and one behind a change of scene, of which the first 15 groups have none.
pub(super) const QUICK: Range<usize> = 180..252;

pub(super) const SEED: u64 = 2_006;

/// Section 5.3: frames of a video, 25 of every 33.3 ms reserved. 11 P-frames need about 20 ms each, the
/// I-frame after them 13 ms, P-frames behind a change of scene 23.5 ms; all vary by up to half a
/// millisecond. Motion estimation and cosine transformation take most of it, and tell their progress;
/// what is between and behind them does not.
pub(super) fn video(frames: usize) -> ProcessJobs {
    let mut state = SEED;
    let mut next = move |below: u64| {
        // Knuth's constants; the upper half is the better one.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let frame = |number: usize| {
        let alone = number % GROUP == GROUP - 1;
        let ns = match (alone, next(SCENE)) {
            (true, _) => 13 * MS,
            (false, 0) => 23_500 * US,
            (false, _) => 20 * MS,
        };
        phases(ns - 500 * US + next(1_000) * US, alone)
    };
    ProcessJobs {
        period_ns: 33_300 * US,
        reserve_ns: 25 * MS,
        jobs: (0..frames).map(frame).collect(),
    }
}

/// The phases of a frame: an I-frame has no motion to estimate.
fn phases(ns: u64, alone: bool) -> Vec<JobPhase> {
    let part = |kind, percent: u64, reported| JobPhase { kind, ns: ns * percent / 100, reported };
    let [first, motion, second, cosines, last] =
        if alone { [5, 0, 15, 60, 20] } else { [5, 55, 5, 25, 10] };
    vec![
        part(WorkKind::Words, first, false),
        part(WorkKind::Motion, motion, true),
        part(WorkKind::Words, second, false),
        part(WorkKind::Cosines, cosines, true),
        part(WorkKind::Words, last, false),
    ]
}

impl ProcessJobs {
    /// What a job needs, ns of a CPU that is not shared.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.jobs.iter().map(|job| job.iter().map(|p| p.ns).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 5.3: 900 frames in 30 s, I-frames cheaper and one in twelve, some peaks, and no frame
    /// needs more than is reserved.
    #[test]
    fn frames_of_a_video() {
        let video = video(FRAMES);
        let lengths: Vec<u64> = video.lengths().collect();
        assert_eq!(lengths.len(), 900);
        let cheap = |ns: u64| ns < 14 * MS;
        assert!(lengths.iter().enumerate().all(|(at, ns)| cheap(*ns) == (at % GROUP == GROUP - 1)));
        let peaks = lengths.iter().filter(|ns| **ns > 22 * MS).count();
        assert!((5..40).contains(&peaks), "{peaks}");
        assert!(lengths.iter().all(|ns| *ns <= 24 * MS && *ns < video.reserve_ns));
    }

    #[test]
    fn a_short_run_has_a_change_of_scene() {
        let lengths: Vec<u64> = video(FRAMES).lengths().collect();
        let part = &lengths[QUICK];
        assert_eq!((QUICK.start % GROUP, part.len() % GROUP), (0, 0));
        assert!(part.iter().any(|ns| *ns > 22 * MS) && part.iter().any(|ns| *ns < 14 * MS));
    }

    #[test]
    fn two_loops_tell() {
        for job in video(24).jobs {
            let sum: u64 = job.iter().filter(|p| p.reported).map(|p| p.ns).sum();
            let all: u64 = job.iter().map(|p| p.ns).sum();
            assert!(sum * 10 >= all * 5 && job.iter().filter(|p| p.reported).count() == 2);
        }
    }
}
