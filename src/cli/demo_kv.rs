//! `allclear demo-kv`: one member of the example database, as it stands in `deploy/examples`; started by a demo, not by
//! people.

#[path = "../../deploy/examples/kv.rs"]
mod kv;

use super::{Exit, say};

/// A member of the toy database that dials in at its replica
#[derive(clap::Args)]
pub(super) struct DemoKv {
    /// Name, socket and folder: the example reads them itself
    #[arg(num_args = 3, value_names = ["NAME", "SOCKET", "FOLDER"], required = true)]
    arguments: Vec<String>,
}

impl DemoKv {
    pub(super) fn run(&self) -> Exit {
        match kv::main() {
            Ok(()) => Exit::Done,
            Err(error) => {
                say(format_args!("{}: {error}", self.arguments.join(" ")));
                Exit::Failed
            }
        }
    }
}
