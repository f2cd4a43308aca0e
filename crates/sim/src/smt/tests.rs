//! The policies on simulated cores, and slack beside a twin that tries every loss.

mod policies;
mod slack;
