//! Conversions from and to the time types of others, each behind the feature of its name.
//!
//! `std` and `jiff` are implementations of `From` and `TryFrom` and have no names of their own;
//! `hifitime` is a module of functions.

#[cfg(feature = "hifitime")]
pub mod hifitime;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "std")]
mod system_time;
