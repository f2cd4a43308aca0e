//! Which spans the calling thread has entered.

use std::cell::RefCell;

use hourglass_witness::{DetachedSpan, OpenSpan, UndisturbedSpan, Witness};
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
    /// `None` in a thread that is about to end, and before the first span.
    static HERE: RefCell<Option<Thread>> = const { RefCell::new(None) };
}

impl Thread {
    #[cold]
    fn new() -> Option<Thread> {
        Some(Thread { witness: Witness::new().ok()?, entries: Vec::with_capacity(DEPTH) })
    }
}

/// With the calling thread's; `None` in a thread that is about to end, and of a span whose own code is interrupted.
#[inline(always)]
fn with_thread<T>(act: impl FnOnce(&mut Thread) -> Option<T>) -> Option<T> {
    let with = |here: &RefCell<Option<Thread>>| {
        let mut here = here.try_borrow_mut().ok()?;
        if here.is_none() {
            *here = Thread::new();
        }
        act(here.as_mut()?)
    };
    HERE.try_with(with).ok()?
}

/// The thread enters a span, perhaps again.
pub(crate) fn enter(layer: u64, id: &Id) {
    let span = id.into_u64();
    with_thread(|Thread { witness, entries }| {
        let again = entries.iter().any(|entry| (entry.layer, entry.span) == (layer, span));
        entries.push(EnteredSpan { layer, span, open: None });
        if !again {
            // What the list does is not the span's.
            entries.last_mut()?.open = Some(witness.begin());
        }
        Some(())
    });
}

/// The thread leaves a span. What it lost since it was entered, if anything happened; `None` while the thread has
/// entered it once more.
pub(crate) fn exit(layer: u64, id: &Id) -> Option<Result<UndisturbedSpan, DetachedSpan>> {
    let span = id.into_u64();
    with_thread(|Thread { witness, entries }| {
        let same = |entry: &EnteredSpan| (entry.layer, entry.span) == (layer, span);
        let place = entries.iter().rposition(same)?;
        let left = entries[place].open.as_ref().map(|open| witness.detach_undisturbed(open));
        if place + 1 == entries.len() {
            entries.truncate(place);
        } else {
            entries.remove(place);
        }
        left
    })
}
