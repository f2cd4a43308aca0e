//! What a guest said, and what is expected of it.

#[derive(Debug)]
pub(super) enum Expectation {
    ExitCode(i32),
    /// A line that it prints contains this; any white space is like any other.
    Says(&'static str),
    /// The same, and the line is shown: what it says besides is not known beforehand.
    Shows(&'static str),
    /// It prints lines that begin with `tag` and a number.
    Values {
        tag: &'static str,
        at_least: usize,
        none_below: f64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommandOutput {
    output: Vec<String>,
    exit_code: i32,
}

const SHOWN_LINES: usize = 30;

pub(super) fn begin_marker(name: &str) -> String {
    format!("BED-BEGIN {name}")
}

/// The line after it, up to the exit code.
pub(super) fn end_marker(name: &str) -> String {
    format!("BED-END {name} rc=")
}

/// What the console says about the step `name`; `None` if it never came to its end.
pub(super) fn record(console: &str, name: &str) -> Option<CommandOutput> {
    let (begin, end) = (begin_marker(name), end_marker(name));
    let mut lines = console.lines().map(str::trim_end);
    lines.find(|line| *line == begin)?;
    let mut output = Vec::new();
    for line in lines {
        if let Some(code) = line.strip_prefix(&end) {
            let exit_code = code.parse().ok()?;
            return Some(CommandOutput { output, exit_code });
        }
        output.push(line.to_owned());
    }
    None
}

impl CommandOutput {
    pub(super) fn last_lines(&self) -> &[String] {
        let hidden = self.output.len().saturating_sub(SHOWN_LINES);
        &self.output[hidden..]
    }

    fn contains(&self, text: &str) -> bool {
        self.line_with(text).is_some()
    }

    /// The first line that contains this, any white space taken for a blank.
    fn line_with(&self, text: &str) -> Option<String> {
        let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        self.output.iter().map(words).find(|line| line.contains(text))
    }

    fn values(&self, tag: &str) -> Result<Vec<f64>, String> {
        let tagged = self.output.iter().filter_map(|l| l.strip_prefix(tag));
        tagged
            .map(|rest| {
                let word = rest.split_whitespace().next().unwrap_or_default();
                // A comma ends it in a document.
                word.trim_end_matches(',')
                    .parse()
                    .map_err(|_| format!("`{tag}{rest}` is no number"))
            })
            .collect()
    }
}

impl Expectation {
    pub(super) fn verify(&self, record: &CommandOutput) -> Result<String, String> {
        match *self {
            Expectation::ExitCode(wanted) if record.exit_code == wanted => {
                Ok(format!("exit code {wanted}"))
            }
            Expectation::ExitCode(wanted) => {
                let found = record.exit_code;
                Err(format!("exit code {found} instead of {wanted}"))
            }
            Expectation::Says(text) if record.contains(text) => Ok(format!("says `{text}`")),
            Expectation::Says(text) => Err(format!("does not say `{text}`")),
            Expectation::Shows(text) => match record.line_with(text) {
                Some(line) => Ok(line),
                None => Err(format!("does not say `{text}`")),
            },
            Expectation::Values { tag, at_least, none_below } => {
                let values = record.values(tag)?;
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let count = values.len();
                let found = format!("{count} {tag} values from {least} to {most}");
                // Written so that a value that is not a number is wrong too.
                let in_range = values.iter().all(|value| *value >= none_below);
                if count >= at_least && in_range {
                    Ok(found)
                } else {
                    let wanted = format!("at least {at_least}, none below {none_below}");
                    Err(format!("{found}; wanted {wanted}"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "noise\r\nBED-BEGIN a\r\nlatlate: 1.5\r\nlatlate: 0.25 us\r\nother\r\n\
                           BED-END a rc=0\r\nBED-BEGIN b\r\nlatlate: x\r\nBED-END b rc=3\r\n\
                           BED-BEGIN hung\r\n";

    fn values(at_least: usize, none_below: f64) -> Expectation {
        Expectation::Values { tag: "latlate:", at_least, none_below }
    }

    #[test]
    fn records_lie_between_their_markers() {
        let a = record(CONSOLE, "a").unwrap();
        assert_eq!(a.output, ["latlate: 1.5", "latlate: 0.25 us", "other"]);
        assert_eq!(a.exit_code, 0);
        assert_eq!(record(CONSOLE, "b").unwrap().exit_code, 3);
        assert_eq!(record(CONSOLE, "hung"), None);
        assert_eq!(record(CONSOLE, "never"), None);
    }

    #[test]
    fn expectations_are_judged() {
        let (a, b) = (record(CONSOLE, "a").unwrap(), record(CONSOLE, "b").unwrap());
        assert!(Expectation::ExitCode(0).verify(&a).is_ok());
        assert!(Expectation::ExitCode(0).verify(&b).is_err());
        assert!(values(2, 0.25).verify(&a).is_ok());
        assert!(values(3, 0.0).verify(&a).is_err());
        assert!(values(1, 0.5).verify(&a).is_err());
        assert!(values(0, 0.0).verify(&b).is_err());
        assert!(Expectation::Says("0.25 us").verify(&a).is_ok());
        assert!(Expectation::Says("latlate: 0.25 us other").verify(&a).is_err());
        assert_eq!(Expectation::Shows("0.25").verify(&a), Ok("latlate: 0.25 us".into()));
        assert!(Expectation::Shows("0.75").verify(&a).is_err());
        let table =
            CommandOutput { output: vec!["  good     width   64 bits".into()], exit_code: 0 };
        assert!(Expectation::Says("good width 64 bits").verify(&table).is_ok());
    }

    #[test]
    fn not_a_number_is_below_everything() {
        let nan = CommandOutput { output: vec!["latlate: NaN".into()], exit_code: 0 };
        assert!(values(1, 0.0).verify(&nan).is_err());
    }
}
