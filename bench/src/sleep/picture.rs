//! Misses over CPU time, a picture for each length and policy.
//!
//! Ours is a curve over budgets, each peer a point: a line from its median miss up to its 99th
//! percentile. Nobody's point should lie below and left of our curve.

use std::path::Path;

use anyhow::{Context, Result};
use hourglass_model::paper::{Curve, Curves, Edge, EdgeUnit, Origin, Place, Scale};
use hourglass_report::svg;

use super::PEERS;
use crate::document::Row;

/// Ours, from little CPU time to much.
const CURVE: [&str; 7] = [
    "hourglass/kernel-only",
    "hourglass/budget-0",
    "hourglass/frugal",
    "hourglass/budget-50",
    "hourglass",
    "hourglass/budget-200",
    "hourglass/precise",
];

/// Writes `sleep-LENGTH-POLICY.svg` of each case into a folder that exists.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(rows: &[Row], folder: &Path) -> Result<()> {
    for case in rows.iter().filter_map(|row| row.case.strip_suffix("/p50")).collect::<Names>().0 {
        let path = folder.join(format!("sleep-{}.svg", case.replace('/', "-")));
        let picture = svg::curves(&drawing(rows, case));
        std::fs::write(&path, picture)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Each name once, in the order in which they come.
struct Names<'a>(Vec<&'a str>);

impl<'a> FromIterator<&'a str> for Names<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut own = Vec::new();
        for name in names {
            if !own.contains(&name) {
                own.push(name);
            }
        }
        Names(own)
    }
}

fn drawing(rows: &[Row], case: &str) -> Curves {
    let ours = ["p50", "p99"].map(|figure| Curve {
        name: format!("hourglass over budgets, {figure}"),
        origin: Origin::Here,
        colour: 0,
        joined: true,
        points: CURVE.iter().filter_map(|subject| place(rows, case, subject, figure)).collect(),
    });
    let peers = PEERS.iter().zip(1..).map(|(peer, colour)| Curve {
        name: format!("{peer}, p50 to p99"),
        origin: Origin::Here,
        colour,
        joined: true,
        points: ["p50", "p99"].iter().filter_map(|of| place(rows, case, peer, of)).collect(),
    });
    let edge = |text: &str, unit| Edge { text: text.into(), unit, scale: Scale::Logarithmic };
    Curves {
        id: case.to_owned(),
        title: "what sleeps miss, and what they take of a CPU".to_owned(),
        across: edge("CPU time, % of one CPU", EdgeUnit::Number),
        up: edge("miss", EdgeUnit::Time),
        curves: ours.into_iter().chain(peers).collect(),
        note: "Medians over rounds of one sitting, all in turn on one CPU.".to_owned(),
    }
}

/// Where a subject is; `None` if it was not measured, or was early.
fn place(rows: &[Row], case: &str, subject: &str, figure: &str) -> Option<Place> {
    let value = |figure: &str| {
        let case = format!("{case}/{figure}");
        rows.iter().find(|row| row.case == case && row.subject == subject).map(|row| row.value)
    };
    let place = Place { across: value("cpu")?, up: value(figure)? };
    (place.up > 0.0).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_line_and_ours_is_a_curve() {
        let rows: Vec<Row> = ["hourglass/kernel-only", "hourglass", "spin_sleep"]
            .iter()
            .zip([(2.0, 30_000.0), (4.0, 90.0), (6.0, 900.0)])
            .flat_map(|(subject, (cpu, miss))| {
                let row = |figure, value, unit| {
                    Row::alone(&format!("1ms/fifo/{figure}"), subject, value, unit)
                };
                [row("p50", miss, "ns"), row("p99", 10.0 * miss, "ns"), row("cpu", cpu, "%")]
            })
            .collect();
        let drawing = drawing(&rows, "1ms/fifo");
        let counts: Vec<usize> = drawing.curves.iter().map(|curve| curve.points.len()).collect();
        assert_eq!(counts, [2, 2, 0, 0, 0, 2, 0, 0]);
        assert_eq!(drawing.curves[0].points[1], Place { across: 4.0, up: 90.0 });
        let folder = tempfile::tempdir().unwrap();
        write(&rows, folder.path()).unwrap();
        let svg = std::fs::read_to_string(folder.path().join("sleep-1ms-fifo.svg")).unwrap();
        assert!(svg.contains("spin_sleep") && svg.contains("% of one CPU"));
    }
}
