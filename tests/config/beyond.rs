//! What is asked for and not there yet is told, each in its words, and only what was written.

use super::{read, read_with};

const EVERYTHING: &str = r#"
replica.data_dir = "/d"

[cluster]

[[group]]
name = "orders-db"

[[group]]
name = "left-out"

[[workload]]
name = "postgres"
role = { command = ["/bin/role"] }

[[workload.hook]]
phase = "failover"
command = ["/bin/failover"]
undo = ["/bin/back"]

[[workload.hook]]
phase = "drain"
command = ["/bin/drain"]
optional_if_short = true

[[workload.hook]]
phase = "shutdown"
command = ["/bin/stop"]
optional_if_short = false
"#;

const TOLD: [&str; 3] = [
    "`workload.role` of postgres is ignored by this version: every workload counts as primary",
    "`workload.hook.undo` of the failover hook of postgres is ignored by this version: when the event is \
     cancelled, only `restore` follows",
    "`workload.hook.optional_if_short` of the drain hook of postgres is ignored by this version: the hook is run \
     however short the notice is",
];

#[test]
fn what_is_written_and_ignored_is_told_also_where_it_is_the_default() {
    assert_eq!(read(EVERYTHING).unwrap().beyond_this_version(), TOLD);
}

#[test]
fn what_nobody_wrote_is_not_told() {
    let text = "replica.data_dir = \"/d\"\n[[group]]\nname = \"g\"\n[[workload]]\nname = \"w\"\n[workloads]\n";
    assert_eq!(read(text).unwrap().beyond_this_version(), Vec::<String>::new());
}

#[test]
fn what_is_ignored_is_printed_as_it_was_written() {
    let config = read(EVERYTHING).unwrap();
    let again = read(&config.to_string()).unwrap();
    assert_eq!(again.beyond_this_version(), TOLD);
    assert_eq!(again, config);
}

#[test]
fn what_the_environment_asks_for_is_refused_by_its_variable() {
    let environment = [("ALLCLEAR__CLUSTER__TLS__CERT", "/c.pem")];
    let said = read_with("replica.data_dir = \"/d\"", &environment).unwrap_err().to_string();
    let expected = "environment variable ALLCLEAR__CLUSTER__TLS__CERT: `cluster.tls` is refused: this version cannot \
                    encrypt; remove it and set `cluster.insecure = true` on a network that nobody else can reach";
    assert_eq!(said, expected);
}
