//! Whether the metadata endpoint answers with documents, the api-version of the answers, and the name of this VM
//! there.

use std::time::Duration;

use super::finding::Finding;
use allclear_core::model::id::VmName;
use allclear_core::platform_time::{Interval, PlatformTime};
use allclear_server::config::Config;
use allclear_server::imds::{Endpoint, Instance, NoInformation, Polled, Timeouts};
use allclear_server::replica::clock;
use allclear_server::replica::clock_skew::WARN_ABOVE;

const CHECK: &str = "metadata";
/// The first document may take two minutes; a person at the terminal does not wait so long.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The configured api-version and two fallback versions, each with three answers 404.
const REFUSALS: usize = 9;

/// The findings, and the name that this replica will have.
pub(super) async fn findings(config: &Config) -> (Option<String>, Vec<Finding>) {
    let timeouts = Timeouts { first_answer: ANSWER_WITHIN, answer: ANSWER_WITHIN, ..Timeouts::default() };
    let endpoint = match Endpoint::new(&config.metadata.endpoint, config.metadata.api_version, timeouts) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            return (configured(config), vec![Finding::fail(CHECK, error.to_string(), "correct [metadata] endpoint")]);
        }
    };
    let mut findings = events(config, &endpoint).await;
    let told = endpoint.instance().await;
    let name = configured(config).or_else(|| told.as_ref().ok().map(|told| told.name.to_string()));
    let policy = told.as_ref().ok().map(policy);
    findings.push(called(config, told.map(|told| told.name)));
    findings.extend(policy);
    findings.extend(name.as_deref().and_then(|name| listed(config, name)));
    (name, findings)
}

fn configured(config: &Config) -> Option<String> {
    config.replica.name.as_ref().map(ToString::to_string)
}

async fn events(config: &Config, endpoint: &Endpoint) -> Vec<Finding> {
    let address = &config.metadata.endpoint;
    let mut polled = endpoint.poll().await;
    for _ in 0..REFUSALS {
        if !matches!(polled, Err(NoInformation::VersionRefused { .. } | NoInformation::NotServed { .. })) {
            break;
        }
        polled = endpoint.poll().await;
    }
    match polled {
        Ok(Polled { document, version, took, date }) => {
            let mut platform = PlatformTime::default();
            let steady = clock::monotonic();
            if let Some(date) = date {
                platform.record_date(date, took, steady);
            }
            let count = document.events.len();
            let what = format!("{address} answers with documents of api-version {version}, events listed now: {count}");
            let answers = if version == config.metadata.api_version {
                Finding::ok(CHECK, what)
            } else {
                let refused = format!("{what}; the endpoint refuses the configured {}", config.metadata.api_version);
                Finding::warn(CHECK, refused, format!("set [metadata] api_version = \"{version}\""))
            };
            vec![answers, platform_clock(platform.ahead_of(clock::now(), steady))]
        }
        Err(why @ NoInformation::Timeout { .. }) => {
            let advice = "the first read enables Scheduled Events; Azure may need two minutes: run doctor again then";
            vec![Finding::fail(CHECK, why.to_string(), advice)]
        }
        Err(why @ NoInformation::NotAllowed { .. }) => {
            let advice = "run doctor again afterwards, as the user of the replica; an answer to `curl` proves nothing, \
                          because the allow-list names programs and users";
            vec![Finding::fail(CHECK, why.to_string(), advice)]
        }
        Err(why) => {
            let advice =
                format!("`curl -H Metadata:true {address}/metadata/instance?api-version=2021-02-01` shows more");
            vec![Finding::fail(CHECK, why.to_string(), advice)]
        }
    }
}

/// Azure writes the ends of notices in its own time. `ahead`: the milliseconds by which Azure's time is ahead.
fn platform_clock(ahead: Option<Interval>) -> Finding {
    const CHECK: &str = "clock";
    let Some(ahead) = ahead else {
        let what = "the metadata service does not tell its time, so Azure's time is not compared with this clock";
        return Finding::ok(CHECK, what);
    };
    let apart = Duration::from_millis(ahead.distance_to(0).unsigned_abs());
    if apart <= WARN_ABOVE {
        return Finding::ok(CHECK, "this clock agrees with the time of the metadata service");
    }
    let which = if ahead.least > 0 { "behind" } else { "ahead of" };
    let what = format!("this clock is at least {} s {which} the time of the metadata service", apart.as_secs());
    Finding::warn(CHECK, what, "set the clock of this VM right: `timedatectl`, `chronyc tracking`")
}

/// The metadata service does not show the policy, so the finding says how to see the policy.
fn policy(told: &Instance) -> Finding {
    let id = told.resource_id.as_deref().unwrap_or("ID");
    let what = format!(
        "not checked: an event that Azure approves itself (scheduledEventsPolicy) starts without hooks; the metadata \
         service does not show this policy, but `az resource show --ids {id} --api-version 2025-04-01 --query \
         properties.scheduledEventsPolicy` does; an availability set or a scale set has a policy of its own"
    );
    Finding::ok("policy", what)
}

fn called(config: &Config, told: Result<VmName, NoInformation>) -> Finding {
    const CHECK: &str = "name";
    match (&config.replica.name, told) {
        (None, Ok(told)) => Finding::ok(CHECK, format!("the instance metadata calls this VM {told}")),
        (Some(name), Ok(told)) if *name == told => {
            Finding::ok(CHECK, format!("replica.name is {name}, as the instance metadata calls this VM"))
        }
        (Some(name), Ok(told)) => {
            let what = format!("replica.name is {name}, but the instance metadata calls this VM {told}");
            Finding::fail(CHECK, what, "events use the name of the instance metadata: set replica.name to this name")
        }
        (Some(name), Err(why)) => {
            let what = format!("replica.name is {name}; Azure's name for this VM is not known ({why})");
            Finding::warn(CHECK, what, "compare replica.name with the name in events")
        }
        (None, Err(why)) => {
            Finding::fail(CHECK, format!("the name of this VM is not known ({why})"), "set [replica] name")
        }
    }
}

fn listed(config: &Config, name: &str) -> Option<Finding> {
    let peers = &config.cluster.replicas;
    let is_listed = peers.is_empty() || peers.iter().any(|peer| peer.name == VmName::new(name));
    (!is_listed).then(|| {
        let known: Vec<_> = peers.iter().map(|peer| peer.name.to_string()).collect();
        let what = format!("this VM is {name}, which cluster.replicas does not list: {}", known.join(", "));
        Finding::fail("name", what, "add this VM to cluster.replicas, on every replica")
    })
}
