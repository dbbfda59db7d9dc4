//! `allclear hook run`: runs one hook with a made-up event, and shows the hook's input and answer.

mod shown;

use clap::Subcommand;

use self::shown::Shown;
use super::format::AnswerFormat;
use super::{Configured, Exit, examples, failed, misused, runtime, say};
use allclear_core::model::document::{EventType, Source};
use allclear_core::model::drill::{Mode, PREFIX};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::workload::{Intent, Phase, RunsOn};
use allclear_server::app::hook_commands;
use allclear_server::config::{self, Config, HookTarget};
use allclear_server::grpc::client::OperatorConnection;
use allclear_server::hooks::{Deadline, Fence, HookOutcome, HookTask, HookUpdate, command};
use allclear_server::imds::{Endpoint, Timeouts};
use allclear_server::replica::clock;
use allclear_server::replica::sanitize::sanitize;

/// Runs a single hook by hand
#[derive(Subcommand)]
pub(super) enum HookSubcommand {
    Run(HookRun),
}

/// Runs one hook for a made-up event, as this VM's replica would, and shows the hook's input and outcome
///
/// The hook really acts: a failover moves the primary. With --dry-run, the hook only prints the planned steps.
#[derive(clap::Args)]
#[command(after_help = examples::HOOK_RUN)]
pub(super) struct HookRun {
    #[command(flatten)]
    file: Configured,
    /// The hook; if the phase has several hooks, write #NAME or #NUMBER at the end
    #[arg(value_name = "VM/WORKLOAD/PHASE")]
    hook: String,
    /// The action of the hook: run, confirm or undo
    #[arg(long, value_name = "WORD", default_value = "run")]
    intent: String,
    /// Runs the hook without changes; only for hooks that declare `dry_run`
    #[arg(long)]
    dry_run: bool,
    /// The type of the event
    #[arg(long, value_name = "TYPE", default_value = "Reboot")]
    r#type: String,
    /// A forbidden VM for the primary, beside the VMs that the running replica names; you may give the option more than
    /// once
    #[arg(long, value_name = "NAME")]
    avoid: Vec<String>,
    /// A preferred VM for the primary; you may give the option more than once
    #[arg(long, value_name = "NAME")]
    prefer: Vec<String>,
    /// The step of an earlier run, which --intent confirm asks about, or --intent undo takes back
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    #[command(flatten)]
    format: AnswerFormat,
}

impl HookSubcommand {
    pub(super) fn run(self) -> Result<(), Exit> {
        let Self::Run(run) = self;
        run.run()
    }
}

impl HookRun {
    fn run(self) -> Result<(), Exit> {
        let config = self.file.load()?;
        let one = One::named(&config, &self.hook).map_err(misused)?;
        let mut task = self.task(&one).map_err(misused)?;
        let runtime = runtime()?;
        runtime.block_on(one.runs_here(&config)).map_err(misused)?;
        task.avoid.extend(runtime.block_on(one.avoided(&config)));
        let given_up = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
        let hear = |news: &HookUpdate| {
            if let HookUpdate::Progress { text: Some(text), .. } = news {
                say(format_args!("progress: {}", sanitize(text)));
            }
        };
        let shown = runtime.block_on(one.try_it(&task, given_up, hear)).map_err(failed)?;
        self.format.print(&shown, Shown::told).map_err(failed)?;
        if matches!(shown.answer, HookOutcome::Done | HookOutcome::NotApplicable) { Ok(()) } else { Err(Exit::Failed) }
    }

    fn task(&self, one: &One<'_>) -> Result<HookTask, String> {
        let intent = Intent::parse(&self.intent)
            .ok_or_else(|| format!("--intent is {:?}: write run, confirm or undo", self.intent))?;
        if self.dry_run && !one.hook.registered.can_dry_run {
            return Err(format!(
                "{} does not declare dry_run: add dry_run if the hook can run without changes, or omit --dry-run",
                self.hook
            ));
        }
        let names = |names: &[String]| names.iter().map(|name| VmName::new(name)).collect();
        let mode =
            if self.dry_run || one.hook.registered.phase == Phase::Check { Mode::DryRun } else { Mode::Rehearsal };
        let task = one.task(intent, mode, EventType::parse(&self.r#type));
        let task = match &self.step {
            Some(step) => HookTask { event_id: event_of(step)?, step: step.clone(), ..task },
            None if intent != Intent::Run => {
                return Err(format!(
                    "--intent {intent} needs --step STEP: the ALLCLEAR_STEP of the run that it is about"
                ));
            }
            None => task,
        };
        Ok(HookTask { avoid: names(&self.avoid), prefer: names(&self.prefer), ..task })
    }
}

/// The event of a step that `hook run` printed.
fn event_of(step: &str) -> Result<EventId, String> {
    let event = step.split_once('/').map(|(event, _)| event).filter(|event| event.starts_with(PREFIX));
    event
        .map(EventId::new)
        .ok_or_else(|| format!("--step is {step:?}: write the ALLCLEAR_STEP that `hook run` printed"))
}

/// A hook of a configuration, and the VM to prepare.
pub(super) struct One<'a> {
    pub(super) workload: &'a config::ConfiguredWorkload,
    pub(super) hook: &'a config::ConfiguredHook,
    /// Position among the hooks of the phase, from 0.
    place: usize,
    vm: VmName,
}

impl<'a> One<'a> {
    fn named(config: &'a Config, name: &str) -> Result<Self, String> {
        let mut parts = name.splitn(3, '/');
        let (Some(vm), Some(workload), Some(hook)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("{name:?} is no hook: write VM/WORKLOAD/PHASE, for example db-0/orders/drain"));
        };
        let (phase, which) = hook.split_once('#').map_or((hook, None), |(phase, which)| (phase, Some(which)));
        let of_phase: Vec<Self> = all(config, &VmName::new(vm))
            .filter(|one| one.workload.name.0 == workload && one.hook.registered.phase.as_str() == phase)
            .collect();
        let count = of_phase.len();
        let is_it = |one: &Self| {
            let number = (one.place + 1).to_string();
            which.map_or(count == 1, |which| which == number || one.hook.registered.name.as_deref() == Some(which))
        };
        of_phase.into_iter().find(is_it).ok_or_else(|| {
            let known: Vec<String> = all(config, &VmName::new(vm)).map(|one| one.name()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("{name:?} does not name one hook of the configuration; it has {known}")
        })
    }

    /// A hook that runs on the affected VM acts on the server of the VM on which it runs: for another VM, the failover
    /// of a standby's VM would make a second primary.
    async fn runs_here(&self, config: &Config) -> Result<(), String> {
        let registered = &self.hook.registered;
        if registered.runs_on != RunsOn::Affected || registered.phase == Phase::Check {
            return Ok(());
        }
        let own = match &config.replica.name {
            Some(own) => own.clone(),
            None => named_by_azure(config).await.map_err(|why| {
                format!("the name of this VM is not known: {why}; set [replica] name to the name of this VM in Azure")
            })?,
        };
        if own == self.vm {
            return Ok(());
        }
        Err(format!("{} runs on {}, and this VM is {own}: run the command on {}", self.name(), self.vm, self.vm))
    }

    /// The VMs to which the cluster would not move the primary now, for a failover.
    async fn avoided(&self, config: &Config) -> Vec<VmName> {
        let Some(group) = &self.workload.group else { return Vec::new() };
        if self.hook.registered.phase != Phase::Failover {
            return Vec::new();
        }
        let status = async { OperatorConnection::connect(&config.operator.socket).await?.status().await };
        match status.await {
            Ok(status) => {
                let group = status.groups.into_iter().find(|it| it.name == group.to_string());
                group.into_iter().flat_map(|it| it.avoid).map(|vm| VmName::new(&vm)).collect()
            }
            Err(error) => {
                say(format_args!("the VMs of open events are not known, so name them with --avoid: {error}"));
                Vec::new()
            }
        }
    }

    /// The hook's name in commands and messages.
    pub(super) fn name(&self) -> String {
        let registered = &self.hook.registered;
        let is_same = |other: &&config::ConfiguredHook| other.registered.phase == registered.phase;
        let which = match &registered.name {
            Some(name) => format!("#{name}"),
            None if self.workload.hooks.iter().filter(is_same).count() > 1 => format!("#{}", self.place + 1),
            None => String::new(),
        };
        format!("{}/{}/{}{which}", self.vm, self.workload.name, registered.phase)
    }

    pub(super) fn task(&self, intent: Intent, mode: Mode, event_type: EventType) -> HookTask {
        let registered = &self.hook.registered;
        // A hook that remembers its steps or events would answer a second run with the outcome of the first.
        let event = format!("{PREFIX}by-hand-{}", clock::now().0);
        HookTask {
            attempt: format!("{event}/1"),
            step: format!("{event}/{}", self.name()),
            fence: Fence { term: 0, sequence: 1 },
            event_id: EventId::new(&event),
            event_type,
            event_source: Source::Platform,
            resources: vec![self.vm.clone()],
            phase: registered.phase,
            place: self.place,
            workload: self.workload.name.clone(),
            group: self.workload.group.clone(),
            vm: self.vm.clone(),
            intent,
            deadline: Deadline::within(registered.timeout, clock::now()),
            avoid: vec![],
            prefer: vec![],
            traceparent: None,
            drill: Some(mode),
        }
    }

    /// Runs the hook as this VM's replica would.
    pub(super) async fn try_it(
        &self,
        task: &HookTask,
        given_up: impl Future<Output = ()>,
        hear: impl FnMut(&HookUpdate),
    ) -> Result<Shown, String> {
        let way = match task.intent {
            Intent::Run => Some(&self.hook.run),
            Intent::Confirm => self.hook.confirm.as_ref(),
            Intent::Undo => self.hook.undo.as_ref(),
        };
        let way = way.ok_or_else(|| format!("{} has no `{}`", self.name(), task.intent))?;
        let command = hook_commands::command(way, self.hook);
        let began = clock::since_1970();
        let answered = command::run_alone(task, &command, hook_commands::surroundings(), given_up, hear).await;
        let command::RunResult { ended, said, complained } = answered.map_err(|error| error.to_string())?;
        let own = self.hook.env.for_people();
        let own = own.map(|(name, value)| (name.to_owned(), value.unwrap_or("***").to_owned()));
        Ok(Shown {
            hook: self.name(),
            runs: words(way),
            user: self.hook.user.clone(),
            told: own.chain(command::told(task)).collect(),
            answer: ended,
            seconds: clock::since_1970().saturating_sub(began),
            stdout: said,
            stderr: complained,
        })
    }
}

/// The name of this VM in the instance metadata.
async fn named_by_azure(config: &Config) -> Result<VmName, String> {
    let metadata = &config.metadata;
    let endpoint = Endpoint::new(&metadata.endpoint, metadata.api_version, Timeouts::default());
    let told = endpoint.map_err(|why| why.to_string())?.instance().await;
    told.map(|told| told.name).map_err(|why| why.to_string())
}

/// Every hook of this configuration, for this VM.
pub(super) fn all<'a>(config: &'a Config, vm: &VmName) -> impl Iterator<Item = One<'a>> {
    config.workloads.iter().flat_map(move |workload| {
        let place_of = |at: usize, phase: Phase| {
            workload.hooks[..at].iter().filter(|other| other.registered.phase == phase).count()
        };
        let one = |(at, hook): (usize, &'a config::ConfiguredHook)| One {
            workload,
            hook,
            place: place_of(at, hook.registered.phase),
            vm: vm.clone(),
        };
        workload.hooks.iter().enumerate().map(one).collect::<Vec<_>>()
    })
}

fn words(way: &HookTarget) -> Vec<String> {
    match way {
        HookTarget::Command(argv) => argv.clone(),
        HookTarget::Http(http) | HookTarget::Patroni { api: http, .. } => vec!["POST".to_owned(), http.url.clone()],
    }
}
