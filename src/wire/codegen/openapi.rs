//! The OpenAPI description: `proto/openapi.json` has the paths; the schemas come from the messages that are served as
//! JSON, with the comments of the `.proto` files.

use anyhow::{Context as _, Result, bail};
use protox::prost_reflect::{DescriptorPool, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

const PACKAGE: &str = "allclear.operator.v1";

/// The messages in answers; messages inside of these are added.
const SERVED: [&str; 3] = ["Status", "EventList", "Event"];

pub(super) fn document(paths: &str, descriptors: &DescriptorPool) -> Result<String> {
    let mut document: Value = serde_json::from_str(paths)?;
    let schemas = document["components"]["schemas"].as_object_mut().context("no schemas to add to")?;
    for name in SERVED {
        let message = descriptors.get_message_by_name(&format!("{PACKAGE}.{name}"));
        add(&message.with_context(|| format!("{PACKAGE} has no {name}"))?, schemas)?;
    }
    Ok(format!("{document:#}\n"))
}

fn add(message: &MessageDescriptor, schemas: &mut Map<String, Value>) -> Result<()> {
    let name = name(message);
    if schemas.contains_key(&name) {
        return Ok(());
    }
    // Every field is served, absent values as null.
    let required: Vec<_> = message.fields().map(|field| field.name().to_owned()).collect();
    let mut schema = json!({ "type": "object", "required": required });
    describe(&mut schema, &message.parent_file(), message.path());
    schemas.insert(name.clone(), Value::Null);
    for field in message.fields() {
        let mut property = property(&field, schemas)?;
        describe(&mut property, &message.parent_file(), field.path());
        schema["properties"][field.name()] = property;
    }
    schemas.insert(name, schema);
    Ok(())
}

fn property(field: &FieldDescriptor, schemas: &mut Map<String, Value>) -> Result<Value> {
    let item = match field.kind() {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::String => json!({ "type": "string" }),
        Kind::Int64 | Kind::Sint64 | Kind::Uint32 | Kind::Uint64 => json!({ "type": "integer" }),
        Kind::Message(message) => {
            add(&message, schemas)?;
            json!({ "$ref": format!("#/components/schemas/{}", name(&message)) })
        }
        other => bail!("{}: no schema is known for {other:?}", field.full_name()),
    };
    Ok(match field {
        _ if field.is_list() => json!({ "type": "array", "items": item }),
        _ if !field.supports_presence() => item,
        _ if item["type"].is_string() => json!({ "type": [item["type"], "null"] }),
        _ => json!({ "anyOf": [item, { "type": "null" }] }),
    })
}

/// A nested message is named after the outer and the inner message.
fn name(message: &MessageDescriptor) -> String {
    message.full_name().trim_start_matches(PACKAGE).replace('.', "")
}

fn describe(schema: &mut Value, file: &FileDescriptor, path: &[i32]) {
    let locations = file.file_descriptor_proto().source_code_info.iter().flat_map(|source| &source.location);
    let comment = locations.filter(|location| location.path == path).find_map(|it| it.leading_comments.as_deref());
    if let Some(comment) = comment {
        let lines: Vec<_> = comment.lines().map(str::trim).collect();
        schema["description"] = lines.join(" ").trim().into();
    }
}
