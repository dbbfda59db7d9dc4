//! `allclear demo-kv`: one member of the example database, as it stands in `deploy/examples`; started by a demo, not by
//! people.

#[path = "../../deploy/examples/kv.rs"]
#[allow(dead_code, reason = "its `main` is for people who run it by itself")]
mod kv;

use super::{Exit, runtime, say};

/// A member of the toy database that dials in at its replica
#[derive(clap::Args)]
pub(super) struct DemoKv {
    name: String,
    socket: String,
    folder: String,
}

impl DemoKv {
    pub(super) fn run(&self) -> Exit {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(exit) => return exit,
        };
        match runtime.block_on(kv::take_part(&self.name, &self.socket, &self.folder)) {
            Ok(()) => Exit::Done,
            Err(error) => {
                say(format_args!("{}: {error}", self.name));
                Exit::Failed
            }
        }
    }
}
