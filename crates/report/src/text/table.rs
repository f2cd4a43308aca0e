//! Columns of text that line up, within the width of a page.

use std::borrow::Cow;

use anstyle::{AnsiColor, Effects};
use hourglass_documents::document::Warning;

use super::Style;
use crate::clean;

/// Columns of a terminal that comparisons and analyses fill at most.
pub(super) const PAGE: usize = 100;

/// Columns that a summary of a run fills at most: every terminal has them.
pub const NARROW: usize = 80;

/// A cell takes no more lines.
const MOST_LINES: usize = 4;

/// Spaces between two columns.
const BETWEEN: usize = 2;

/// An elastic column is not cut below this: a workload's name remains readable.
const LEAST_ELASTIC: usize = 12;

/// The same where cells go on in the next line.
const LEAST_FOLDED: usize = 6;

/// What stands where there is nothing to show.
pub(super) const NOTHING: &str = "-";

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

/// Writes a line of `text` in the colour of `tone`.
pub(super) fn paint_line(out: &mut String, text: &str, tone: TextStyle, style: Style) {
    out.push_str(&paint(text, tone, style));
    out.push('\n');
}

/// The text of a cell, without anything that a terminal would obey, and what it means.
#[derive(Debug)]
pub(super) struct TextCell(String, TextStyle);

impl From<&str> for TextCell {
    fn from(text: &str) -> TextCell {
        TextCell(clean::for_terminal(text), TextStyle::Normal)
    }
}

impl From<String> for TextCell {
    fn from(text: String) -> TextCell {
        text.as_str().into()
    }
}

impl From<u32> for TextCell {
    fn from(number: u32) -> TextCell {
        number.to_string().into()
    }
}

impl From<u64> for TextCell {
    fn from(number: u64) -> TextCell {
        number.to_string().into()
    }
}

impl<T: Into<TextCell>> From<Option<T>> for TextCell {
    fn from(value: Option<T>) -> TextCell {
        value.map_or_else(|| NOTHING.into(), T::into)
    }
}

impl TextCell {
    pub(super) fn toned(text: impl Into<TextCell>, tone: TextStyle) -> TextCell {
        TextCell(text.into().0, tone)
    }

    /// Bad news if `is_bad`.
    pub(super) fn bad_if(is_bad: bool, text: impl Into<TextCell>) -> TextCell {
        TextCell::toned(text, if is_bad { TextStyle::Bad } else { TextStyle::Normal })
    }
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
    rows: Vec<Vec<TextCell>>,
}

/// A table to which columns are added, each with its head and what it shows of a row.
pub(super) struct TableOf<'a, R> {
    of: &'a [R],
    table: TextTable,
}

impl<'a, R> TableOf<'a, R> {
    pub(super) fn column<C: Into<TextCell>>(
        mut self,
        format: ColumnFormat,
        head: impl Into<Cow<'static, str>>,
        show: impl Fn(&'a R) -> C,
    ) -> TableOf<'a, R> {
        self.table.columns.push((format, head.into()));
        for (cells, row) in self.table.rows.iter_mut().zip(self.of) {
            cells.push(show(row).into());
        }
        self
    }

    /// Adds a column if it is `wanted`.
    pub(super) fn column_if<C: Into<TextCell>>(
        self,
        wanted: bool,
        format: ColumnFormat,
        head: &'static str,
        show: impl Fn(&'a R) -> C,
    ) -> TableOf<'a, R> {
        if wanted { self.column(format, head, show) } else { self }
    }

    pub(super) fn text<C: Into<TextCell>>(
        self,
        head: &'static str,
        show: impl Fn(&'a R) -> C,
    ) -> TableOf<'a, R> {
        self.column(ColumnFormat::Text, head, show)
    }

    pub(super) fn elastic<C: Into<TextCell>>(
        self,
        head: &'static str,
        show: impl Fn(&'a R) -> C,
    ) -> TableOf<'a, R> {
        self.column(ColumnFormat::Elastic, head, show)
    }

    pub(super) fn number<C: Into<TextCell>>(
        self,
        head: &'static str,
        show: impl Fn(&'a R) -> C,
    ) -> TableOf<'a, R> {
        self.column(ColumnFormat::Number, head, show)
    }

    pub(super) fn number_if<C: Into<TextCell>>(
        self,
        wanted: bool,
        head: &'static str,
        show: impl Fn(&'a R) -> C,
    ) -> TableOf<'a, R> {
        self.column_if(wanted, ColumnFormat::Number, head, show)
    }

    pub(super) fn table(self) -> TextTable {
        self.table
    }

    /// The table, no wider than [`NARROW`]. Nothing is cut while there is another line for it.
    pub(super) fn narrow(self) -> TextTable {
        TextTable { narrow: true, ..self.table }
    }
}

impl TextTable {
    /// A table with a row for each of `rows`, without columns.
    pub(super) fn of<R>(title: impl Into<String>, rows: &[R]) -> TableOf<'_, R> {
        let cells = rows.iter().map(|_| Vec::new()).collect();
        let table = TextTable { title: title.into(), rows: cells, ..TextTable::default() };
        TableOf { of: rows, table }
    }

    /// Adds a line of heads above those of the columns, below such lines that there are.
    pub(super) fn heads(mut self, heads: Vec<String>) -> TextTable {
        self.above.push(heads);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the block to `out`: title, heads, rows, and an empty line.
    pub(super) fn write(&self, out: &mut String, style: Style) {
        let widths = self.widths();
        paint_line(out, &self.title, TextStyle::Heading, style);
        for heads in &self.above {
            let heads = heads.iter().map(|head| (head.as_str(), TextStyle::Faint));
            self.line(out, heads, &widths, style);
        }
        let heads = self.columns.iter().map(|(_, head)| (head.as_ref(), TextStyle::Faint));
        self.line(out, heads, &widths, style);
        for row in &self.rows {
            if !self.narrow {
                let cells = row.iter().map(|TextCell(text, tone)| (text.as_str(), *tone));
                self.line(out, cells, &widths, style);
                continue;
            }
            let lines =
                |(TextCell(text, tone), width): (&TextCell, &usize)| (folded(text, *width), *tone);
            let cells: Vec<(Vec<String>, TextStyle)> = row.iter().zip(&widths).map(lines).collect();
            let most = cells.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0);
            for at in 0..most {
                let of_line = |(lines, tone): &(Vec<String>, TextStyle)| {
                    (lines.get(at).cloned().unwrap_or_default(), *tone)
                };
                let cells: Vec<(String, TextStyle)> = cells.iter().map(of_line).collect();
                let cells = cells.iter().map(|(text, tone)| (text.as_str(), *tone));
                self.line(out, cells, &widths, style);
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
            let cells = cells.map(|TextCell(text, _)| text.chars().count());
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
        let words = cells.flat_map(|TextCell(text, _)| text.split_whitespace());
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

/// `text` in lines of at most `page` columns, each after the first indented by `indent` spaces; the first
/// line already holds `used` columns. A word that is longer than a line is left whole: it may be
/// a command to be copied.
#[must_use]
pub fn wrapped_within(page: usize, text: &str, used: usize, indent: usize) -> String {
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

/// Lines of a word and what there is to say about it.
pub(super) struct LabelledLines {
    pub(super) out: String,
    pub(super) style: Style,
    /// Columns that the words take.
    pub(super) indent: usize,
    /// Columns that a line fills at most.
    pub(super) page: usize,
}

impl LabelledLines {
    pub(super) fn line(&mut self, label: &str, text: &str, tone: TextStyle) {
        self.out.push_str(&paint(label, TextStyle::Heading, self.style));
        let room = self.indent.saturating_sub(label.len());
        self.out.extend(std::iter::repeat_n(' ', room));
        let text = clean::for_terminal(text);
        let text = wrapped_within(self.page, &text, self.indent, self.indent);
        paint_line(&mut self.out, &text, tone, self.style);
    }

    /// A line that belongs to the one before it.
    pub(super) fn below(&mut self, text: &str) {
        self.line("", text, TextStyle::Normal);
    }

    /// Writes lines under one label; writes nothing without lines.
    pub(super) fn block(&mut self, label: &str, texts: &[String]) {
        let Some((first, rest)) = texts.split_first() else { return };
        self.line(label, first, TextStyle::Normal);
        rest.iter().for_each(|text| self.below(text));
    }

    /// A warning, and below it what mends it.
    pub(super) fn warning(&mut self, warning: &Warning) {
        self.line("Warning", &warning.text, TextStyle::Caution);
        if !warning.remedy.is_empty() {
            self.below(&warning.remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn<R>(table: TableOf<'_, R>) -> String {
        let mut out = String::new();
        table.table().write(&mut out, Style::Plain);
        out
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_a_space() {
        let rows = [(1u64, "a", ""), (100, "longer", "x")];
        let table = TextTable::of("Things", &rows)
            .number("n", |row| row.0)
            .text("name", |row| row.1)
            .number_if(false, "never", |row| row.0)
            .text("note", |row| row.2);
        assert_eq!(drawn(table), "Things\n  n  name    note\n  1  a\n100  longer  x\n\n");
    }

    #[test]
    fn the_elastic_column_gives_way() {
        let rows = ["w".repeat(200)];
        let table = TextTable::of("", &rows);
        let out = drawn(table.elastic("workload", |text| text.as_str()).number("n", |_| 123u64));
        let row = out.lines().nth(2).unwrap();
        assert_eq!(row.chars().count(), PAGE);
        assert!(row.ends_with("w…  123"), "{row}");
    }

    /// Issue 6: at 80 columns nothing that names a thread is lost.
    #[test]
    fn narrow_tables_go_on_in_lines_of_their_own() {
        let n = "9".repeat(50);
        let rows = [("CPU_PERIODIC 10ms 50ms", "DEADLINE:0.1ms/5.3ms")];
        let table = TextTable::of("", &rows)
            .elastic("workload", |row| row.0)
            .elastic("policy", |row| row.1)
            .number("n", |_| n.as_str());
        let mut out = String::new();
        table.narrow().write(&mut out, Style::Plain);
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
            wrapped_within(PAGE, &text, 2, 4),
            format!("{}\n    {}\n    end", "a".repeat(95), "b".repeat(120))
        );
    }
}
