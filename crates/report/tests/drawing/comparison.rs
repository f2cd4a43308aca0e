//! Two runs in one picture.

use hourglass_report::html;
use hourglass_report::svg::{ComparedQuantity, comparison};

use crate::assert_well_formed;

fn latencies(a: &[(u64, u64)], b: &[(u64, u64)]) -> ComparedQuantity {
    let counts = [a.to_vec(), b.to_vec()];
    ComparedQuantity { name: "wake-up latency", counted: "wake-ups", counts }
}

/// Two histograms and two distributions, each with its letter at its own line, and told apart without colours.
#[test]
fn two_runs_lie_over_each_other() {
    let faster = [(4_000, 5), (5_000, 90), (50_000, 5)];
    let slower = [(40_000, 100), (50_000, 1_800), (500_000, 100)];
    let text = comparison(&[latencies(&faster, &slower)], ["monday", "<tuesday>"]);
    assert_well_formed(&text);
    for (side, class) in [("A", "hg-t0"), ("B", "hg-t1")] {
        assert_eq!(text.matches(&format!(">{side}</text>")).count(), 2, "{text}");
        assert_eq!(text.matches(&format!("<path class=\"hg-leader {class}\"")).count(), 2);
    }
    // Of each kind of chart one, and the legend.
    assert_eq!(text.matches("<path class=\"hg-curve\" stroke-dasharray=\"7 4\"").count(), 3);
    assert!(text.contains("A: monday, 100 wake-ups") && text.contains("B: &lt;tuesday&gt;, 2000"));
    assert!(text.contains(">wake-up latency, us<") && text.contains(">cumulative share of the"));
    // Shares, not counts: runs of different lengths that are alike are one line.
    let longer = faster.map(|(ns, count)| (ns, count * 20));
    let same = comparison(&[latencies(&faster, &longer)], ["a", "b"]);
    let lines: Vec<&str> =
        same.split(" d=\"M").map(|rest| rest.split_once('"').unwrap().0).collect();
    let curves = |class: &str| {
        let group = format!("<g class=\"{class}\"><title>");
        let parts = same.split(&group).skip(1).map(|part| part.split_once(" d=\"").unwrap().1);
        parts.map(|part| part.split_once('"').unwrap().0.to_owned()).collect::<Vec<_>>()
    };
    assert!(lines.len() > 8 && curves("hg-t0") == curves("hg-t1"), "{same}");
}

#[test]
fn a_single_value_makes_a_picture() {
    let text = comparison(&[latencies(&[(0, 1)], &[(7, 1)])], ["a", "b"]);
    assert_well_formed(&text);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

/// The page has the picture in it, and the text with its lines; a name of a folder is no markup.
#[test]
fn a_page_has_picture_and_text() {
    let picture = comparison(&[latencies(&[(5, 1)], &[(7, 1)])], ["a", "b"]);
    let page = html::comparison(&picture, "A  <i>x</i>\n\nVerdict  same\n");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(&picture));
    assert!(page.contains("<pre>A  &lt;i&gt;x&lt;/i&gt;\n\nVerdict  same</pre>"), "{page}");
    assert!(!page.contains("<script"), "{page}");
}
