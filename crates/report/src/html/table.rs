//! Tables of a page: words to the left, numbers to the right with their unit in the heading.

use std::fmt::Write;

use crate::clean::for_xml;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnKind {
    /// Words.
    Text,
    /// Numbers of one unit.
    Number,
}

/// A table that is being filled. All text is escaped but for cells of markup.
#[derive(Debug)]
pub(super) struct HtmlTable {
    caption: String,
    columns: Vec<(&'static str, ColumnKind)>,
    rows: String,
}

#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// Text from anywhere.
    Text(String),
    /// Text that is bad news.
    Bad(String),
    /// Markup of ours.
    Markup(String),
}

impl HtmlTable {
    /// A table without columns or rows.
    pub(super) fn new(caption: impl Into<String>) -> HtmlTable {
        HtmlTable { caption: caption.into(), columns: Vec::new(), rows: String::new() }
    }

    /// Adds columns of words.
    pub(super) fn texts<const N: usize>(mut self, heads: [&'static str; N]) -> HtmlTable {
        self.columns.extend(heads.map(|head| (head, ColumnKind::Text)));
        self
    }

    /// Adds columns of numbers.
    pub(super) fn numbers<const N: usize>(mut self, heads: [&'static str; N]) -> HtmlTable {
        self.columns.extend(heads.map(|head| (head, ColumnKind::Number)));
        self
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push_str("<tr>");
        self.cells(cells);
    }

    /// A row with a sentence below it, over the whole width.
    pub(super) fn row_above(&mut self, cells: impl IntoIterator<Item = Cell>, below: &str) {
        if below.is_empty() {
            return self.row(cells);
        }
        self.rows.push_str("<tr class=\"led\">");
        self.cells(cells);
        let (columns, below) = (self.columns.len(), for_xml(below));
        let _ =
            writeln!(self.rows, "<tr class=\"why\"><td colspan=\"{columns}\">{below}</td></tr>");
    }

    fn cells(&mut self, cells: impl IntoIterator<Item = Cell>) {
        for (cell, (_, kind)) in cells.into_iter().zip(&self.columns) {
            let number = *kind == ColumnKind::Number;
            let bad = matches!(cell, Cell::Bad(_));
            let class = match (number, bad) {
                (true, true) => " class=\"n bad\"",
                (true, false) => " class=\"n\"",
                (false, true) => " class=\"bad\"",
                (false, false) => "",
            };
            let text = match cell {
                Cell::Text(text) | Cell::Bad(text) => for_xml(&text),
                Cell::Markup(markup) => markup,
            };
            // Writing to a string cannot fail.
            let _ = write!(self.rows, "<td{class}>{text}</td>");
        }
        self.rows.push_str("</tr>\n");
    }

    pub(super) fn write(&self, out: &mut String) {
        let _ = write!(
            out,
            "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr>",
            for_xml(&self.caption)
        );
        for (name, kind) in &self.columns {
            let class = if *kind == ColumnKind::Number { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", for_xml(name));
        }
        let _ = write!(out, "</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n", self.rows);
    }
}

/// Begins a section of the page with its heading.
pub(super) fn begin_section(out: &mut String, id: &str, title: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<section aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{title}</h2>");
}

pub(super) fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

/// A cell with a count, in groups of three digits.
pub(super) fn count(count: u64) -> Cell {
    Cell::Text(grouped(count))
}

/// A count that is bad news if there is any.
pub(super) fn bad_if_any(count: u64) -> Cell {
    let text = grouped(count);
    if count > 0 { Cell::Bad(text) } else { Cell::Text(text) }
}

/// A number in groups of three digits, with spaces that do not break.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1\u{202f}000"),
            (1_234_567, "1\u{202f}234\u{202f}567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn text_is_no_markup() {
        let mut table = HtmlTable::new("<b>").texts(["a"]).numbers(["b"]);
        table.row([text("</td><script>"), Cell::Bad("'\"".into())]);
        let mut out = String::new();
        table.write(&mut out);
        assert!(out.contains("<td>&lt;/td&gt;&lt;script&gt;</td>"), "{out}");
        assert!(out.contains("<td class=\"n bad\">&#39;&quot;</td>"), "{out}");
        assert!(out.contains("<caption>&lt;b&gt;</caption>"), "{out}");
    }
}
