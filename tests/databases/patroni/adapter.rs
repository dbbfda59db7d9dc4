//! Runs the adapter as a replica's supervisor does.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use allclear::hooks::{Adapter, HttpHook};
use allclear::http_client::{ClientCertificate, Login, Options};
use serde_json::{Value, json};
use toml::Table;

use super::super::hook::{BLOCKED, DONE, Ended, NOT_APPLICABLE, UNKNOWN};
use super::super::trio::{System as _, ThreeNodeBed, VMS, tables, until};
use super::{Patroni, Setup};

/// The hook of `phase` on the VM at `place`, from the VM's tables.
pub(super) fn hook<S: Setup>(trio: &ThreeNodeBed, place: usize, phase: &str) -> HttpHook {
    let tables: Table = tables::<Patroni<S>>(trio, place).parse().unwrap();
    let hooks = tables["workload"][0]["hook"].as_array().unwrap();
    let hook = hooks.iter().find(|hook| hook["phase"].as_str() == Some(phase)).unwrap();
    let text = |key: &str| hook.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let members = hook.get("members").and_then(toml::Value::as_table).into_iter().flatten();
    HttpHook {
        adapter: Adapter::Patroni,
        url: text("http").unwrap(),
        options: Options {
            ca: text("ca").map(Into::into),
            identity: text("cert")
                .zip(text("key"))
                .map(|(certificate, key)| ClientCertificate { certificate: certificate.into(), key: key.into() }),
            login: text("username")
                .zip(text("password_file"))
                .map(|(username, file)| Login::Basic { username, password_file: file.into() }),
        },
        members: members.map(|(member, vm)| (member.clone(), vm.as_str().unwrap().to_owned())).collect(),
    }
}

/// Starts the hook in an event of the VM at `place`; `more` adds facts.
pub(super) fn begin(hook: &HttpHook, place: usize, phase: &str, more: &Value) -> Child {
    let mut facts = json!({
        "time_left_ms": 60_000, "vm": VMS[place], "event_resources": [VMS[place]], "avoid_vms": [], "prefer_vms": [],
        "phase": phase, "intent": "run", "mode": "live",
    });
    facts.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut command = Command::new(env!("CARGO_BIN_EXE_allclear"));
    command.args(&hook.command()[1..]).env_clear().stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(facts.to_string().as_bytes()).unwrap();
    child
}

pub(super) fn end(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Ended { status: output.status.code(), said }
}

pub(super) fn run<S: Setup>(trio: &ThreeNodeBed, place: usize, phase: &str, more: &Value) -> Ended {
    end(begin(&hook::<S>(trio, place, phase), place, phase, more))
}

/// Repeats the hook while it is blocked, as a replica does.
pub(super) fn until_done<S: Setup>(trio: &ThreeNodeBed, place: usize, phase: &str, more: &Value) {
    until(phase, || match run::<S>(trio, place, phase, more) {
        Ended { status: DONE | NOT_APPLICABLE, .. } => Ok(()),
        Ended { status: BLOCKED | UNKNOWN, said } => Err(said),
        ended => panic!("{} {phase} {more}: {ended:?}", Patroni::<S>::NAME),
    });
}
