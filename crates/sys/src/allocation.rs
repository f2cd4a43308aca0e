//! An allocator that counts, for tests that say "this does not allocate".

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Calls of a thread to the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationCounts {
    /// How often it has allocated, grown, shrunk or freed memory.
    pub calls: u64,
    /// Bytes it has allocated less those it has freed; negative if it frees what others allocated.
    pub held: i64,
}

thread_local! {
    /// Without a destructor and constant at first, so that it allocates nothing itself.
    static ASKED: Cell<AllocationCounts> = const { Cell::new(AllocationCounts { calls: 0, held: 0 }) };
}

/// The system's allocator, counting the calls of each thread.
///
/// ```
/// use hourglass_sys::allocation::{CountingAllocator, thread_counts};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let before = thread_counts();
/// let eight_bytes = Box::new(1u64);
/// assert_eq!(thread_counts().held - before.held, 8);
/// drop(eight_bytes);
/// assert_eq!(thread_counts().calls - before.calls, 2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// The calling thread's calls so far; zero if [`CountingAllocator`] is not the program's allocator.
#[must_use]
pub fn thread_counts() -> AllocationCounts {
    ASKED.with(Cell::get)
}

/// Notes a call, with the bytes that it gives and takes.
fn note(given: usize, taken: usize) {
    // A thread that is ending has no counter any more.
    let _ = ASKED.try_with(|asked| {
        let AllocationCounts { calls, held } = asked.get();
        let held = held.wrapping_add(given as i64).wrapping_sub(taken as i64);
        asked.set(AllocationCounts { calls: calls.wrapping_add(1), held });
    });
}

// SAFETY: every call goes to the system's allocator with the arguments it came with; counting
// touches two thread-local integers and never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: the caller's promise is passed on; `at` came from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        // SAFETY: the caller's promise is passed on; `at` came from the system's allocator.
        unsafe { System.realloc(at, layout, size) }
    }
}
