//! Patroni's REST API, asked without encryption.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::super::trio::{ThreeNodeBed, VMS, until};
use super::rest;

/// The raw answer.
fn ask(trio: &ThreeNodeBed, place: usize, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(rest(&trio.vms[place]))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

pub(super) fn get(trio: &ThreeNodeBed, place: usize, path: &str) -> io::Result<Value> {
    let answer = ask(trio, place, "GET", path, "")?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("no answer"))?;
    serde_json::from_str(body).map_err(io::Error::other)
}

/// The whole answer, with the status.
pub(super) fn post(trio: &ThreeNodeBed, place: usize, path: &str, body: &str) -> io::Result<String> {
    ask(trio, place, "POST", path, body)
}

/// Changes the configuration shared by all members.
pub(super) fn configure(trio: &ThreeNodeBed, change: &str) {
    until("a changed configuration", || {
        let answer = ask(trio, 0, "PATCH", "/config", change).map_err(|error| error.to_string())?;
        if answer.contains(" 200 ") { Ok(()) } else { Err(answer) }
    });
}

/// Waits until the first member to answer reports the cluster as wanted.
pub(super) fn until_cluster(trio: &ThreeNodeBed, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until(what, || {
        let seen = (0..VMS.len()).find_map(|place| get(trio, place, "/cluster").ok());
        let seen = seen.ok_or("no member answers")?;
        if is_so(&seen) { Ok(seen) } else { Err(seen.to_string()) }
    })
}

/// The leader, with the member's fields.
pub(super) fn leader(cluster: &Value) -> Option<&Value> {
    members(cluster).find(|member| member["role"].as_str().is_some_and(|role| role.ends_with("leader")))
}

pub(super) fn members(cluster: &Value) -> impl Iterator<Item = &Value> {
    cluster["members"].as_array().into_iter().flatten()
}
