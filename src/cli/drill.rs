//! `allclear drill`: a made-up event through the real hooks of a running cluster. A drill is never approved, and
//! every prepared workload is restored.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;

use super::approve::{is_answerable, is_yes};
use super::asker::Asker;
use super::format::AnswerFormat;
use super::output::sentence;
use super::policy::read_event;
use super::query::{answered, endpoint_of_user, read_endpoint};
use super::{Exit, examples, misused, runtime, say};
use allclear_core::model::document::{EventType, NotBefore, Source};
use allclear_core::model::drill;
use allclear_core::model::id::VmName;
use allclear_server::config;
use allclear_server::grpc::client::{OperatorClientError, OperatorConnection};
use allclear_server::replica::clock::rfc3339;
use allclear_server::replica::view::hook_label;
use allclear_server::replica::view::primaries;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Rehearses a made-up event: the hooks run, nothing is approved, and every workload is restored
#[derive(clap::Args)]
#[command(after_help = examples::DRILL)]
pub(super) struct DrillCommand {
    /// The configuration file of the replica to query
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The replica's operator socket; by default the socket of the configuration, or /run/allclear/operator.sock
    #[arg(long, value_name = "SOCKET", value_parser = read_endpoint)]
    endpoint: Option<PathBuf>,
    /// The event: a type (Freeze, Reboot, Redeploy, Preempt, Terminate), or a JSON file with one event
    #[arg(value_name = "EVENT", required_unless_present = "end")]
    event: Option<String>,
    /// Ends this drill early, and starts no drill
    #[arg(long, value_name = "DRILL", conflicts_with = "event")]
    end: Option<String>,
    /// A VM of the event; you may give the option more than once
    #[arg(long, value_name = "NAME")]
    vm: Vec<String>,
    /// The source of the event: Platform or User
    #[arg(long, value_name = "SOURCE", default_value = "Platform", value_parser = drill::source)]
    source: Source,
    /// Runs only hooks that declare `dry_run`, and lists the other hooks
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Runs the hooks without a question, also if a primary moves
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    asker: Asker,
    #[command(flatten)]
    format: AnswerFormat,
}

impl DrillCommand {
    pub(super) fn run(self) -> Result<(), Exit> {
        let endpoint = match (&self.endpoint, &self.config) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(path)) => config::load(path, config::environment()).map_err(misused)?.operator.socket,
            (None, None) => endpoint_of_user().map_err(misused)?,
        };
        let name = self.asker.name();
        if let Some(id) = self.end.clone() {
            let request = shown::EndDrillRequest { id };
            let ended = async {
                OperatorConnection::connect_as(&endpoint, name.as_deref())
                    .await?
                    .change(async |client| client.end_drill(request).await)
                    .await
            };
            return answered(ended).map(drop);
        }
        let mut request = self.request(self.event.as_deref().unwrap_or_default()).map_err(misused)?;
        if !self.dry_run && !self.yes {
            request.dry_run = !may_move_primaries(&endpoint, &request.resources)?;
        }
        let went_well = answered(async {
            let event = drill(&endpoint, name.as_deref(), request.clone()).await?;
            self.format.print(&event, told).map(|()| went_well(&event))
        })?;
        if !request.dry_run {
            say_where_primaries_are(&endpoint, &request.resources);
        }
        if went_well { Ok(()) } else { Err(Exit::Failed) }
    }

    fn request(&self, written: &str) -> Result<shown::DrillRequest, String> {
        let kind = EventType::parse(written);
        let asked = shown::DrillRequest {
            r#type: kind.to_string(),
            source: self.source.to_string(),
            resources: self.vm.clone(),
            dry_run: self.dry_run,
            ..shown::DrillRequest::default()
        };
        if !matches!(kind, EventType::Other(_)) {
            let unnamed = || format!("a drill of {kind} needs a VM: add --vm NAME");
            return if self.vm.is_empty() { Err(unnamed()) } else { Ok(asked) };
        }
        let wrong = |why: String| {
            format!(
                "{written}: {why}; name a JSON file with one event, or Freeze, Reboot, Redeploy, Preempt or Terminate"
            )
        };
        let document = read_event(Path::new(written)).map_err(wrong)?;
        let [event] = &document.events[..] else {
            return Err(wrong(format!("the document has {} events", document.events.len())));
        };
        let named = || event.resources.iter().map(ToString::to_string).collect();
        Ok(shown::DrillRequest {
            r#type: event.kind.to_string(),
            source: event.source.to_string(),
            resources: if self.vm.is_empty() { named() } else { self.vm.clone() },
            not_before: match event.not_before {
                NotBefore::At(at) => Some(rfc3339(at)),
                NotBefore::Unknown => None,
            },
            description: event.description.clone(),
            duration_s: event.duration.map(|duration| duration.as_secs()),
            ..asked
        })
    }
}

/// Whether the drill may run the hooks: asks at a terminal if a VM of the drill holds a primary. Without a terminal
/// such a drill needs `--yes`.
fn may_move_primaries(endpoint: &Path, vms: &[String]) -> Result<bool, Exit> {
    let status = answered(async { OperatorConnection::connect(endpoint).await?.status().await })?;
    let held = held_primaries(&status, vms);
    if held.is_empty() {
        return Ok(true);
    }
    let held = held.join("; ");
    if !is_answerable() {
        return Err(misused(format!(
            "{held}: the drill moves the primary; add --yes to run the hooks, or --dry-run to list them"
        )));
    }
    let stays = "The drill moves the primary. It stays where the failover puts it: allclear does not move it back.";
    let may = is_yes(&format!("{}.\n{stays}\nRun the hooks? Otherwise a dry run lists them. [y/N] ", sentence(&held)));
    if !may {
        say("a dry run: only hooks that declare dry_run run");
    }
    Ok(may)
}

/// The workloads on these VMs.
fn workloads_on<'a>(status: &'a shown::Status, vms: &[String]) -> impl Iterator<Item = &'a shown::Workload> {
    status.workloads.iter().filter(|workload| vms.iter().any(|vm| VmName::new(vm) == VmName::new(&workload.vm)))
}

/// A sentence for each primary that is, or may be, on one of the VMs.
fn held_primaries(status: &shown::Status, vms: &[String]) -> Vec<String> {
    let down = |workload: &shown::Workload| shown::TakenDown {
        workload: workload.name.clone(),
        vm: workload.vm.clone(),
        group: workload.group.clone(),
        role: workload.role.clone(),
        last_role: workload.last_role.clone(),
        ..Default::default()
    };
    let takes_down = workloads_on(status, vms).map(down).collect();
    // A failover runs also for a member whose role nobody knows.
    let is_unknown = |it: &&shown::Workload| {
        it.role == "unknown" && it.last_role.is_none() && it.phases.iter().any(|phase| phase == "failover")
    };
    let unknown = workloads_on(status, vms).filter(is_unknown);
    let unknown =
        unknown.map(|it| format!("the role of {} on {} is unknown, so it may hold the primary", it.name, it.vm));
    primaries(&shown::Event { takes_down, ..Default::default() }).into_iter().chain(unknown).collect()
}

/// Says where the primaries are after the drill, if the replica still answers.
fn say_where_primaries_are(endpoint: &Path, vms: &[String]) {
    let asked = async { OperatorConnection::connect(endpoint).await?.status().await };
    let Some(Ok(status)) = runtime().ok().map(|runtime| runtime.block_on(asked)) else { return };
    for place in places_of_primaries(&status, vms) {
        say(place);
    }
}

/// Where the primary of each group of the drill is now.
fn places_of_primaries(status: &shown::Status, vms: &[String]) -> Vec<String> {
    let groups: BTreeSet<&String> = workloads_on(status, vms).filter_map(|workload| workload.group.as_ref()).collect();
    let primaries = status.workloads.iter().filter(|workload| workload.role == "primary");
    let of_drill = primaries.filter_map(|it| Some((it.group.as_ref().filter(|group| groups.contains(group))?, &it.vm)));
    of_drill.map(|(group, vm)| sentence(&format!("the primary of {group} is on {vm} now, and stays there"))).collect()
}

/// Begins the drill, prints its progress, and returns the closed event.
async fn drill(
    endpoint: &Path,
    name: Option<&str>,
    request: shown::DrillRequest,
) -> Result<shown::Event, OperatorClientError> {
    let mut asking = OperatorConnection::connect_as(endpoint, name).await?;
    let mut changes = Box::pin(asking.watch().await?);
    let id = asking.change(async |client| client.drill(request).await).await?.id;
    say(format_args!("{id} begins; nothing is approved, and Ctrl-C does not end the drill"));
    let mut seen = ReportedSteps::default();
    while let Some(Ok(_)) = changes.next().await {
        match asking.event(&id).await {
            Ok(event) => {
                seen.tell(&event);
                if event.outcome.is_some() && event.stage == "closed" {
                    return Ok(event);
                }
            }
            // The queried replica has not yet applied the drill.
            Err(OperatorClientError::NotFound(_)) => {}
            // The drill goes on without the replica.
            Err(OperatorClientError::NoAnswer { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Err(OperatorClientError::Unclear(format!("the replica stopped; query another replica: allclear explain {id}")))
}

/// Steps that were printed already.
#[derive(Default)]
struct ReportedSteps {
    stage: String,
    /// The steps' printed texts.
    steps: BTreeSet<String>,
}

impl ReportedSteps {
    fn tell(&mut self, event: &shown::Event) {
        if self.stage != event.stage {
            self.stage.clone_from(&event.stage);
            say(format_args!("  {}", event.stage));
        }
        for step in event.drill.iter().flat_map(|drill| &drill.steps).filter(|step| step.result != "waiting") {
            let row = row(step);
            if !self.steps.contains(&row) {
                say(format_args!("  {row}"));
                self.steps.insert(row);
            }
        }
    }
}

fn went_well(event: &shown::Event) -> bool {
    let is_well = |step: &shown::DrillStep| matches!(step.result.as_str(), "done" | "not_applicable" | "would_run");
    event.outcome.as_deref() == Some("drilled") && event.drill.iter().flat_map(|drill| &drill.steps).all(is_well)
}

fn row(step: &shown::DrillStep) -> String {
    let took = step.took_ms.map_or(String::new(), |took| format!("{took} ms"));
    let reason = step.reason.as_ref().map_or(String::new(), |reason| format!("  {reason}"));
    let shown::DrillStep { workload, vm, result, .. } = step;
    let hook = hook_label(&step.hook, &step.phase);
    format!("{hook:<10} {workload:<16} {vm:<16} {result:<14} {took:>9}{reason}").trim_end().into()
}

fn told(event: &shown::Event) -> String {
    let steps: Vec<_> = event.drill.iter().flat_map(|drill| &drill.steps).collect();
    let mode = event.drill.as_ref().map_or("", |drill| &drill.mode);
    let treatment = event.treatment.as_deref().unwrap_or("none");
    let (rule, outcome) = (event.rule.as_deref().unwrap_or("-"), event.outcome.as_deref().unwrap_or("-"));
    let mut text = format!("{}: {mode} of {} of {}, {outcome}\n", event.id, event.r#type, event.resources.join(", "));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "treatment {treatment} (rule: {rule})");
    if steps.is_empty() {
        text += "no hook would run\n";
    }
    for step in steps {
        let _ = writeln!(text, "  {}", row(step));
    }
    text += if went_well(event) { "every hook ended well\n" } else { "NOT every hook ended well\n" };
    text
}
