//! `allclear demo-kv`: one member of the example database, `kv.rs`; started by a demo, not by people.

use allclear_server::exit::{Exit, say};

/// A member of the toy database that dials in at its replica
#[derive(clap::Args)]
pub struct DemoKv {
    /// Name, socket and folder: the example reads them itself
    #[arg(num_args = 3, value_names = ["NAME", "SOCKET", "FOLDER"], required = true)]
    arguments: Vec<String>,
}

impl DemoKv {
    pub fn run(&self) -> Exit {
        match crate::kv::main() {
            Ok(()) => Exit::Done,
            Err(error) => {
                say(format_args!("{}: {error}", self.arguments.join(" ")));
                Exit::Failed
            }
        }
    }
}
