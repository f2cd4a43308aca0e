//! What is touched of the machine is named on one page, for those who must know it beforehand.

use std::collections::BTreeSet;

use super::Finding;
use super::files::File;
use super::source::{Source, words};

const PAGE: &str = "docs/src/PLATFORM.md";

/// Where the paths that it has to name begin.
const ROOTS: &[&str] = &["proc/", "sys/", "dev/"];

/// Functions of the C library that are no system call, or are its way to make one.
const LIBRARY: &[&str] = &[
    "__errno_location",
    "getauxval",
    "pthread_atfork",
    "pthread_kill",
    "pthread_self",
    "pthread_sigmask",
    "raise",
    "sigaddset",
    "sigemptyset",
    "sigfillset",
    "sigismember",
    "syscall",
    "sysconf",
];

const MOVES: &[&str] = &["adrp", "ldr", "mov", "mrs"];

/// How the names of intrinsics begin that are one instruction.
const INTRINSICS: &[&str] = &["_rd", "__rd", "__cpuid", "_mm_", "_tpause"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![Finding::broken(PAGE, 1, "the page is not there", "write it")];
    };
    let named = PlatformNames::on(&page.text);
    files.iter().filter(|file| is_product(&file.path)).flat_map(|file| named.judge(file)).collect()
}

fn is_product(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let test = |part: &&str| matches!(*part, "tests" | "tests.rs" | "test_host.rs");
    path.ends_with(".rs")
        && match parts[..] {
            ["crates", name, "src", ..] => !matches!(name, "skip" | "dice"), // tests only
            ["papers", "src", ..] => true,
            _ => false,
        }
        && !parts.iter().any(test)
}

struct PlatformNames {
    /// Each as its parts; `*` stands for any text within one, `**` for all that is below.
    paths: Vec<Vec<String>>,
    words: Vec<String>,
}

impl PlatformNames {
    /// Whatever stands between backticks.
    fn on(page: &str) -> PlatformNames {
        let mut named = PlatformNames { paths: Vec::new(), words: Vec::new() };
        for span in page.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            for one in spread(span) {
                match one.strip_prefix('/').filter(|path| ROOTS.iter().any(|r| path.starts_with(r)))
                {
                    Some(path) => named.paths.push(path.split('/').map(place).collect()),
                    None => named
                        .words
                        .extend(one.split(|c: char| !is_of_word(c) && c != '*').map(str::to_owned)),
                }
            }
        }
        named.words.retain(|word| !matches!(word.as_str(), "" | "*"));
        named
    }

    fn judge(&self, file: &File) -> Vec<Finding> {
        let product = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let source = Source::new(product);
        let mut seen = BTreeSet::new();
        let mut findings = Vec::new();
        let paths = paths_in(&source.literals).into_iter();
        let paths = paths.filter(|(_, path)| !self.has_path(path));
        let words = calls_in(&source.code).chain(instructions_in(&source));
        let words = words.filter(|(_, word)| !self.has_word(word));
        for (at, what) in paths.map(|(at, path)| (at, format!("/{path}"))).chain(words) {
            if seen.insert(what.clone()) {
                findings.push(Finding::broken(
                    &file.path,
                    source.line_of(at),
                    format!("`{what}` is touched, and {PAGE} does not name it"),
                    "write there what it is for, and who may",
                ));
            }
        }
        findings
    }

    /// Whether a path, or one below it, is named: a folder on the way says nothing new.
    fn has_path(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        self.paths.iter().any(|named| covers(named, &parts))
    }

    fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|named| fits(named, word))
    }
}

fn covers(named: &[String], parts: &[&str]) -> bool {
    for (index, part) in parts.iter().enumerate() {
        match named.get(index).map(String::as_str) {
            Some("**") => return true,
            // A name alone is no folder on the way through any folder.
            Some("*") if index + 1 == parts.len() && named.len() > parts.len() => {
                return part.contains('*');
            }
            // In code a hole of a format is written as `*` too.
            Some(name) if fits(name, part) || fits(part, name) => {}
            _ => return false,
        }
    }
    true
}

/// A part of a path as it is named: what stands for a number or a name is in capitals.
fn place(part: &str) -> String {
    match part {
        "PID" | "TID" | "NAME" => "*".to_owned(),
        _ => match part.strip_suffix('N') {
            Some(before) if !before.ends_with(|c: char| c.is_ascii_uppercase()) => {
                format!("{before}*")
            }
            _ => part.to_owned(),
        },
    }
}

/// `a{b,c}d` as `abd` and `acd`; braces within braces are not known.
fn spread(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![text.to_owned()] };
    let each = inside.split(',').map(|one| format!("{before}{}{after}", one.trim()));
    each.flat_map(|one| spread(&one)).collect()
}

/// Whether `text` is `pattern`, in which each `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| fits(after, &rest[at..]))
        }),
    }
}

/// Paths below the roots in literals, without their first slash; holes of formats as `*`.
fn paths_in(literals: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for root in ROOTS {
        for (at, _) in literals.match_indices(root) {
            let before = literals[..at].strip_suffix('/').unwrap_or(&literals[..at]);
            if before.ends_with(|c: char| is_of_word(c) || "/.-}".contains(c)) {
                continue; // the end of another name
            }
            found.push((at, simplified(&literals[at..])));
        }
    }
    found
}

fn simplified(text: &str) -> String {
    let mut path = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let closing = match c {
            '{' => Some('}'),
            '[' => Some(']'),
            '$' => {
                while chars.next_if(|c| is_of_word(*c)).is_some() {}
                path.push('*');
                continue;
            }
            _ if is_of_word(c) || "/.-".contains(c) => {
                path.push(c);
                continue;
            }
            '#' => {
                path.push('*');
                continue;
            }
            _ => break,
        };
        chars.by_ref().find(|c| Some(*c) == closing);
        path.push('*');
    }
    path.trim_end_matches(['/', '.', '-']).to_owned()
}

/// System calls by their numbers and by the functions of the C library, and what `prctl` is asked.
fn calls_in(code: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let numbers = all_words(code).filter_map(|(at, word)| {
        let name = word.strip_prefix("SYS_").map(str::to_owned);
        let asked = (word.starts_with("PR_") && word.len() > 3).then(|| word.to_owned());
        Some((at, name.or(asked)?))
    });
    let functions = code.match_indices("libc::").filter_map(|(at, prefix)| {
        let rest = &code[at + prefix.len()..];
        let name: String = rest.chars().take_while(|c| is_of_word(*c)).collect();
        let called = rest[name.len()..].trim_start().starts_with('(');
        let small = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        (called && small && !LIBRARY.contains(&name.as_str())).then_some((at, name))
    });
    numbers.chain(functions)
}

/// Mnemonics and system registers of inline assembly, and intrinsics.
fn instructions_in(source: &Source) -> impl Iterator<Item = (usize, String)> + '_ {
    let assembly = words(&source.code, "asm").filter_map(|at| {
        let open = at + source.code[at..].find('(')?;
        let close = open + closing(&source.code[open..])?;
        Some((at, &source.literals[open..close]))
    });
    let assembly = assembly.flat_map(|(at, text)| {
        // Quotes belong to the code: each literal stands alone.
        let lines = text.split("  ").map(str::trim).filter(|line| !line.is_empty());
        lines.flat_map(move |line| {
            let first = line.split_whitespace().next().unwrap_or_default();
            let plain = first.starts_with('.') || MOVES.contains(&first) || !line.contains(' ');
            let alone = matches!(first, "lfence" | "isb" | "sfence" | "mfence");
            let registers = all_words(line).filter(|(_, word)| word.ends_with("_el0"));
            let first = (!plain || alone).then(|| first.to_owned());
            first
                .into_iter()
                .chain(registers.map(|(_, word)| word.to_owned()))
                .map(move |word| (at, word))
                .collect::<Vec<_>>()
        })
    });
    let intrinsics = all_words(&source.code).filter_map(|(at, word)| {
        let known = INTRINSICS.iter().any(|begin| word.starts_with(begin));
        let name = word.trim_start_matches('_').trim_end_matches("_count");
        known.then(|| (at, name.strip_prefix("mm_").unwrap_or(name).to_owned()))
    });
    assembly.chain(intrinsics)
}

fn closing(code: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn all_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let begins = text.char_indices().filter(|(at, c)| {
        is_of_word(*c) && !text[..*at].chars().next_back().is_some_and(is_of_word)
    });
    begins.map(|(at, _)| {
        let rest = &text[at..];
        (at, &rest[..rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())])
    })
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
| `rdtsc`, `cpuid` and `cntvct_el0` | counters |
| `clock_gettime`, `timer_*`, `prctl(PR_SET_TSC, PR_SCHED_CORE)` | calls |
| `/proc/{cpuinfo,self/status}`, `/proc/PID/stat`, `/sys/cpu/cpuN/topology/**`, `/dev/ptpN` | files |
";

    fn missing(code: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let files = [file(PAGE, TEXT), file("crates/sys/src/a.rs", code)];
        let what = |f: Finding| f.what.split('`').nth(1).unwrap_or_default().to_owned();
        check(&files).into_iter().map(what).collect()
    }

    #[test]
    fn paths_are_named_or_found() {
        let good = r#"f("/proc/cpuinfo"); f("proc/self"); f("/proc/{pid}/stat"); f("/proc/12/stat");
            f("sys/cpu/cpu{cpu}/topology/core_id"); g("see /dev/ptp0: it is there");
            f(c"/proc/self/status"); f("/sys/cpu/cpu$c/topology/x"); h("and/dev/null");"#;
        assert_eq!(missing(good), [""; 0]);
        let bad = r#"f("/proc/stat"); f("a line for /sys/cpu/cpu{n}/online, then");
            f("/proc/{}/maps"); f("dev/null"); // "/proc/comment""#;
        let wanted = ["/proc/stat", "/proc/*/maps", "/sys/cpu/cpu*/online", "/dev/null"];
        assert_eq!(missing(bad), wanted);
    }

    #[test]
    fn calls_are_named_or_found() {
        let good = "libc::clock_gettime(1); libc::timer_create(2); libc::sigaddset(1, 2);
            syscall(libc::SYS_timer_delete); libc::prctl(libc::PR_SET_TSC, 1); libc::SIGCHLD;";
        assert_eq!(missing(good), [""; 0]);
        let bad = "libc::syscall(libc::SYS_kcmp); libc::open (1); prctl(PR_SET_NAME)";
        assert_eq!(missing(bad), ["kcmp", "PR_SET_NAME", "open"]);
    }

    #[test]
    fn instructions_are_named_or_found() {
        let good = r#"asm!("mrs {}, cntvct_el0", out(reg) x); core::arch::x86_64::_rdtsc();
            asm!("mov {}, qword ptr fs:[0]", in("ecx") y); __cpuid(1);"#;
        assert_eq!(missing(good), [""; 0]);
        let bad = r#"asm!("isb", "mrs {}, cntfrq_el0", out(reg) x); asm!("prfm pldl1keep, [{a}]");
            _mm_pause();"#;
        assert_eq!(missing(bad), ["isb", "cntfrq_el0", "prfm", "pause"]);
    }

    #[test]
    fn tests_may_touch_what_they_like() {
        assert_eq!(missing("fn f() {}\n#[cfg(test)]\nmod tests {\n f(\"/proc/x\");\n}"), [""; 0]);
        assert!(!is_product("crates/sys/tests/a.rs") && !is_product("crates/measure/src/tests.rs"));
        assert!(is_product("crates/machine/src/facts/cpu.rs") && !is_product("xtask/src/bed.rs"));
        assert!(is_product("papers/src/bench.rs") && !is_product("papers/tests/papers.rs"));
    }

    #[test]
    fn a_missing_page_is_reported() {
        assert_eq!(check(&[]).len(), 1);
    }
}
