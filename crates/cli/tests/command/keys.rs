//! The reference of all keys, `docs/src/reference/keys.md`, is what the structures say that the
//! documents are written from: their fields with their comments.
//!
//! Owns: a reader of the part of Rust in which those structures are written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/src/reference/keys.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A structure or an enumeration that is written into documents.
#[derive(Debug, Default)]
struct Shape {
    about: String,
    /// The comment of a unit of an enumeration, or of a field, with what is known of it.
    members: Vec<Member>,
    is_enum: bool,
}

#[derive(Debug, Default)]
struct Member {
    name: String,
    kind: String,
    about: String,
    flattened: bool,
    may_be_absent: bool,
}

/// All there is, by the names in the code, and the values of constants by theirs.
#[derive(Debug, Default)]
struct Model {
    shapes: BTreeMap<String, Shape>,
    constants: BTreeMap<String, String>,
}

/// What stands before an item.
#[derive(Debug, Default)]
struct ItemPrefix {
    about: Vec<String>,
    attributes: String,
}

impl ItemPrefix {
    /// Whether the line belongs to what comes next.
    fn take(&mut self, line: &str) -> bool {
        if let Some(text) = line.strip_prefix("///") {
            self.about.push(text.trim().to_owned());
        } else if line.starts_with("#[")
            || (!self.attributes.ends_with(")]") && !self.attributes.is_empty())
        {
            self.attributes.push_str(line);
        } else {
            return false;
        }
        true
    }

    /// The first paragraph.
    fn about(&self) -> String {
        let lines: Vec<&str> =
            self.about.iter().map(String::as_str).take_while(|line| !line.is_empty()).collect();
        lines.join(" ")
    }

    /// The value of `name = "..."` among the attributes.
    fn value(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.attributes.split_once(&format!("{name} = \""))?;
        rest.split('"').next()
    }
}

impl Model {
    fn read() -> Model {
        let mut model = Model::default();
        let mut paths = vec![root().join("crates/documents/src")];
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                model.add(text.split("#[cfg(test)]").next().unwrap());
            }
        }
        model
    }

    fn add(&mut self, text: &str) {
        let mut before = ItemPrefix::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if before.take(line.trim_start()) {
                continue;
            }
            let head = line.strip_prefix("pub ").unwrap_or(line);
            let name = |kind: &str| head.strip_prefix(kind)?.strip_suffix(" {");
            // In `named_enum!`, which derives what is written.
            let named = line.strip_prefix("    pub serde enum ").and_then(|n| n.strip_suffix(" {"));
            let written = before.attributes.contains("Serialize");
            if let Some(rest) = head.strip_prefix("const ") {
                let value = rest.split('"').nth(1).unwrap_or_default();
                let name = rest.split(':').next().unwrap_or_default();
                self.constants.insert(name.to_owned(), value.to_owned());
            } else if let (Some(name), true) = (name("struct "), written) {
                let members = fields(&mut lines);
                let shape = Shape { about: before.about(), members, is_enum: false };
                self.shapes.insert(name.to_owned(), shape);
            } else if let (Some(name), true) = (name("enum "), written) {
                let members = units(&mut lines, "}", before.value("rename_all"));
                let shape = Shape { about: before.about(), members, is_enum: true };
                self.shapes.insert(name.to_owned(), shape);
            } else if let Some(name) = named {
                let members = units(&mut lines, "    }", None);
                let shape = Shape { about: before.about(), members, is_enum: true };
                self.shapes.insert(name.to_owned(), shape);
            }
            before = ItemPrefix::default();
        }
    }

    /// The text of a comment as it stands on a page.
    fn prose(&self, text: &str) -> String {
        let mut text = text.replace("[`", "`").replace("`]", "`").replace('|', "\\|");
        for (name, value) in &self.constants {
            if name.ends_with("_SCHEMA") {
                text = text.replace(&format!("`{name}`"), &format!("`{value}`"));
            }
        }
        text
    }

    /// What a type is in JSON.
    fn kind(&self, kind: &str, used: &mut BTreeSet<String>) -> String {
        let inside = |of: &str| kind.strip_prefix(of)?.strip_prefix('<')?.strip_suffix('>');
        if let Some(one) = inside("Option") {
            return format!("{} or null", self.kind(one, used));
        }
        if let Some(one) = inside("Vec") {
            return format!("list of {}", self.kind(one, used));
        }
        if let Some(one) = inside("Box") {
            return self.kind(one, used);
        }
        if let Some((_, value)) = inside("BTreeMap").and_then(|both| both.split_once(", ")) {
            return format!("object of {}", self.kind(value, used));
        }
        let name = kind.rsplit("::").next().unwrap_or(kind);
        match name {
            "String" | "char" => "string".to_owned(),
            "bool" => "boolean".to_owned(),
            "f64" => "number".to_owned(),
            "Value" => "anything".to_owned(),
            "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" | "i128" => {
                "integer".to_owned()
            }
            _ if self.shapes.contains_key(name) => {
                used.insert(name.to_owned());
                format!("[{name}](#{})", name.to_lowercase())
            }
            _ => format!("`{name}`"),
        }
    }

    /// The rows of a shape; what they use is added.
    fn table(&self, shape: &Shape, used: &mut BTreeSet<String>) -> String {
        let mut text = String::new();
        text.push_str(if shape.is_enum {
            "| one of | meaning |\n|---|---|\n"
        } else {
            "| key | type | meaning |\n|---|---|---|\n"
        });
        for Member { name, kind, about, flattened, may_be_absent } in &shape.members {
            let about = self.prose(about);
            if shape.is_enum {
                writeln!(text, "| `{name}` | {about} |").unwrap();
                continue;
            }
            let kind = self.kind(kind, used);
            let absent = if *may_be_absent { ", or absent" } else { "" };
            let name = if *flattened { "its keys".to_owned() } else { format!("`{name}`") };
            writeln!(text, "| {name} | {kind}{absent} | {about} |").unwrap();
        }
        text
    }
}

/// The fields up to the closing brace.
fn fields<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Member> {
    let mut members = Vec::new();
    let mut before = ItemPrefix::default();
    for line in lines.take_while(|line| *line != "}") {
        let line = line.trim();
        if before.take(line) {
            continue;
        }
        let field = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        if let Some((name, kind)) = field.split_once(": ") {
            let has = |word: &str| before.attributes.contains(word);
            let skipped =
                has("serde(skip)") || has("skip_serializing,") || has("skip_serializing)");
            if !skipped {
                members.push(Member {
                    name: before.value("rename").unwrap_or(name).to_owned(),
                    kind: kind.trim_end_matches(',').to_owned(),
                    about: before.about(),
                    flattened: has("flatten"),
                    may_be_absent: has("skip_serializing_if"),
                });
            }
        }
        before = ItemPrefix::default();
    }
    members
}

/// The units of an enumeration up to its closing brace.
fn units<'a>(
    lines: &mut impl Iterator<Item = &'a str>,
    end: &str,
    case: Option<&str>,
) -> Vec<Member> {
    let mut members = Vec::new();
    let mut before = ItemPrefix::default();
    for line in lines.take_while(|line| *line != end) {
        let line = line.trim();
        if before.take(line) {
            continue;
        }
        let given = line.split_once("=> \"").and_then(|(_, rest)| rest.split('"').next());
        let name: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
        if name.starts_with(char::is_uppercase) {
            let name = match (before.value("rename").or(given), case) {
                (Some(renamed), _) => renamed.to_owned(),
                (None, Some("snake_case")) => snake_case(&name),
                (None, Some("lowercase")) => name.to_lowercase(),
                (None, _) => name,
            };
            members.push(Member { name, about: before.about(), ..Member::default() });
        }
        before = ItemPrefix::default();
    }
    members
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

fn page(model: &Model) -> String {
    let mut text = String::from(
        "# Keys of the documents\n\nMade from the comments in the code that writes them, by \
         `cargo xtask book`. [Documents](documents.md) says\nwhich command writes which. Keys that end in `_ns` are \
         nanoseconds.\n",
    );
    let mut documents: Vec<(String, &Shape)> = Vec::new();
    for shape in model.shapes.values() {
        let schema = shape.members.iter().find(|member| member.name == "schema");
        let constant = schema.and_then(|schema| schema.about.split('`').nth(1));
        if let Some(value) = constant.and_then(|name| model.constants.get(name)) {
            documents.push((value.clone(), shape));
        }
    }
    documents.sort_by(|a, b| a.0.cmp(&b.0));
    let mut used = BTreeSet::new();
    for (schema, shape) in documents {
        let about = model.prose(&shape.about);
        write!(text, "\n## {schema}\n\n{about}\n\n{}", model.table(shape, &mut used)).unwrap();
    }
    text.push_str("\n# Parts\n\nObjects within the documents, and words with a meaning.\n");
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    while let Some(name) = used.iter().find(|name| !parts.contains_key(*name)).cloned() {
        let shape = &model.shapes[&name];
        let table = model.table(shape, &mut used);
        parts.insert(
            name.clone(),
            format!("\n## {name}\n\n{}\n\n{table}", model.prose(&shape.about)),
        );
    }
    text.extend(parts.into_values());
    text
}

/// Types that are written in a way of their own, which their row describes.
const PLAIN: [&str; 3] = ["Bound", "CpuSet", "ExpectedResults"];

#[test]
fn the_reference_has_every_key() {
    let model = Model::read();
    let text = page(&model);
    for known in ["hourglass.run/1", "hourglass.manifest/1", "| `read_p50_ns` | number or null |"] {
        assert!(text.contains(known), "{known} is not found in the code any more");
    }
    let unknown: BTreeSet<&str> = text
        .lines()
        .filter_map(|row| row.split('|').nth(2)?.split('`').nth(1))
        .filter(|kind| kind.starts_with(char::is_uppercase))
        .collect();
    let plain = BTreeSet::from(PLAIN);
    assert_eq!(unknown, plain, "types without a table");
    if std::env::var_os("HOURGLASS_BOOK").is_some() {
        fs::write(root().join(PAGE), &text).unwrap();
    }
}

#[test]
fn structures_are_read() {
    let mut model = Model::default();
    model.add(
        r#"
/// Name.
pub const A_SCHEMA: &str = "hourglass.a/1";
/// A document.
///
/// More about it.
#[derive(Clone, Serialize)]
pub struct A {
    /// Always [`A_SCHEMA`].
    pub schema: String,
    /// Those | that are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<B>,
    #[serde(skip)]
    pub hidden: u8,
}
/// Not written.
pub struct C {
    pub c: u8,
}
/// One of them.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum B {
    /// Much.
    VeryMuch,
}
"#,
    );
    let text = page(&model);
    assert!(text.contains("## hourglass.a/1\n\nA document.\n"), "{text}");
    assert!(text.contains("| `schema` | string | Always `hourglass.a/1`. |"), "{text}");
    assert!(
        text.contains("| `parts` | list of [B](#b), or absent | Those \\| that are. |"),
        "{text}"
    );
    assert!(
        text.contains(
            "## B\n\nOne of them.\n\n| one of | meaning |\n|---|---|\n| `very_much` | Much. |"
        ),
        "{text}"
    );
    assert!(!text.contains("hidden") && !text.contains("`c`"), "{text}");
}
