//! What has been asked and approved so far.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::house::House;
use crate::machine::id::VmName;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only requests that came after this number.
    #[serde(default)]
    after: u64,
    vm: Option<String>,
    method: Option<String>,
}

pub(super) async fn requests(State(house): State<Arc<House>>, Query(wanted): Query<Wanted>) -> Json<Value> {
    let tenant = house.tenant();
    let vm = wanted.vm.map(|vm| VmName::new(&vm));
    let fits = tenant.requests.after(wanted.after).filter(|record| {
        let of_vm = vm.as_ref().is_none_or(|vm| record.vm.as_deref().is_some_and(|name| VmName::new(name) == *vm));
        of_vm && wanted.method.as_ref().is_none_or(|method| record.method.eq_ignore_ascii_case(method))
    });
    Json(json!({ "requests": fits.collect::<Vec<_>>(), "file_error": tenant.requests.file_error }))
}

pub(super) async fn forget(State(house): State<Arc<House>>) -> Json<Value> {
    house.tenant().requests.forget();
    Json(json!({}))
}

pub(super) async fn approvals(State(house): State<Arc<House>>) -> Json<Value> {
    Json(json!({ "approvals": house.tenant().approvals }))
}
