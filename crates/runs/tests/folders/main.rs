//! Run folders, whole and damaged, and folders of rounds.
//!
//! One program for all of it: each program of tests has to be linked with the reader of tables.

mod common;
mod damage;
mod lifecycle;
mod open;
mod round_trip;
mod rounds;
