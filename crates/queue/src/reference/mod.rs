//! Orders and wheels that are not for use: one that is obviously right, and one that shows what is
//! wrong with cascading.
//!
//! Owns: the twin that tests compare with, and the cascading wheel of the paper.
//! Must not: be the back-end of anything that has to be fast.

mod cascading_wheel;
mod sorted_list;

pub use cascading_wheel::{AdvanceCounts, CascadingWheel, Search};
pub use sorted_list::SortedList;
