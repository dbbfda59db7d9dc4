//! `allclear run`: one replica in the foreground.

use std::io;
use std::time::Duration;

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

use super::{Configured, Exit, failed, misused, say};
use crate::{app, config, files, hooks, http};
use allclear_server::consensus::OpenError;

const LET_GO_WITHIN: Duration = Duration::from_secs(1);

pub(super) fn run(file: &Configured) -> Result<(), Exit> {
    allclear_server::exit::end_at_a_panic();
    files::check_way(&file.path).map_err(|why| misused(format_args!("the configuration cannot be trusted: {why}")))?;
    let config = file.load()?;
    if let Some(why) = app::confidence::told_to_all(&config, &file.path) {
        return Err(misused(format_args!("the configuration file does not protect secrets: {why}")));
    }
    http::logging::start(&config::log_filter()).map_err(misused)?;
    keep_to_itself();
    allow_many_connections();
    let (own, answering) = runtimes().map_err(|error| failed(format_args!("the replica cannot start: {error}")))?;
    let ran = own.block_on(app::run(config, answering.handle().clone()));
    answering.shutdown_background();
    // Hanging resolvers or disks do not delay the exit; their unfinished work is recovered at the next start.
    own.shutdown_timeout(LET_GO_WITHIN);
    ran.map_err(|error| {
        say(format_args!("{error:#}"));
        exit_of(&error)
    })
}

/// The cluster's work has this thread to itself, because a flood of requests must not cost a leader its leadership;
/// all other requests are answered on a second thread. More threads would only wake each other.
fn runtimes() -> io::Result<(Runtime, Runtime)> {
    let own = Builder::new_current_thread().enable_all().build()?;
    let answering = Builder::new_multi_thread().worker_threads(1).thread_name("answering").enable_all().build()?;
    Ok((own, answering))
}

/// A service manager restarts a replica after every failure, except where only another configuration would help.
/// Certificates are renewed without a restart, so unsuitable certificates are no reason to stay down.
fn exit_of(error: &anyhow::Error) -> Exit {
    let is_of_the_configuration =
        error.is::<app::Misconfigured>() || error.downcast_ref().is_some_and(OpenError::is_of_the_configuration);
    if is_of_the_configuration { Exit::Usage } else { Exit::Failed }
}

/// Called after the configuration is read, for the file may be a descriptor: hooks inherit no descriptor of this
/// process. The process' memory holds keys and tokens, so the process leaves no core dump, and only root can read the
/// memory, not even a hook with the replica's user.
fn keep_to_itself() {
    hooks::close_descriptors();
    files::keep_to_oneself();
    if let Err(error) = set_dumpable(false) {
        tracing::warn!(%error, "memory readable by other processes of this user");
    }
}

/// Every session workload holds a connection, and the usual limit is close to the number of connections that all
/// listeners together accept.
pub(super) fn allow_many_connections() {
    const ENOUGH: u64 = 4096;
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(now, most)| {
        let wanted = ENOUGH.min(most);
        if now < wanted { setrlimit(Resource::RLIMIT_NOFILE, wanted, most) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!(%error, "limit of open files not raised; connections of workloads stay limited");
    }
}
