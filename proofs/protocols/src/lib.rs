//! What a kill at any moment leaves behind: models of the protocols between processes, explored in every order of steps.
//!
//! A step of a model is a system call or a store that other processes see, in the order in which the code makes them.
//! Fault injection (`cargo xtask slow`) kills the real program at each of its calls; here processes are killed together,
//! in all combinations. Earlier defects are kept as [`guardian::GuardianDefect`] and [`claims::ClaimDefect`]: the checker must find
//! each of them, or the properties would say nothing.

pub mod claims;
pub mod guardian;
