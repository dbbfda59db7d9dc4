//! What `allclear check` prints says the same as the file it was read from.

use super::{read, read_with};

const WHOLE: &str = include_str!("../../deploy/allclear.example.toml");

#[test]
fn a_printed_configuration_reads_as_itself() {
    let config = read(WHOLE).unwrap();
    assert_eq!(read(&config.to_string()), Ok(config));
}

#[test]
fn a_text_that_looks_like_a_number_is_printed_as_a_text() {
    let environment = [("ALLCLEAR__CLUSTER__NAME", "5"), ("ALLCLEAR__POLICY__MARGIN", "1500ms")];
    let config = read_with("replica.data_dir = \"/d\"", &environment).unwrap();
    let printed = config.to_string();
    assert!(printed.contains("name = \"5\"\n") && printed.contains("margin = \"1s 500ms\"\n"), "{printed}");
    assert_eq!(read(&printed), Ok(config));
}

#[test]
fn a_secret_of_a_hook_is_not_printed() {
    let config = |value: &str| {
        let hook =
            "[[workload.hook]]\nphase = \"drain\"\ncommand = [\"drain\"]\nenv = { DB_TOKEN = \"%\", DB = \"%\" }";
        read(&format!("replica.data_dir = \"/d\"\n[[workload]]\nname = \"db\"\n{hook}").replace('%', value)).unwrap()
    };
    let printed = config("abc").to_string();
    assert!(printed.ends_with("[workload.hook.env]\nDB_TOKEN = \"(not shown)\"\nDB = \"abc\"\n"), "{printed}");
}

#[test]
fn the_defaults_are_printed() {
    let printed = read("replica.data_dir = \"/d\"").unwrap().to_string();
    let expected = r#"[replica]
data_dir = "/d"

[cluster]
name = "allclear"
takeover_after = "10s"
heartbeat = "250ms"
election_timeout = "375ms"
claim_lease = "5s"
repost_after = "1m"
max_voters = 7
replace_after = "10m"
insecure = false

[metadata]
endpoint = "http://169.254.169.254"
api_version = "2020-07-01"
poll_interval = "1s"
stall_after = "15s"
stale_after = "1m"
gone_after = "10s"
forget_after = "2h"

[status]
listen = "127.0.0.1:7421"

[operator]
socket = "/run/allclear/operator.sock"

[workloads]
allow_uids = []

[policy]
user_budget = "2m"
brief_freeze = "9s"
foreign = "observe"
margin = "5s"
prepare_ahead = "15m"
give_back_after = "2m"
last_call = "1m"
"#;
    assert_eq!(printed, expected);
}

#[test]
fn heartbeats_are_as_frequent_as_a_short_election_timeout_needs() {
    let printed = read("replica.data_dir = \"/d\"\ncluster.election_timeout = \"100ms\"").unwrap().to_string();
    assert!(printed.contains("heartbeat = \"66ms\"\nelection_timeout = \"100ms\""), "{printed}");
}
