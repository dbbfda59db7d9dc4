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
    files::check_way(&file.path).map_err(|why| misused(format_args!("the configuration cannot be trusted: {why}")))?;
    let config = file.load()?;
    if let Some(why) = app::confidence::told_to_all(&config, &file.path) {
        return Err(misused(format_args!("the configuration keeps no secrets: {why}")));
    }
    http::logging::start(&config::log_filter()).map_err(misused)?;
    keep_to_itself();
    allow_many_connections();
    let (own, answering) = runtimes().map_err(|error| failed(format_args!("cannot start: {error}")))?;
    let ran = own.block_on(app::run(config, answering.handle().clone()));
    answering.shutdown_background();
    // A resolver or a disk that hangs is not waited for; what it was to do is recovered at the next start.
    own.shutdown_timeout(LET_GO_WITHIN);
    ran.map_err(|error| {
        say(format_args!("{error:#}"));
        exit_of(&error)
    })
}

/// The cluster's work has this thread to itself, as whoever is flooded must not lose the lead; all others are answered
/// on a second one. More threads would only wake each other.
fn runtimes() -> io::Result<(Runtime, Runtime)> {
    let own = Builder::new_current_thread().enable_all().build()?;
    let answering = Builder::new_multi_thread().worker_threads(1).thread_name("answering").enable_all().build()?;
    Ok((own, answering))
}

/// A service manager starts a replica anew whatever it failed of, but not when only another configuration would help.
/// Certificates are renewed by themselves, so those that do not fit are no reason to stay away.
fn exit_of(error: &anyhow::Error) -> Exit {
    let is_of_the_configuration =
        error.is::<app::Misconfigured>() || error.downcast_ref().is_some_and(OpenError::is_of_the_configuration);
    if is_of_the_configuration { Exit::Usage } else { Exit::Failed }
}

/// Once the configuration is read, which may be a descriptor: hooks get none that this process was started with. And its
/// memory holds keys and tokens, so it leaves no core dump and nobody but root looks into it, not even a hook of its own
/// user.
fn keep_to_itself() {
    hooks::close_descriptors();
    files::keep_to_oneself();
    if let Err(error) = set_dumpable(false) {
        tracing::warn!(%error, "memory readable by other processes of this user");
    }
}

/// Every workload that dials in holds a connection, and the usual limit is close to what all listeners together let in.
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
