//! Spans that a program recorded, read back from their folder.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use hourglass_measure::spans::{DumpTarget, Dumper, SiteSettings, SpanRecording};
use hourglass_runs::open_run;
use hourglass_trace::cause::AttributedGap;

const PAUSE: Duration = Duration::from_millis(12);

/// Five requests on each of two threads, each with a wait of 3 ms that is an inner span; and many that wait for nothing.
#[test]
fn losses_are_in_the_folder_with_their_causes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("spans");
    let recording = SpanRecording::start(&path, SpanRecording::SETTINGS).unwrap();
    let sites = recording.sites().clone();
    let [request, wait, quick] = ["request", "wait", "quick"].map(|name| sites.site(name));
    thread::scope(|scope| {
        for name in ["one", "two"] {
            let work = || {
                let here = sites.current_thread().unwrap();
                for _ in 0..5 {
                    here.run(request, || {
                        here.run(quick, || ());
                        here.run(wait, || thread::sleep(PAUSE));
                    });
                    (0..100).for_each(|_| here.run(quick, || ()));
                }
            };
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).unwrap();
        }
    });
    drop(recording.finish().unwrap());

    let kept = open_run(&path).unwrap();
    let result = &kept.document.result;
    assert_eq!(result.warnings.iter().filter(|warning| warning.id.starts_with("spans")).count(), 0);
    let found: Vec<_> = result.sites.iter().map(|site| (site.name.as_str(), site.spans)).collect();
    assert_eq!(found, [("request", 10), ("wait", 10), ("quick", 1_010)]);
    for site in &result.sites[..2] {
        assert_eq!(site.disturbed, 10);
        // A busy machine may take more than a wait did.
        let mut causes = site.causes.iter().map(|cause| cause.cause.as_str());
        assert!(causes.any(|cause| cause == "context_switch_voluntary"), "{site:?}");
        assert!(site.lost_most_ns >= 120_000_000 && site.p50_ns >= 12_000_000, "{site:?}");
        // Each is in its dump.
        let worst = result.worst_spans.iter().filter(|span| span.site == site.name);
        assert!(worst.clone().count() >= 10);
        // A host that takes the processor widens intervals downwards: the best of them.
        assert!(worst.map(|span| span.lost_least_ns).max() > Some(6_000_000), "{result:?}");
    }
    let names: Vec<_> = result.threads.iter().map(|thread| thread.name.clone().unwrap()).collect();
    assert!(names == ["one", "two"] || names == ["two", "one"], "{names:?}");
    for thread in &result.threads {
        // One gap a request, not two: its wait lost what it lost.
        assert!(
            (5..15).contains(&thread.gaps.count) && thread.gaps.max_ns >= 2_900_000,
            "{thread:?}"
        );
    }
    let contents = kept.contents(|_| true).unwrap();
    assert_eq!(contents.spans.len(), 1_030);
    // One for each wait, within it: the request around it lost nothing more.
    let long = |site: u32| {
        let within = |gap: &&AttributedGap| {
            gap.end_ns - gap.start_ns > 2_000_000
                && contents.spans.iter().any(|span| {
                    (span.site, span.thread) == (site, gap.thread)
                        && span.start_ns <= gap.start_ns
                        && gap.end_ns <= span.end_ns
                })
        };
        contents.causes.iter().filter(within).count()
    };
    assert!((10..20).contains(&long(0)) && long(1) == 10, "{} {}", long(0), long(1));
}

#[test]
fn what_found_no_room_is_said() {
    let home = tempfile::tempdir().unwrap();
    let settings = SiteSettings { sites: 1, spans: 3, ..SpanRecording::SETTINGS };
    let recording = SpanRecording::start(home.path().join("spans"), settings).unwrap();
    let sites = [recording.sites().site("a"), recording.sites().site("b")];
    let here = recording.sites().current_thread().unwrap();
    (0..10).for_each(|turn| here.run(sites[turn % 2], || ()));
    let kept = recording.finish().unwrap();
    let result = kept.manifest().result.as_ref().unwrap();
    let said: Vec<_> = result.warnings.iter().map(|warning| warning.id.as_str()).collect();
    assert!(said.contains(&"spans-dropped") && said.contains(&"sites-full"), "{said:?}");
    assert_eq!(kept.trace().rows(), 3);
}

#[test]
fn nothing_recorded_is_a_folder_too_and_a_folder_that_is_there_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("spans");
    let recording = SpanRecording::start(&path, SpanRecording::SETTINGS).unwrap();
    let text = SpanRecording::start(&path, SpanRecording::SETTINGS).unwrap_err().to_string();
    assert!(text.contains("exists"), "{text}");
    drop(recording.finish().unwrap());
    assert!(open_run(&path).unwrap().contents(|_| true).unwrap().intervals.is_empty());
}

/// A dump is written when asked for, by a signal too.
#[test]
fn a_dumper_writes_when_asked() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("worst.txt");
    let recording =
        SpanRecording::start(home.path().join("spans"), SpanRecording::SETTINGS).unwrap();
    let sites = recording.sites().clone();
    let site = sites.site("callback");
    sites.current_thread().unwrap().run(site, || thread::sleep(PAUSE));
    let (signal, _) = hourglass_sys::posix_timer::realtime_signals();
    let dumper = Dumper::start(&sites, DumpTarget::File(path.clone()), Some(signal)).unwrap();
    let dumps = || fs::read_to_string(&path).unwrap_or_default().matches("callback: ").count();
    let wait_for = |count| {
        let begun = Instant::now();
        while dumps() < count {
            assert!(begun.elapsed() < Duration::from_secs(20), "no dump");
            thread::sleep(Duration::from_millis(1));
        }
    };
    sites.request_dump();
    wait_for(1);
    hourglass_sys::posix_timer::send(hourglass_sys::thread::id(), signal).unwrap();
    wait_for(2);
    drop(dumper);
    sites.request_dump();
    assert_eq!(dumps(), 2);
}
