//! `allclear completions` and `allclear man`: made from the definition of the commands itself, so that neither forgets
//! one.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Arguments, Exit, examples, say};

const NAME: &str = "allclear";

/// Prints the completion of this program for a shell
#[derive(clap::Args)]
#[command(after_help = examples::COMPLETIONS)]
pub(super) struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the manual page, or writes one page for each command
#[derive(clap::Args)]
#[command(after_help = examples::MAN)]
pub(super) struct Man {
    /// The folder that the pages go to; it is made where it is missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Completions {
    pub(super) fn run(self) -> Exit {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut for_people(), NAME, &mut text);
        ended("the completion", io::stdout().lock().write_all(&text))
    }
}

impl Man {
    pub(super) fn run(self) -> Exit {
        let Some(folder) = self.out else {
            let mut text = Vec::new();
            let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut text);
            return ended("the manual page", rendered.and_then(|()| io::stdout().lock().write_all(&text)));
        };
        let made = std::fs::create_dir_all(&folder);
        let written = made.and_then(|()| clap_mangen::generate_to(Arguments::command(), &folder));
        ended(&folder.display().to_string(), written)
    }
}

/// Without what replicas start; manual pages leave that out by themselves.
fn for_people() -> clap::Command {
    let all = Arguments::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set());
    clap::Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments())
        .subcommands(visible)
        .subcommand_required(true)
}

fn ended(what: &str, written: io::Result<()>) -> Exit {
    match written {
        Ok(()) => Exit::Done,
        // Whoever reads has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => {
            say(format_args!("{what} cannot be written: {error}"));
            Exit::Failed
        }
    }
}
