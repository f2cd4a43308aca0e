//! After the start nothing is allocated, whether a span was disturbed or not.

use std::thread;
use std::time::Duration;

use hourglass_sys::allocation::thread_counts;
use hourglass_witness::sites::{SiteSettings, Sites};
use hourglass_witness::{Span, Witness};

const SPANS: u32 = 2_000;

fn calls(work: impl FnOnce()) -> u64 {
    let before = thread_counts().calls;
    work();
    thread_counts().calls - before
}

/// What happens within each span.
fn each(turn: u32) {
    match turn % 3 {
        0 => thread::sleep(Duration::from_micros(1)),
        1 => thread::yield_now(),
        _ => {}
    }
}

#[test]
fn spans_allocate_nothing() {
    for (witness, timed) in
        [(Witness::new(), false), (Witness::new(), true), (Ok(Witness::asking()), true)]
    {
        let witness = witness.unwrap();
        if timed {
            let _ = witness.record_switches();
        }
        let mut disturbed = 0;
        let found = calls(|| {
            for turn in 0..SPANS {
                let span = witness.begin();
                each(turn);
                disturbed += u32::from(witness.end(span).is_some());
                let travelling = witness.detach(witness.begin_busy());
                let _ = witness.end(witness.attach(travelling));
            }
        });
        assert_eq!(found, 0);
        assert!((SPANS / 4..SPANS).contains(&disturbed), "{disturbed}");
    }
}

/// With room for half of the spans one by one, for two of three sites, and a dump asked for by each loss.
#[test]
fn call_sites_allocate_nothing_even_when_full() {
    let spans = SPANS / 2;
    let ask_from = Some(Span::ZERO);
    let settings = SiteSettings { sites: 2, worst_spans: 4, spans, ask_from, switch_times: true };
    let sites = Sites::new(settings);
    let names = ["a", "b", "c"].map(|name| sites.site(name));
    let here = sites.current_thread().unwrap();
    let found = calls(|| {
        for (turn, site) in (0..SPANS).zip(names.iter().cycle()) {
            let span = here.begin(*site);
            each(turn);
            here.end(span);
            assert!(sites.current_thread().is_ok());
        }
    });
    assert_eq!(found, 0);
    assert!(sites.take_asked());
    let missed = sites.missed();
    assert_eq!((missed.spans_dropped, missed.left_out), (u64::from(SPANS - spans), 0));
    assert_eq!(missed.other_sites, u64::from(SPANS / 3));
    assert_eq!(sites.spans().count(), spans as usize);
}
