//! The JSON Schema of a file: what an editor checks and completes.
//!
//! Draft 7, which the TOML editors know. It admits every file that the reader accepts; what several keys must be
//! together, the reader alone knows.

use serde_json::{Map, Value, json};

use super::{FILE, KeyDef, Presence, TABLES, TableDef, ValueKind};

const TIME: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ns|us|µs|μs|ms|s|m|h|d)\s*$";

const CPUS: &str = r"^\s*[0-9]+\s*(-\s*[0-9]+\s*)?(,\s*[0-9]+\s*(-\s*[0-9]+\s*)?)*$";

const FRACTION: &str = r"^\s*([0-9]+\s*/\s*[0-9]+|[0-9]+(\.[0-9]*)?|\.[0-9]+)\s*$";

/// The schema as JSON.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = table(&FILE);
    let definitions = TABLES.iter().filter(|of| of.name != FILE.name);
    let definitions: Map<String, Value> =
        definitions.map(|of| (definition(of), Value::Object(table(of)))).collect();
    schema.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
    schema.insert("title".into(), "File of tasks for Hourglass".into());
    schema.insert("definitions".into(), definitions.into());
    // A tree of texts, numbers and lists has no value that JSON lacks.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

fn definition(of: &TableDef) -> String {
    of.name.replace(' ', "_")
}

fn table(of: &TableDef) -> Map<String, Value> {
    let properties: Map<String, Value> =
        of.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required = of.keys.iter().filter(|key| key.presence == Presence::Required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    let conditions = of.keys.iter().filter_map(|key| match key.presence {
        Presence::RequiredUnless(other) => {
            // Validators say "wcet is a required property" of this, and nothing readable of `anyOf`.
            let without = json!({"not": {"required": [other]}});
            Some(json!({"if": without, "then": {"required": [key.name]}}))
        }
        _ => None,
    });
    let conditions: Vec<Value> = conditions.collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("description".into(), of.about.into());
    schema.insert("properties".into(), properties.into());
    schema.insert("additionalProperties".into(), false.into());
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    if !conditions.is_empty() {
        schema.insert("allOf".into(), conditions.into());
    }
    schema
}

fn property(key: &KeyDef) -> Value {
    let mut schema = value(key.kind);
    let absence = key.absence();
    let described = match &absence[..] {
        "" | "refused" => key.about.to_owned(),
        _ => format!("{} Without it: {absence}.", key.about),
    };
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".into(), described.into());
    }
    schema
}

fn value(kind: ValueKind) -> Value {
    let reference = |of: &TableDef| json!({"$ref": format!("#/definitions/{}", definition(of))});
    let cpus = || {
        let item = json!({"type": "integer", "minimum": 0});
        let types = ["integer", "string", "array"];
        json!({"type": types, "minimum": 0, "pattern": CPUS, "items": item, "minItems": 1})
    };
    match kind {
        ValueKind::Text => json!({"type": "string"}),
        ValueKind::Time => json!({"type": ["string", "integer"], "pattern": TIME, "minimum": 0}),
        ValueKind::TimeText => json!({"type": "string", "pattern": TIME}),
        ValueKind::Times => json!({"type": "array", "items": value(ValueKind::Time)}),
        ValueKind::Fraction => {
            let types = ["string", "integer"];
            json!({"type": types, "pattern": FRACTION, "minimum": 0, "maximum": 1})
        }
        ValueKind::Cpus => cpus(),
        ValueKind::ListOfCpus => json!({"type": "array", "items": cpus()}),
        ValueKind::Whole => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
        ValueKind::Boolean => json!({"type": "boolean"}),
        ValueKind::Words(words) => json!({"type": "string", "enum": words}),
        ValueKind::Names => json!({"type": ["string", "array"], "items": {"type": "string"}}),
        ValueKind::Loops => {
            let types = ["string", "integer"];
            json!({"type": types, "pattern": "^forever$", "minimum": 0})
        }
        ValueKind::Steps => json!({"type": "array", "items": {"type": "string"}}),
        // What stands beside a reference is not read in this draft.
        ValueKind::Table(of) => json!({"allOf": [reference(of)]}),
        ValueKind::Tables(of) => json!({"type": "array", "items": reference(of)}),
    }
}
