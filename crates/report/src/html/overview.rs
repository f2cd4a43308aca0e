//! The top of the page: the verdict, gates, and what must be known before the numbers are
//! believed.

use std::fmt::Write;

use hourglass_documents::document::RunDocument;

use super::table::{begin_section, grouped};
use crate::clean::for_xml;
use crate::text::{TextStyle, broken, gate_outcome, interrupted_after, verdict};
use crate::units::amount;

/// Writes the section.
pub(super) fn write(out: &mut String, document: &RunDocument) {
    let result = &document.result;
    let (text, tone) = verdict(result);
    let class = class(tone);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<section class=\"verdict {class}\" aria-labelledby=\"verdict-h\">\n\
         <h2 id=\"verdict-h\">Verdict</h2>\n<p class=\"big\">{}</p>\n",
        for_xml(&text)
    );
    gates(out, document);
    if let Some(control) = &result.control {
        let follow = control.statements.iter().map(|statement| &statement.text);
        for sentence in [&control.statement].into_iter().chain(follow) {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", for_xml(sentence));
        }
    }
    out.push_str("</section>\n");
    warnings(out, document);
}

fn class(tone: TextStyle) -> &'static str {
    match tone {
        TextStyle::Good => "good",
        TextStyle::Bad => "bad",
        TextStyle::Caution => "caution",
        _ => "plain",
    }
}

fn gates(out: &mut String, document: &RunDocument) {
    if document.result.gates.is_empty() {
        return;
    }
    out.push_str("<ul class=\"gates\">\n");
    let holds = broken(&document.result).next().is_none();
    for gate in &document.result.gates {
        let (word, tone) = gate_outcome(gate, holds);
        let class = class(tone);
        let _ = writeln!(
            out,
            "<li><span class=\"badge {class}\">{word}</span> <code>{}</code> \
             <span class=\"faint\">{} found, {} allowed</span></li>",
            for_xml(&gate.name),
            for_xml(&amount(gate.value, &gate.unit)),
            for_xml(&amount(gate.limit, &gate.unit))
        );
    }
    out.push_str("</ul>\n");
}

fn warnings(out: &mut String, document: &RunDocument) {
    let result = &document.result;
    let manifest = &document.manifest;
    let mut entries: Vec<(String, String)> =
        result.warnings.iter().map(|w| (w.text.clone(), w.remedy.clone())).collect();
    if result.interrupted {
        let text = format!("The run was interrupted {}.", interrupted_after(manifest));
        entries.push((text, String::new()));
    }
    let dropped = result.threads.iter().fold(0u64, |sum, t| sum.saturating_add(t.records_dropped));
    if dropped > 0 {
        let text = format!(
            "{} records found the buffer full: the numbers count them, the trace lacks them.",
            grouped(dropped)
        );
        entries.push((text, "make room for more with -e".to_owned()));
    }
    if entries.is_empty() {
        return;
    }
    begin_section(out, "warnings", "Warnings about this run");
    out.push_str("<ul class=\"warnings\">\n");
    for (text, remedy) in entries {
        let _ = write!(out, "<li><p>{}</p>", for_xml(&text));
        if !remedy.is_empty() {
            let _ = write!(out, "<p class=\"remedy\">{}</p>", for_xml(&remedy));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n</section>\n");
}
