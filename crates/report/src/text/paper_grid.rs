//! A paper's table that is a grid, for people.

use hourglass_documents::paper::{Cell, PaperRow, PaperTable};

use super::paper::{decimals, heading};
use super::table::{ColumnFormat, TextCell, TextStyle, TextTable};
use crate::clean;

/// A column of the grid: what all of its rows have in common.
type Key<'a> = (&'a str, &'a str, &'a str);

/// The rows as a grid; `None` if one of them has no place in it.
pub(super) fn grid(table: &PaperTable) -> Option<TextTable> {
    let placed: Option<Vec<(&Cell, &PaperRow)>> =
        table.rows.iter().map(|row| Some((row.cell.as_ref()?, row))).collect();
    let placed = placed.filter(|placed| !placed.is_empty())?;
    let mut lines: Vec<&str> = Vec::new();
    let mut keys: Vec<Key> = Vec::new();
    for (cell, row) in &placed {
        if !lines.contains(&cell.line.as_str()) {
            lines.push(&cell.line);
        }
        if !keys.contains(&key(cell, row)) {
            keys.push(key(cell, row));
        }
    }
    let columns: Vec<GridColumn> = keys.into_iter().map(|k| GridColumn::of(k, &placed)).collect();
    Some(headed(table, &lines, &columns))
}

fn key<'a>(cell: &'a Cell, row: &'a PaperRow) -> Key<'a> {
    (&cell.subject, &cell.statistic, &row.unit)
}

/// A column, and the paper's beside it where it has one.
struct GridColumn<'a> {
    key: Key<'a>,
    rows: Vec<(&'a str, &'a PaperRow)>,
    with_paper: bool,
    decimals: usize,
}

impl<'a> GridColumn<'a> {
    fn of(wanted: Key<'a>, placed: &[(&'a Cell, &'a PaperRow)]) -> GridColumn<'a> {
        let own = placed.iter().filter(|(cell, row)| key(cell, row) == wanted);
        let rows: Vec<(&str, &PaperRow)> =
            own.map(|(cell, row)| (cell.line.as_str(), *row)).collect();
        GridColumn {
            key: wanted,
            with_paper: rows.iter().any(|(_, row)| row.paper.is_some()),
            decimals: decimals(rows.iter().map(|(_, row)| *row)).min(MOST_DECIMALS),
            rows,
        }
    }

    /// The row that stands in this column and in `line`.
    fn row(&self, line: &str) -> Option<&'a PaperRow> {
        self.rows.iter().find(|(own, _)| *own == line).map(|(_, row)| *row)
    }
}

/// Decimals in a grid, at most: it has many columns.
const MOST_DECIMALS: usize = 2;

/// The lines under title and heads: subject, statistic and unit one below the other.
fn headed(table: &PaperTable, lines: &[&str], columns: &[GridColumn]) -> TextTable {
    let title = clean::for_terminal(&heading(table));
    let mut heads = [vec![String::new()], vec![String::new()]];
    let mut grid = TextTable::of(title, lines).text("", |line| *line);
    let mut last = "";
    for column in columns {
        let (subject, statistic, unit) = column.key;
        let statistics = column.with_paper.then_some("paper").into_iter().chain([statistic]);
        for statistic in statistics {
            // A subject stands over its first column only.
            let new = if subject == last { "" } else { subject };
            last = subject;
            heads[0].push(clean::for_terminal(new));
            heads[1].push(clean::for_terminal(statistic));
        }
        if column.with_paper {
            grid = grid.column(ColumnFormat::Number, clean::for_terminal(unit), |line| {
                let paper = column.row(line).and_then(|row| row.paper);
                TextCell::toned(paper.map(|number| number.to_string()), TextStyle::Faint)
            });
        }
        grid = grid.column(ColumnFormat::Number, clean::for_terminal(unit), |line| {
            let here = column.row(line).and_then(|row| row.measured);
            here.map(|number| format!("{number:.*}", column.decimals))
        });
    }
    let [subjects, statistics] = heads;
    grid.table().heads(subjects).heads(statistics)
}
