//! What this crate draws, and the formats of others that it writes.
//!
//! One program for all of it: each program of tests has to be linked with all that it draws from.

mod browser;
mod diff;
mod doctor;
mod foreign;
mod lines;
mod page;
mod paper;
mod picture;
mod predict;
mod shown;
mod simulation;
mod summary;
mod sweep;
