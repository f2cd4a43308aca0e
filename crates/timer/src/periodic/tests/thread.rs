use super::*;
use hourglass_time::Span;
use std::sync::Mutex;

fn every_ms() -> Builder {
    PeriodicThread::builder("task").period(Span::MILLISECOND)
}

/// Issue 4, "fork while armed": a child has its parent's memory and none of its threads. Waiting for
/// one there would never end.
#[test]
fn a_forked_child_does_not_wait() {
    let mut thread = every_ms().spawn(|_| ()).unwrap();
    thread.process ^= 1;
    let (stop, parent) = (thread.stopper(), std::process::id());
    assert_ne!(thread.process, parent);
    assert_eq!(thread.stop(), Err(JoinError::Forked { name: "task".to_owned() }));
    // The parent's thread is left alone.
    assert!(!stop.is_requested());
    stop.stop();
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    let own = Arc::new(Mutex::new(None::<PeriodicThread>));
    let answer = Arc::new(Mutex::new(None));
    let (mine, answered) = (Arc::clone(&own), Arc::clone(&answer));
    let thread = every_ms()
        .spawn(move |_| {
            if let Some(thread) = mine.lock().unwrap().take() {
                *answered.lock().unwrap() = Some(thread.stop());
            }
        })
        .unwrap();
    let statistics = thread.statistics();
    let stop = thread.stopper();
    *own.lock().unwrap() = Some(thread);
    while answer.lock().unwrap().is_none() {
        thread::yield_now();
    }
    assert_eq!(*answer.lock().unwrap(), Some(Err(JoinError::Itself { name: "task".to_owned() })));
    assert!(stop.is_requested() && statistics.read().releases > 0);
}

#[test]
fn panics_are_reported_by_their_text() {
    assert_eq!(message(&"a"), "a");
    assert_eq!(message(&"b".to_owned()), "b");
    assert_eq!(message(&7), "a panic without a text");
}
