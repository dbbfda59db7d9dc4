//! `allclear demo`: the main job on one machine, with nothing to configure: a fake cloud, three replicas and a sample
//! workload, the example database or real servers on loopback, and events from their announcement to their end.

mod checks;
mod narration;
mod primary;
mod report;
mod run;
mod takeover;
mod words;
mod writes;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum as _;
use primary::Primary;
use run::DemoRun;
use tokio::runtime::Builder;
use words::{introduced, kept, page, speed};

use crate::fake_cloud::CloudScenario;
use crate::fake_cloud::scenarios;
use crate::local_cluster::servers::{ServerKind, Servers};
use crate::local_cluster::{self, HookSpeed, LocalCluster, SampleWorkload, folder, power};
use allclear_core::model::document::{Announcement, Status};
use allclear_core::model::id::VmName;
use allclear_server::exit::{Exit, say};
use allclear_server::replica::clock;
use allclear_server::signals::asked_to_stop;

/// The target duration of a scenario's shortest notice.
const NOTICE: Duration = Duration::from_secs(20);
/// The target duration for a demo with a takeover.
const TAKEOVER_NOTICE: Duration = Duration::from_secs(30);
/// The target duration for a demo with servers. PostgreSQL's switch begins only while 25 s are left, and a slow
/// machine takes seconds to begin the switch.
const SERVERS_NOTICE: Duration = Duration::from_mins(1);

const SHORTEST_NOTICE: Duration = Duration::from_secs(5);
const LONGEST_NOTICE: Duration = Duration::from_hours(1);

/// The start of the terminal's line, which is cleared.
const CLEARED: &str = "\r\x1b[2K";
/// Letters of a progress line, which has to fit into one line of a terminal.
const PROGRESS_LETTERS: usize = 78;

/// Plays an event from the announcement to the end: a fake cloud, three replicas and a sample workload, all local
#[derive(clap::Args)]
#[command(after_help = scenarios())]
pub struct Demo {
    /// The scenario: the events that the fake cloud announces
    #[arg(long, value_name = "NAME", default_value = "user-redeploy")]
    scenario: String,
    /// The workload: `hooks` runs commands, `example` runs the database of deploy/examples as a session workload, and
    /// PROGRAM runs your own program, started as PROGRAM NAME SOCKET FOLDER beside each replica [default: hooks; for
    /// the scenario `wave`: example]
    #[arg(long, value_name = "PROGRAM")]
    workload: Option<String>,
    /// Runs real database servers, which must be installed: a primary and two standbys, one beside each replica, with
    /// the hook set of deploy/hooks and clients that write continuously. An event really stops the servers of the VM
    #[arg(long, value_name = "SYSTEM", conflicts_with_all = ["workload", "kill_leader"])]
    with: Option<ServerKind>,
    /// Kills the leader while a hook runs, and starts the replica again 2 s later
    #[arg(long)]
    kill_leader: bool,
    /// The length of the shortest notice, as on your clock: a slow or busy machine needs a longer one, and the demo then
    /// takes longer too [default: 20s; with --kill-leader: 30s; with --with: 1m]
    #[arg(long, value_name = "DURATION", value_parser = read_notice)]
    notice: Option<Duration>,
    /// Keeps everything running at the end, until you press Ctrl-C
    #[arg(long)]
    keep: bool,
    /// Prints the result as one JSON object
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub fn run(self) -> Exit {
        let (scenario, workload) = match self.chosen() {
            Ok(chosen) => chosen,
            Err(error) => {
                say(error);
                return Exit::Usage;
            }
        };
        if let Some(Err(lack)) = self.with.map(ServerKind::lacks) {
            say(lack);
            return Exit::Failed;
        }
        // Servers end with the thread that started them.
        let runtime = Builder::new_multi_thread().enable_all().thread_keep_alive(Duration::from_hours(24)).build();
        let made = if self.with.is_some() { folder::make_to_pass() } else { folder::make() };
        let (runtime, folder) = match runtime.and_then(|runtime| Ok((runtime, made?))) {
            Ok(made) => made,
            Err(error) => {
                say(format_args!("cannot make threads or a folder for the demo: {error}"));
                return Exit::Failed;
            }
        };
        end_all_at_a_panic(folder.clone());
        let shown = runtime.block_on(self.show(&scenario, &workload, &folder));
        // The drop of the runtime ends every task that was about to start a process.
        drop(runtime);
        folder::end_leftovers(&folder);
        match shown {
            Ok(false) => return Exit::Failed,
            Ok(true) => {}
            Err(ref error) => say(format_args!("the demo did not reach the end: {error:#}")),
        }
        if let Err(error) = std::fs::remove_dir_all(&folder) {
            say(format_args!("{} cannot be removed: {error}", folder.display()));
        }
        if shown.is_ok() { Exit::Done } else { Exit::Failed }
    }

    fn chosen(&self) -> anyhow::Result<(CloudScenario, SampleWorkload)> {
        let scenario = CloudScenario::find(&self.scenario)?;
        let sights = scenario.first_sights(&local_cluster::VMS.map(VmName::new), clock::now())?;
        if let Some(server) = self.with {
            let is_shown = |event: &Announcement| power::comes_back(&event.kind) && event.status == Status::Scheduled;
            if !sights.iter().all(is_shown) {
                bail!(
                    "{}: --with needs Scheduled events after which the machine returns: Freeze, Reboot or Redeploy; \
                     use another scenario, or leave out --with",
                    scenario.name()
                );
            }
            return Ok((scenario, SampleWorkload::Serves(server)));
        }
        let usual = if scenario.name() == "wave" && !self.kill_leader { "example" } else { "hooks" };
        let workload = match self.workload.as_deref().unwrap_or(usual) {
            "hooks" => SampleWorkload::Hooks(if self.kill_leader { HookSpeed::Long } else { HookSpeed::Unhurried }),
            "example" if self.kill_leader => bail!(
                "the hooks of the example database end at once, and no hook runs when the leader is killed; use hooks"
            ),
            "example" => {
                let program = std::env::current_exe().context("cannot find the program of this process")?;
                SampleWorkload::Dials(vec![program.to_string_lossy().into_owned(), "demo-kv".to_owned()])
            }
            program if program.trim().is_empty() => bail!("--workload: name hooks, example or a program"),
            program => SampleWorkload::Dials(program.split_whitespace().map(str::to_owned).collect()),
        };
        Ok((scenario, workload))
    }

    /// The target duration of the scenario's shortest notice.
    fn notice(&self) -> Duration {
        if let Some(notice) = self.notice {
            notice
        } else if self.with.is_some() {
            SERVERS_NOTICE
        } else if self.kill_leader {
            TAKEOVER_NOTICE
        } else {
            NOTICE
        }
    }

    /// What to do next.
    fn next(&self) -> Vec<String> {
        let program = std::env::args().next().unwrap_or_else(|| "allclear".into());
        let servers = ServerKind::value_variants().iter().find(|kind| self.with.is_none() && kind.lacks().is_ok());
        let with = servers.and_then(|kind| Some((kind, kind.to_possible_value()?))).map(|(kind, value)| {
            format!("  {program} demo --with {:<10} the event with servers of {}", value.get_name(), kind.system().name)
        });
        let keep = (!self.keep).then(|| format!("  {program} demo --keep            the status page and the commands"));
        let install =
            "  deploy/docs/install.md in the source, docs/install.md in the package: allclear beside your database";
        std::iter::once("Next:".to_owned()).chain(with).chain(keep).chain([install.to_owned()]).collect()
    }

    /// Runs the demo; returns whether all went well. After a failure the folder stays, unless no event was played.
    async fn show(&self, scenario: &CloudScenario, workload: &SampleWorkload, folder: &Path) -> anyhow::Result<bool> {
        let stop = asked_to_stop()?;
        tokio::pin!(stop);
        let notice = self.notice();
        let speed = speed(scenario, notice);
        let is_live = !self.json && std::io::stdout().is_terminal();
        let tell = |line: &str| match (self.json, is_live) {
            (true, _) => say(line),
            (false, true) => print(&format!("{CLEARED}{line}\n")),
            (false, false) => print(&format!("{line}\n")),
        };
        let progress = |wait: &str| {
            if is_live {
                print(&format!("{CLEARED}{}", wait.chars().take(PROGRESS_LETTERS).collect::<String>()));
            }
        };
        for line in &introduced(scenario, workload, speed) {
            tell(line);
        }
        let set_up = tokio::select! {
            set_up = LocalCluster::set_up(folder.to_owned(), speed, workload) => set_up,
            () = &mut stop => Err(anyhow!("a signal stopped the demo")),
        };
        let mut stage = set_up?;
        if self.keep {
            tell(&format!("the status page: {}", page(&stage)));
        }
        let play = DemoRun {
            stage: &mut stage,
            scenario,
            kills_leader: self.kill_leader,
            tell: &tell,
            progress: &progress,
            primary: Primary::default(),
            moves: Vec::new(),
            takeover: None,
        };
        let report = tokio::select! {
            report = play.run(speed.get(), notice) => Some(report),
            () = &mut stop => None,
        };
        let Some(mut report) = report else {
            stage.strike().await;
            bail!("a signal stopped the demo");
        };
        if !report.ok {
            report.folder = Some(folder.display().to_string());
            stage.processes().for_each(|process| say(process.tail()));
            stage.servers.iter().flat_map(Servers::tails).for_each(say);
        }
        progress("");
        print(&if self.json { serde_json::to_string(&report)? + "\n" } else { report.told() });
        if report.ok && !self.json {
            print(&format!("\n{}\n", self.next().join("\n")));
        }
        if self.keep {
            say(kept(&stage));
            stop.await;
        }
        stage.strike().await;
        Ok(report.ok)
    }
}

fn read_notice(text: &str) -> Result<Duration, String> {
    let notice = humantime::parse_duration(text).map_err(|error| format!("{error}; write for example 2m"))?;
    match notice {
        short if short < SHORTEST_NOTICE => {
            Err(format!("too short for any hook; use at least {} s", SHORTEST_NOTICE.as_secs()))
        }
        long if long > LONGEST_NOTICE => Err("too long to wait for; use at most 1h".into()),
        notice => Ok(notice),
    }
}

/// Errors are ignored: without a reader, the exit status still has the result.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A panic ends the program of packages without cleanup, so the hook cleans up.
fn end_all_at_a_panic(folder: PathBuf) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        folder::end_leftovers(&folder);
        let _ = std::fs::remove_dir_all(&folder);
    }));
}
