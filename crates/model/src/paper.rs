//! The document `hourglass.paper/1`: tables of a paper beside the same quantities measured here,
//! and the figures that belong to them, as data.

use serde::{Deserialize, Serialize};

/// Name and version of the document.
pub const PAPER_SCHEMA: &str = "hourglass.paper/1";

/// Name and version of the list of papers.
pub const PAPER_LIST_SCHEMA: &str = "hourglass.paper-list/1";

/// Tables of one paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperDocument {
    /// Always [`PAPER_SCHEMA`].
    pub schema: String,
    /// The paper's name on the command line.
    pub paper: String,
    /// The paper's title.
    pub title: String,
    /// Who wrote it, where and when.
    pub source: String,
    /// How much was measured: `quick` or `full`.
    pub effort: String,
    /// The machine measured on.
    pub machine: MachineFacts,
    /// The tables, in the paper's order.
    pub tables: Vec<PaperTable>,
    /// Whether a signal ended the measurement; tables that were not complete are left out.
    pub interrupted: bool,
}

/// The machine measured on. What it does not tell is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The processor's model.
    pub processor: Option<String>,
    /// Ticks of the processor's counter in a second, measured.
    pub counter_hz: Option<f64>,
    /// Release of the kernel.
    pub kernel: String,
    /// What the kernel keeps time with.
    pub clock_source: Option<String>,
    /// The hypervisor below, if there is one; `unknown` if it does not say which.
    pub virtual_machine: Option<String>,
}

/// A table of the paper and the same measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperTable {
    /// Its number in the paper, such as `2.1`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The machine on which the paper measured it.
    pub paper_machine: String,
    /// How it was measured here.
    pub method: String,
    /// The quantities.
    pub rows: Vec<PaperRow>,
    /// What a rule of the paper decides by these numbers; empty where the table decides nothing.
    pub decisions: Vec<Decision>,
    /// What differs from the paper, and why.
    pub difference: String,
    /// What a reader of the paper should know about its numbers, one sentence or two each.
    pub notes: Vec<String>,
    /// Name of the file with the table's figure; null if none was written.
    pub figure: Option<String>,
}

/// One quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperRow {
    /// What it is.
    pub name: String,
    /// The paper's number; null where the paper has none.
    pub paper: Option<f64>,
    /// The number found here; null where it could not be.
    pub measured: Option<f64>,
    /// Unit of both, as the paper prints it: `ns`, `us`.
    pub unit: String,
    /// How the number was found.
    pub how: MeasurementKind,
    /// Single measurements behind it; null where there is no number.
    pub count: Option<u64>,
    /// Why there is no number, and what would mend that; null where there is one.
    pub missing: Option<String>,
    /// Where it stands in a grid; null in a table that is a list.
    pub cell: Option<Cell>,
}

/// A place in a grid. A grid has a column for each subject and statistic, in the order in which they
/// first appear, and beside it the paper's numbers where it has some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Which line: `1 s`.
    pub line: String,
    /// Of what: `learned`.
    pub subject: String,
    /// Which number of it: `median`.
    pub statistic: String,
}

/// How a number was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasurementKind {
    /// On this machine, by the means that the paper used.
    Measured,
    /// On this machine, by something put in the place of what it lacks.
    Emulated,
    /// On a simulated machine, or by an analysis of one, which the row's name then says.
    #[serde(alias = "analysed")]
    Simulated,
}

impl MeasurementKind {
    /// As documents write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MeasurementKind::Measured => "measured",
            MeasurementKind::Emulated => "emulated",
            MeasurementKind::Simulated => "simulated",
        }
    }
}

/// What a rule decides by some numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// By which numbers.
    pub given: String,
    /// What it chooses.
    pub chosen: String,
    /// Why; one clause.
    pub because: String,
}

/// A figure, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaperFigure {
    /// Single measurements in their order.
    Measurements(Figure),
    /// One quantity against another.
    Curves(Curves),
    /// When threads ran.
    Trace(TraceFigure),
    /// Quantities of several things, side by side.
    Bars(Bars),
}

/// Quantities of several things, side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Its number in the paper.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What is counted along its left edge, which begins at 0.
    pub up: String,
    /// The things.
    pub groups: Vec<String>,
    /// A bar of each in every group.
    pub series: Vec<BarSeries>,
}

/// Bars of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// What they are.
    pub name: String,
    /// Where they are from.
    pub origin: CurveOrigin,
    /// Their colour: bars of one number are about one thing.
    pub colour: u32,
    /// Their heights, one a group; null where there is none.
    pub values: Vec<Option<f64>>,
}

/// A segment of an execution trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFigure {
    /// Its number in the paper.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Left edge, ns from the run's start.
    pub from_ns: i64,
    /// Right edge, ns from the run's start.
    pub to_ns: i64,
    /// Number and label of each thread.
    pub threads: Vec<(u32, String)>,
    /// When they ran, in the order of starts.
    pub pieces: Vec<TracePiece>,
}

/// A stretch of time in which a thread ran without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePiece {
    /// The thread.
    pub thread: u32,
    /// Where it ran.
    pub cpu: u32,
    /// When it was first seen to run, ns from the run's start.
    pub start_ns: i64,
    /// When it was last seen to run, ns from the run's start.
    pub end_ns: i64,
    /// Code of what stands before it ([`crate::IntervalStart`]).
    pub onset: u8,
}

impl PaperFigure {
    /// Its number in the paper.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            PaperFigure::Measurements(figure) => &figure.id,
            PaperFigure::Curves(curves) => &curves.id,
            PaperFigure::Trace(trace) => &trace.id,
            PaperFigure::Bars(bars) => &bars.id,
        }
    }

    /// Whether there is nothing measured in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            PaperFigure::Measurements(figure) => figure.count == 0,
            PaperFigure::Curves(curves) => {
                curves.curves.iter().all(|curve| curve.points.is_empty())
            }
            PaperFigure::Trace(trace) => trace.pieces.is_empty() || trace.to_ns <= trace.from_ns,
            PaperFigure::Bars(bars) => {
                bars.series.iter().flat_map(|s| &s.values).all(Option::is_none)
            }
        }
    }
}

/// Quantities that depend on another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// Its number in the paper.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Its lower edge.
    pub across: Edge,
    /// Its left edge.
    pub up: Edge,
    /// The quantities.
    pub curves: Vec<Curve>,
    /// What else is to be known, a sentence; may be empty.
    pub note: String,
}

/// An edge of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// What it is: `sleep time`.
    pub text: String,
    /// What is counted along it.
    pub unit: EdgeUnit,
    /// How it is divided.
    pub scale: AxisScale,
}

/// What is counted along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeUnit {
    /// Nanoseconds.
    Time,
    /// Things.
    Number,
}

/// How an edge is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisScale {
    /// Equal distances are equal differences. Begins at 0.
    Linear,
    /// Equal distances are equal ratios; what is not positive has no place.
    Logarithmic,
}

/// One quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it is.
    pub name: String,
    /// Where its points are from.
    pub origin: CurveOrigin,
    /// Its colour: curves of one number are about one thing.
    pub colour: u32,
    /// Whether a line joins its points.
    pub joined: bool,
    /// Its points, by their place across.
    pub points: Vec<CurvePoint>,
}

/// Where the points of a curve are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CurveOrigin {
    /// The paper's text.
    Paper,
    /// This machine.
    Here,
    /// A simulated machine.
    Simulated,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Along the lower edge.
    pub across: f64,
    /// Along the left edge.
    pub up: f64,
}

/// A figure of single measurements, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its number in the paper.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What is measured of each: `cost`.
    pub quantity: String,
    /// What single measurement is counted along its lower edge: `read`.
    pub counted: String,
    /// Measurements of each series.
    pub count: u64,
    /// Of so many measurements each, the least, the greatest and one at random are among the
    /// points; 1 if all are.
    pub thinning: u64,
    /// What was measured, in the order of the table.
    pub series: Vec<Series>,
}

/// One quantity of a figure, measured many times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// The paper's mean, ns.
    pub paper_mean_ns: Option<f64>,
    /// The mean found here, ns; null if it could not be measured.
    pub mean_ns: Option<f64>,
    /// Some of the measurements, in their order; the extremes are among them.
    pub points: Vec<Point>,
}

/// A single measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its number, from 0.
    pub number: u64,
    /// What was measured, ns.
    pub ns: f64,
}

/// The papers that there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaperList {
    /// Always [`PAPER_LIST_SCHEMA`].
    pub schema: String,
    /// All of them.
    pub papers: Vec<PaperEntry>,
}

/// A paper in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaperEntry {
    /// Its name on the command line.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Who wrote it, where and when.
    pub source: String,
    /// Its tables that can be measured.
    pub tables: Vec<TableEntry>,
}

/// A table in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Its number in the paper.
    pub id: String,
    /// What it shows.
    pub title: String,
}
