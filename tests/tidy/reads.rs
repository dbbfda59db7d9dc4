//! The places where the clock and the environment are read. Everywhere else, time and settings are arguments.

use super::source::Source;

/// The places where the clock may be read, each with a reason.
const CLOCK: &[(&str, &str)] = &[
    ("src/server/replica/clock.rs", "its module"),
    ("src/cluster/net/dial/", "measures how old the answer of a resolver is"),
    ("src/cluster/consensus/", "measures how long peers are silent"),
    ("src/cluster/net/limits/", "bounds how often and for how long"),
    ("src/effects/imds/", "measures how long the endpoint takes to answer"),
    ("src/effects/control_plane.rs", "measures how long a token lasts"),
    ("src/client/", "keeps the deadlines of what it is asked for"),
    ("src/effects/hooks/", "keeps the deadlines of running hooks"),
    ("src/lab/bench/", "measures"),
    ("src/sim/main.rs", "tells how long it took"),
    ("src/lab/testbed/", "measures how long clients wait for servers"),
    ("src/lab/fake_cloud/", "is a world of its own, with a clock of its own"),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("src/server/config/", "its module"),
    ("src/build.rs", "cargo says there what it builds"),
    ("src/cluster/consensus/recorded_tests.rs", "whether long tests run"),
];

pub(super) fn of_the_clock(source: &Source) -> Vec<(usize, String)> {
    const CLOCKS: &[&str] = &["SystemTime", "Instant", "Timestamp", "Zoned"];
    let reads = |path: &[String]| {
        path.windows(2).any(|pair| CLOCKS.contains(&pair[0].as_str()) && pair[1] == "now")
            || path.windows(2).any(|pair| pair[0] == "UNIX_EPOCH" && pair[1] == "elapsed")
    };
    found(source, CLOCK, reads, "reads the clock: take the time as an argument, or ask the replica's clock")
}

pub(super) fn of_the_environment(source: &Source) -> Vec<(usize, String)> {
    const READS: &[&str] = &["var", "var_os", "vars", "vars_os", "set_var", "remove_var"];
    let reads = |path: &[String]| path.windows(2).any(|pair| pair[0] == "env" && READS.contains(&pair[1].as_str()));
    found(source, ENVIRONMENT, reads, "reads the environment: that is config's")
}

fn found(
    source: &Source,
    allowed: &[(&str, &str)],
    reads: impl Fn(&[String]) -> bool,
    finding: &str,
) -> Vec<(usize, String)> {
    if allowed.iter().any(|(place, _)| source.path.starts_with(place)) {
        return Vec::new();
    }
    let paths = source.paths().into_iter().filter(|(_, path)| reads(path));
    paths.map(|(line, path)| (line, format!("{} {finding}", path.join("::")))).collect()
}

#[test]
fn a_read_of_the_clock_is_found_outside_its_module() {
    let lines = [
        "let a = std::time::Instant::now();",
        "let a = Instant::now();",
        "let a = tokio::time::Instant::now();",
        "let a = option.map_or_else(SystemTime::now, keep);",
        "let a = jiff::Timestamp::now();",
    ];
    for line in lines {
        let text = format!("//! Head.\nfn f() {{\n    {line}\n}}\n");
        assert_eq!(of_the_clock(&Source::new("src/server/grpc/a.rs", &text)).len(), 1, "{line}");
        assert_eq!(of_the_clock(&Source::new("src/server/replica/clock.rs", &text)), []);
    }
    let fine = "// Instant::now() in a comment\nlet text = \"Instant::now()\";\n#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }";
    assert_eq!(of_the_clock(&Source::new("src/server/grpc/a.rs", fine)), []);
}

#[test]
fn a_read_of_the_environment_is_found_outside_its_module() {
    for line in ["std::env::var(\"A\")", "env::vars_os()", "use std::env::{temp_dir, var};"] {
        assert_eq!(of_the_environment(&Source::new("src/server/grpc/a.rs", line)).len(), 1, "{line}");
        assert_eq!(of_the_environment(&Source::new("src/server/config/a.rs", line)), []);
    }
    assert_eq!(of_the_environment(&Source::new("src/cli/a.rs", "std::env::current_exe(); env!(\"CARGO\")")), []);
}
