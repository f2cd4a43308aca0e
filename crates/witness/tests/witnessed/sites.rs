//! Spans of call sites, with losses that the test makes itself and counts besides.

use std::thread;
use std::time::Duration;

use hourglass_witness::sites::{CauseLost, DroppedCounts, OTHER_SITES, SiteSettings, Sites};
use hourglass_witness::{Cause, Span};

const PAUSE: Duration = Duration::from_millis(12);

fn sites() -> Sites {
    Sites::new(SiteSettings { spans: 1_000, ..SiteSettings::default() })
}

/// On four threads: each counts 100 spans at one site, and 5 with a sleep at another.
#[test]
fn threads_are_added_up() {
    let sites = sites();
    let (short, long) = (sites.site("short"), sites.site("long"));
    thread::scope(|scope| {
        for number in 0..4 {
            let work = || {
                let here = sites.current_thread().unwrap();
                let mut disturbed = 0;
                for _ in 0..100 {
                    let span = here.begin(short);
                    disturbed += u64::from(here.end(span).is_some());
                }
                let lost = |_| here.run(long, || thread::sleep(PAUSE));
                (0..5).for_each(lost);
                disturbed
            };
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn_scoped(scope, work)
                .unwrap();
        }
    });
    let [short, long] = sites.report().try_into().unwrap();
    assert_eq!((short.name.as_str(), short.spans, short.length.count()), ("short", 400, 400));
    assert!(short.place.contains("witnessed/sites.rs:"), "{}", short.place);
    assert_eq!((long.spans, long.disturbed, long.unknown), (20, 20, 0));
    assert_eq!(long.causes.iter().map(|cause| cause.count).sum::<u64>(), 20);
    // A host that is busy takes more than the waits did.
    let is_wait = |cause: &&CauseLost| cause.cause == Cause::ContextSwitchVoluntary;
    let cause = long.causes.iter().find(is_wait).unwrap();
    assert!(cause.count >= 10 && cause.distribution.count() == cause.count);
    assert!(long.lost.latest() >= Span::from_millis(20 * 12), "{:?}", long.lost);
    assert!(cause.distribution.quantile(500_000) >= Span::from_millis(2));
    assert!(long.length.quantile(0) <= long.length.quantile(1_000_000));
    assert!(long.length.greatest() >= Span::from_millis(12));
    assert!(long.lost.latest().nanos() >= cause.distribution.greatest().nanos());

    let greatest = long.greatest.unwrap();
    assert_eq!(greatest.site, "long");
    assert!(greatest.thread.starts_with("worker-") && greatest.tid > 0);
    assert!(greatest.off_cpu.latest().nanos() <= greatest.length.nanos() + 5_000, "{greatest:?}");
    let worst = sites.worst();
    assert!(worst.len() >= 20 && worst[0].off_cpu.latest() >= worst[19].off_cpu.earliest());
    // A host that takes the processor widens intervals downwards: the best of them.
    let least = worst.iter().map(|span| span.off_cpu.earliest()).max();
    assert!(least >= Some(Span::from_millis(6)), "{worst:?}");

    // One by one: all 420, each in its thread, none overlapping another of it.
    let spans: Vec<_> = sites.spans().collect();
    assert_eq!(spans.len(), 420);
    for pair in spans.windows(2).filter(|pair| pair[0].thread == pair[1].thread) {
        assert!(pair[0].start_ns <= pair[0].ended_ns && pair[0].ended_ns <= pair[1].start_ns);
    }
    assert_eq!(spans.iter().filter(|span| span.site == 1 && span.lost.is_some()).count(), 20);
    assert_eq!((sites.missed(), sites.threads().len()), (DroppedCounts::default(), 4));
}

#[test]
fn the_same_name_is_the_same_site_and_what_finds_no_room_is_counted() {
    let sites = Sites::new(SiteSettings { sites: 2, worst_spans: 2, ..SiteSettings::default() });
    assert_eq!(sites.site("a"), sites.site("a"));
    let all = ["a", "b", "c", "d"].map(|name| sites.site(name));
    let here = sites.current_thread().unwrap();
    for site in all {
        let span = here.begin(site);
        thread::sleep(PAUSE);
        assert!(here.end(span).is_some());
    }
    let report = sites.report();
    let found: Vec<_> = report.iter().map(|site| (site.name.as_str(), site.spans)).collect();
    assert_eq!(found, [("a", 1), ("b", 1), (OTHER_SITES, 2)]);
    assert_eq!((sites.missed().other_sites, sites.worst().len()), (2, 2));
}

/// A thread that ended leaves its table to the next; its spans keep its number.
#[test]
fn tables_are_handed_on() {
    let sites = sites();
    let site = sites.site("short-lived");
    let once = || {
        let here = sites.current_thread().unwrap();
        here.run(site, || thread::sleep(PAUSE));
        hourglass_sys::thread::id()
    };
    let ids = [(); 3].map(|()| thread::scope(|scope| scope.spawn(once).join().unwrap()));
    assert_eq!(sites.report()[0].spans, 3);
    assert_eq!(sites.threads().iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    let mut of: Vec<u32> = sites.worst().iter().map(|span| span.tid).collect();
    of.sort_unstable();
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    assert_eq!(of, ids);
}

/// A task's span is counted where it ends, without the time that its task waited: some of ten loses nothing.
#[test]
fn a_travelling_span_is_counted_once() {
    let undisturbed = |_| {
        let sites = sites();
        let site = sites.site("task");
        let here = sites.current_thread().unwrap();
        let span = here.begin(site);
        let travelling = here.detach(span);
        thread::sleep(PAUSE);
        let ended = || {
            sites.current_thread().unwrap().end(sites.current_thread().unwrap().attach(travelling))
        };
        let lost = thread::scope(|scope| scope.spawn(ended).join().unwrap());
        let [report] = sites.report().try_into().unwrap();
        assert_eq!((report.spans, report.disturbed), (1, u64::from(lost.is_some())));
        report.disturbed == 0 && report.length.greatest() < Span::from_millis(3)
    };
    assert!((0..10).any(undisturbed));
}

#[test]
fn a_dump_has_the_worst_and_is_asked_for_by_a_great_loss() {
    let sites = Sites::new(SiteSettings {
        ask_from: Some(Span::from_millis(2)),
        ..SiteSettings::default()
    });
    let site = sites.site("callback");
    let here = sites.current_thread().unwrap();
    here.run(site, || ());
    assert!(!sites.take_asked());
    here.run(site, || thread::sleep(PAUSE));
    assert!(sites.take_asked() && !sites.take_asked());
    // A busy machine may take more than a wait did.
    (0..4).for_each(|_| here.run(site, || thread::sleep(PAUSE)));
    let _ = sites.take_asked();
    let mut text = Vec::new();
    sites.dump(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(" of 6 spans were disturbed; the "), "{text}");
    let worst = || text.lines().skip(1).filter(|line| line.starts_with("callback: "));
    assert!(worst().count() >= 5, "{text}");
    let waited = |line: &str| {
        line.contains("context_switch_voluntary") && line.contains("a voluntary switch was counted")
    };
    assert!(worst().any(waited), "{text}");
    sites.request_dump();
    assert!(sites.take_asked());
}

/// A span ends where its work panics.
#[test]
fn a_panic_ends_a_span() {
    let sites = sites();
    let site = sites.site("panics");
    let here = sites.current_thread().unwrap();
    let work = || here.run(site, || panic!("as the test wants"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
    assert_eq!(sites.report()[0].spans, 1);
}
