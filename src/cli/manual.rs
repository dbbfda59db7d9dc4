//! `allclear completions` and `allclear man`: generated from the definition of the commands, so that both are
//! complete.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Subcommand};
use clap_complete::Shell;

use super::{Arguments, Exit, examples, failed};

const NAME: &str = "allclear";

#[derive(Subcommand)]
pub(super) enum Manual {
    /// Prints the shell completion for this program
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
    /// Prints the manual page, or writes one page for each command
    #[command(after_help = examples::MAN)]
    Man {
        /// The folder for the pages; a missing folder is made
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

impl Manual {
    pub(super) fn run(self) -> Result<(), Exit> {
        let mut text = Vec::new();
        match self {
            Self::Completions { shell } => {
                clap_complete::generate(shell, &mut for_people(), NAME, &mut text);
                ended("the completion", io::stdout().lock().write_all(&text))
            }
            Self::Man { out: Some(folder) } => ended(&folder.display().to_string(), write_into(&folder)),
            Self::Man { out: None } => {
                let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut text);
                let page = with_lines_kept(&String::from_utf8_lossy(&text));
                ended("the manual page", rendered.and_then(|()| io::stdout().lock().write_all(page.as_bytes())))
            }
        }
    }
}

fn write_into(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Arguments::command(), folder)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // Other files may lie there.
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(NAME.as_bytes())) {
            std::fs::write(&path, with_lines_kept(&std::fs::read_to_string(&path)?))?;
        }
    }
    Ok(())
}

/// Keeps the line breaks of the examples, the last section but one, which are lines and no paragraph.
fn with_lines_kept(page: &str) -> String {
    const EXAMPLES: &str = ".SH EXTRA\n";
    let Some((before, examples)) = page.split_once(EXAMPLES) else { return page.to_owned() };
    let (examples, after) = examples.find(".SH ").map_or((examples, ""), |at| examples.split_at(at));
    format!("{before}.SH EXAMPLES\n.nf\n{examples}.fi\n{after}")
}

/// The commands without the commands that replicas start; hidden commands are left out of manual pages automatically.
fn for_people() -> clap::Command {
    let all = Arguments::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set());
    clap::Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments())
        .subcommands(visible)
        .subcommand_required(true)
}

fn ended(what: &str, written: io::Result<()>) -> Result<(), Exit> {
    match written {
        // A closed pipe means that the reader has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(failed(format_args!("{what} cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stay_lines() {
        let page = ".SH NAME\na\n.SH EXTRA\nExamples:\n  a b   c\n.SH VERSION\nv1\n";
        let kept = ".SH NAME\na\n.SH EXAMPLES\n.nf\nExamples:\n  a b   c\n.fi\n.SH VERSION\nv1\n";
        assert_eq!(with_lines_kept(page), kept);
        assert_eq!(with_lines_kept(".SH NAME\na\n"), ".SH NAME\na\n");
    }
}
