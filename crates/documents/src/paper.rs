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

/// The machine measured on. A fact that it does not give is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The processor's model.
    pub processor: Option<String>,
    /// Ticks of the processor's counter in a second, measured.
    pub counter_hz: Option<f64>,
    /// Release of the kernel.
    pub kernel: String,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// The hypervisor below, if there is one; `unknown` if it does not give its name.
    pub virtual_machine: Option<String>,
}

/// A table of the paper and its quantities measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperTable {
    /// Number in the paper, such as `2.1`.
    pub id: String,
    /// Subject of the table.
    pub title: String,
    /// The machine on which the paper measured it.
    pub paper_machine: String,
    /// How it was measured here.
    pub method: String,
    /// The quantities, row by row.
    pub rows: Vec<PaperRow>,
    /// Decisions of a rule of the paper by these numbers; empty where the table decides nothing.
    pub decisions: Vec<Decision>,
    /// What differs from the paper, and why.
    pub difference: String,
    /// What a reader of the paper should know about its numbers, one sentence or two each.
    pub notes: Vec<String>,
    /// Name of the file with the table's figure; null if none was written.
    pub figure: Option<String>,
}

/// One quantity of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperRow {
    /// Name of the quantity.
    pub name: String,
    /// The paper's number; null where the paper has none.
    pub paper: Option<f64>,
    /// The number measured here; null where it could not be measured.
    pub measured: Option<f64>,
    /// Unit of both, as the paper prints it: `ns`, `us`.
    pub unit: String,
    /// How the number was found.
    pub how: MeasurementKind,
    /// Single measurements behind it; null where there is no number.
    pub count: Option<u64>,
    /// Why there is no number, and a remedy; null where there is one.
    pub missing: Option<String>,
    /// Its place in a grid; null in a table that is a list.
    pub cell: Option<Cell>,
}

/// A place in a grid. A grid has a column for each subject and statistic, in the order in which they
/// first appear, and beside it the paper's numbers where it has some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Label of the line: `1 s`.
    pub line: String,
    /// Subject of the column: `learned`.
    pub subject: String,
    /// Statistic of the column: `median`.
    pub statistic: String,
}

crate::named_enum! {
    /// How a number was found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub serde enum MeasurementKind {
        /// On this machine, by the means that the paper used.
        Measured => "measured",
        /// On this machine, with a substitute for what it lacks.
        Emulated => "emulated",
        /// On a simulated machine, or by an analysis of one, which the row's name then says.
        #[serde(alias = "analysed")]
        Simulated => "simulated",
    }
}

/// A decision of a rule by some numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The numbers on which it rests.
    pub given: String,
    /// The choice.
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
    /// Execution of threads over time.
    Trace(TraceFigure),
    /// Quantities of several groups, side by side.
    Bars(Bars),
}

/// Quantities of several groups, side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Its number in the paper.
    pub id: String,
    /// Subject of the figure.
    pub title: String,
    /// Quantity of the left edge, which begins at 0.
    pub up: String,
    /// Labels of the groups.
    pub groups: Vec<String>,
    /// The series; each has a bar in every group.
    pub series: Vec<BarSeries>,
}

/// A series of bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// Label of the series.
    pub name: String,
    /// Origin of the values.
    pub origin: CurveOrigin,
    /// Colour of the series: bars of one number belong together.
    pub colour: u32,
    /// Their heights, one a group; null where a group has no bar.
    pub values: Vec<Option<f64>>,
}

/// A segment of an execution trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFigure {
    /// Its number in the paper.
    pub id: String,
    /// Subject of the figure.
    pub title: String,
    /// Left edge, ns from the run's start.
    pub from_ns: i64,
    /// Right edge, ns from the run's start.
    pub to_ns: i64,
    /// Number and label of each thread.
    pub threads: Vec<(u32, String)>,
    /// Stretches of execution, in the order of starts.
    pub pieces: Vec<TracePiece>,
}

/// A stretch of time in which a thread ran without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePiece {
    /// Number of the thread.
    pub thread: u32,
    /// CPU on which it ran.
    pub cpu: u32,
    /// When it was first seen to run, ns from the run's start.
    pub start_ns: i64,
    /// When it was last seen to run, ns from the run's start.
    pub end_ns: i64,
    /// Code of what stands before it (`IntervalStart` of the trace).
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
    /// Subject of the figure.
    pub title: String,
    /// The lower edge.
    pub across: Edge,
    /// The left edge.
    pub up: Edge,
    /// The curves, one for each quantity.
    pub curves: Vec<Curve>,
    /// A sentence that the reader needs; may be empty.
    pub note: String,
}

/// An edge of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Label of the edge: `sleep time`.
    pub text: String,
    /// Unit of the edge.
    pub unit: EdgeUnit,
    /// Scale of the edge.
    pub scale: AxisScale,
}

/// Unit of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeUnit {
    /// Nanoseconds.
    Time,
    /// A plain number, without a unit.
    Number,
}

/// Scale of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisScale {
    /// Equal distances are equal differences. Begins at 0.
    Linear,
    /// Equal distances are equal ratios; only positive values have a place.
    Logarithmic,
}

/// One curve of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Label of the curve.
    pub name: String,
    /// Origin of the points.
    pub origin: CurveOrigin,
    /// Colour of the curve: curves of one number belong together.
    pub colour: u32,
    /// Whether a line joins its points.
    pub joined: bool,
    /// Its points, by their place across.
    pub points: Vec<CurvePoint>,
}

/// Origin of the points of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CurveOrigin {
    /// The paper's text.
    Paper,
    /// Measured on this machine.
    Here,
    /// A simulated machine.
    Simulated,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Value along the lower edge.
    pub across: f64,
    /// Value along the left edge.
    pub up: f64,
}

/// A figure of single measurements, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its number in the paper.
    pub id: String,
    /// Subject of the figure.
    pub title: String,
    /// The measured quantity: `cost`.
    pub quantity: String,
    /// What the lower edge counts: `read`.
    pub counted: String,
    /// Measurements of each series.
    pub count: u64,
    /// Of each group of this many measurements, the least, the greatest and one at random are among
    /// the points; 1 if all are.
    pub thinning: u64,
    /// The series, in the order of the table.
    pub series: Vec<Series>,
}

/// One quantity of a figure, measured many times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Label of the series.
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
    /// The measured value, ns.
    pub ns: f64,
}

/// The list of papers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaperList {
    /// Always [`PAPER_LIST_SCHEMA`].
    pub schema: String,
    /// Every paper that the command knows.
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
