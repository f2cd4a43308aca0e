//! The JSON Schema of files, read by another's validator, against what the reader accepts and refuses.

use std::fs;
use std::path::Path;

use hourglass_tasks::TaskSet;
use hourglass_tasks::language::{FILE, TABLES, chapter, frequent_keys, json_schema};
use jsonschema::Validator;
use serde_json::{Value, json};

use super::task_files_refused::{Row, rows};

fn validator() -> Validator {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    jsonschema::draft7::meta::validate(&schema).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
}

fn document(toml: &str) -> Value {
    toml::from_str(toml).unwrap()
}

fn is_admitted(schema: &Validator, toml: &str, name: &str) {
    let errors: Vec<String> = schema
        .iter_errors(&document(toml))
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:?}\n{toml}");
}

#[test]
fn the_schema_admits_what_is_read() {
    let schema = validator();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = 0;
    for folder in ["tests/data", "../../examples"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let Ok(set) = TaskSet::from_toml(&text) else { continue };
            let name = path.display().to_string();
            is_admitted(&schema, &text, &name);
            is_admitted(&schema, &set.to_toml(), &name);
            files += 1;
        }
    }
    assert!(files >= 8, "{files}");
    let accepted: Vec<Row> = rows().into_iter().filter(|row| row.kind == "accepted").collect();
    assert!(accepted.len() >= 5);
    accepted.iter().for_each(|row| is_admitted(&schema, &row.file, "refused.txt"));
}

/// Unknown keys, words that are none of a choice, values of another kind.
#[test]
fn the_schema_refuses_what_is_not_understood() {
    let schema = validator();
    let mut refused = 0;
    for Row { kind, file, message, .. } in rows() {
        let by_schema = ["unknown key", "unknown word", "expected "];
        if kind != "rt-app" && by_schema.iter().any(|begin| message.contains(begin)) {
            assert!(!schema.is_valid(&document(&file)), "{message}\n{file}");
            refused += 1;
        }
    }
    assert!(refused >= 12, "{refused}");
}

/// A document that has every table.
fn full() -> Value {
    json!({
        "task": [{
            "name": "a", "wcet": "1ms", "period": "9ms",
            "critical_sections": [{"resource": "bus", "length": "1us"}],
            "phases": [{"steps": ["run 1ms", "timer t 9ms"]}],
        }],
        "resource": [{"name": "bus"}],
        "server": [{"name": "s", "kind": "polling", "budget": "1ms", "period": "9ms"}],
        "machine": {"overheads": {}},
        "interference": [{"rate": "3/5"}],
        "background": [{"name": "b", "phases": [{"steps": ["run 1ms"]}]}],
    })
}

fn place(table: &str) -> &str {
    match table {
        "file" => "",
        "critical section" => "/task/0/critical_sections/0",
        "overheads" => "/machine/overheads",
        "phase" => "/task/0/phases/0",
        "machine" => "/machine",
        "rate of interference" => "/interference/0",
        "background thread" => "/background/0",
        "resource" => "/resource/0",
        "server" => "/server/0",
        _ => "/task/0",
    }
}

/// A key that only one of the two knew would be offered by an editor and refused, or passed over.
#[test]
fn reader_and_schema_know_every_key() {
    let schema = validator();
    assert!(schema.is_valid(&full()));
    TaskSet::from_json(&full().to_string()).unwrap();
    for table in TABLES {
        for key in table.keys {
            let with = |value: Value| {
                let mut document = full();
                let found = document.pointer_mut(place(table.name)).unwrap();
                found.as_object_mut().unwrap().insert(key.name.to_owned(), value);
                document
            };
            let of_no_kind = with(json!(3.5));
            assert!(!schema.is_valid(&of_no_kind), "{} {}", table.name, key.name);
            let refused = TaskSet::from_json(&of_no_kind.to_string()).unwrap_err().to_string();
            assert!(refused.contains(key.name), "{} {}: {refused}", table.name, key.name);
            if !key.example.is_empty() {
                let example = document(&format!("it = {}", key.example));
                let example = with(example["it"].clone());
                let errors: Vec<_> = schema.iter_errors(&example).collect();
                assert!(errors.is_empty(), "{} {}: {errors:?}", table.name, key.name);
            }
            let mut gone = full();
            let found = gone.pointer_mut(place(table.name)).unwrap().as_object_mut().unwrap();
            if found.remove(key.name).is_some() {
                let is_needed = TaskSet::from_json(&gone.to_string()).is_err();
                let name = (table.name, key.name);
                // What the schema cannot tell: a task uses the resource, and its phases have to wait.
                if ![("file", "resource"), ("phase", "steps")].contains(&name) {
                    assert_eq!(!schema.is_valid(&gone), is_needed, "{name:?}");
                }
            }
        }
    }
}

#[test]
fn the_chapter_has_every_key_and_help_the_frequent_ones() {
    let text = chapter();
    for table in TABLES {
        for key in table.keys {
            assert!(text.contains(&format!("\n| `{}` | ", key.name)), "{}", key.name);
            assert!(!key.about.contains('|') && key.about.ends_with('.'), "{}", key.name);
        }
    }
    assert!(text.contains("one of `fixed-priority`, `edf`, `fifo`"), "{text}");
    assert_eq!(frequent_keys().count(), 20);
    assert!(FILE.keys.iter().any(|key| key.is_frequent && key.name == "scheduler"));
}
