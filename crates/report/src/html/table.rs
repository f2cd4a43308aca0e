//! Tables of a page: words to the left, numbers to the right with their unit in the heading.

use std::fmt::Write;

use crate::clean::for_xml;

/// What stands where there is nothing to show.
const NOTHING: &str = "–";

/// A table to which columns are added, each with its heading and what it shows of a row. All text is escaped but for
/// cells of markup.
#[derive(Debug)]
pub(super) struct HtmlTable<'a, R> {
    caption: String,
    of: &'a [R],
    heads: String,
    columns: usize,
    /// The cells of each row.
    rows: Vec<String>,
    /// A sentence below each row, over the whole width; or an empty one.
    below: Vec<String>,
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

impl Default for Cell {
    fn default() -> Cell {
        Cell::Text(String::new())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// In groups of three digits.
impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Text(grouped(number))
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Cell {
        u64::from(number).into()
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or_else(|| NOTHING.into(), T::into)
    }
}

impl<'a, R> HtmlTable<'a, R> {
    /// A table with a row for each of `rows`, without columns.
    pub(super) fn of(caption: impl Into<String>, rows: &'a [R]) -> HtmlTable<'a, R> {
        HtmlTable {
            caption: caption.into(),
            of: rows,
            heads: String::new(),
            columns: 0,
            rows: vec![String::new(); rows.len()],
            below: vec![String::new(); rows.len()],
        }
    }

    /// Adds a column of words.
    pub(super) fn text<C: Into<Cell>>(
        self,
        head: &'static str,
        show: impl Fn(&'a R) -> C,
    ) -> HtmlTable<'a, R> {
        self.column(head, ["", " class=\"bad\""], show)
    }

    /// Adds a column of numbers of one unit.
    pub(super) fn number<C: Into<Cell>>(
        self,
        head: &'static str,
        show: impl Fn(&'a R) -> C,
    ) -> HtmlTable<'a, R> {
        self.column(head, [" class=\"n\"", " class=\"n bad\""], show)
    }

    fn column<C: Into<Cell>>(
        mut self,
        head: &'static str,
        [class, bad_class]: [&str; 2],
        show: impl Fn(&'a R) -> C,
    ) -> HtmlTable<'a, R> {
        // Writing to a string cannot fail; here and below.
        let _ = write!(self.heads, "<th scope=\"col\"{class}>{}</th>", for_xml(head));
        self.columns += 1;
        for (cells, row) in self.rows.iter_mut().zip(self.of) {
            let (class, text) = match show(row).into() {
                Cell::Text(text) => (class, for_xml(&text)),
                Cell::Bad(text) => (bad_class, for_xml(&text)),
                Cell::Markup(markup) => (class, markup),
            };
            let _ = write!(cells, "<td{class}>{text}</td>");
        }
        self
    }

    /// Adds a sentence below each row, where there is one.
    pub(super) fn below(self, show: impl Fn(&'a R) -> String) -> HtmlTable<'a, R> {
        HtmlTable { below: self.of.iter().map(show).collect(), ..self }
    }

    pub(super) fn write(&self, out: &mut String) {
        let HtmlTable { heads, columns, .. } = self;
        let caption = for_xml(&self.caption);
        let _ = write!(
            out,
            "<div class=\"scroll\"><table>\n<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n"
        );
        for (cells, below) in self.rows.iter().zip(&self.below) {
            if below.is_empty() {
                let _ = writeln!(out, "<tr>{cells}</tr>");
                continue;
            }
            let _ = writeln!(
                out,
                "<tr class=\"led\">{cells}</tr>\n<tr class=\"why\"><td colspan=\"{columns}\">{}</td></tr>",
                for_xml(below)
            );
        }
        out.push_str("</tbody>\n</table></div>\n");
    }
}

/// Begins a section of the page with its heading.
pub(super) fn begin_section(out: &mut String, id: &str, title: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<section aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{title}</h2>");
}

/// A button that shows in the timeline what ended at `end_ns`.
pub(super) fn show_button(thread: u32, end_ns: i64, what: &str) -> Cell {
    Cell::Markup(format!(
        "<button type=\"button\" class=\"quiet show\" data-thread=\"{thread}\" data-end=\"{end_ns}\" \
         aria-label=\"Show the {what} in the timeline\">show</button>"
    ))
}

/// The style of a bar as long as `part` is of `whole`.
pub(super) fn width(part: u64, whole: u64) -> String {
    let tenths = (u128::from(part) * 1000 / u128::from(whole.max(1))).min(1000);
    format!("width:{}.{}%", tenths / 10, tenths % 10)
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
        let table = HtmlTable::of("<b>", &["</td><script>"])
            .text("a", |text| *text)
            .number("b", |_| Cell::Bad("'\"".into()));
        let mut out = String::new();
        table.write(&mut out);
        assert!(out.contains("<td>&lt;/td&gt;&lt;script&gt;</td>"), "{out}");
        assert!(out.contains("<td class=\"n bad\">&#39;&quot;</td>"), "{out}");
        assert!(out.contains("<caption>&lt;b&gt;</caption>"), "{out}");
    }
}
