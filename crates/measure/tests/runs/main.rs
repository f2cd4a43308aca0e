//! Runs on this machine, and folders as they are read back.

mod damaged;
mod measured;
mod own_loop;
mod spans;
mod utc;
