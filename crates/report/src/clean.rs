//! Text from outside, made harmless for the place where it will stand.

/// `text` without anything that a terminal would obey: escape sequences lose their escape
/// character and become plain letters. Line breaks and tabs become spaces, so that words stay
/// apart and a column stays a column.
pub(crate) fn for_terminal(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
            c if c.is_control() || reorders(c) => None,
            c => Some(c),
        })
        .collect()
}

/// Whether `c` changes the direction or the visibility of its neighbours without being seen, so
/// that what is read is not what is there.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `text` for the inside of an XML element or attribute: markup escaped, and characters that XML
/// 1.0 cannot hold left out.
pub(crate) fn for_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in for_terminal(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}

/// `text` in at most `width` characters; what is cut off shows as `…`.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// Numbers in ascending order as ranges: `0-3,8,10-11`.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut rest = numbers.iter().copied().peekable();
    while let Some(first) = rest.next() {
        let mut last = first;
        while let Some(next) = rest.next_if(|&n| last.checked_add(1) == Some(n)) {
            last = next;
        }
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&first.to_string());
        if last != first {
            out.push('-');
            out.push_str(&last.to_string());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_nothing_to_obey() {
        assert_eq!(for_terminal("a\u{1b}[31mb\u{9b}2J\u{7}c"), "a[31mb2Jc");
        assert_eq!(for_terminal("two\r\nlines\tand"), "two  lines and");
        assert_eq!(for_terminal("\u{202e}gnp.exe\u{200b}"), "gnp.exe");
        assert_eq!(for_terminal("Grüße 5 µs"), "Grüße 5 µs");
    }

    #[test]
    fn a_picture_gets_no_markup() {
        assert_eq!(
            for_xml("</title><script>alert('&\"')\u{0}\u{ffff}"),
            "&lt;/title&gt;&lt;script&gt;alert(&#39;&amp;&quot;&#39;)"
        );
    }

    #[test]
    fn shortened_text_shows_that_it_is() {
        assert_eq!(shortened("PERIODIC 3ms 8ms", 16), "PERIODIC 3ms 8ms");
        assert_eq!(shortened("PERIODIC 3ms 8ms", 10), "PERIODIC…");
        assert_eq!(shortened("äöü", 2), "ä…");
    }

    #[test]
    fn numbers_as_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[u32::MAX - 1, u32::MAX]), "4294967294-4294967295");
    }
}
