//! Claim: real replicas on real sockets and a real disk do what the specification says, whatever is killed, frozen or
//! answered wrongly. The cloud is the fake one, on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod absences;
mod answers;
mod approvers;
mod cables;
mod changed_hooks;
mod changes;
mod clocks;
mod cloud;
mod cluster;
mod cold_starts;
mod collector;
mod confined;
mod cuts;
mod departures;
mod dialled;
mod dice;
mod disks;
mod drills;
mod embedded;
mod empty_disks;
mod events;
mod evidence;
mod failing_hooks;
mod freezes;
mod goodbyes;
mod groups;
mod hostile_names;
mod isolated;
mod jumps;
mod late_words;
mod learners;
mod line;
mod links;
mod lives;
mod losses;
mod members;
mod membership;
mod missing;
mod named;
mod namespaces;
mod nemesis;
mod operators;
mod over_http;
mod overlaps;
mod owners;
mod pair;
mod plan;
mod posts;
mod readings;
mod resolver;
mod restoring;
mod said;
mod second_approvers;
#[path = "../workloads/server.rs"]
mod server;
mod sessions;
mod severed;
mod shown;
mod strangers;
mod thaws;
mod tokens;
mod traces;
mod trial;
mod versions;
mod waves;
mod workload;

/// Here for its name, as the next one: tests begin in the order of their names, and these two take longest.
#[tokio::test]
async fn a_failover_has_its_effect_once_and_its_event_one_all_clear_whatever_is_lost() {
    trial::play().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nemesis_breaks_no_promise_and_everything_comes_right_in_the_end() {
    nemesis::play().await;
}
