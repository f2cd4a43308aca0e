//! Sleep latency over CPU time, as a figure: ours as a curve over budgets, each peer a point. No peer's point should
//! lie below and left of our curve.

use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Sleeps {
    pub name: String,
    /// CPU time, per cent of one CPU.
    pub cpu_percent: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
}

/// The figure: a colour for everybody; medians as dots, 99th percentiles as rings. What was early is not
/// in it, since both edges are logarithmic.
///
/// Ours in order of CPU time, from the smallest budget on.
#[must_use]
pub fn figure(id: &str, title: &str, ours: &[Sleeps], peers: &[Sleeps]) -> Curves {
    let mut curves = Vec::new();
    for (origin, figure, of) in PERCENTILES {
        let name = format!("hourglass over budgets, {figure}");
        curves.push(curve(name, origin, 0, ours, of));
    }
    for (peer, colour) in peers.iter().zip(1..) {
        for (origin, figure, of) in PERCENTILES {
            let name = match &*peer.name {
                "thesis" => format!("HighPerTimer's way (thesis), {figure}"),
                name => format!("{name}, {figure}"),
            };
            curves.push(curve(name, origin, colour, std::slice::from_ref(peer), of));
        }
    }
    let edge = |text: &str, unit| Edge { text: text.into(), unit, scale: AxisScale::Logarithmic };
    Curves {
        id: id.to_owned(),
        title: title.to_owned(),
        across: edge("CPU time, % of one CPU", EdgeUnit::Number),
        up: edge("lateness of the wake-up", EdgeUnit::Time),
        curves,
        note: "Dots are medians, rings 99th percentiles.".to_owned(),
    }
}

type Percentile = (CurveOrigin, &'static str, fn(&Sleeps) -> f64);

const PERCENTILES: [Percentile; 2] = [
    (CurveOrigin::Here, "p50", |sleeps| sleeps.p50_ns),
    (CurveOrigin::Paper, "p99", |sleeps| sleeps.p99_ns),
];

fn curve(
    name: String,
    origin: CurveOrigin,
    colour: u32,
    sleeps: &[Sleeps],
    of: fn(&Sleeps) -> f64,
) -> Curve {
    let place = |sleeps: &Sleeps| CurvePoint { across: sleeps.cpu_percent, up: of(sleeps) };
    let points: Vec<CurvePoint> = sleeps.iter().map(place).filter(|place| place.up > 0.0).collect();
    Curve { name, origin, colour, joined: points.len() > 1, points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_two_points_and_ours_are_curves() {
        let sleeps = |name: &str, cpu_percent, p50_ns| Sleeps {
            name: name.into(),
            cpu_percent,
            p50_ns,
            p99_ns: 10.0 * p50_ns,
        };
        let ours = [sleeps("kernel only", 2.0, 30_000.0), sleeps("ours", 4.0, 90.0)];
        let peers = [sleeps("spin_sleep", 6.0, 900.0), sleeps("early", 1.0, -5.0)];
        let figure = figure("1ms", "a title", &ours, &peers);
        let counts: Vec<usize> = figure.curves.iter().map(|curve| curve.points.len()).collect();
        assert_eq!(counts, [2, 2, 1, 1, 0, 0]);
        assert_eq!(figure.curves[1].points[1], CurvePoint { across: 4.0, up: 900.0 });
        let signs: Vec<(CurveOrigin, u32)> =
            figure.curves.iter().map(|curve| (curve.origin, curve.colour)).collect();
        assert_eq!(
            signs[..3],
            [(CurveOrigin::Here, 0), (CurveOrigin::Paper, 0), (CurveOrigin::Here, 1)]
        );
    }
}
