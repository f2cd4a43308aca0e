//! Samples of a benchmark, and losses as attributes.

use std::thread;
use std::time::{Duration, Instant};

use hourglass_witness::{AttributeValue, Samples, Witness};

const PAUSE: Duration = Duration::from_millis(2);

/// Every fourth sample waits by itself; whatever else is disturbed is the machine's.
#[test]
fn disturbed_samples_are_marked() {
    let mut samples = Samples::new().unwrap();
    for turn in 0..40 {
        let begun = Instant::now();
        let elapsed = samples.time(3, || {
            if turn % 4 == 0 {
                thread::sleep(PAUSE);
            }
        });
        assert!(elapsed <= begun.elapsed());
        assert!(turn % 4 != 0 || elapsed >= 3 * PAUSE);
    }
    assert_eq!(samples.time(0, || ()).as_millis(), 0);
    let kept = samples.samples();
    assert!(kept.iter().step_by(4).all(|sample| sample.loss.is_some()), "{kept:?}");
    let summary = samples.summary().unwrap();
    assert_eq!(summary.samples, 40);
    assert!(summary.disturbed >= 10 && summary.off_cpu >= 30 * PAUSE, "{summary}");
    assert!(summary.all.longest_ns >= PAUSE.as_nanos() as f64);
    let text = summary.to_string();
    assert!(summary.clean.is_none() || text.contains("clean samples only: median"), "{text}");
    samples.clear();
    assert_eq!(samples.summary(), None);
}

/// Disturbed three times, then no more: what is returned is the time of a sample that is clean, or of the tenth.
#[test]
fn a_disturbed_sample_is_taken_again() {
    let mut samples = Samples::new().unwrap();
    let mut calls = 0;
    let elapsed = samples.time_clean(1, || {
        calls += 1;
        if calls <= 3 {
            thread::sleep(PAUSE);
        }
    });
    let kept = samples.samples();
    assert!((4..=10).contains(&kept.len()) && kept.len() == calls, "{kept:?}");
    assert!(kept[..kept.len() - 1].iter().all(|sample| sample.loss.is_some()));
    assert_eq!(kept.last().unwrap().elapsed, elapsed);

    samples.clear();
    samples.time_clean(1, || thread::sleep(PAUSE / 10));
    assert_eq!(samples.samples().len(), 10);
}

#[test]
fn attributes_are_what_the_loss_says() {
    let witness = Witness::new().unwrap();
    let span = witness.begin();
    thread::sleep(PAUSE);
    let loss = witness.end(span).unwrap();
    let attributes: Vec<_> = loss.attributes().collect();
    assert_eq!(attributes.len(), 8);
    assert!(attributes.iter().all(|(name, _)| name.starts_with("hourglass.")));
    let of = |wanted: &str| attributes.iter().find(|(name, _)| *name == wanted).unwrap().1;
    assert_eq!(of("hourglass.off_cpu_ns"), AttributeValue::Int(loss.off_cpu.latest().nanos()));
    assert_eq!(of("hourglass.cause"), AttributeValue::Text(loss.cause.name()));
    assert_eq!(of("hourglass.confidence"), AttributeValue::Double(loss.confidence));
}
