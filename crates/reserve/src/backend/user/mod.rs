//! A reserve kept by a thread of this program, for those to whom the deadline class does not apply.

pub mod budget;
pub mod demand;
