//! Wake-ups of latency tests: when each was, and the stages of the latest ones.

use std::fmt::Write;

use hourglass_trace::wakeup::LateWakeUp;
use serde_json::{Value, json};

use super::causes::seconds;
use super::columns::{ColumnEncoder, least_kept};
use super::table::{Cell, HtmlTable, begin_section, grouped, show_button, width};
use crate::clean::for_terminal;
use crate::run::{RunView, label, late_because};
use crate::units::{UnitScale, rounded};

/// Wake-ups that a page has at most.
const MOST_WAKE_UPS: usize = 400_000;

/// Stages in words, with the style sheet's colours.
const STAGES: [(&str, &str); 5] = [
    ("to the interrupt", "k13"),
    ("to the handler", "k3"),
    ("to the waking", "k5"),
    ("to the switch", "k1"),
    ("to the thread", "k10"),
];

/// The wake-ups for the script, of each thread the time since the one before, and the lateness; and the latest.
pub(super) fn json(run: &RunView<'_>) -> Value {
    let all = || run.wake_ups.values().flatten().map(|one| one.latency_ns);
    let shortest = least_kept(all(), all().count().saturating_sub(MOST_WAKE_UPS));
    let threads = run.document.result.threads.iter();
    let wakes = threads.filter_map(|thread| {
        let all = run.wake_ups.get(&thread.id)?;
        let (mut before, mut late) = (ColumnEncoder::default(), ColumnEncoder::default());
        let (mut last_ns, mut records) = (0, 0_u64);
        for one in all.iter().filter(|one| one.latency_ns >= shortest) {
            before.signed(one.woke_ns.saturating_sub(last_ns));
            late.unsigned(one.latency_ns);
            (last_ns, records) = (one.woke_ns, records + 1);
        }
        Some(json!({
            "id": thread.id,
            "label": for_terminal(label(thread)),
            "policy": for_terminal(&thread.policy),
            "records": records,
            "all": thread.latency.map_or(records, |latency| latency.count),
            "before": before.text(),
            "late": late.text(),
        }))
    });
    let latest = run.latest.iter().map(|one| {
        json!({
            "thread": one.thread,
            "woke": one.woke_ns,
            "late": one.latency_ns,
            "stages": one.stages.map(|up| {
                [up.expiry_ns, up.interrupt_ns, up.handler_ns, up.waking_ns, up.switch_ns, up.user_ns]
            }),
            "ran": for_terminal(&late_because(one, run.thread_names())),
        })
    });
    json!({
        "threads": wakes.collect::<Vec<_>>(),
        "latest": latest.collect::<Vec<_>>(),
        "stages": STAGES.map(|(name, class)| json!([name, format!("--{class}")])),
    })
}

/// Writes the table of the latest wake-ups; nothing where their times are not known.
pub(super) fn latest(out: &mut String, run: &RunView<'_>) {
    if run.latest.is_empty() {
        return;
    }
    let staged = run.latest.iter().any(|one| one.stages.is_some());
    let stages = run
        .latest
        .iter()
        .filter_map(|one| one.stages)
        .flat_map(|up| up.stages_ns().into_iter().take(STAGES.len()).map(i64::unsigned_abs));
    let scale = UnitScale::for_block(stages);
    let all: u64 =
        run.document.result.threads.iter().filter_map(|t| t.latency).map(|l| l.count).sum();
    let mut caption = format!("{} of {}", run.latest.len(), grouped(all));
    if staged {
        let _ = write!(caption, "; stages from the timer's expiry, in {}", scale.name());
    }
    let longest = run.latest.iter().map(|one| one.latency_ns).max().unwrap_or(0);
    let mut table = HtmlTable::of(caption, run.latest)
        .number("late", |one| rounded(one.latency_ns))
        .number("at, s", |one| seconds(one.woke_ns))
        .number("thread", |one| one.thread);
    if staged {
        table = table.number("CPU", |one| one.stages.map_or(Cell::default(), |up| up.cpu.into()));
        for (at, (name, _)) in STAGES.into_iter().enumerate() {
            let stage = |one: &LateWakeUp| one.stages.map(|up| scale.signed(up.stages_ns()[at]));
            table = table.number(name, |one| stage(one).unwrap_or_default());
        }
        table = table.text("stages", |one| {
            one.stages.map_or(Cell::default(), |up| bar(&up.stages_ns(), longest))
        });
    }
    let table = table
        .text("", |one| {
            let what = format!("wake-up that was {} late", rounded(one.latency_ns));
            show_button(one.thread, one.woke_ns, &what)
        })
        .below(|one| late_because(one, run.thread_names()));
    begin_section(out, "latest", "Latest wake-ups");
    table.write(out);
    if staged {
        out.push_str("<p class=\"legend\">");
        for (name, class) in STAGES {
            let _ = write!(out, "<span><span class=\"dot {class}\"></span>{name}</span> ");
        }
        out.push_str("</p>\n");
    } else {
        out.push_str(
            "<p class=\"note\">Stages need the kernel's events: measure with --trace, as root.</p>\n",
        );
    }
    out.push_str("</section>\n");
}

/// The stages beside each other, each as long as it took; the whole is as wide as the latest of all.
fn bar(stages: &[i64; 6], longest: u64) -> Cell {
    let mut out = "<span class=\"bar-cell stages\">".to_owned();
    for (ns, (_, class)) in stages.iter().zip(STAGES) {
        let width = width((*ns).max(0).unsigned_abs(), longest);
        let _ = write!(out, "<span class=\"{class}\" style=\"{width}\"></span>");
    }
    Cell::Markup(out + "</span>")
}
