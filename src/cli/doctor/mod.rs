//! `allclear doctor`: tries everything that a replica needs, before the first start or beside a running replica. The
//! command posts no approval, starts no event, and leaves nothing behind.

mod certificates;
mod checks;
mod collector;
mod control_plane;
mod disk;
mod finding;
mod http_hooks;
mod listeners;
mod metadata;
mod mounts;
mod peers;
mod programs;
mod receivers;
mod service_user;
mod variables;

use std::path::Path;

use serde::Serialize;

use self::finding::{Finding, Severity};
use super::format::AnswerFormat;
use super::output::page::{Terminal, TextBuilder, faint, green, plain, red, yellow};
use super::{Configured, Exit, examples, failed, misused, runtime, say};
use allclear_server::app::{confidence, credentials, doubts};
use allclear_server::config::Config;
use allclear_server::grpc::Prober;
use allclear_server::grpc::client::OperatorConnection;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Checks everything that a replica needs, and reports each fault with the repair
#[derive(clap::Args)]
#[command(after_help = examples::DOCTOR)]
pub(super) struct Doctor {
    #[command(flatten)]
    file: Configured,
    /// The user that runs the replica, for doctor as root [default: the user of allclear.service, if the service starts
    /// this configuration]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    format: AnswerFormat,
}

/// The report in JSON.
#[derive(Serialize)]
struct DoctorReport {
    /// Nothing failed.
    ok: bool,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(super) fn run(self) -> Result<(), Exit> {
        // Before anything is read: root may read what the replica may not.
        let user = service_user::become_user(self.user.as_deref(), &self.file.path).map_err(misused)?;
        let config = self.file.load()?;
        let runtime = runtime()?;
        say(format_args!(
            "reading the scheduled events at {}; at the first read, Azure enables Scheduled Events for this VM",
            config.metadata.endpoint
        ));
        let mut findings = vec![Finding::ok("configuration", format!("{} is valid", self.file.path.display()))];
        findings.extend(user);
        findings.extend(in_confidence(&config, &self.file.path));
        let doubts = doubts::doubts(&config).into_iter();
        findings.extend(doubts.map(|doubt| Finding::warn("configuration", doubt.what, doubt.remedy)));
        findings.extend(runtime.block_on(all(&config)));
        // Does not wait for a disk that never answers.
        runtime.shutdown_background();
        let report = DoctorReport { ok: findings.iter().all(|finding| finding.verdict != Severity::Fail), findings };
        self.format.print(&report, |report| told(Terminal::of_stdout(), report)).map_err(failed)?;
        if report.ok { Ok(()) } else { Err(Exit::Failed) }
    }
}

/// Whether the configuration file has secrets and is readable by other users.
fn in_confidence(config: &Config, file: &Path) -> Vec<Finding> {
    const CHECK: &str = "configuration";
    let told = confidence::told_to_all(config, file);
    let told = told.map(|why| Finding::fail(CHECK, why, "until then no replica starts with this configuration"));
    let short = confidence::too_short(config);
    told.into_iter().chain(short.map(|why| Finding::warn(CHECK, why, "use a longer secret: trial finds it"))).collect()
}

/// Runs the checks concurrently, except where a check needs the findings of another check; each check ends by itself.
async fn all(config: &Config) -> Vec<Finding> {
    let running = running(config).await;
    let (name, mut findings) = metadata::findings(config).await;
    let name = name.or_else(|| running.as_ref().map(|status| status.replica.clone())).unwrap_or_default();
    let certificates = certificates::findings(config, &name);
    // Faults of the certificates are among the findings.
    let tls = credentials::of(config, &name).ok();
    let visitor = tls.as_ref().map(|tls| Prober { cluster: &config.cluster.name, replica: &name, tls: tls.as_ref() });
    let (peers, disk, listeners, http_hooks, receivers, collector, control_plane) = tokio::join!(
        peers::findings(config, visitor.as_ref(), &name, running.is_some()),
        disk::findings(config),
        listeners::findings(config, visitor.as_ref(), &name, running.as_ref()),
        http_hooks::findings(config),
        receivers::findings(config),
        collector::findings(config),
        control_plane::findings(config),
    );
    let programs = programs::findings(config);
    let variables = variables::findings(config).await;
    let checks = checks::findings(config, &name).await;
    let all = [
        control_plane,
        certificates,
        peers,
        disk,
        listeners,
        programs,
        variables,
        http_hooks,
        checks,
        receivers,
        collector,
    ];
    findings.extend(all.into_iter().flatten());
    findings
}

/// Status of the replica of this configuration, if the replica runs.
async fn running(config: &Config) -> Option<shown::Status> {
    OperatorConnection::connect(&config.operator.socket).await.ok()?.status().await.ok()
}

fn told(paper: Terminal, report: &DoctorReport) -> String {
    let mut page = TextBuilder::new(paper);
    let row = |finding: &Finding| {
        let verdict = match finding.verdict {
            Severity::Ok => green("ok"),
            Severity::Warn => yellow("warn"),
            Severity::Fail => red("FAIL"),
        };
        let advice = finding.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        vec![verdict, faint(finding.check), plain(format!("{}{advice}", finding.what))]
    };
    page.table(0, &report.findings.iter().map(row).collect::<Vec<_>>());
    let count = |verdict| report.findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (warnings, failures) = (count(Severity::Warn), count(Severity::Fail));
    let end = if report.ok { green("nothing failed") } else { red("NOT READY") };
    page.line(0, &[end, plain(format!(": {failures} failures, {warnings} warnings"))]);
    page.into_text()
}
