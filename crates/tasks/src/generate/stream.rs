//! The random sequences of a set.
//!
//! Owns: the derivation of a sequence from seed, utilisation, set and purpose. Must not: share a
//! sequence between two sets, which would make results depend on the order of drawing.

use hourglass_documents::random::Stream;

use super::millionths::Millionths;

/// What a sequence is drawn for. Each part of a set has its own, so that another choice of
/// deadlines leaves utilisations and periods as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Utilisations = 1,
    Periods,
    Deadlines,
    Jitter,
}

/// The sequence of one set for one purpose.
pub(super) fn for_set(seed: u64, utilisation: Millionths, set: u64, purpose: Purpose) -> Stream {
    Stream::from_seeds(&[seed, utilisation.count(), set, purpose as u64])
}
