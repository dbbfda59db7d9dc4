//! The output of the commands on a terminal, with its colours: `less -R` shows the files.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use super::super::cluster::Cluster;

const SIZE: &str = "cols 100 rows 50";

/// `status`, `events`, `explain` and `watch`, and the event's blocker as data.
pub(super) fn of(cluster: &Cluster, place: usize, event: Option<&str>) -> String {
    let explain = event.map(|id| format!("explain {id}"));
    let mut text = String::new();
    for command in ["status", "events"].into_iter().chain(explain.as_deref()) {
        writeln!(text, "$ allclear {command}\n{}", typed(cluster, place, "", command)).unwrap();
    }
    // `watch` runs until interrupted; the last frame is kept
    let watched = typed(cluster, place, "timeout --signal=INT 2s ", "watch");
    let last = watched.rsplit("\x1b[H").next().unwrap().replace("\x1b[K", "").replace("\x1b[J", "");
    writeln!(text, "$ allclear watch\n{last}").unwrap();
    if let Some(id) = event {
        let (_, out, _) = cluster.says(place, &["explain", id, "--json"]);
        let told: Value = serde_json::from_str(&out).unwrap();
        let blocker = serde_json::to_string_pretty(&told["blocker"]).unwrap();
        writeln!(text, "$ allclear explain {id} --json | jq .blocker\n{blocker}").unwrap();
    }
    text
}

/// True if all of the text was written while the event had this blocker; a long line may be folded.
pub(super) fn agrees(text: &str, code: &str) -> bool {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let listed = match code {
        "waiting_for_platform" => "approved, not started yet".to_owned(),
        _ => format!("waits: {code}"),
    };
    [listed, format!("({code})"), format!("\"code\": \"{code}\"")].iter().all(|part| text.contains(part))
}

/// Runs a command as typed by a person whose replica has the usual socket.
fn typed(cluster: &Cluster, place: usize, before: &str, command: &str) -> String {
    let socket = cluster.replicas[place].socket.display();
    let line = format!("stty {SIZE}; exec {before}'{}' {command} --endpoint {socket}", env!("CARGO_BIN_EXE_allclear"));
    let output = Command::new("script").args(["-q", "-e", "-c", &line, "/dev/null"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.replace("\r\n", "\n").replace(&format!(" --endpoint {socket}"), "")
}
