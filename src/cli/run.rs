//! `allclear run`: one replica in the foreground.

use std::path::PathBuf;

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::{Exit, runtime, say};
use crate::{app, config, ops, workloads};

/// Runs one replica until SIGTERM or SIGINT
#[derive(clap::Args)]
pub(super) struct Run {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Run {
    pub(super) fn run(self) -> Exit {
        let config = match config::load(&self.config, config::environment()) {
            Ok(config) => config,
            Err(mistakes) => {
                say(mistakes);
                return Exit::Usage;
            }
        };
        if let Err(error) = ops::logging::start(&config::log_filter(), config::colours_refused()) {
            say(error);
            return Exit::Usage;
        }
        keep_to_itself();
        allow_many_connections();
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(exit) => return exit,
        };
        match runtime.block_on(app::run(config)) {
            Ok(()) => Exit::Done,
            Err(error) => {
                say(format_args!("{error:#}"));
                Exit::Failed
            }
        }
    }
}

/// Once the configuration is read, which may be a descriptor: hooks get none that this process was started with. And its
/// memory holds keys and tokens, so it leaves no core dump and nobody but root looks into it, not even a hook of its own
/// user.
fn keep_to_itself() {
    workloads::close_descriptors();
    if let Err(error) = set_dumpable(false) {
        tracing::warn!(%error, "this process can be looked into by others of its user");
    }
}

/// Every workload that dials in holds a connection, and the usual limit leaves no room for a thousand of them.
pub(super) fn allow_many_connections() {
    const ENOUGH: u64 = 4096;
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(now, most)| {
        let wanted = ENOUGH.min(most);
        if now < wanted { setrlimit(Resource::RLIMIT_NOFILE, wanted, most) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!(%error, "the number of open files stays limited, and so do connections of workloads");
    }
}
