//! Names beside curves: each at its own curve, away from the others.
//!
//! A name stands where no curve and no other name lies, as near to its curve as possible; where it is further away, a
//! line leads to it that crosses as few other curves as possible.

use std::fmt::Write as _;

use super::chart::{Area, Mark};
use super::legend;
use super::page::pixels;
use crate::clean::for_xml;

/// Places along a curve at which a name is tried.
const PLACES: usize = 40;

/// Distances of a name from its curve that are tried, in pixels; a line is between them.
const DISTANCES: [f64; 9] = [9.0, 20.0, 32.0, 48.0, 70.0, 100.0, 140.0, 190.0, 250.0];

/// Heights above and below its place on the curve at which a name is tried, in pixels.
const LIFTS: [f64; 9] = [0.0, -14.0, 14.0, -32.0, 32.0, -64.0, 64.0, -110.0, 110.0];

/// What crossing another curve costs, and covering a curve, in pixels of distance; another name is covered only where
/// no place is free.
const CROSSED: f64 = 150.0;
const COVERED: f64 = 400.0;
const TAKEN: f64 = 1e6;

/// Where another curve is nearer than this, in pixels, a name would seem to be of both; what each pixel costs.
const APART: f64 = 14.0;
const TOGETHER: f64 = 12.0;

/// Half the height of a name.
const HALF: f64 = 8.0;

/// Pixels from the mark of a curve to its name.
const INDENT: f64 = 12.0;

/// Pixels between them and the name.
const SPACE: f64 = 2.0;

/// Curves that share a name, since they are one: the line that they have, and the name with the marks of each.
pub(super) struct NamedCurve {
    pub(super) points: Vec<(f64, f64)>,
    pub(super) name: String,
    /// Class of the colour and mark of each.
    pub(super) looks: Vec<(String, Mark)>,
}

#[derive(Clone, Copy)]
struct LabelBox {
    left: f64,
    right: f64,
    y: f64,
}

struct LabelPlace {
    bounds: LabelBox,
    /// Where the line from the curve begins.
    from: (f64, f64),
}

impl NamedCurve {
    /// Pixels that the name takes, whose letters are bold.
    fn name_width(&self) -> f64 {
        f64::from(legend::width_of(&self.name)) * 1.08
    }

    fn marks_width(&self) -> f64 {
        INDENT * self.looks.len() as f64 + SPACE
    }

    /// Where a curve is between its ends: a part of its length in pixels.
    fn places(&self) -> Vec<(f64, f64)> {
        let length = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1);
        let all: f64 = self.points.windows(2).map(length).sum();
        let step = all / (PLACES + 1) as f64;
        let (mut next, mut done, mut found) = (step, 0.0, Vec::new());
        for pair in self.points.windows(2) {
            let here = length(pair);
            while step > 0.0 && next <= done + here && found.len() < PLACES {
                let part = (next - done) / here;
                let along = |a: f64, b: f64| a + (b - a) * part;
                found.push((along(pair[0].0, pair[1].0), along(pair[0].1, pair[1].1)));
                next += step;
            }
            done += here;
        }
        if found.is_empty() {
            found.extend(self.points.first());
        }
        found
    }
}

/// The names of all curves, as SVG.
pub(super) fn names(area: Area, curves: &[NamedCurve]) -> String {
    let mut taken: Vec<LabelBox> = Vec::new();
    let mut out = String::new();
    for (at, curve) in curves.iter().enumerate() {
        let Some(place) = best(area, curves, at, &taken) else { continue };
        taken.push(place.bounds);
        out += &drawn(curve, &place);
    }
    out
}

fn best(area: Area, curves: &[NamedCurve], at: usize, taken: &[LabelBox]) -> Option<LabelPlace> {
    let curve = &curves[at];
    let width = curve.name_width() + curve.marks_width();
    let mut best: Option<(f64, LabelPlace)> = None;
    for (x, y) in curve.places() {
        let others = curves.iter().enumerate().filter(|(other, _)| *other != at);
        let pairs = others.flat_map(|(_, curve)| curve.points.windows(2));
        let nearest = pairs.map(|pair| away((x, y), pair[0], pair[1])).fold(APART, f64::min);
        let together = (APART - nearest) * TOGETHER;
        for distance in DISTANCES {
            let lifted = LIFTS.into_iter().flat_map(|lift| [(1.0, lift), (-1.0, lift)]);
            for (side, lift) in lifted {
                let near_cost = distance + lift.abs() + together;
                if best.as_ref().is_some_and(|(least, _)| near_cost >= *least) {
                    continue;
                }
                let near = x + side * distance;
                let left = if side > 0.0 { near } else { near - width };
                let bounds = LabelBox { left, right: left + width, y: y + lift };
                if !inside(area, &bounds) {
                    continue;
                }
                let leader = [(x, y), (near, y + lift)];
                let clutter = clutter(curves, at, taken, &bounds, leader);
                let cost = near_cost + clutter;
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, LabelPlace { bounds, from: (x, y) }));
                }
            }
        }
    }
    best.map(|(_, place)| place)
}

fn inside(area: Area, label: &LabelBox) -> bool {
    label.left >= f64::from(area.left) + 2.0
        && label.right <= f64::from(area.right)
        && label.y >= f64::from(area.top) + HALF
        && label.y <= f64::from(area.bottom) - HALF
}

/// What a name would cover, and what its line would cross.
fn clutter(
    curves: &[NamedCurve],
    own: usize,
    taken: &[LabelBox],
    label: &LabelBox,
    leader: [(f64, f64); 2],
) -> f64 {
    let mut cost = 0.0;
    for other in taken {
        let apart = label.right + 4.0 < other.left
            || other.right + 4.0 < label.left
            || (label.y - other.y).abs() >= 2.0 * HALF - 1.0;
        if !apart {
            cost += TAKEN;
        } else if covers(other, leader[0], leader[1]) {
            cost += COVERED;
        }
    }
    for (at, curve) in curves.iter().enumerate() {
        let hit = |pair: &[(f64, f64)]| covers(label, pair[0], pair[1]);
        if curve.points.windows(2).any(hit) {
            cost += COVERED;
        }
        let crossed = |pair: &[(f64, f64)]| crosses(leader, [pair[0], pair[1]]);
        if at != own && curve.points.windows(2).any(crossed) {
            cost += CROSSED;
        }
    }
    cost
}

/// Whether a piece of a curve goes through a name.
fn covers(label: &LabelBox, a: (f64, f64), b: (f64, f64)) -> bool {
    // Clipped side by side (Liang and Barsky, 1984).
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    let (top, bottom) = (label.y - HALF, label.y + HALF);
    for (step, room) in
        [(-dx, a.0 - label.left), (dx, label.right - a.0), (-dy, a.1 - top), (dy, bottom - a.1)]
    {
        if step == 0.0 {
            if room < 0.0 {
                return false;
            }
        } else if step < 0.0 {
            from = from.max(room / step);
        } else {
            to = to.min(room / step);
        }
    }
    from <= to
}

/// How far a point is from a piece of a curve.
fn away(point: (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx * dx + dy * dy;
    let along = ((point.0 - a.0) * dx + (point.1 - a.1) * dy) / length.max(f64::MIN_POSITIVE);
    let part = along.clamp(0.0, 1.0);
    (point.0 - a.0 - part * dx).hypot(point.1 - a.1 - part * dy)
}

fn crosses(one: [(f64, f64); 2], other: [(f64, f64); 2]) -> bool {
    let side = |line: [(f64, f64); 2], point: (f64, f64)| {
        let [a, b] = line;
        (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0)
    };
    side(one, other[0]) * side(one, other[1]) <= 0.0
        && side(other, one[0]) * side(other, one[1]) <= 0.0
}

fn drawn(curve: &NamedCurve, place: &LabelPlace) -> String {
    let LabelPlace { bounds, from } = place;
    let mut out = String::new();
    // The marks stand beside the curve.
    let right = bounds.left > from.0;
    let (near, marks, name, anchor) = match right {
        true => (bounds.left, bounds.left, bounds.left + curve.marks_width(), ""),
        false => {
            let marks = bounds.right - curve.marks_width();
            (bounds.right, marks + SPACE, marks, " text-anchor=\"end\"")
        }
    };
    if let Some((class, _)) = curve.looks.first() {
        let _ = write!(
            out,
            "<path class=\"hg-leader {class}\" d=\"M{} {}L{} {}\"/>",
            pixels(from.0),
            pixels(from.1),
            pixels(near),
            pixels(bounds.y)
        );
    }
    let _ = write!(
        out,
        "<text class=\"hg-ink hg-name\" x=\"{}\" y=\"{}\"{anchor}>{}</text>",
        pixels(name),
        pixels(bounds.y + 4.0),
        for_xml(&curve.name)
    );
    for (at, (class, mark)) in curve.looks.iter().enumerate() {
        let x = marks + INDENT * (at as f64 + 0.5);
        let _ = write!(out, "<g class=\"{class}\">{}</g>", mark.at(x, bounds.y));
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { left: 0, right: 900, top: 0, bottom: 400 };

    fn curve(name: &str, points: &[(f64, f64)]) -> NamedCurve {
        let looks = vec![("hg-t0".to_owned(), Mark::Dot)];
        NamedCurve { points: points.to_vec(), name: name.to_owned(), looks }
    }

    #[test]
    fn a_line_through_a_name_is_seen() {
        let label = LabelBox { left: 100.0, right: 200.0, y: 50.0 };
        assert!(covers(&label, (0.0, 0.0), (300.0, 100.0)));
        assert!(covers(&label, (150.0, 45.0), (150.0, 45.0)));
        assert!(!covers(&label, (0.0, 20.0), (300.0, 20.0)));
        assert!(!covers(&label, (250.0, 0.0), (250.0, 100.0)));
        assert!(crosses([(0.0, 0.0), (10.0, 10.0)], [(0.0, 10.0), (10.0, 0.0)]));
        assert!(!crosses([(0.0, 0.0), (1.0, 1.0)], [(0.0, 10.0), (10.0, 0.0)]));
    }

    /// Of two falling curves that are close, as those of Liu and Layland and of the hyperbolic bound, no name lies on
    /// the curve of the other (newcomer, item 10).
    #[test]
    fn names_stand_at_their_own_curves() {
        let fall = |x: f64| [(0.0, 20.0), (x, 20.0), (x + 60.0, 380.0), (900.0, 380.0)];
        let curves = [curve("liu-layland", &fall(300.0)), curve("hyperbolic", &fall(340.0))];
        let mut taken = Vec::new();
        assert!((away((5.0, 3.0), (0.0, 0.0), (10.0, 0.0)) - 3.0).abs() < 1e-9);
        for at in 0..2 {
            let place = best(AREA, &curves, at, &taken).unwrap();
            for curve in &curves {
                let hit = |pair: &[(f64, f64)]| covers(&place.bounds, pair[0], pair[1]);
                assert!(!curve.points.windows(2).any(hit), "{at}");
            }
            assert!(place.from.0 > 300.0 && place.from.1 > 20.0, "not where they are one");
            let leader = [place.from, (place.bounds.left, place.bounds.y)];
            let across = |pair: &[(f64, f64)]| crosses(leader, [pair[0], pair[1]]);
            assert!(
                place.bounds.left < place.from.0 || !curves[1 - at].points.windows(2).any(across)
            );
            taken.push(place.bounds);
        }
    }
}
