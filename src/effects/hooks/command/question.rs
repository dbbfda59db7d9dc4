//! Asks a program for a short answer, without a spool and a supervisor. No process of the program remains.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command as Process};
use tokio::time::timeout;

use super::environment::Given;
use super::output::bounded;
use super::user::RunAs;
use super::{HookCommand, HookEnvironment};
use crate::secrets::Secrets;

/// Output beyond this limit is not read.
const ANSWER_LIMIT: u64 = 4096;

/// The exit status of the program, and its output.
pub struct ProgramOutput {
    pub status: ExitStatus,
    pub said: String,
    /// The last line of the program's standard error, on one line and without the command's secrets; empty without
    /// output.
    pub complaint: String,
}

impl ProgramOutput {
    /// The reason of a program that has failed: its last complaint, or its exit status.
    pub fn failure(self) -> String {
        if self.complaint.is_empty() { format!("the command ended with {}", self.status) } else { self.complaint }
    }
}

/// The program and its input.
pub struct Question<'a> {
    pub command: &'a HookCommand,
    pub variables: Vec<(String, String)>,
    /// Written to the program's standard input.
    pub input: String,
}

impl Question<'_> {
    /// The program's answer, if the program ends within `patience`; otherwise the reason for the missing answer.
    pub async fn ask(self, surroundings: &HookEnvironment, patience: Duration) -> Result<ProgramOutput, String> {
        let late = || format!("the command did not end within {} ms", patience.as_millis());
        let given = timeout(patience, Given::to(self.command)).await.map_err(|_| late())??;
        let mut child = self.start(surroundings, &given)?;
        let _group = child.id().and_then(|id| i32::try_from(id).ok()).map(ProcessGroup);
        timeout(patience, self.answer(&mut child, &given.secrets)).await.unwrap_or_else(|_| Err(late()))
    }

    fn start(&self, surroundings: &HookEnvironment, given: &Given) -> Result<Child, String> {
        let [program, arguments @ ..] = self.command.argv.as_slice() else {
            return Err("the command is empty".to_owned());
        };
        let identity = self.command.user.as_deref().map(RunAs::of).transpose()?;
        let mut process = Process::new(program);
        process.args(arguments).current_dir("/").process_group(0).kill_on_drop(true);
        process.env_clear().env("PATH", &surroundings.path).env("HOME", &surroundings.home);
        process.env("LANG", &surroundings.lang).envs(&given.env);
        process.envs(self.variables.iter().map(|(name, value)| (name, value)));
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(identity) = &identity {
            identity.give_to(&mut process);
        }
        process.spawn().map_err(|error| format!("cannot start {program}: {error}"))
    }

    async fn answer(&self, child: &mut Child, secrets: &Secrets) -> Result<ProgramOutput, String> {
        if let Some(mut stdin) = child.stdin.take() {
            let input = self.input.clone();
            // Many programs do not read their input.
            tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (said, complaints) = tokio::join!(read(stdout), read(stderr));
        let (said, complaints) = (said?, complaints?);
        let status = child.wait().await.map_err(|error| format!("cannot wait for the command: {error}"))?;
        let complaints = secrets.cut(&complaints);
        let complaint = complaints.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        Ok(ProgramOutput { status, said, complaint: bounded(complaint) })
    }
}

/// The processes of a program. They end with the question, also when nobody waits for the answer any more.
struct ProcessGroup(i32);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Only fails when no process is left.
        let _ = killpg(Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

/// Output beyond the limit is drained, so the program never blocks on a full pipe.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> Result<String, String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let mut said = Vec::new();
    let read = async {
        (&mut stream).take(ANSWER_LIMIT).read_to_end(&mut said).await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    read.await.map_err(|error| format!("cannot read its output: {error}"))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}
