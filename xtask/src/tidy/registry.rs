//! What a registry shows of a package: a page whose links lead somewhere there too, a sentence, the licences.

use super::Finding;
use super::files::File;

/// The Python package, whose page an index shows.
const WHEEL: &str = "python/README.md";

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in files.iter().filter(|file| is_published(file)) {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            let path = format!("{folder}{name}");
            match files.iter().find(|file| file.path == path) {
                None => findings.push(Finding::broken(
                    &manifest.path,
                    1,
                    format!("the package brings no {name}"),
                    "put it beside this file; licences are links to those of the root",
                )),
                Some(page) if name == "README.md" => findings.extend(links(page)),
                Some(_) => {}
            }
        }
        for line in ["readme = \"README.md\"", "description = \""] {
            if !manifest.text.lines().any(|found| found.starts_with(line)) {
                let what = format!("no line `{line}`");
                findings.push(Finding::broken(
                    &manifest.path,
                    1,
                    what,
                    "a registry shows the page and the sentence",
                ));
            }
        }
    }
    findings.extend(files.iter().filter(|file| file.path == WHEEL).flat_map(links));
    findings
}

fn is_published(file: &File) -> bool {
    file.path.ends_with("/Cargo.toml")
        && file.text.lines().any(|line| line == "publish.workspace = true")
}

/// Links to files of the repository, which a registry has not.
fn links(page: &File) -> Vec<Finding> {
    let lines = page.text.lines().enumerate();
    let found = lines.flat_map(|(index, line)| {
        let targets = line.split("](").skip(1).map(|rest| rest.split(')').next().unwrap_or(rest));
        let dead = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
        dead.map(move |target| (index + 1, target)).collect::<Vec<_>>()
    });
    found
        .map(|(line, target)| {
            Finding::broken(
                &page.path,
                line,
                format!("a registry has no {target}"),
                "name the file in words, without a link",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_package_has_a_page_a_sentence_and_licences() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let whole = "readme = \"README.md\"\ndescription = \"Clocks\"\npublish.workspace = true\n";
        let mut files = vec![
            file("crates/a/Cargo.toml", whole),
            file("crates/a/README.md", "[rustup](https://rustup.rs), [below](#x)\n"),
            file("crates/a/LICENSE-MIT", ""),
            file("crates/a/LICENSE-APACHE", ""),
            file("crates/b/Cargo.toml", "publish = false\n"),
        ];
        assert_eq!(check(&files), []);
        files[0].text = "publish.workspace = true\nreadme.workspace = true\n".into();
        files[1].text = "\n[map](../../ARCHITECTURE.md)\n".into();
        files.remove(2);
        let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().any(|line| line.contains("a/README.md:2: a registry has no ../../A")));
        assert!(found.iter().any(|line| line.contains("brings no LICENSE-MIT")));
    }
}
