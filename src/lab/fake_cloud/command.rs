//! `allclear fake-cloud`: the platform's metadata endpoint on loopback, for tests and development.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::fake_cloud::{self, CloudScenario, Options, Running, SCENARIOS, ServeError};
use allclear_server::exit::{Exit, failed, misused, runtime, say};
use allclear_server::signals::asked_to_stop;
use allclear_server::{config, http};

const CONTROL: &str = "

The first line of the output is the control address, http://ADDRESS/control. A GET of this address describes the control
interface: how to announce events, and how to let the service fail.";

/// Emulates Azure's metadata endpoint for made-up VMs on loopback, until SIGTERM or Ctrl-C
#[derive(clap::Args)]
#[command(after_help = scenarios() + CONTROL)]
pub struct FakeCloud {
    /// The loopback address and port. The VMs' ports follow this port; with port 0, all ports are free ports
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The VMs' names; scenarios count the VMs in this order
    #[arg(long, value_name = "a,b,c", value_delimiter = ',', required = true)]
    vms: Vec<String>,
    /// The scenario to play: a built-in scenario (see the list below), or a file
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<String>,
    /// The factor by which times in scenarios run faster
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    speed: NonZeroU32,
    /// Appends every request to this file, as a line of JSON
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl FakeCloud {
    pub fn run(self) -> Result<(), Exit> {
        http::logging::start(&config::log_filter()).map_err(misused)?;
        runtime()?.block_on(self.serve())
    }

    async fn serve(self) -> Result<(), Exit> {
        let Self { listen, vms, scenario, speed, log } = self;
        let stop = asked_to_stop().map_err(|error| failed(format_args!("cannot receive signals: {error}")))?;
        let scenario = scenario.as_deref().map(CloudScenario::find).transpose().map_err(misused)?;
        let told = scenario.as_ref().map(|scenario| format!("{}: {}", scenario.name(), scenario.about()));
        let options = Options { listen, scenario, speed, log, ..Options::new(vms.iter().cloned()) };
        let mut cloud = fake_cloud::serve(options).await.map_err(|error| match error {
            ServeError::Listen { .. } | ServeError::Log { .. } => failed(error),
            _ => misused(error),
        })?;
        print(&cloud, &vms).map_err(|error| failed(format_args!("the addresses cannot be printed: {error}")))?;
        say(told.as_deref().unwrap_or("no scenario is given: announce events over the control address"));
        tokio::select! {
            () = cloud.wait() => Err(failed("the ports of the fake cloud failed")),
            () = stop => {
                cloud.shutdown().await;
                Ok(())
            }
        }
    }
}

/// Prints one address a line, with its owner. All lines are one write, so that a reader of only the first lines may
/// close the pipe.
fn print(cloud: &Running, vms: &[String]) -> io::Result<()> {
    let mut text = format!("control {}\n", cloud.control());
    for vm in vms {
        let _ = writeln!(text, "{vm} {}", cloud.endpoint(vm).unwrap_or_default());
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// The built-in scenarios, a line each.
pub fn scenarios() -> String {
    let mut text = String::from("Scenarios:");
    for (name, written) in SCENARIOS {
        let about = CloudScenario::parse(name, written).map(|scenario| scenario.about().to_owned()).unwrap_or_default();
        let _ = write!(text, "\n  {name:<22}{about}");
    }
    text
}
