//! `allclear http-hook`: a hook over HTTP as a command, which supervisors start (`hooks::HttpHook::command`).

use std::path::PathBuf;
use std::process::ExitCode;

use allclear_server::hooks::{Adapter, HttpHook};
use allclear_server::http_client::{ClientCertificate, Login, Options};

/// Sends the request of an HTTP hook, and exits as a command hook does; supervisors start this command
#[derive(clap::Args)]
pub(super) struct HttpHookArguments {
    /// The adapter for the server's answers: none, patroni
    #[arg(long, default_value = "none", value_parser = adapter)]
    adapter: Adapter,
    /// Certificate authorities to trust beside the system's, in PEM
    #[arg(long)]
    ca: Option<PathBuf>,
    /// The client certificate, in PEM
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// The private key of the client certificate, in PEM
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
    /// The user name for the password
    #[arg(long, requires = "password_file", conflicts_with = "bearer_file")]
    username: Option<String>,
    /// The file with the password
    #[arg(long, requires = "username")]
    password_file: Option<PathBuf>,
    /// The file with a bearer token
    #[arg(long)]
    bearer_file: Option<PathBuf>,
    /// A VM and the Patroni member on this VM, where the names differ
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
    Adapter::parse(word).ok_or_else(|| "write none or patroni".to_owned())
}

fn member(pair: &str) -> Result<(String, String), String> {
    let (vm, member) = pair.split_once('=').ok_or("write VM=MEMBER")?;
    Ok((member.to_owned(), vm.to_owned()))
}
