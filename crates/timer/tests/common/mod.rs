//! What the test programs share.

#[cfg(target_os = "linux")]
pub(crate) mod devices;
pub(crate) mod dice;
#[cfg(target_os = "linux")]
pub(crate) mod machine;
#[cfg(target_os = "linux")]
pub(crate) mod serving;
#[cfg(target_os = "linux")]
pub(crate) mod watching;
