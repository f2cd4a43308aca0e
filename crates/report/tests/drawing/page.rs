//! The page as text: its size, the time it takes, and that nothing of a folder becomes markup.
//! What a browser makes of it is the business of `browser.rs`.

use std::time::{Duration, Instant};

use crate::shown::{HOSTILE, competed, full, latency_run, made, thread, timed_latency_run};
use hourglass_report::html;
use proptest::prelude::*;

/// The issue: 300,000 records are written in under 2 s and are under 15 MB.
const MOST_BYTES: usize = 15_000_000;
const MOST_TIME: Duration = Duration::from_secs(2);

/// Tests are built without optimisation; a release takes a tenth.
const SLOWER: u32 = if cfg!(debug_assertions) { 10 } else { 1 };

#[test]
fn three_hundred_thousand_records_are_small_and_quick() {
    let run = full(300_000, 4, 1);
    let timed = || {
        let begin = Instant::now();
        (html::page(&run.run(), "large"), begin.elapsed())
    };
    let (page, first) = timed();
    let best = (0..2).map(|_| timed().1).fold(first, Duration::min);
    println!("{} bytes, {best:?}", page.len());
    assert!(page.len() < MOST_BYTES, "{}", page.len());
    assert!(best < MOST_TIME * SLOWER, "{best:?}");
}

/// A trace beyond what a page holds loses its shortest gaps, never the longest.
#[test]
fn a_longer_trace_keeps_its_longest_gaps() {
    let run = full(700_000, 2, 3);
    let page = html::page(&run.run(), "longer");
    assert!(page.len() < MOST_BYTES, "{}", page.len());
    let (_, shortest) = page.split_once("\"shortest\":").unwrap();
    let shortest: u64 = shortest.split_once([',', '}']).unwrap().0.parse().unwrap();
    assert!((1_500..200_000).contains(&shortest), "{shortest}");
}

#[test]
fn a_page_says_what_there_is_to_say() {
    let page = html::page(&full(400, 2, 5).run(), "Monday & \"load\"");
    for wanted in [
        "<title>Monday &amp; &quot;load&quot;</title>",
        "Content-Security-Policy",
        "sysctl kernel.sched_rt_runtime_us=-1",
        "<code>max-gap</code>",
        "9000 us found, 1000 us allowed",
        "context switch, involuntary",
        "Lengths of gaps",
        ">gaps</text>",
        "2019-12-03 15:56:57 UTC",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    // Sorted by the time lost, not by number.
    let table = page.split_once("id=\"causes-h\"").unwrap().1;
    let (hypervisor, tick) = (table.find("below the kernel"), table.find("timer tick"));
    assert!(hypervisor.unwrap() < tick.unwrap());
    let latency = html::page(&latency_run(2, 1).run(), "");
    assert!(latency.contains("max 335 us") && latency.contains(">100 us</text>"));
    assert!(latency.contains("has no trace") && latency.contains(">wake-ups</text>"));
}

/// Who took the CPU is on the page by name: 2 ms in 10, less the interrupts.
#[test]
fn a_page_says_who_had_the_cpus() {
    let page = html::page(&competed().run(), "");
    let legend = page.split_once("id=\"ran-legend\"").unwrap().1.split_once("</div>").unwrap().0;
    let said = |name: &str, time: &str| {
        let wanted = format!("</span>{name} <span class=\"faint\">{time}</span>");
        assert!(legend.contains(&wanted), "{wanted}: {legend}");
    };
    said("thread 0: CPU", "784 ms, 78.4 %");
    said("spinner", "196 ms, 19.6 %");
    said("interrupts", "20.0 ms, 2.0 %");
    assert!(page.contains("\"name\":\"spinner (812)\""));
    // Without the kernel's record nothing is claimed.
    let mut run = competed();
    run.document.manifest.kernel = None;
    assert!(!html::page(&run.run(), "").contains("ran-legend"));
}

#[test]
fn a_latency_page_says_when_it_was_and_where_the_time_went() {
    let page = html::page(&timed_latency_run().run(), "");
    assert!(!page.contains("has no trace"));
    let table = page.split_once("id=\"latest-h\"").unwrap().1.split_once("</section>").unwrap().0;
    for wanted in [
        "<td class=\"n\">2.00 ms</td><td class=\"n\">0.502000000</td>",
        "<td class=\"n\">1687",
        "ran meanwhile: spinner (812) 1.60 ms",
        "data-end=\"502000000\"",
    ] {
        assert!(table.contains(wanted), "{wanted}: {table}");
    }
    let mut run = timed_latency_run();
    run.latest.iter_mut().for_each(|one| one.stages = None);
    assert!(html::page(&run.run(), "").contains("measure with --trace"));
}

/// Markup of ours outside of scripts and styles; texts of a folder are not among it.
fn tags(page: &str) -> usize {
    let mut rest = page;
    let mut tags = 0;
    while let Some((_, after)) = rest.split_once('<') {
        tags += 1;
        let ends = ["script", "style"].into_iter().find(|name| after.starts_with(name));
        rest = match ends {
            Some(name) => after.split_once(&format!("</{name}>")).unwrap().1,
            None => after,
        };
    }
    tags
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a folder calls its threads, the page has the same tags as with a plain name.
    #[test]
    fn names_are_text(name in "\\PC{0,40}|[<>&\"'/!-]{0,20}|.{0,30}") {
        let page = |name: &str| {
            let mut run = full(20, 1, 2);
            run.document.result.threads[0].name = Some(format!("x{name}"));
            run.document.manifest.command_line = vec![format!("x{name}")];
            run.names.threads.insert(12, format!("x{name}"));
            html::page(&run.run(), &format!("x{name}"))
        };
        let (plain, strange) = (page("plain"), page(&name));
        prop_assert_eq!(tags(&strange), tags(&plain));
        prop_assert!(!strange.contains(|c: char| c.is_control() && c != '\n'));
    }
}

#[test]
fn a_hostile_name_is_text_everywhere() {
    let mut report = thread(0, HOSTILE);
    report.name = Some(HOSTILE.to_owned());
    let page = html::page(&made(vec![report], crate::shown::trace(5, 1, 1)).run(), HOSTILE);
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img"));
}
