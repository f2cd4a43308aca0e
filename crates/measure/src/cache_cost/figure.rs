//! The cost by size as a figure, like the paper's Figure 5.

use hourglass_documents::cache_cost::{CacheCostDocument, SizeCost};
use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit,
};

/// Bytes in the unit of the lower edge.
const KIB: f64 = 1024.0;

/// Penalty and refill by working set, each with the ends of its interval as dots. What is not above zero
/// has no place.
pub fn curves(document: &CacheCostDocument) -> Curves {
    let edge = |text: &str, unit| Edge { text: text.into(), unit, scale: AxisScale::Logarithmic };
    Curves {
        id: "5".into(),
        title: "Working set and performance lost to a context switch".into(),
        across: edge("working set of each thread, KiB", EdgeUnit::Number),
        up: edge("penalty of a switch", EdgeUnit::Time),
        curves: vec![
            curve(document, "penalty", 0, true, |size| [size.penalty_ns, None]),
            curve(document, "its 95 % interval", 0, false, |size| [size.ci_lo_ns, size.ci_hi_ns]),
            curve(document, "refill alone", 1, true, |size| [size.refill_ns, None]),
        ],
        note: format!(
            "{} threads against one on CPU {}; what is not above zero is left out",
            document.threads, document.cpu
        ),
    }
}

fn curve(
    document: &CacheCostDocument,
    name: &str,
    colour: u32,
    joined: bool,
    of: impl Fn(&SizeCost) -> [Option<f64>; 2],
) -> Curve {
    let places = |size: &SizeCost| {
        let across = size.bytes as f64 / KIB;
        of(size)
            .into_iter()
            .flatten()
            .filter(|ns| *ns > 0.0)
            .map(move |up| CurvePoint { across, up })
    };
    Curve {
        name: name.into(),
        origin: CurveOrigin::Here,
        colour,
        joined,
        points: document.sizes.iter().flat_map(|size| places(size).collect::<Vec<_>>()).collect(),
    }
}
