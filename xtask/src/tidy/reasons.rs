//! Every dependency on the outside world says why.

use super::Finding;
use super::manifest::entries;

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let listed = entries(text).into_iter().filter(|entry| entry.table == "workspace.dependencies");
    listed
        .filter(|entry| !entry.key.starts_with("hourglass") && !entry.reason)
        .map(|entry| {
            Finding::broken(
                path,
                entry.line,
                format!("`{}` has no reason", entry.key),
                "say behind a `#` on its line what it is for",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_say_why_they_are_here() {
        let text = "\
[workspace.dependencies]
hourglass-time = { path = \"crates/time\" }
libc = \"0.2\" # system calls
serde = { version = \"1#0\" }
# drawing
plot = \"1\"
[other]
x = 1
";
        let lines: Vec<usize> = check("Cargo.toml", text).iter().map(|f| f.line).collect();
        assert_eq!(lines, [4]);
    }
}
