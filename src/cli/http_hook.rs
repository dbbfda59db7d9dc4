//! `allclear http-hook`: a hook over HTTP as a command, which supervisors start (`hooks::HttpHook::command`).

use std::path::PathBuf;
use std::process::ExitCode;

use allclear_server::hooks::{Adapter, HttpHook};
use allclear_server::http_client::{ClientCertificate, Login, Options};

/// Asks a server to do what a hook is for, and answers as a command hook does; started by supervisors
#[derive(clap::Args)]
pub(super) struct HttpHookArguments {
    /// Whose answers are expected: none, patroni
    #[arg(long, default_value = "none", value_parser = adapter)]
    adapter: Adapter,
    /// Certificate authorities that are trusted beside the system's, in PEM
    #[arg(long)]
    ca: Option<PathBuf>,
    /// The certificate that is shown to the server, in PEM
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
    /// Whose password is told
    #[arg(long, requires = "password_file", conflicts_with = "bearer_file")]
    username: Option<String>,
    /// The file of the password
    #[arg(long, requires = "username")]
    password_file: Option<PathBuf>,
    /// The file of a token
    #[arg(long)]
    bearer_file: Option<PathBuf>,
    /// A member of a Patroni cluster and its VM, where they are named otherwise
    #[arg(long = "member", value_name = "VM=MEMBER", value_parser = member)]
    members: Vec<(String, String)>,
    url: String,
}

impl HttpHookArguments {
    pub(super) fn run(self) -> ExitCode {
        let identity = self.cert.zip(self.key).map(|(certificate, key)| ClientCertificate { certificate, key });
        let basic = self.username.zip(self.password_file);
        let basic = basic.map(|(username, password_file)| Login::Basic { username, password_file });
        let login = basic.or(self.bearer_file.map(|token_file| Login::Bearer { token_file }));
        let options = Options { ca: self.ca, identity, login };
        HttpHook { adapter: self.adapter, url: self.url, options, members: self.members }.run()
    }
}

fn adapter(word: &str) -> Result<Adapter, String> {
    Adapter::parse(word).ok_or_else(|| "it is none or patroni".to_owned())
}

fn member(pair: &str) -> Result<(String, String), String> {
    let (vm, member) = pair.split_once('=').ok_or("it is VM=MEMBER")?;
    Ok((member.to_owned(), vm.to_owned()))
}
