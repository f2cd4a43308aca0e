//! What is drawn for browsers and for Perfetto, from strings that are hostile.

use hourglass_documents::manifest::Manifest;
use hourglass_report::{LatencyCounts, RunView, export, html};
use hourglass_runs::{OpenRun, RunContents};
use prost::Message;

use super::folders;
use crate::{Body, Target, answer};

pub(super) fn manifest(text: &[u8]) -> Option<Manifest> {
    serde_json::from_slice(text).ok()
}

/// Scripts of a page, which are all ours: the data and the code.
const SCRIPTS: usize = 2;

/// The outermost of Perfetto's messages (`protos/perfetto/trace/trace.proto`), for a decoder that is not ours.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(message, optional, tag = "11")]
    event: Option<TrackEvent>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

pub(super) fn draw(run: &OpenRun, mut contents: RunContents) {
    let latencies = std::mem::take(&mut contents.latencies_us).into_iter();
    let mut fine = std::mem::take(&mut contents.latencies_ns);
    let latencies: Vec<LatencyCounts> = latencies
        .map(|(thread, counts)| LatencyCounts {
            thread,
            counts,
            fine: fine.remove(&thread).unwrap_or_default(),
        })
        .collect();
    let facts = run.document.manifest.kernel.as_ref();
    let names = facts.map(|facts| facts.names.clone()).unwrap_or_default();
    let shown = RunView {
        document: &run.document,
        intervals: &contents.intervals,
        causes: &contents.causes,
        latencies: &latencies,
        wake_ups: &contents.wake_ups,
        latest: &contents.latest,
        events: &contents.events,
        spans: &contents.spans,
        jobs: &contents.jobs,
        names: &names,
    };
    check_page(&html::page(&shown, "a title"));
    let mut bytes = Vec::new();
    export::perfetto(&mut bytes, &shown).expect("a vector takes everything");
    let trace = Trace::decode(bytes.as_slice()).expect("prost reads what was written");
    assert!(!trace.packet.is_empty());
    for packet in &trace.packet {
        assert!(packet.event.is_none() || packet.timestamp.is_some(), "{packet:?}");
    }
    export::csv(&mut bytes, &shown).expect("a vector takes everything");
}

fn check_page(page: &str) {
    let small = page.to_ascii_lowercase();
    assert_eq!(small.matches("<script").count(), SCRIPTS, "scripts are begun");
    assert_eq!(small.matches("</script").count(), SCRIPTS, "scripts are ended");
    for tag in ["<img", "<iframe", "<object", "<embed", "<base", "javascript:alert"] {
        assert!(!small.contains(tag), "the page has {tag}");
    }
}

fn hostile() -> Body {
    let home = tempfile::tempdir().expect("a folder for tests");
    let path = folders::sound(home.path());
    let file = path.join(hourglass_runs::store::MANIFEST_FILE);
    let text = std::fs::read(&file).expect("a complete folder has it");
    let sound: serde_json::Value = serde_json::from_slice(&text).expect("a manifest is JSON");
    Box::new(move |bytes| {
        let _ = &home;
        let string = String::from_utf8_lossy(bytes);
        let (first, which) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
        let mut changed = sound.clone();
        let mut at = 0;
        replace(
            &mut changed,
            &mut at,
            &|at| {
                which.get(at % which.len().max(1)).is_some_and(|b| b & 1 << (at & 7) != 0)
                    || first < 64
            },
            &string,
        );
        std::fs::write(&file, changed.to_string()).expect("a folder for tests");
        let run = match hourglass_runs::open_run(&path) {
            Ok(run) => run,
            Err(error) => return answer(1, &error.to_string()),
        };
        let contents = match run.contents(hourglass_measure::has_room) {
            Ok(contents) => contents,
            Err(error) => return answer(2, &error.to_string()),
        };
        draw(&run, contents);
        answer(
            3,
            &string
                .chars()
                .filter(|c| !c.is_ascii_alphanumeric())
                .map(|c| char::from(b'a' + (c as u32 % 26) as u8))
                .take(3)
                .collect::<String>(),
        )
    })
}

/// Replaces those strings that `chosen` chooses by their number; the schema and the source of the clock stay, or nothing
/// would be read.
fn replace(
    value: &mut serde_json::Value,
    at: &mut usize,
    chosen: &dyn Fn(usize) -> bool,
    by: &str,
) {
    match value {
        serde_json::Value::String(text) => {
            *at += 1;
            let stays = text.starts_with("hourglass") || text.parse::<u64>().is_ok();
            if !stays && chosen(*at) {
                *text = by.to_owned();
            }
        }
        serde_json::Value::Array(all) => {
            all.iter_mut().for_each(|one| replace(one, at, chosen, by))
        }
        serde_json::Value::Object(all) => {
            all.values_mut().for_each(|one| replace(one, at, chosen, by))
        }
        _ => {}
    }
}

pub(super) const PICTURES: Target = Target {
    name: "pictures",
    purpose: "the page of HTML and the trace for Perfetto, with hostile strings: no script, and prost reads it",
    examples: || {
        vec![
            b"</script><script>hostile=1</script>".to_vec(),
            "<img src=x onerror=\"1\">'&\u{202e}\u{0}".as_bytes().to_vec(),
            b"@@plain".to_vec(),
        ]
    },
    start: hostile,
};
