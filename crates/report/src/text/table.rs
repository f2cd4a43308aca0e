//! Columns of text that line up, within the width of a page.

use std::borrow::Cow;

use anstyle::{AnsiColor, Effects};

use super::Style;
use crate::clean;

/// Columns of a terminal that comparisons and analyses fill at most.
pub(super) const PAGE: usize = 100;

/// Columns that a summary of a run fills at most: every terminal has them.
pub(super) const NARROW: usize = 80;

/// A cell takes no more lines.
const MOST_LINES: usize = 4;

/// Spaces between two columns.
const BETWEEN: usize = 2;

/// An elastic column is not cut below this: a workload's name remains readable.
const LEAST_ELASTIC: usize = 12;

/// The same where cells go on in the next line.
const LEAST_FOLDED: usize = 6;

/// What a text means, from which its colour follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Normal,
    Heading,
    Good,
    /// Not as it should be.
    Bad,
    /// To be read before the numbers are believed.
    Caution,
    Faint,
}

/// `text` in the colour of `tone`.
pub(super) fn paint(text: &str, tone: TextStyle, style: Style) -> String {
    let ansi = match tone {
        _ if style == Style::Plain || text.is_empty() => return text.to_owned(),
        TextStyle::Normal => return text.to_owned(),
        TextStyle::Heading => anstyle::Style::new().effects(Effects::BOLD),
        TextStyle::Good => AnsiColor::Green.on_default(),
        TextStyle::Bad => AnsiColor::Red.on_default().effects(Effects::BOLD),
        TextStyle::Caution => AnsiColor::Yellow.on_default(),
        TextStyle::Faint => anstyle::Style::new().effects(Effects::DIMMED),
    };
    format!("{ansi}{text}{ansi:#}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnFormat {
    /// Text, from the left.
    Text,
    /// Text, from the left; cut where the row would not fit the page.
    Elastic,
    /// Numbers, to the right.
    Number,
}

/// A block of rows under a title.
#[derive(Debug, Default)]
pub(super) struct TextTable {
    title: String,
    /// Whether it has [`NARROW`] columns, and elastic cells go on in lines of their own.
    narrow: bool,
    columns: Vec<(ColumnFormat, Cow<'static, str>)>,
    /// Lines of heads above those of the columns.
    above: Vec<Vec<String>>,
    rows: Vec<Vec<(String, TextStyle)>>,
}

impl TextTable {
    /// A block without columns or rows.
    pub(super) fn new(title: String) -> TextTable {
        TextTable { title, ..TextTable::default() }
    }

    /// The same, no wider than [`NARROW`]. Nothing is cut while there is another line for it.
    pub(super) fn narrow(self) -> TextTable {
        TextTable { narrow: true, ..self }
    }

    pub(super) fn column(
        mut self,
        column: ColumnFormat,
        head: impl Into<Cow<'static, str>>,
    ) -> TextTable {
        self.columns.push((column, head.into()));
        self
    }

    /// Adds columns of one kind.
    pub(super) fn columns(
        self,
        column: ColumnFormat,
        heads: impl IntoIterator<Item = &'static str>,
    ) -> TextTable {
        heads.into_iter().fold(self, |table, head| table.column(column, head))
    }

    /// Adds a line of heads above those of the columns, below such lines that there are.
    pub(super) fn heads(mut self, heads: Vec<String>) -> TextTable {
        self.above.push(heads);
        self
    }

    /// Adds a column if `wanted`.
    pub(super) fn column_if(
        self,
        wanted: bool,
        column: ColumnFormat,
        head: &'static str,
    ) -> TextTable {
        if wanted { self.column(column, head) } else { self }
    }

    /// Adds a row; its cells stand in the order of the columns.
    pub(super) fn row(&mut self, cells: Vec<(String, TextStyle)>) {
        self.rows.push(cells);
    }

    /// Adds a row without colours.
    pub(super) fn plain_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.row(cells.into_iter().map(|cell| (cell, TextStyle::Normal)).collect());
    }

    /// Appends the block to `out`: title, heads, rows, and an empty line.
    pub(super) fn write(&self, out: &mut String, style: Style) {
        let widths = self.widths();
        out.push_str(&paint(&self.title, TextStyle::Heading, style));
        out.push('\n');
        for heads in &self.above {
            let heads = heads.iter().map(|head| (head.as_str(), TextStyle::Faint));
            self.line(out, heads, &widths, style);
        }
        let heads = self.columns.iter().map(|(_, head)| (head.as_ref(), TextStyle::Faint));
        self.line(out, heads, &widths, style);
        for row in &self.rows {
            if !self.narrow {
                let cells = row.iter().map(|(text, tone)| (text.as_str(), *tone));
                self.line(out, cells, &widths, style);
                continue;
            }
            let lines = |((text, tone), width): (&(String, TextStyle), &usize)| {
                (folded(text, *width), *tone)
            };
            let cells: Vec<(Vec<String>, TextStyle)> = row.iter().zip(&widths).map(lines).collect();
            let most = cells.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0);
            for at in 0..most {
                let of_line = |(lines, tone): &(Vec<String>, TextStyle)| {
                    (lines.get(at).cloned().unwrap_or_default(), *tone)
                };
                let cells: Vec<(String, TextStyle)> = cells.iter().map(of_line).collect();
                self.line(
                    out,
                    cells.iter().map(|(text, tone)| (text.as_str(), *tone)),
                    &widths,
                    style,
                );
            }
        }
        out.push('\n');
    }

    fn line<'a>(
        &self,
        out: &mut String,
        cells: impl Iterator<Item = (&'a str, TextStyle)>,
        widths: &[usize],
        style: Style,
    ) {
        // Spaces are owed until something stands behind them: no line ends in a space.
        let mut owed = 0;
        for ((text, tone), (&width, column)) in
            cells.zip(widths.iter().zip(self.columns.iter().map(|(column, _)| *column)))
        {
            let text = clean::shortened(text, width);
            let room = width - text.chars().count();
            let before = if column == ColumnFormat::Number { room } else { 0 };
            if !text.is_empty() {
                out.extend(std::iter::repeat_n(' ', owed + before));
                out.push_str(&paint(&text, tone, style));
                owed = room - before + BETWEEN;
            } else {
                owed += width + BETWEEN;
            }
        }
        out.push('\n');
    }

    /// The width of each column: that of its widest cell, with the elastic ones cut, the widest
    /// first, until a row fits the page.
    fn widths(&self) -> Vec<usize> {
        let widest = |(at, (_, head)): (usize, &(ColumnFormat, Cow<'static, str>))| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let cells = cells.map(|(text, _)| text.chars().count());
            let above = self.above.iter().filter_map(|heads| heads.get(at));
            let heads = above.map(|head| head.chars().count()).chain([head.chars().count()]);
            cells.chain(heads).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(widest).collect();
        let between = BETWEEN * widths.len().saturating_sub(1);
        let (page, least) =
            if self.narrow { (NARROW, LEAST_FOLDED) } else { (PAGE, LEAST_ELASTIC) };
        loop {
            let excess = (widths.iter().sum::<usize>() + between).saturating_sub(page);
            let elastic =
                (0..widths.len()).filter(|&at| self.columns[at].0 == ColumnFormat::Elastic);
            let at = match self.narrow {
                false => elastic.filter(|&at| widths[at] > least).max_by_key(|&at| widths[at]),
                true => {
                    // Cells go on in the next line; words are broken last, and then the longest.
                    let whole = elastic.clone().filter(|&at| widths[at] > self.longest_word(at));
                    whole.max_by_key(|&at| widths[at]).or_else(|| {
                        elastic
                            .filter(|&at| widths[at] > least)
                            .max_by_key(|&at| self.longest_word(at))
                    })
                }
            };
            match at {
                Some(at) if excess > 0 => widths[at] -= 1,
                _ => return widths,
            }
        }
    }

    /// Characters of the longest word in a column.
    fn longest_word(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let words = cells.flat_map(|(text, _)| text.split_whitespace());
        let head = self.columns.get(at).map(|(_, head)| head.as_ref());
        words.chain(head).map(|word| word.chars().count()).max().unwrap_or(0)
    }
}

/// `text` in lines of `width`, broken at blanks where there are some; the last of too many is cut when it is
/// written.
fn folded(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let room = lines.last().map_or(0, |line| width.saturating_sub(line.chars().count()));
        let is_last = lines.len() == MOST_LINES;
        match lines.last_mut() {
            Some(line) if word.chars().count() < room || is_last => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
        // A word that is longer than a line goes on in the next.
        while lines.len() < MOST_LINES
            && let Some(line) = lines.last_mut()
            && let Some((at, _)) = line.char_indices().nth(width)
        {
            let rest = line.split_off(at);
            lines.push(rest);
        }
    }
    lines
}

/// `text` in lines of at most a page, each after the first indented by `indent` spaces; the first
/// line already holds `used` columns. A word that is longer than a line is left whole: it may be
/// a command to be copied.
pub(super) fn wrapped(text: &str, used: usize, indent: usize) -> String {
    wrapped_within(PAGE, text, used, indent)
}

/// The same for lines of at most `page` columns.
pub(super) fn wrapped_within(page: usize, text: &str, used: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = used;
    let mut first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !first && column + 1 + length > page {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if !first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        first = false;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> (String, TextStyle) {
        (text.to_owned(), TextStyle::Normal)
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_a_space() {
        let mut table = TextTable::new("Things".to_owned())
            .column(ColumnFormat::Number, "n")
            .column(ColumnFormat::Text, "name")
            .column_if(false, ColumnFormat::Number, "never")
            .column(ColumnFormat::Text, "note");
        table.row(vec![cell("1"), cell("a"), cell("")]);
        table.row(vec![cell("100"), cell("longer"), cell("x")]);
        let mut out = String::new();
        table.write(&mut out, Style::Plain);
        assert_eq!(out, "Things\n  n  name    note\n  1  a\n100  longer  x\n\n");
    }

    #[test]
    fn the_elastic_column_gives_way() {
        let mut table = TextTable::new(String::new())
            .column(ColumnFormat::Elastic, "workload")
            .column(ColumnFormat::Number, "n");
        table.row(vec![cell(&"w".repeat(200)), cell("123")]);
        let mut out = String::new();
        table.write(&mut out, Style::Plain);
        let row = out.lines().nth(2).unwrap();
        assert_eq!(row.chars().count(), PAGE);
        assert!(row.ends_with("w…  123"), "{row}");
    }

    /// Issue 6: at 80 columns nothing that names a thread is lost.
    #[test]
    fn narrow_tables_go_on_in_lines_of_their_own() {
        let mut table = TextTable::new(String::new())
            .narrow()
            .column(ColumnFormat::Elastic, "workload")
            .column(ColumnFormat::Elastic, "policy")
            .column(ColumnFormat::Number, "n");
        let n = "9".repeat(50);
        table.row(vec![cell("CPU_PERIODIC 10ms 50ms"), cell("DEADLINE:0.1ms/5.3ms"), cell(&n)]);
        let mut out = String::new();
        table.write(&mut out, Style::Plain);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[2], format!("CPU_PERIODIC  DEADLINE:0.1ms  {n}"));
        assert_eq!(lines[3], "10ms 50ms     /5.3ms");
        assert!(lines.iter().all(|line| line.chars().count() <= NARROW), "{out}");
        assert_eq!(folded(&"x".repeat(100), 10).len(), MOST_LINES);
        assert_eq!(folded("a b c d e f", 1), ["a", "b", "c", "d e f"]);
        assert!(folded("", 5).is_empty());
    }

    #[test]
    fn words_wrap_and_long_ones_stay_whole() {
        let text = format!("{} {} end", "a".repeat(95), "b".repeat(120));
        assert_eq!(
            wrapped(&text, 2, 4),
            format!("{}\n    {}\n    end", "a".repeat(95), "b".repeat(120))
        );
    }
}
