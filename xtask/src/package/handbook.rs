//! The documents that packages bring: the README, the handbook with its pictures, the examples, each where the
//! repository has it, so that links hold; a link to what a package lacks becomes plain text.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::book;
use crate::failure::StepFailure;
use crate::workspace::Workspace;

/// What is copied, file or folder, and where to.
const COPIED: [(&str, &str); 8] = [
    ("README.md", "README.md"),
    ("SECURITY.md", "SECURITY.md"),
    ("docs/trace.svg", "docs/trace.svg"),
    ("docs/src", "docs/src"),
    ("examples", "examples"),
    ("packaging/systemd", "examples/systemd"),
    ("packaging/cluster", "examples/cluster"),
    ("packaging/latency-gate", "examples/latency-gate"),
];

/// Has the pages written that are made from the code, and lays all out below `made`.
///
/// # Errors
/// `Broken` if a page is not written, a file cannot be copied, or a picture is missing.
pub(super) fn lay_out(workspace: &Workspace, made: &Path) -> Result<(), StepFailure> {
    book::pages(workspace)?;
    for (from, to) in COPIED {
        copy(&workspace.root.join(from), &made.join(to))?;
    }
    for page in pages(made)? {
        let text = fs::read_to_string(&page).map_err(|e| StepFailure::file(&page, &e))?;
        fs::write(&page, without_dead_links(&text, &page))
            .map_err(|e| StepFailure::file(&page, &e))?;
    }
    match dead_links(made)?.as_slice() {
        [] => Ok(()),
        dead => Err(StepFailure::Broken(format!("pictures that are missing: {}", dead.join(", ")))),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), StepFailure> {
    if !from.is_dir() {
        let folder = to.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(|e| StepFailure::file(folder, &e))?;
        return fs::copy(from, to).map(drop).map_err(|e| StepFailure::file(from, &e));
    }
    let entries = fs::read_dir(from).map_err(|e| StepFailure::file(from, &e))?;
    for entry in entries.flatten() {
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Every page of Markdown below a folder.
fn pages(folder: &Path) -> Result<Vec<PathBuf>, StepFailure> {
    let entries = fs::read_dir(folder).map_err(|e| StepFailure::file(folder, &e))?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(pages(&path)?);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The links below a folder, pictures among them, that lead to no file; as page and target.
pub(super) fn dead_links(folder: &Path) -> Result<Vec<String>, StepFailure> {
    let mut dead = Vec::new();
    for page in pages(folder)? {
        let text = fs::read_to_string(&page).map_err(|e| StepFailure::file(&page, &e))?;
        let missing = links(&text).filter(|link| !leads_somewhere(link.target, &page));
        dead.extend(missing.map(|link| format!("{}: {}", page.display(), link.target)));
    }
    Ok(dead)
}

/// A link or picture of a page: where `[` and the end of `)` are, and what is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link<'a> {
    begin: usize,
    end: usize,
    label: &'a str,
    target: &'a str,
}

/// `[label](target)`, outside of blocks of code. Labels hold no bracket here.
fn links(page: &str) -> impl Iterator<Item = Link<'_>> {
    let code = |at: usize| {
        page[..at].lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1
    };
    page.match_indices("](").filter_map(move |(middle, _)| {
        let begin = page[..middle].rfind('[')?;
        let end = middle + page[middle..].find(')')? + 1;
        let (label, target) = (&page[begin + 1..middle], &page[middle + 2..end - 1]);
        let whole = !label.contains("\n\n") && !target.contains(char::is_whitespace);
        (whole && !code(begin)).then_some(Link { begin, end, label, target })
    })
}

fn leads_somewhere(target: &str, page: &Path) -> bool {
    let file = target.split('#').next().unwrap_or(target);
    if file.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let Some(folder) = page.parent() else { return false };
    let mut path = folder.to_path_buf();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.exists()
}

/// The page with its links, but the text alone of one that leads nowhere. Pictures stay, to be found missing.
fn without_dead_links(page: &str, path: &Path) -> String {
    let (mut text, mut done) = (String::new(), 0);
    for link in links(page) {
        let is_picture = page[..link.begin].ends_with('!');
        if is_picture || link.begin < done || leads_somewhere(link.target, path) {
            continue;
        }
        text.push_str(&page[done..link.begin]);
        text.push_str(link.label);
        done = link.end;
    }
    text.push_str(&page[done..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_become_text_and_pictures_are_found_missing() {
        let root = std::env::temp_dir().join(format!("xtask-links-{}", std::process::id()));
        fs::create_dir_all(root.join("guide")).unwrap();
        let page = root.join("guide/first.md");
        let text = "[here](second.md#part), [up](../README.md), [gone](../../LICENSE),\n\
                    [there](https://rustup.rs), [below](#x)\n\n```\n[no](link)\n```\n\n![curve](a.svg)\n";
        fs::write(root.join("guide/second.md"), "").unwrap();
        fs::write(root.join("README.md"), "").unwrap();
        let kept = without_dead_links(text, &page);
        assert_eq!(kept, text.replace("[gone](../../LICENSE)", "gone"));
        fs::write(&page, kept).unwrap();
        let dead = dead_links(&root).unwrap();
        assert!(matches!(dead.as_slice(), [one] if one.ends_with("first.md: a.svg")), "{dead:?}");
        fs::remove_dir_all(&root).unwrap();
    }
}
