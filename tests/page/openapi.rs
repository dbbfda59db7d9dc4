//! The OpenAPI description covers the served answers completely.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::workload::hook;

/// The parts of a value without a description in the schema, by path.
fn differences(document: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.trim_start_matches('#');
        let target = document.pointer(pointer).unwrap_or_else(|| panic!("{name} is not described"));
        return differences(document, target, value, path, found);
    }
    if let Some(either) = schema["anyOf"].as_array() {
        let chosen = either.iter().find(|one| (one["type"] == "null") == value.is_null()).unwrap();
        return differences(document, chosen, value, path, found);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    if !kinds.contains(&json!(kind)) {
        found.push(format!("{path} is {kind}"));
    }
    for item in value.as_array().into_iter().flatten() {
        differences(document, &schema["items"], item, &format!("{path}[]"), found);
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{path}.{name} is missing"));
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(described) => differences(document, described, inner, &format!("{path}.{name}"), found),
            None => found.push(format!("{path}.{name} is not described")),
        }
    }
}

fn routes() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/http");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let texts: String = texts.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_and_every_field_is_described() {
    let cluster = Cluster::with_hooks(vec![hook("failover"), hook("drain").waits_for("gate")]).await;
    let (code, text) = cluster.page(0, "/openapi.json").await;
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 200);
    let routes = routes();
    assert!(routes.len() > 5, "{routes:?}");
    for route in routes {
        assert!(document["paths"].get(&route).is_some(), "{route} is not described");
    }
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["failover", "drain"]).await;
    cluster.says(0, &["hold", &id, "--until", "1h", "--reason", "to look at"]);
    let event = format!("/v1/events/{id}");
    for (path, name) in [("/v1/status", "Status"), ("/v1/events", "EventList"), (&event, "Event")] {
        let value: Value = serde_json::from_str(&cluster.page(0, path).await.1).unwrap();
        let mut found = Vec::new();
        differences(&document, &json!({ "$ref": format!("#/components/schemas/{name}") }), &value, name, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_a_name_and_every_refusal_is_described() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let document: Value = serde_json::from_str(&cluster.page(0, "/openapi.json").await.1).unwrap();
    let operations: Vec<&Value> = document["paths"].as_object().unwrap().values().map(|path| &path["get"]).collect();
    let names: BTreeSet<&str> = operations.iter().map(|it| it["operationId"].as_str().unwrap()).collect();
    assert_eq!(names.len(), operations.len());
    assert!(document["servers"][0]["url"].is_string());
    for operation in operations {
        for code in ["400", "403", "405", "421", "429"] {
            let name = operation["responses"][code]["$ref"].as_str().unwrap().trim_start_matches('#');
            assert!(document.pointer(name).unwrap()["description"].is_string(), "{name}");
        }
    }
    let (code, text) = cluster.page(0, "/v1/events?limit=abc").await;
    assert!(code == 400 && text.contains("takes no parameters"), "{code} {text}");
}

#[test]
fn a_field_that_is_missing_or_strange_is_found() {
    let schema = json!({ "type": "object", "required": ["a", "b"],
                         "properties": { "a": { "type": "string" }, "b": { "type": ["integer", "null"] } } });
    let found = |value: &Value| {
        let mut found = Vec::new();
        differences(&json!({}), &schema, value, "it", &mut found);
        found
    };
    assert!(found(&json!({ "a": "", "b": null })).is_empty());
    assert_eq!(found(&json!({ "a": 1, "c": [] })), ["it.b is missing", "it.a is integer", "it.c is not described"]);
}
