//! Splits Rust source into code, comments and literals.
//!
//! This is not a parser. It knows what a rule needs so as not to be fooled by a brace in a
//! string or a word in a comment.

/// A Rust source in three views of the same length: byte `n` of a view is byte `n` of the file,
/// and what does not belong to the view is blank. Line ends are in both.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Code without comments and without the contents of literals (their quotes stay).
    pub(super) code: String,
    /// Comments alone, with their slashes.
    pub(super) comments: String,
    /// The contents of literals alone.
    pub(super) literals: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Source {
    /// Takes a text apart. A text that is not Rust gives a wrong answer, but no panic.
    pub(super) fn new(text: &str) -> Source {
        let bytes = text.as_bytes();
        let mut kinds = Vec::with_capacity(bytes.len());
        while kinds.len() < bytes.len() {
            let at = kinds.len();
            let (kind, length) = token(bytes, at);
            let end = (at + length.max(1)).min(bytes.len());
            kinds.resize(end, kind);
            if kind == Kind::Literal && bytes[at] != b'\'' {
                keep_quotes(bytes, at, &mut kinds);
            }
        }
        Source {
            code: view(bytes, &kinds, Kind::Code),
            comments: view(bytes, &kinds, Kind::Comment),
            literals: view(bytes, &kinds, Kind::Literal),
        }
    }

    pub(super) fn line_of(&self, offset: usize) -> usize {
        let before = &self.code.as_bytes()[..offset.min(self.code.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).filter_map(move |(at, _)| {
        let before = at.checked_sub(1).map(|i| bytes[i]);
        let after = bytes.get(at + word.len()).copied();
        let whole = !before.is_some_and(is_word) && !after.is_some_and(is_word);
        whole.then_some(at)
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// What begins at `at`, and how many bytes it has.
fn token(bytes: &[u8], at: usize) -> (Kind, usize) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return (Kind::Comment, until_line_end(rest));
    }
    if rest.starts_with(b"/*") {
        return (Kind::Comment, block_comment(rest));
    }
    let inside_word = at > 0 && is_word(bytes[at - 1]);
    if !inside_word && let Some(length) = raw_string(rest) {
        return (Kind::Literal, length);
    }
    match rest[0] {
        b'"' => (Kind::Literal, quoted(rest, b'"')),
        b'\'' => match char_literal(rest) {
            Some(length) => (Kind::Literal, length),
            None => (Kind::Code, 1), // a lifetime or a label
        },
        _ => (Kind::Code, 1),
    }
}

fn until_line_end(rest: &[u8]) -> usize {
    rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`; not the raw identifier `r#fn`.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = match rest {
        [b'b' | b'c', b'r', ..] => 2,
        [b'r', ..] => 1,
        _ => return None,
    };
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = &rest[open + 1..];
    let length = body
        .windows(close.len())
        .position(|window| window == close)
        .map_or(body.len(), |at| at + close.len());
    Some(open + 1 + length)
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character between two quotes, or `None` for a lifetime: a lifetime has no quote after it.
fn char_literal(rest: &[u8]) -> Option<usize> {
    let first = *rest.get(1)?;
    if first == b'\\' {
        return Some(quoted(rest, b'\''));
    }
    let width = match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

/// A string's quotes stay in the code view, so that `= ""` differs from `= "why"`.
fn keep_quotes(bytes: &[u8], from: usize, kinds: &mut [Kind]) {
    let to = kinds.len();
    let is_quote = |at: usize| bytes[at] == b'"';
    if let Some(first) = (from..to).find(|at| is_quote(*at)) {
        kinds[first] = Kind::Code;
    }
    if let Some(last) = (from..to).rev().find(|at| is_quote(*at)) {
        kinds[last] = Kind::Code;
    }
}

fn view(bytes: &[u8], kinds: &[Kind], wanted: Kind) -> String {
    let pairs = bytes.iter().zip(kinds);
    let kept = pairs.map(|(byte, kind)| match byte {
        b'\n' => b'\n',
        byte if *kind == wanted => *byte,
        _ => b' ',
    });
    String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text).code
    }

    #[test]
    fn views_keep_offsets_and_lines() {
        let text = "let a = \"ü}\"; // ö {\nlet b = 'é';\n";
        let source = Source::new(text);
        assert_eq!(source.code.len(), text.len());
        assert_eq!(source.comments.len(), text.len());
        assert_eq!(source.line_of(text.find("let b").unwrap()), 2);
        assert_eq!(source.comments.trim(), "// ö {");
    }

    #[test]
    fn strings_are_blank_but_their_quotes() {
        assert_eq!(code(r#"f("un{ \" \\") + 1"#), r#"f("         ") + 1"#);
        assert_eq!(code(r#"b"{" c"}" "" x"#), r#"b" " c" " "" x"#);
        assert_eq!(code("\"a\n}\""), "\" \n \"");
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        assert_eq!(code(r####"r"\" {}; r#"a " }"# {}"####).replace(' ', ""), r#"""{};""{}"#);
        assert_eq!(code(r####"r##"a "# {"## }; br#"{"# ]"####).replace(' ', ""), r#"""};""]"#);
        assert_eq!(code("r#fn(){}"), "r#fn(){}");
        assert_eq!(code("var + r"), "var + r");
    }

    #[test]
    fn comments_nest_and_hide_quotes() {
        let source = Source::new("a /* { /* \" */ } */ b // it's {\nc");
        assert_eq!(source.code.replace(' ', ""), "ab\nc");
        assert!(source.comments.contains("/* { /* \" */ } */"));
        assert_eq!(code("\"// not a comment\" x").replace(' ', ""), "\"\"x");
        assert_eq!(code("/* never closed {").trim(), "");
    }

    #[test]
    fn lifetimes_are_not_characters() {
        let text = "fn f<'a, 'b>(x: &'a str) -> &'static str { 'l: loop { break 'l } }";
        assert_eq!(code(text), text);
        assert_eq!(
            code(r"['{', '\'', '\\', '\u{7d}', b'}', 'é', '\n']").replace(' ', ""),
            "[,,,,b,,]"
        );
        assert_eq!(code("m::<'_>('\"', '{')").replace(' ', ""), "m::<'_>(,)");
    }

    #[test]
    fn words_stand_alone() {
        let at = |text| words(text, "unsafe").count();
        assert_eq!(at("unsafe { } unsafe_code not_unsafe unsafe"), 2);
        assert_eq!(at("#![forbid(unsafe_code)]"), 0);
        assert_eq!(at("#[unsafe(no_mangle)]"), 1);
    }

    #[test]
    fn no_text_makes_it_panic() {
        for text in ["'", "'\\", "\"\\", "r#", "r#\"", "/*", "/", "fn", "fn f", "b'", "é'é"] {
            Source::new(text);
        }
    }
}
