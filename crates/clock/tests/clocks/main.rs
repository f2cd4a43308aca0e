//! Tests of clocks that may share a process: on the simulated clock and on this machine's.

#[cfg(target_os = "linux")]
mod no_allocation;
mod page_writer;
mod simulated;
mod slewed;
mod thesis_defects;

use hourglass_sys::allocation::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
