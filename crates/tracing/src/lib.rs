//! A layer for `tracing`: spans say for how long the scheduler took their threads away, and why.
//!
//! ```
//! use hourglass_tracing::WitnessLayer;
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! // Below the layers that print or export, which hear of a loss before they close the span.
//! let subscriber = tracing_subscriber::registry().with(WitnessLayer::new()?);
//! tracing::subscriber::with_default(subscriber, || {
//!     use tracing::field::Empty;
//!     let span = tracing::info_span!("request", off_cpu_ns = Empty, cause = Empty);
//!     span.in_scope(|| { /* handle it */ });
//! });
//! # Ok::<(), hourglass_tracing::WitnessError>(())
//! ```
//!
//! When a span closes that lost something, [`FIELDS`] that it declares are recorded. A span that declares none gets
//! an event with all of them, at the level INFO, with the target `hourglass` and the span as its parent. Exporters
//! find the whole [`Loss`] in the span's extensions, and a function of the program's own may be called
//! ([`WitnessLayer::on_loss`]). A span that nothing disturbed has neither.
//!
//! Only the time counts while a span is entered: an instrumented future is witnessed while it is polled, in
//! whatever thread. What a span within loses is lost by those around it too. A span that two threads have entered
//! at once has the lengths and losses of both, added.
//!
//! Owns: the spans of `tracing` that are entered in a thread, and their losses when they close. Must not: filter,
//! format or keep spans; touch spans that nothing disturbed: their lengths are kept beside the registry (`paused.rs`).

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]
#![cfg(target_os = "linux")]

mod loss_fields;
mod paused;
mod span_stack;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hourglass_time::Span;
use hourglass_witness::{DetachedSpan, Witness};
use paused::Paused;
use tracing::dispatcher::WeakDispatch;
use tracing::span::Id;
use tracing::{Dispatch, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

pub use hourglass_witness::{Loss, WitnessError};
pub use loss_fields::FIELDS;

type OnLoss = Box<dyn Fn(&'static Metadata<'static>, &Loss) + Send + Sync>;

/// Witnesses the spans of `tracing`. For a registry, or what is on top of one.
pub struct WitnessLayer {
    /// Tells spans of several registries in one thread apart.
    number: u64,
    at_least: Span,
    events: bool,
    on_loss: Option<OnLoss>,
    undisturbed: Paused,
    dispatch: OnceLock<WeakDispatch>,
}

/// What a span lost so far, in its extensions: of one that was disturbed.
struct PausedSpan(DetachedSpan);

impl WitnessLayer {
    /// The first witness of a process tests the kernel for some milliseconds, and this is done here.
    ///
    /// # Errors
    /// [`WitnessError::ThreadEnds`], if the thread is about to end.
    pub fn new() -> Result<WitnessLayer, WitnessError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Witness::new()?;
        Ok(WitnessLayer {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            at_least: Span::ZERO,
            events: true,
            on_loss: None,
            undisturbed: Paused::new(),
            dispatch: OnceLock::new(),
        })
    }

    /// Leaves out spans that were off the CPU for less, at most. Without it each loss counts, also a wait of a
    /// microsecond.
    #[must_use]
    pub fn at_least(self, off_cpu: Duration) -> WitnessLayer {
        let ns = i64::try_from(off_cpu.as_nanos()).unwrap_or(i64::MAX);
        WitnessLayer { at_least: Span::from_nanos(ns), ..self }
    }

    /// Spans that declare none of the [`FIELDS`] get no event.
    #[must_use]
    pub fn without_events(self) -> WitnessLayer {
        WitnessLayer { events: false, ..self }
    }

    /// Calls a function with each loss when its span closes, in the thread that closes it.
    #[must_use]
    pub fn on_loss(
        self,
        call: impl Fn(&'static Metadata<'static>, &Loss) + Send + Sync + 'static,
    ) -> WitnessLayer {
        WitnessLayer { on_loss: Some(Box::new(call)), ..self }
    }

    /// Adds a piece to what is in the span's extensions, behind what is kept elsewhere.
    #[cold]
    fn extend<S>(&self, id: &Id, more: DetachedSpan, context: &Context<'_, S>)
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let Some(span) = context.span(id) else { return };
        let before = self.undisturbed.take(id.into_u64());
        let more = before.map_or(more, |before| DetachedSpan::from(before).and(more));
        let mut extensions = span.extensions_mut();
        match extensions.get_mut::<PausedSpan>() {
            Some(so_far) => so_far.0 = so_far.0.and(more),
            None => {
                extensions.insert(PausedSpan(more));
                self.undisturbed.moved_out(id.into_u64());
            }
        }
    }

    /// What a closing span lost, unless that is to be left out.
    fn loss_to_report(&self, so_far: DetachedSpan) -> Option<Loss> {
        let witness = Witness::new().ok()?;
        let loss = witness.end(witness.attach(so_far))?;
        (loss.off_cpu.latest() >= self.at_least).then_some(loss)
    }
}

impl fmt::Debug for WitnessLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("WitnessLayer");
        shown.field("at_least", &self.at_least).field("events", &self.events);
        shown.finish_non_exhaustive()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for WitnessLayer {
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        // Of a layer that is handed to a second subscriber, the first hears.
        let _ = self.dispatch.set(subscriber.downgrade());
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        span_stack::enter(self.number, id);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        match span_stack::exit(self.number, id) {
            None => {}
            Some(Ok(piece)) if self.undisturbed.keep(id.into_u64(), piece) => {}
            Some(Ok(piece)) => self.extend(id, piece.into(), &context),
            Some(Err(more)) => self.extend(id, more, &context),
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if self.undisturbed.close(id.into_u64()) {
            return;
        }
        let Some(span) = context.span(&id) else { return };
        let last = self.undisturbed.take(id.into_u64());
        let Some(PausedSpan(so_far)) = span.extensions_mut().remove::<PausedSpan>() else { return };
        self.undisturbed.moved_back(id.into_u64());
        let so_far = last.map_or(so_far, |last| so_far.and(last.into()));
        let Some(loss) = self.loss_to_report(so_far) else { return };
        let metadata = span.metadata();
        span.extensions_mut().replace(loss);
        if let Some(call) = &self.on_loss {
            call(metadata, &loss);
        }
        let Some(dispatch) = self.dispatch.get().and_then(WeakDispatch::upgrade) else { return };
        if !loss_fields::recorded(&dispatch, &id, metadata, &loss) && self.events {
            loss_fields::event(&dispatch, &id, &loss);
        }
    }
}

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
