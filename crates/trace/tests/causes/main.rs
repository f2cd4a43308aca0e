//! Causes found in traces in which they were planted: precision and recall by rule and by source.
//!
//! Rates and lengths of what is planted are those measured in a virtual machine: ticks of 20 us
//! every 4 ms, a host's tick every 10 ms, throttlings of 50 to 54 ms a second apart.

mod bad_input;
mod generator;
mod kernel;
mod root_less;
mod stops;
mod support;
mod switch_records;
mod trace_alone;
