//! `allclear demo-kv`: one member of the example database, `kv.rs`; started by a demo, not by people.

use allclear_server::exit::{Exit, say};

/// Runs a member of the example database, as a session workload of one replica
#[derive(clap::Args)]
pub struct DemoKv {
    /// The name, the socket and the folder of the member
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
