//! Conversions from and to the time types of others, each behind the feature of its name:
//! implementations of `From` and `TryFrom`.

#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "std")]
mod system_time;
