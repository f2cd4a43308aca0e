//! The table and the picture of an experiment of schedulability.

use std::collections::BTreeSet;

use hourglass_documents::sweep::{SWEEP_SCHEMA, SweepDocument, SweepExperiment, SweepPoint};
use hourglass_report::svg::acceptance;
use hourglass_report::text::{Style, sweep};

/// A document of points; each gives how many of a thousand sets each analysis accepts.
fn document(analyses: &[&str], points: &[(&str, &[u64])]) -> SweepDocument {
    let names = || analyses.iter().map(|name| (*name).to_owned());
    let point = |(utilisation, accepted): &(&str, &[u64])| SweepPoint {
        utilisation: utilisation.parse().unwrap(),
        sets: 1_000,
        redrawn: 0,
        accepted: names().zip(accepted.iter().copied()).collect(),
        undecided: names().map(|name| (name, 0)).collect(),
    };
    SweepDocument {
        schema: SWEEP_SCHEMA.into(),
        experiment: SweepExperiment {
            version: "0.1.0".into(),
            utilisations: points.iter().map(|(utilisation, _)| (*utilisation).into()).collect(),
            sets: 1_000,
            tasks: 10,
            processors: 1,
            generator: "uunifast".into(),
            bounds: Vec::new(),
            periods: "log-uniform:10ms,1s".into(),
            granularity: "1us".into(),
            cost_granularity: "1ns".into(),
            deadlines: "implicit".into(),
            jitter: "0,0".into(),
            seed: 1,
            analyses: names().collect(),
            template: None,
            keep_sets: false,
            shard: None,
        },
        points: points.iter().map(point).collect(),
        weighted: names().map(|name| (name, 0.5)).collect(),
        interrupted: false,
    }
}

/// Three analyses, the last two of which accept the same.
fn three() -> SweepDocument {
    document(
        &["rm-ll", "rm", "dm"],
        &[("0.6", &[1_000; 3]), ("0.8", &[1, 999, 999]), ("1", &[0, 4, 4])],
    )
}

/// Only all are 100, and only none are 0 (the convention of `share` of the table).
#[test]
fn the_table_says_how_many_of_what() {
    assert_eq!(
        sweep(&three(), Style::Plain),
        "Sets accepted, % of 1000 sets of 10 tasks, 1 CPU, uunifast, periods\n\
         \x20 log-uniform:10ms,1s, deadlines implicit, seed 1\n\
         utilisation  rm-ll     rm     dm\n\
         \x20       0.6    100    100    100\n\
         \x20       0.8    0.1   99.9   99.9\n\
         \x20         1      0    0.4    0.4\n\
         \x20  weighted  0.500  0.500  0.500\n\
         \n\
         weighted: sum of utilisation times share accepted, over that of utilisations\n"
    );
}

#[test]
fn few_of_many_are_not_none() {
    let mut found = three();
    for point in &mut found.points {
        point.sets = 1_000_000;
    }
    let table = sweep(&found, Style::Plain);
    assert!(table.contains("0.8   <0.1   <0.1   <0.1\n"), "{table}");
}

#[test]
fn what_is_missing_is_said() {
    let mut found = three();
    found.points.truncate(1);
    found.points[0].undecided.insert("rm".into(), 7);
    found.interrupted = true;
    let table = sweep(&found, Style::Plain);
    assert!(table.ends_with(
        "rm: undecided: 7; these do not count as accepted\n\
         interrupted: 2 of 3 points missing\n"
    ));
    found.points.clear();
    let table = sweep(&found, Style::Plain);
    assert!(table.ends_with("interrupted: 3 of 3 points missing\n"), "{table}");
}

/// A terminal of 80 columns holds the table of every analysis there is.
#[test]
fn many_analyses_stand_below_each_other() {
    let names: Vec<String> = (0..30).map(|n| format!("analysis-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let table = sweep(&document(&names, &[("0.5", &[500; 30])]), Style::Plain);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(table.matches("utilisation  ").count(), 6, "{table}");
    let heads: Vec<&str> =
        table.split_whitespace().filter(|word| word.starts_with("analysis-")).collect();
    assert_eq!(heads, names, "each once, in order");
    assert_eq!(table.matches("50.0").count(), 30);
}

/// A file may come from an untrusted source.
#[test]
fn nothing_of_a_file_reaches_the_terminal_or_the_markup() {
    let evil = "<b>\u{1b}[31m";
    let mut found = document(&[evil], &[("0.5", &[500])]);
    found.experiment.periods = evil.into();
    assert!(!sweep(&found, Style::Plain).contains('\u{1b}'));
    let picture = acceptance(&found);
    assert!(!picture.contains("<b>") && !picture.contains('\u{1b}'), "{picture}");
}

/// The numbers in the attribute `name` of all circles with this class around them.
fn dots(picture: &str, class: &str, name: &str) -> Vec<f64> {
    let group = format!("<g class=\"{class}\"><path class=\"hg-curve\"");
    let curve = picture.split_once(&group).unwrap().1.split_once("</g>").unwrap().0;
    let value = |dot: &str| dot.split_once(&format!("{name}=\"")).unwrap().1.to_owned();
    let circles = curve.split("<circle").skip(1);
    circles.map(|dot| value(dot).split_once('"').unwrap().0.parse().unwrap()).collect()
}

#[test]
fn the_picture_has_a_dot_for_each_point_where_it_belongs() {
    let picture = acceptance(&three());
    let (xs, ys) = (dots(&picture, "hg-t0", "cx"), dots(&picture, "hg-t0", "cy"));
    assert_eq!(xs.len(), 3);
    assert!((xs[1] - xs[0] - (xs[2] - xs[1])).abs() < 0.2, "equal steps: {xs:?}");
    // All of the sets at the top, a thousandth and none at the bottom of 420 pixels.
    assert!((ys[2] - ys[0] - 420.0).abs() < 0.2 && (ys[2] - ys[1] - 0.42).abs() < 0.2, "{ys:?}");
    // Of two curves that are one each has some of the marks, of its own shape, and the name beside them has both.
    let curve = |class: &str| {
        let group = format!("<g class=\"{class}\"><path class=\"hg-curve\" stroke-dasharray");
        picture.split_once(&group).unwrap().1.split_once("</g>").unwrap().0
    };
    assert_eq!(curve("hg-t1").matches("h7v7h-7z").count(), 2);
    assert_eq!(curve("hg-t2").matches("l5 9h-10z").count(), 1);
    assert!(picture.contains(">rm, dm</text>") && picture.contains(">rm-ll</text>"));
    assert!(picture.contains("rm: from 100.0 % to 0.4 %."), "in words too");
    assert!(picture.contains("rm-ll, weighted 0.500"));
    assert_eq!(acceptance(&three()), picture);
}

/// All there are: no two have the same colour and mark, neighbours have marks that differ without colour, and no name
/// covers another, not even at 0 %, where tests that accept nothing lie.
#[test]
fn thirty_curves_can_be_distinguished() {
    let names: Vec<String> = (0..30).map(|n| format!("analysis-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let falling: Vec<u64> = (0..30).map(|n| if n < 20 { n } else { 900 - n }).collect();
    let rows = [("0.5", &falling[..]), ("0.75", &falling[..]), ("1", &[0; 30][..])];
    let picture = acceptance(&document(&names, &rows));
    let line = "<path class=\"hg-curve\" d=\"M0 5H16\"/>";
    let around: Vec<&str> = picture.split(line).collect();
    let class = |text: &str| text.rsplit_once("<g class=\"").unwrap().1.to_owned();
    let mark = |text: &str| text.split_once("</g>").unwrap().0.to_owned();
    let signs: Vec<(String, String)> =
        around.windows(2).map(|pair| (class(pair[0]), mark(pair[1]))).collect();
    assert_eq!(signs.iter().collect::<BTreeSet<_>>().len(), 30);
    assert!(signs.windows(2).all(|pair| pair[0].1 != pair[1].1), "{signs:?}");
    let value = |text: &str, name: &str| -> f64 {
        let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let mut found: Vec<(f64, f64)> = Vec::new();
    for text in picture.split("<text class=\"hg-ink hg-name\"").skip(1) {
        let end = text.split_once('>').unwrap().0.contains("text-anchor=\"end\"");
        // Names of the same length, whose left edges are compared.
        let (x, y) = (value(text, "x") - if end { 76.0 } else { 0.0 }, value(text, "y"));
        let near = found.iter().find(|(a, b)| (a - x).abs() < 60.0 && (b - y).abs() < 14.0);
        assert_eq!(near, None, "{text}");
        found.push((x, y));
    }
    assert!(found.len() > 20, "{}", found.len());
}

/// The name liu-layland lay on the curve of the hyperbolic bound: each name has the mark of its curve and a line that
/// begins on it, where no other curve is.
#[test]
fn a_name_stands_at_its_own_curve() {
    let all = [1_000, 1_000, 1_000, 1_000];
    let rows: [(&str, &[u64]); 6] = [
        ("0.6", &all),
        ("0.7", &all),
        ("0.72", &[0, 150, 1_000, 1_000]),
        ("0.74", &[0, 0, 1_000, 1_000]),
        ("0.9", &[0, 0, 850, 1_000]),
        ("1", &[0, 0, 0, 1_000]),
    ];
    let names = ["liu-layland", "hyperbolic", "rm", "edf-preemptive"];
    let picture = acceptance(&document(&names, &rows));
    for (at, name) in names.iter().enumerate() {
        let named = picture.lines().find(|line| line.contains(&format!(">{name}</text>"))).unwrap();
        let leader = format!("<path class=\"hg-leader hg-t{at}\" d=\"M");
        let (x, rest) = named.split_once(&leader).unwrap().1.split_once(' ').unwrap();
        let (y, _) = rest.split_once('L').unwrap();
        let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
        // Where the four are one, at 100 % up to 0.7, or the first two, at 0 % from 0.74 on, a name would tell nothing.
        assert!(x > 166.22 + 212.0, "{name}: {x}");
        assert!(at > 1 || y < 503.0, "{name}: {y}");
    }
}

/// One point, no point, or the finest step: the picture has no NaN and nothing outside the page.
#[test]
fn any_number_of_points_makes_a_picture() {
    let one = document(&["edf"], &[("0.5", &[500])]);
    let none = document(&["edf"], &[]);
    let near = document(&["edf"], &[("0.5", &[500]), ("0.500001", &[400])]);
    let wide = document(&["edf"], &[("0.000001", &[1_000]), ("1024", &[0])]);
    for found in [one, none, near, wide] {
        let picture = acceptance(&found);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        assert!(picture.matches("v4\"/>").count() <= 16, "few steps: {picture}");
        for x in dots(&picture, "hg-t0", "cx") {
            assert!((72.0..=920.0).contains(&x), "{x}");
        }
    }
}
