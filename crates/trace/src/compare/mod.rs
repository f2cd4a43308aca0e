//! Whether two ways of running differ: by rounds of runs in turn, or, with one run each, by the parts
//! of the runs.
//!
//! Owns: what is taken from a run for a comparison ([`RunSample`]), its quantities ([`Quantity`]), and
//! the verdict on each. Must not: read files, know how the runs came about.
//!
//! With rounds ([`by_rounds`]) each pair of runs gives one difference for each quantity. Under the
//! assumption that nothing differs, its sign is as good as the other one; that is all that is
//! assumed. With one run each ([`by_parts`]) the run is cut into parts and these are drawn anew; what
//! changes between runs remains unseen, so that the interval is too narrow for runs that were made
//! one after the other on a machine whose load changes.
//!
//! A sample keeps every gap and every wake-up: 16 bytes each.
//!
//! Several quantities are looked at, and one of them may seem to have moved by chance. So what is
//! called better or worse holds for all together: if nothing differs, one comparison in twenty says
//! that something does. Medians and shares lead: they are looked at before percentiles in the tail and maxima, so
//! that what few rounds can show is not spent on the noisiest numbers ([`DetectableRounds`] says how many rounds
//! decide what).

mod bootstrap_parts;
mod joint_test;
#[cfg(test)]
mod power_trials;
mod quantity;
mod rounds;
mod sample;
mod signed_rank;
#[cfg(test)]
mod tests;
mod verdict;

pub use bootstrap_parts::by_parts;
pub use joint_test::DetectableRounds;
pub use quantity::{Quantity, Value};
pub use rounds::{LEAST_ROUNDS, by_rounds};
pub use sample::{PARTS, RunSample};
pub use verdict::{Rules, overall};
