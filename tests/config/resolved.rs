//! The output of `allclear check` has the same meaning as the file from which the configuration was read.

use std::path::Path;

use allclear::config::{Config, Env};
use allclear::export::notices::receiver::Address;
use allclear::replica::clock;

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

/// Berlin is one hour ahead of UTC in winter, and two in summer.
#[test]
fn a_window_is_in_the_time_of_its_zone() {
    let rule = "[[policy.rule]]\nname = \"a\"\ntreatment = \"prepare\"\n";
    let window = "window = { days = [\"Sun\"], from = \"04:00\", to = \"05:00\", zone = \"Europe/Berlin\" }";
    let Ok(config) = read(&format!("replica.data_dir = \"/d\"\n{rule}{window}")) else {
        // A machine may have no time zones, except the one of the whole run.
        let has_zones = Path::new("/usr/share/zoneinfo/Europe/Berlin").exists();
        return assert!(!has_zones && std::env::var_os("CI").is_none());
    };
    let window = config.policy.rules[0].window.as_ref().unwrap();
    let time = |text: &str| clock::from_rfc3339(text).unwrap();
    for (from, opens) in [
        ("2026-01-05T00:00:00Z", "2026-01-11T03:00:00.000Z"),
        ("2026-03-28T00:00:00Z", "2026-03-29T02:00:00.000Z"),
        ("2056-10-28T00:00:00Z", "2056-10-29T03:00:00.000Z"),
    ] {
        let end = time("2057-01-01T00:00:00Z");
        assert_eq!(
            window.next_opening(time(from), end).map(|opening| clock::rfc3339(opening.opens)).as_deref(),
            Some(opens),
            "{from}"
        );
    }
}

fn with_hook(keys: &str) -> Config {
    let hook = format!("[[workload.hook]]\nphase = \"drain\"\ncommand = [\"drain\"]\n{keys}");
    read(&format!("replica.data_dir = \"/d\"\n[[workload]]\nname = \"db\"\n{hook}")).unwrap()
}

#[test]
fn a_variable_of_a_hook_is_not_printed_unless_it_is_said_to_be_harmless() {
    let config =
        with_hook("env = { DB_TOKEN = \"abc\", DB = \"abcd\", PORT = \"5432\" }\nenv_shown = [\"PORT\", \"LATER\"]");
    let printed = config.to_string();
    let expected = "[workload.hook.env]\nDB_TOKEN = \"(not shown)\"\nDB = \"(not shown)\"\nPORT = \"5432\"\n";
    assert!(printed.ends_with(expected), "{printed}");
    let told = format!("{config:?}");
    assert!(!told.contains("abc") && told.contains("5432"), "{told}");
    let hidden: Vec<_> = config.hidden.iter().map(|hidden| (hidden.path.as_str(), hidden.is_too_short)).collect();
    assert_eq!(hidden, [("workload.hook.env.DB_TOKEN", true), ("workload.hook.env.DB", false)]);
}

/// The settings of a hook set stand once, in the workload.
#[test]
fn a_hook_has_the_user_and_the_variables_of_its_workload_unless_it_has_its_own() {
    let text = r#"
        replica.data_dir = "/d"
        [[workload]]
        name = "db"
        role = { command = ["role"] }
        user = "postgres"
        env_shown = ["PORT"]
        env_files = { TOKEN = "/token", KEY = "/key" }
        [workload.env]
        PORT = "5432"
        SECRET = "abcdefgh"
        [[workload.hook]]
        phase = "drain"
        command = ["drain"]
        [[workload.hook]]
        phase = "restore"
        command = ["restore"]
        user = "root"
        env = { SECRET = "ijklmnop", TOKEN = "qrstuvwx" }
        env_files = { PORT = "/port" }
    "#;
    let config = read(text).unwrap();
    let workload = &config.workloads[0];
    let told = |user: &Option<String>, env: &Env| {
        let written = env.written.iter().map(|(name, value)| format!("{name}={value}"));
        let files = env.files.iter().map(|(name, path)| format!("{name}<{}", path.display()));
        let mut all: Vec<String> = written.chain(files).collect();
        all.sort();
        (user.clone().unwrap(), all.join(" "), env.shown.contains("PORT"))
    };
    let shared = ("postgres".to_owned(), "KEY</key PORT=5432 SECRET=abcdefgh TOKEN</token".to_owned(), true);
    let [drain, restore] = &workload.hooks[..] else { panic!("{:?}", workload.hooks) };
    assert_eq!(told(&drain.user, &drain.env), shared);
    let role = &workload.role.as_ref().unwrap().settings;
    assert_eq!(told(&role.user, &role.env), shared);
    let own = ("root".to_owned(), "KEY</key PORT</port SECRET=ijklmnop TOKEN=qrstuvwx".to_owned(), true);
    assert_eq!(told(&restore.user, &restore.env), own);
    let hidden: Vec<_> = config.hidden.iter().map(|hidden| hidden.path.as_str()).collect();
    let expected = ["workload.env.SECRET", "workload.hook.env.SECRET", "workload.hook.env.TOKEN"];
    assert_eq!(hidden, expected);
    assert!(!config.to_string().contains("abcdefgh"), "{config}");
}

/// A log with many readers contains a digest of the command that a hook runs.
#[test]
fn a_hook_is_known_without_the_values_of_its_secrets() {
    let runs = |keys: &str| with_hook(keys).workloads[0].hooks[0].registered.command_digest;
    let of = |value: &str| runs(&format!("env = {{ A = \"{value}\" }}"));
    assert_eq!(of("one"), of("two"));
    assert_eq!(of("one"), runs("env_files = { A = \"/a\" }"));
    assert_ne!(of("one"), runs("env = { B = \"one\" }"));
    let shown = |value: &str| runs(&format!("env = {{ A = \"{value}\" }}\nenv_shown = [\"A\"]"));
    assert_ne!(shown("one"), shown("two"));
}

#[test]
fn a_credential_is_where_systemd_loads_it_and_printed_as_it_was_written() {
    let text = "replica.data_dir = \"/d\"\n[[notify]]\nname = \"a\"\nurl_file = \"credential:chat\"\n";
    let directory = ("CREDENTIALS_DIRECTORY", "/run/credentials/a.service");
    for (environment, path) in
        [(&[directory][..], "/run/credentials/a.service/chat"), (&[], "/run/credentials/allclear.service/chat")]
    {
        let config = read_with(text, environment).unwrap();
        assert_eq!(config.receivers[0].address, Address::InFile(path.into()));
        assert!(config.to_string().contains("url_file = \"credential:chat\"\n"), "{config}");
    }
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
