//! Spans of `tracing` whose waits the test makes itself: what is said of them is compared with what was measured
//! around them.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use hourglass_tracing::{FIELDS, Loss, WitnessLayer};
use tracing::field::{Empty, Field, Visit};
use tracing::instrument::{Instrument, WithSubscriber};
use tracing::span::{Id, Record};
use tracing::{Dispatch, Event, Subscriber, info_span};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

const PAUSE: Duration = Duration::from_millis(5);

/// Names and values that were recorded of a span, or within it.
#[derive(Clone, Debug, PartialEq)]
struct RecordedFields {
    span: String,
    event: bool,
    fields: Vec<(String, String)>,
}

impl RecordedFields {
    fn number(&self, name: &str) -> Option<u128> {
        let (_, value) = self.fields.iter().find(|(field, _)| field == name)?;
        value.parse().ok()
    }
}

/// What the layer above hears, and the losses that it finds when a span closes.
#[derive(Clone, Default)]
struct LossRecorder {
    said: Arc<Mutex<Vec<RecordedFields>>>,
    losses: Arc<Mutex<Vec<(String, Loss)>>>,
}

#[derive(Default)]
struct Fields(Vec<(String, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name().to_owned(), value.to_owned()));
    }
}

type Around<'a, S> = tracing_subscriber::layer::Context<'a, S>;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LossRecorder {
    fn on_record(&self, id: &Id, values: &Record<'_>, context: Around<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        let span = context.span(id).unwrap().name().to_owned();
        self.said.lock().unwrap().push(RecordedFields { span, event: false, fields: fields.0 });
    }

    fn on_event(&self, event: &Event<'_>, context: Around<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        assert_eq!(event.metadata().target(), "hourglass");
        let span = context.event_span(event).unwrap().name().to_owned();
        self.said.lock().unwrap().push(RecordedFields { span, event: true, fields: fields.0 });
    }

    fn on_close(&self, id: Id, context: Around<'_, S>) {
        let span = context.span(&id).unwrap();
        if let Some(loss) = span.extensions().get::<Loss>() {
            self.losses.lock().unwrap().push((span.name().to_owned(), *loss));
        }
    }
}

impl LossRecorder {
    fn under(&self, layer: WitnessLayer) -> Dispatch {
        Dispatch::new(Registry::default().with(layer).with(self.clone()))
    }

    /// Everything within `act`, also in threads that use the dispatcher.
    fn within(&self, layer: WitnessLayer, act: impl FnOnce(&Dispatch)) {
        let dispatch = self.under(layer);
        tracing::dispatcher::with_default(&dispatch, || act(&dispatch));
    }

    fn said(&self, span: &str) -> Vec<RecordedFields> {
        let said = self.said.lock().unwrap();
        said.iter().filter(|said| said.span == span).cloned().collect()
    }

    /// The one loss of the one span of this name.
    fn loss(&self, span: &str) -> Loss {
        let losses = self.losses.lock().unwrap();
        let mut of_it = losses.iter().filter(|(name, _)| name == span);
        let loss = of_it.next().unwrap_or_else(|| panic!("{span} lost nothing: {losses:?}")).1;
        assert!(of_it.next().is_none(), "{losses:?}");
        loss
    }
}

fn layer() -> WitnessLayer {
    WitnessLayer::new().unwrap()
}

fn most(loss: &Loss) -> Duration {
    Duration::from_nanos(loss.off_cpu.latest().nanos().unsigned_abs())
}

fn length(loss: &Loss) -> Duration {
    Duration::from_nanos(loss.length.nanos().unsigned_abs())
}

#[test]
fn declared_fields_are_recorded() {
    let heard = LossRecorder::default();
    heard.within(layer(), |_| {
        let span = info_span!("declares", off_cpu_ns = Empty, cause = Empty, mine = 1);
        span.in_scope(|| thread::sleep(PAUSE));
    });
    let said = heard.said("declares");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|said| !said.event && said.fields.len() == 1), "{said:?}");
    let off_cpu_ns = said[0].number("off_cpu_ns").unwrap();
    assert!(off_cpu_ns >= PAUSE.as_nanos(), "{said:?}");
    let (name, cause) = &said[1].fields[0];
    assert_eq!((&**name, &**cause), ("cause", heard.loss("declares").cause.name()));
}

#[test]
fn a_span_that_declares_none_gets_an_event() {
    let heard = LossRecorder::default();
    heard.within(layer(), |_| info_span!("plain").in_scope(|| thread::sleep(PAUSE)));
    let said = heard.said("plain");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].event && said[0].number("off_cpu_ns").unwrap() >= PAUSE.as_nanos());
    for name in FIELDS {
        assert!(said[0].fields.iter().any(|(field, _)| field == name), "{name} in {said:?}");
    }
}

#[test]
fn events_and_short_losses_may_be_left_out() {
    let heard = LossRecorder::default();
    heard.within(layer().without_events(), |_| {
        info_span!("silent").in_scope(|| thread::sleep(PAUSE));
    });
    assert_eq!(heard.said("silent"), []);
    assert!(most(&heard.loss("silent")) >= PAUSE);
    heard.within(layer().at_least(Duration::from_secs(3600)), |_| {
        info_span!("short").in_scope(|| thread::sleep(PAUSE));
    });
    assert_eq!(heard.said("short"), []);
}

/// The best of many: a machine may interrupt any of them.
#[test]
fn some_span_keeps_its_cpu_and_is_not_touched() {
    let heard = LossRecorder::default();
    heard.within(layer(), |_| {
        (0..1000).for_each(|turn| info_span!("kept", cause = Empty).in_scope(|| _ = turn));
    });
    let disturbed = heard.losses.lock().unwrap().len();
    assert!(disturbed < 1000);
    assert_eq!(heard.said("kept").len(), disturbed);
}

#[test]
fn a_span_loses_what_those_within_it_lose() {
    let heard = LossRecorder::default();
    let mut inside = Duration::ZERO;
    heard.within(layer(), |_| {
        info_span!("outer").in_scope(|| {
            thread::sleep(PAUSE);
            let begun = Instant::now();
            info_span!("inner").in_scope(|| thread::sleep(PAUSE));
            inside = begun.elapsed();
            thread::sleep(PAUSE);
        });
    });
    let (outer, inner) = (heard.loss("outer"), heard.loss("inner"));
    assert!(most(&inner) >= PAUSE && most(&inner) <= inside, "{inner:?} {inside:?}");
    assert!(most(&outer) >= 3 * PAUSE, "{outer:?}");
    assert!(outer.switches.voluntary >= 3, "{outer:?}");
}

/// Of several entries of one thread the outermost counts; they may be left in any order.
#[test]
fn a_span_that_is_entered_again_counts_once() {
    let heard = LossRecorder::default();
    let mut whole = Duration::ZERO;
    heard.within(layer(), |_| {
        let begun = Instant::now();
        let (span, other) = (info_span!("again"), info_span!("other"));
        let first = span.enter();
        let between = other.enter();
        let second = span.enter();
        thread::sleep(PAUSE);
        drop(between);
        drop(second);
        drop(first);
        drop(span);
        whole = begun.elapsed();
    });
    let again = heard.loss("again");
    assert!(most(&again) >= PAUSE && length(&again) <= whole, "{again:?} {whole:?}");
    assert!(most(&heard.loss("other")) >= PAUSE);
}

#[test]
fn a_span_moves_and_what_is_between_is_not_its() {
    let heard = LossRecorder::default();
    let mut entered = Duration::ZERO;
    heard.within(layer(), |dispatch| {
        let span = info_span!("moves");
        let stay = || {
            let begun = Instant::now();
            span.in_scope(|| thread::sleep(PAUSE));
            begun.elapsed()
        };
        entered += stay();
        thread::sleep(4 * PAUSE);
        let there = || tracing::dispatcher::with_default(dispatch, stay);
        entered += thread::scope(|scope| scope.spawn(there).join().unwrap());
    });
    let moves = heard.loss("moves");
    assert!(most(&moves) >= 2 * PAUSE, "{moves:?}");
    assert!(length(&moves) <= entered, "{moves:?} {entered:?}");
}

/// Also with many open spans: the layer then stores undisturbed ones in their extensions.
#[test]
fn pieces_that_nothing_disturbed_count_into_the_length() {
    for open in [0, 5_000] {
        let heard = LossRecorder::default();
        heard.within(layer(), |_| {
            let others: Vec<_> = (0..open).map(|_| info_span!("other")).collect();
            others.iter().for_each(|other| other.in_scope(|| ()));
            let span = info_span!("pieces");
            let spin = || {
                let until = Instant::now() + PAUSE / 10;
                while Instant::now() < until {}
            };
            (0..10).for_each(|_| span.in_scope(spin));
            span.in_scope(|| thread::sleep(PAUSE));
            (0..10).for_each(|_| span.in_scope(spin));
        });
        let pieces = heard.loss("pieces");
        assert!(length(&pieces) >= 3 * PAUSE && most(&pieces) >= PAUSE, "{open}: {pieces:?}");
    }
}

#[test]
fn two_threads_may_have_entered_a_span_at_once() {
    let heard = LossRecorder::default();
    heard.within(layer(), |dispatch| {
        let span = info_span!("shared");
        let both = std::sync::Barrier::new(2);
        let stay = || {
            tracing::dispatcher::with_default(dispatch, || {
                span.in_scope(|| {
                    both.wait();
                    thread::sleep(PAUSE);
                });
            });
        };
        thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(stay))));
    });
    assert!(most(&heard.loss("shared")) >= 2 * PAUSE);
}

#[test]
fn the_programs_own_function_is_called() {
    let heard = LossRecorder::default();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&calls);
    let layer = layer().on_loss(move |metadata, loss| {
        kept.lock().unwrap().push((metadata.name(), metadata.line(), *loss));
    });
    heard.within(layer, |_| info_span!("called").in_scope(|| thread::sleep(PAUSE)));
    let calls = calls.lock().unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].0, calls[0].1.is_some()), ("called", true));
    assert_eq!(calls[0].2, heard.loss("called"));
}

/// Measures from outside for how long a future was polled, and in which threads.
struct Polled<F> {
    future: Pin<Box<F>>,
    length: Duration,
    threads: Vec<thread::ThreadId>,
}

impl<F: Future> Future for Polled<F> {
    type Output = (F::Output, Duration, Vec<thread::ThreadId>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let begun = Instant::now();
        let polled = self.future.as_mut().poll(context);
        self.length += begun.elapsed();
        self.threads.push(thread::current().id());
        polled.map(|output| (output, self.length, std::mem::take(&mut self.threads)))
    }
}

/// Tasks under tokio's workers: they sleep without their worker, block it, and move. The time between polls is not
/// theirs, whichever worker polls.
#[test]
fn tasks_of_a_runtime_are_witnessed_while_they_are_polled() {
    const TASKS: usize = 16;
    const STEPS: u32 = 4;
    let heard = LossRecorder::default();
    let dispatch = heard.under(layer());
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(3).enable_time().build().unwrap();
    let task = |turn: usize| {
        let work = async move {
            for _ in 0..STEPS {
                tokio::time::sleep(PAUSE).await;
                // Blocks the worker, so that the others take its tasks.
                thread::sleep(PAUSE / 5);
            }
            turn
        };
        let span = tracing::dispatcher::with_default(&dispatch, || info_span!("task", turn));
        let future = Box::pin(work.instrument(span));
        Polled { future, length: Duration::ZERO, threads: Vec::new() }
    };
    let moved = runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|turn| tokio::spawn(task(turn).with_subscriber(dispatch.clone())))
            .collect();
        let mut moved = 0;
        let mut polled = Duration::ZERO;
        for task in tasks {
            let (_, length, mut threads) = task.await.unwrap();
            polled += length;
            threads.dedup();
            moved += usize::from(threads.len() > 1);
        }
        // The losses of all tasks: each at least what it slept, together no longer than they were polled.
        let losses = heard.losses.lock().unwrap();
        assert_eq!(losses.len(), TASKS);
        let lengths: Duration = losses.iter().map(|(_, loss)| length(loss)).sum();
        assert!(lengths <= polled, "{lengths:?} {polled:?}");
        for (_, loss) in losses.iter() {
            assert!(most(loss) >= STEPS * PAUSE / 5 && most(loss) <= length(loss), "{loss:?}");
            assert!(loss.switches.voluntary >= u64::from(STEPS), "{loss:?}");
        }
        moved
    });
    assert!(moved > 0, "no task moved to another worker");
}
