//! Which spans the calling thread has entered.

use std::cell::RefCell;

use hourglass_witness::{OpenSpan, Travelling, Witness};
use tracing::span::Id;

/// Deeper nesting allocates.
const DEPTH: usize = 32;

struct EnteredSpan {
    layer: u64,
    span: u64,
    /// `None` where the thread had entered it already: the outermost counts.
    open: Option<OpenSpan>,
}

struct Thread {
    witness: Witness,
    entries: Vec<EnteredSpan>,
}

thread_local! {
    /// `None` in a thread that is about to end.
    static HERE: RefCell<Option<Thread>> = RefCell::new(Thread::new());
}

impl Thread {
    fn new() -> Option<Thread> {
        Some(Thread { witness: Witness::new().ok()?, entries: Vec::with_capacity(DEPTH) })
    }
}

/// With the calling thread's; `None` in a thread that is about to end, and of a span whose own code is interrupted.
fn with_thread<T>(act: impl FnOnce(&mut Thread) -> Option<T>) -> Option<T> {
    HERE.try_with(|here| act(here.try_borrow_mut().ok()?.as_mut()?)).ok()?
}

/// The thread enters a span, perhaps again.
pub(crate) fn enter(layer: u64, id: &Id) {
    let span = id.into_u64();
    with_thread(|thread| {
        let again = thread.entries.iter().any(|entry| (entry.layer, entry.span) == (layer, span));
        thread.entries.push(EnteredSpan { layer, span, open: None });
        if !again {
            // What the list does is not the span's.
            let open = thread.witness.begin();
            thread.entries.last_mut()?.open = Some(open);
        }
        Some(())
    });
}

/// The thread leaves a span. What it lost since it was entered; `None` while the thread has entered it once more.
pub(crate) fn exit(layer: u64, id: &Id) -> Option<Travelling> {
    let span = id.into_u64();
    with_thread(|thread| {
        let same = |entry: &EnteredSpan| (entry.layer, entry.span) == (layer, span);
        let place = thread.entries.iter().rposition(same)?;
        let open = thread.entries.remove(place).open?;
        Some(thread.witness.detach(open))
    })
}
