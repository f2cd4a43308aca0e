//! The rules of the house that neither the compiler nor clippy knows.
//!
//! Each rule is a file; each takes texts and returns findings, so that it is tested on snippets.

mod arrows;
mod budget;
mod files;
mod headers;
mod leftovers;
mod manifest;
mod names;
mod paths;
mod platform;
mod reasons;
mod registry;
mod size;
mod source;
mod unsafety;
mod unused;

use std::fmt;

use crate::failure::StepFailure;
use crate::workspace::Workspace;
use files::File;
use source::Source;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Broken,
    /// Close to the limit; said, but nothing fails.
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    /// Counted from 1.
    line: usize,
    weight: Severity,
    what: String,
    remedy: String,
}

impl Finding {
    fn broken(file: &str, line: usize, what: impl Into<String>, remedy: &str) -> Finding {
        Finding {
            file: file.to_owned(),
            line,
            weight: Severity::Broken,
            what: what.into(),
            remedy: remedy.to_owned(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.weight == Severity::Note { "note: " } else { "" };
        let Finding { file, line, .. } = self;
        write!(f, "{file}:{line}: {note}{}, {}", self.what, self.remedy)
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    let files = files::tracked_files(&workspace.root)?;
    let mut findings: Vec<Finding> = files.iter().flat_map(check_file).collect();
    findings.extend(headers::check(&files));
    findings.extend(platform::check(&files));
    findings.extend(names::check(&files));
    findings.extend(budget::check(&files));
    findings.extend(unused::check(&files));
    findings.extend(arrows::check(&files));
    findings.extend(registry::check(&files));
    findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    for finding in &findings {
        println!("{finding}");
    }
    let broken = findings.iter().filter(|f| f.weight == Severity::Broken).count();
    println!("tidy: {} files, {broken} broken, {} notes", files.len(), findings.len() - broken);
    if broken == 0 {
        Ok(())
    } else {
        Err(StepFailure::Broken(format!("tidy: {broken} broken (see above)")))
    }
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = paths::check(file);
    if file.path.ends_with(".rs") {
        let source = Source::new(&file.text);
        findings.extend(unsafety::check(&file.path, &source));
        findings.extend(leftovers::check(&file.path, &source));
    }
    findings.extend(size::check(file));
    findings.extend(leftovers::merge_marks(file));
    if file.path == "Cargo.toml" {
        findings.extend(reasons::check(&file.path, &file.text));
    }
    findings
}
