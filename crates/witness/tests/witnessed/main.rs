//! Tests of witnesses that may share a process. What moves the process to another group is beside this.

mod benchmark;
mod no_allocation;
mod sites;
mod spans;

use hourglass_sys::allocation::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
