//! Names of types, and files that a text names.
//!
//! A type says what a value is; a participle, a pronoun or an adverb does not. Two public types of one name in a crate
//! cannot be told apart where they are used.

use std::collections::BTreeMap;

use super::Finding;
use super::files::File;
use super::source::{Source, words};

/// No name of a type: what is said of a value is not what it is.
const NO_NOUNS: &str = "\
    About Adopted After Alone Arrived Asked Away Been Before Began Begun Beside Between Broken Came Chosen Come \
    Counted Done Drawn Either Elsewhere Ended Everybody Expected Fired Fitted Found Gathered Given Gone Had Heard \
    Held Here How Judged Kept Known Left Lent Lost Made Meant Measured Meanwhile Merged Might Named Nobody Noted \
    Nothing Now Once Opened Other Others Ours Outside Over Placed Planned Proven Ran Read Recalled Refused Said Seen \
    Sent Shown Since Sleeping Somebody Something Spared Stated Stayed Stopped Such Taken Theirs Then There These \
    Told Touched Tried Under Unheard Until Unwatched Used Waiting Wanted Watched Went What When Where Which Who \
    Whoever Whom Whose Why Within Without Written";

/// Files that stand in for others of the same types, where another system is compiled for.
const SYSTEMS: &[&str] = &["/macos.rs", "/portable.rs", "/windows.rs"];

const KINDS: &[&str] = &["struct", "enum", "trait", "union", "type"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut public: BTreeMap<(&str, String), &str> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let source = Source::new(&file.text);
        for name in types(&source.code) {
            let line = source.line_of(name.at);
            if NO_NOUNS.split(' ').any(|word| word == name.word) {
                let what = format!("the type `{}` is named by no noun", name.word);
                findings.push(Finding::broken(&file.path, line, what, "say what a value of it is"));
            }
            let Some((owner, _)) = file.path.split_once("/src/").filter(|_| name.is_public) else {
                continue;
            };
            if SYSTEMS.iter().any(|system| file.path.ends_with(system)) {
                continue;
            }
            if let Some(first) = public.insert((owner, name.word.to_owned()), &file.path) {
                let what = format!("`{owner}` has another public type `{}`, in {first}", name.word);
                findings.push(Finding::broken(
                    &file.path,
                    line,
                    what,
                    "give one of them a name of its own",
                ));
            }
        }
        findings.extend(missing_files(file, &source.comments, files));
    }
    let documents =
        files.iter().filter(|file| ["ARCHITECTURE.md", "CONTRIBUTING.md"].contains(&&*file.path));
    findings.extend(documents.flat_map(|file| missing_files(file, &file.text, files)));
    findings
}

struct TypeName<'a> {
    word: &'a str,
    at: usize,
    is_public: bool,
}

/// The types that a text of code defines outside of macros, those associated with a trait left out.
fn types(code: &str) -> Vec<TypeName<'_>> {
    let defined = KINDS.iter().flat_map(|kind| words(code, kind).map(move |at| (at, kind.len())));
    defined
        .filter_map(|(at, length)| {
            let line = code[..at].rsplit('\n').next().unwrap_or_default();
            let before = line.trim_start();
            let is_public = before == "pub ";
            let is_nested = line.starts_with(' ');
            let rest = code[at + length..].strip_prefix(' ')?;
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let starts = before.is_empty() || before.starts_with("pub");
            let is_type = starts && rest.starts_with(char::is_uppercase);
            let associated = is_nested && code[at..].starts_with("type");
            (is_type && !associated).then(|| TypeName {
                word: &rest[..end],
                at,
                is_public: is_public && !is_nested,
            })
        })
        .collect()
}

/// Sources that a text names between backquotes and that are not there.
fn missing_files(file: &File, text: &str, files: &[File]) -> Vec<Finding> {
    let quoted = text.split('\n').enumerate().flat_map(|(number, line)| {
        line.split('`').skip(1).step_by(2).map(move |word| (number + 1, word))
    });
    quoted
        .filter(|(_, word)| {
            let is_path = |c: char| c.is_ascii_alphanumeric() || "_-/.".contains(c);
            // `NAME` stands for any name.
            word.ends_with(".rs")
                && word.len() > 3
                && word.chars().all(is_path)
                && !word.contains("NAME")
        })
        .filter(|(_, word)| {
            let suffix = format!("/{}", word.trim_start_matches("../"));
            !files.iter().any(|other| other.path == *word || other.path.ends_with(&suffix))
        })
        .map(|(line, word)| {
            Finding::broken(
                &file.path,
                line,
                format!("`{word}` is no file"),
                "name one that is there",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        check(&files).into_iter().map(|finding| (finding.file, finding.line)).collect()
    }

    #[test]
    fn a_type_is_a_noun() {
        let text =
            "struct Told;\npub(super) enum Kept { Told }\n// struct Gone\nstruct ToldLine;\n";
        let at = |line| ("crates/a/src/b.rs".to_owned(), line);
        assert_eq!(broken(&[("crates/a/src/b.rs", text)]), [at(1), at(2)]);
        assert_eq!(broken(&[("crates/a/src/b.rs", "trait T {\n    type Other;\n}\n")]), []);
    }

    #[test]
    fn a_crate_has_one_public_type_of_a_name() {
        let one = ("crates/a/src/b.rs", "pub struct Sample;\n");
        assert_eq!(
            broken(&[one, ("crates/a/src/c.rs", "\npub enum Sample {}\n")]),
            [("crates/a/src/c.rs".into(), 2)]
        );
        assert_eq!(broken(&[one, ("crates/b/src/c.rs", "pub enum Sample {}\n")]), []);
        assert_eq!(broken(&[one, ("crates/a/src/c.rs", "pub(crate) enum Sample {}\n")]), []);
    }

    #[test]
    fn a_file_that_is_named_is_there() {
        let file = ("crates/a/src/b.rs", "// See `a/src/b.rs` and `b.rs`.\n");
        assert_eq!(broken(&[file]), []);
        assert_eq!(
            broken(&[file, ("ARCHITECTURE.md", "\n`gone/b.rs`, `b.rs`")]),
            [("ARCHITECTURE.md".into(), 2)]
        );
        assert_eq!(
            broken(&[("crates/a/src/b.rs", "// `c.rs`\n")]),
            [("crates/a/src/b.rs".into(), 1)]
        );
    }
}
