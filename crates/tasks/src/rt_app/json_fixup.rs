//! Making JSON of what rt-app takes for JSON.
//!
//! Owns: comments, commas before a closing bracket, keys without a value (`"suspend",`). Must not:
//! move lines, which messages name; columns stay too but behind a value that was added.

use super::Import;
use crate::TaskSetError;

/// The same text, comments and superfluous commas being blanks, missing values empty texts.
pub(crate) fn plain(text: &str) -> Import<String> {
    let without = comments(text)?;
    Ok(commas(&values(&without)))
}

fn blank(letter: char) -> char {
    if letter == '\n' { '\n' } else { ' ' }
}

fn comments(text: &str) -> Import<String> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut in_text = false;
    let (mut line, mut column) = (1, 0);
    while let Some(letter) = letters.next() {
        (line, column) = if letter == '\n' { (line + 1, 0) } else { (line, column + 1) };
        match (in_text, letter, letters.peek()) {
            (true, '\\', Some(_)) => {
                plain.push(letter);
                plain.extend(letters.next());
                column += 1;
            }
            (_, '"', _) => {
                in_text = !in_text;
                plain.push(letter);
            }
            (false, '/', Some('/')) => {
                plain.push(' ');
                while let Some(letter) = letters.next_if(|letter| *letter != '\n') {
                    plain.push(blank(letter));
                    column += 1;
                }
            }
            (false, '/', Some('*')) => {
                plain.extend([' ', ' ']);
                letters.next();
                let begin = (line, column);
                column += 1;
                let mut before = ' ';
                loop {
                    let Some(letter) = letters.next() else {
                        let message =
                            "the comment that starts at this column has no end".to_owned();
                        let (line, column) = begin;
                        return Err(TaskSetError::Syntax { line, column, message });
                    };
                    plain.push(blank(letter));
                    (line, column) =
                        if letter == '\n' { (line + 1, 0) } else { (line, column + 1) };
                    if (before, letter) == ('*', '/') {
                        break;
                    }
                    before = letter;
                }
            }
            _ => plain.push(letter),
        }
    }
    Ok(plain)
}

fn commas(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut in_text, mut escaped) = (false, false);
    for (position, letter) in text.char_indices() {
        let next = || text[position + 1..].trim_start().chars().next();
        match letter {
            ',' if !in_text && matches!(next(), Some('}' | ']')) => plain.push(' '),
            _ => plain.push(letter),
        }
        in_text ^= letter == '"' && !escaped;
        escaped = in_text && letter == '\\' && !escaped;
    }
    plain
}

/// Gives keys without a value an empty text.
fn values(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut in_text, mut escaped) = (false, false);
    // For each bracket that is open, whether it is an object's.
    let mut objects: Vec<bool> = Vec::new();
    let mut is_key = false;
    for (position, letter) in text.char_indices() {
        plain.push(letter);
        if letter == '"' && !escaped {
            in_text = !in_text;
            let next = || text[position + 1..].trim_start().chars().next();
            if !in_text && is_key && matches!(next(), Some(',' | '}')) {
                plain.push_str(":\"\"");
            }
        } else if !in_text {
            match letter {
                '{' | '[' => objects.push(letter == '{'),
                '}' | ']' => drop(objects.pop()),
                _ => {}
            }
            is_key = match letter {
                '{' | ',' => objects.last() == Some(&true),
                _ if letter.is_whitespace() => is_key,
                _ => false,
            };
        }
        escaped = in_text && letter == '\\' && !escaped;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_over_leaves_blanks() {
        assert_eq!(plain("{/*a*/}").unwrap(), "{     }");
        assert_eq!(plain("[1, // one\n2,]").unwrap(), "[1,       \n2 ]");
        assert_eq!(plain("{\"a\": 1, /* ,\n } */ }").unwrap(), "{\"a\": 1      \n      }");
    }

    #[test]
    fn keys_without_a_value_get_an_empty_one() {
        assert_eq!(plain(r#"{"a", "b": ["c", "d"]}"#).unwrap(), r#"{"a":"", "b": ["c", "d"]}"#);
        assert_eq!(plain(r#"{"b": "x", "a" }"#).unwrap(), r#"{"b": "x", "a":"" }"#);
        assert_eq!(plain(r#"[{"b": {"a",},},]"#).unwrap(), r#"[{"b": {"a":"" } } ]"#);
    }

    #[test]
    fn texts_are_left_alone() {
        for text in [r#""/* no */""#, r#""a\"// b,]""#, r#"["\\", "x,}"]"#] {
            assert_eq!(plain(text).unwrap(), text);
        }
    }

    #[test]
    fn an_endless_comment_is_found_where_it_begins() {
        let error = plain("{\n  /* to do\n}").unwrap_err().to_string();
        assert_eq!(error, "line 2, column 3: the comment that starts at this column has no end");
    }
}
