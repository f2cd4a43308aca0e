//! A paper's tables as text and as pictures, from a document that is written down here.

use crate::assert_well_formed;
use hourglass_documents::paper::{
    AxisScale, BarSeries, Bars, Cell, Curve, CurveOrigin, CurvePoint, Curves, Decision, Edge,
    EdgeUnit, Figure, MachineFacts, MeasurementKind, PAPER_LIST_SCHEMA, PAPER_SCHEMA,
    PaperDocument, PaperEntry, PaperFigure, PaperList, PaperRow, PaperTable, Point, Series,
    TableEntry, TraceFigure, TracePiece,
};
use hourglass_report::svg;
use hourglass_report::text::{Style, paper, papers};

fn row(name: &str, paper: Option<f64>, measured: Option<f64>, unit: &str) -> PaperRow {
    PaperRow {
        name: name.into(),
        paper,
        measured,
        unit: unit.into(),
        how: MeasurementKind::Measured,
        count: measured.map(|_| 10),
        missing: measured.is_none().then(|| "no such device; another machine has it".into()),
        cell: None,
    }
}

fn document() -> PaperDocument {
    let table = PaperTable {
        id: "7.1".into(),
        title: "Cost of two things".into(),
        paper_machine: "an old machine".into(),
        method: "ten of each, one after the other, on a machine that has a long description".into(),
        rows: vec![
            row("A, mean", Some(1.1125), Some(0.02849), "us"),
            row("B, mean", Some(1.25), None, "us"),
            row("B, deviation", Some(0.5), None, "us"),
            row("difference of the means", Some(137.5), Some(-12.125), "ns"),
            row("A, median", None, Some(0.019), "us"),
        ],
        decisions: vec![
            Decision { given: "a".into(), chosen: "hpet".into(), because: "it is".into() },
            Decision { given: "b".into(), chosen: "monotonic".into(), because: "it is not".into() },
        ],
        difference: "A is faster here because time went on.".into(),
        notes: vec!["The paper has a printing error.".into()],
        figure: Some("figure-7.1.svg".into()),
    };
    PaperDocument {
        schema: PAPER_SCHEMA.into(),
        paper: "example".into(),
        title: "On examples".into(),
        source: "A. Nobody, 1999".into(),
        effort: "quick".into(),
        machine: MachineFacts {
            processor: Some("Processor".into()),
            counter_hz: Some(2_299_998_000.4),
            kernel: "6.1".into(),
            clock_source: Some("tsc".into()),
            virtual_machine: None,
        },
        tables: vec![table],
        interrupted: false,
    }
}

const TEXT: &str = "\
On examples
A. Nobody, 1999
here: Processor, counter of 2299.998 MHz, Linux 6.1, clock source tsc

Table 7.1: Cost of two things
                          paper    here  ratio  unit
A, mean                  1.1125  0.0285  0.026  us
B, mean                    1.25       -         us
B, deviation                0.5       -         us
difference of the means   137.5   -12.1         ns
A, median                     -  0.0190         us

not measured (B, mean; B, deviation): no such device; another machine has it
there: an old machine
here: ten of each, one after the other, on a machine that has a long description
A is faster here because time went on.
The paper's rule chooses
  hpet       by a: it is
  monotonic  by b: it is not
Note: The paper has a printing error.
Figure: figure-7.1.svg
";

#[test]
fn the_whole_text() {
    assert_eq!(paper(&document(), Style::Plain), TEXT);
}

const GRID: &str = "\
Table 7.1: Cost of two things
         A                 B
     paper   mean  p99  mean
        ns     ns   ns     %
1 s  10.25  12.00    -  0.05
2 s      -   9.50   99     -

";

/// A table whose rows have cells is a grid: the paper's numbers only where it has some.
#[test]
fn rows_with_places_make_a_grid() {
    let mut document = document();
    let cell = |line: &str, subject: &str, statistic: &str, row: PaperRow| PaperRow {
        cell: Some(Cell {
            line: line.into(),
            subject: subject.into(),
            statistic: statistic.into(),
        }),
        missing: None,
        ..row
    };
    document.tables[0].rows = vec![
        cell("1 s", "A", "mean", row("a", Some(10.25), Some(12.0), "ns")),
        cell("2 s", "A", "mean", row("a", None, Some(9.5), "ns")),
        cell("2 s", "A", "p99", row("a", None, Some(99.0), "ns")),
        cell("1 s", "B", "mean", row("b", None, Some(0.05), "%")),
    ];
    let text = paper(&document, Style::Plain);
    assert!(text.contains(GRID), "{text}");
    // One row without a place: a list again.
    document.tables[0].rows.push(row("c", None, Some(1.0), "ns"));
    assert!(paper(&document, Style::Plain).contains("ratio  unit"));
}

#[test]
fn what_is_not_measured_says_how_it_was_found_and_an_interruption_is_reported() {
    let mut document = document();
    document.tables[0].rows[0].how = MeasurementKind::Simulated;
    document.interrupted = true;
    let text = paper(&document, Style::Plain);
    assert!(text.contains("unit  how\n") && text.contains("us    simulated\n"), "{text}");
    assert!(text.trim_end().ends_with("not complete are left out."), "{text}");
}

/// 80 columns, whatever stands in the document; and nothing that a terminal would obey.
#[test]
fn long_and_foreign_text_stays_in_its_place() {
    let mut document = document();
    document.machine.processor = Some("evil \u{1b}[2J ".repeat(20));
    let table = &mut document.tables[0];
    table.difference = "word ".repeat(200);
    table.notes = vec!["word ".repeat(50)];
    table.decisions[0].because = "reason ".repeat(30);
    let text = paper(&document, Style::Plain);
    assert!(!text.contains('\u{1b}'));
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.ends_with(' '), "'{line}'");
    }
}

#[test]
fn the_list_has_a_line_for_each_table() {
    let table = |id: &str| TableEntry { id: id.into(), title: "Something".into() };
    let list = PaperList {
        schema: PAPER_LIST_SCHEMA.into(),
        papers: vec![PaperEntry {
            name: "example".into(),
            title: "On examples".into(),
            source: "A. Nobody, 1999".into(),
            tables: vec![table("7.1"), table("10.2")],
        }],
    };
    let expected = "example: On examples (A. Nobody, 1999)\n    \
                    7.1   Something\n    10.2  Something\n";
    assert_eq!(papers(&list, Style::Plain), expected);
}

fn figure() -> Figure {
    let point = |number, ns| Point { number, ns };
    Figure {
        id: "7.1".into(),
        title: "Cost of <two> things".into(),
        quantity: "cost".into(),
        counted: "read".into(),
        count: 4_000_000,
        thinning: 8_192,
        series: vec![
            Series {
                name: "A & B".into(),
                paper_mean_ns: Some(1_112.5),
                mean_ns: Some(20.0),
                points: vec![point(0, 18.0), point(1_000_000, 0.0), point(3_999_999, 2_000_000.0)],
            },
            Series {
                name: "C".into(),
                paper_mean_ns: Some(1_129.4),
                mean_ns: None,
                points: Vec::new(),
            },
        ],
    }
}

/// Where the dots are, from the left.
fn dots(svg: &str) -> Vec<(f64, f64)> {
    let paths = svg.split("class=\"hg-dots\" d=\"").skip(1);
    let dots = paths.flat_map(|path| path.split_once('"').unwrap().0.split('M').skip(1));
    let place = |dot: &str| {
        let (x, y) = dot.strip_suffix("h0").unwrap().split_once(' ').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    let mut places: Vec<(f64, f64)> = dots.map(place).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places
}

/// Every point is a dot between the edges of the plot: time to the right, dearer higher up.
#[test]
fn a_figure_has_a_dot_for_each_point() {
    let svg = svg::costs(&figure());
    assert_well_formed(&svg);
    let dots = dots(&svg);
    assert_eq!(dots.len(), 3);
    assert!(dots[0].0 < dots[1].0 && dots[1].0 < dots[2].0, "{dots:?}");
    assert!(dots[2].1 < dots[0].1 && dots[0].1 < dots[1].1, "no cost is lowest: {dots:?}");
    assert_eq!(svg.matches("class=\"hg-dots\"").count(), 2, "A in two halves, C has no points");
}

#[test]
fn a_figure_says_what_it_shows() {
    let svg = svg::costs(&figure());
    for text in [
        ">Figure 7.1: Cost of &lt;two&gt; things</text>",
        ">A &amp; B, paper 1.11 us</text>",
        ">A &amp; B, here 20.0 ns</text>",
        ">C, paper 1.13 us</text>",
        ">C (not measured here)</text>",
        ">number of the read, millions</text>",
        ">cost of a read</text>",
        ">100 us</text>",
        "C: not measured here, 1.13 us in the paper.",
        "of every 8192 reads the least",
        "prefers-color-scheme:dark",
    ] {
        assert!(svg.contains(text), "{text} is missing in {svg}");
    }
    assert_eq!(svg.matches("class=\"hg-halo\"").count(), 3, "a line for each mean");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

/// Two means at almost one height have labels that can both be read.
#[test]
fn labels_do_not_overlap() {
    let svg = svg::costs(&figure());
    let heights = svg.lines().filter(|line| line.starts_with("<text class=\"hg-ink\" x="));
    let mut heights: Vec<f64> = heights
        .map(|line| {
            let (_, y) = line.split_once(" y=\"").unwrap();
            y.split_once('"').unwrap().0.parse().unwrap()
        })
        .collect();
    heights.sort_by(f64::total_cmp);
    assert_eq!(heights.len(), 3);
    assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 15.9), "{heights:?}");
}

#[test]
fn a_figure_of_nothing_is_a_picture_all_the_same() {
    let mut figure = figure();
    figure.series.clear();
    figure.count = 0;
    assert_well_formed(&svg::costs(&figure));
}

fn curves() -> Curves {
    let edge = |text: &str, scale| Edge { text: text.into(), unit: EdgeUnit::Time, scale };
    let curve = |name: &str, origin, points: &[(f64, f64)]| Curve {
        name: name.into(),
        origin,
        colour: 1,
        joined: true,
        points: points.iter().map(|(across, up)| CurvePoint { across: *across, up: *up }).collect(),
    };
    Curves {
        id: "7.2".into(),
        title: "Miss & more".into(),
        across: edge("sleep time", AxisScale::Logarithmic),
        up: edge("miss", AxisScale::Linear),
        curves: vec![
            curve("A, paper", CurveOrigin::Paper, &[(1e3, 50.0), (1e9, 334.0)]),
            curve("A, here", CurveOrigin::Here, &[(1e3, 60.0), (0.0, 1.0), (1e6, f64::NAN)]),
            curve("B", CurveOrigin::Simulated, &[]),
        ],
        note: "A <note>.".into(),
    }
}

/// Points without a place (no time on an edge of ratios, no number) are left out.
#[test]
fn curves_show_what_has_a_place() {
    let svg = svg::figure(&PaperFigure::Curves(curves()));
    assert_well_formed(&svg);
    assert_eq!(svg.matches("class=\"hg-dot\"").count(), 2, "one and that of the legend");
    assert_eq!(svg.matches("<circle class=\"hg-ring\"").count(), 3);
    for text in [
        ">Figure 7.2: Miss &amp; more</text>",
        ">A &lt;note&gt;.</text>",
        ">B (no points)</text>",
        ">1 us</text>",
        ">350 ns</text>",
        "A, paper: from 50.0 ns to 334 ns, 2 points.",
    ] {
        assert!(svg.contains(text), "{text} is missing in {svg}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let nothing = Curves { curves: Vec::new(), ..curves() };
    assert!(
        PaperFigure::Curves(nothing.clone()).is_empty()
            && !PaperFigure::Curves(curves()).is_empty()
    );
    assert_well_formed(&svg::curves(&nothing));
}

/// Figure 6 of the Hourglass paper: a segment of a trace is drawn like any trace, under the paper's number.
#[test]
fn a_segment_of_a_trace() {
    let piece = |start_ns, end_ns| TracePiece { thread: 0, cpu: 1, start_ns, end_ns, onset: 1 };
    let mut figure = TraceFigure {
        id: "6".into(),
        title: "a periodic thread".into(),
        from_ns: 1_000_000,
        to_ns: 26_000_000,
        threads: vec![(0, "PERIODIC 4ms 5ms".into())],
        pieces: vec![piece(0, 4_000_000), piece(5_000_000, 7_000_000), piece(7_500_000, 9_000_000)],
    };
    assert!(!PaperFigure::Trace(figure.clone()).is_empty());
    let svg = svg::figure(&PaperFigure::Trace(figure.clone()));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for text in ["Figure 6: a periodic thread", "PERIODIC 4ms 5ms"] {
        assert!(svg.contains(text), "{text}");
    }
    figure.to_ns = figure.from_ns;
    assert!(
        PaperFigure::Trace(figure).is_empty(),
        "nothing is written of a range that holds nothing"
    );
}

/// A limit is a line without marks, and so is a curve whose marks would hide it.
#[test]
fn crowded_curves_and_limits_have_no_marks() {
    let points = |count: u32| {
        let place = |n| CurvePoint { across: f64::from(n) + 1.0, up: f64::from(n % 2) };
        (0..count).map(place).collect::<Vec<_>>()
    };
    let number = |text: &str| Edge {
        text: text.into(),
        unit: hourglass_documents::paper::EdgeUnit::Number,
        scale: AxisScale::Linear,
    };
    let curve =
        |origin, points| Curve { name: "A".into(), origin, colour: 0, joined: true, points };
    let limit = vec![CurvePoint { across: 1.0, up: 1.0 }, CurvePoint { across: 3.0, up: 1.0 }];
    let marks = |curve| {
        let (across, up) = (number("period"), number("time"));
        let one = Curves { across, up, curves: vec![curve], ..curves() };
        svg::curves(&one).matches("<circle").count()
    };
    assert_eq!(marks(curve(CurveOrigin::Here, points(100))), 101, "and that of the legend");
    assert_eq!(marks(curve(CurveOrigin::Here, points(900))), 1);
    assert_eq!(marks(curve(CurveOrigin::Paper, limit)), 0);
}

/// Bars: each with its number, as high as it says; what is not there leaves its place empty.
#[test]
fn bars_are_as_high_as_they_say() {
    let series = |name: &str, origin, values: &[Option<f64>]| BarSeries {
        name: name.into(),
        origin,
        colour: 1,
        values: values.to_vec(),
    };
    let bars = Bars {
        id: "9".into(),
        title: "more & less".into(),
        up: "times".into(),
        groups: vec!["A".into(), "B".into()],
        series: vec![
            series("paper", CurveOrigin::Paper, &[Some(2.0), Some(1.0)]),
            series("here", CurveOrigin::Here, &[Some(0.5), None]),
            series("elsewhere", CurveOrigin::Simulated, &[None, None]),
        ],
    };
    let svg = svg::figure(&PaperFigure::Bars(bars.clone()));
    assert_well_formed(&svg);
    let height = |svg: &str, part: &str| -> f64 {
        let rest = &svg[svg.find(part).unwrap()..];
        let rest = &rest[rest.find("height=\"").unwrap() + 8..];
        rest[..rest.find('"').unwrap()].parse().unwrap()
    };
    let of_plot = &svg[svg.find("hg-axis").unwrap()..svg.rfind("translate").unwrap()];
    assert_eq!(height(of_plot, "class=\"hg-frame hg-there\""), 300.0);
    assert_eq!(height(of_plot, "class=\"hg-bar\""), 75.0);
    for text in
        [">Figure 9: more &amp; less</text>", ">0.50</text>", ">elsewhere (not measured here)"]
    {
        assert!(svg.contains(text), "{text} is missing in {svg}");
    }
    let nothing = Bars { series: bars.series[2..].to_vec(), ..bars.clone() };
    assert!(PaperFigure::Bars(nothing).is_empty() && !PaperFigure::Bars(bars).is_empty());
}
