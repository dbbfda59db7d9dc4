//! `allclear certs`: an authority for one cluster, and the certificates of its replicas, for people without a PKI.
//! Only files are written: the command sends nothing and notifies no replica.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::{Exit, examples, failed, say};
use allclear_server::net::tls::Authority;
use allclear_server::net::tls::issued::{CA, issue, make_folder, write_new};
use allclear_server::replica::clock::{self, rfc3339};

const CA_KEY: &str = "ca.key";

/// Makes the certificates with which replicas authenticate each other, for a cluster without a PKI
#[derive(Subcommand)]
#[command(after_help = examples::CERTS)]
pub(super) enum Certs {
    /// Makes an authority for one cluster: every replica trusts ca.pem, and ca.key signs the certificates
    Init {
        /// The folder for ca.pem and ca.key. A missing folder is made, and an existing authority is never replaced
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// The cluster's name, as in cluster.name
        #[arg(long, value_name = "NAME")]
        cluster: String,
        /// The validity of the authority in days
        #[arg(long, value_name = "N", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
    /// Makes or renews the key and the certificate of one replica: DIR/REPLICA with node.pem, node.key and ca.pem
    Issue {
        /// The folder with ca.pem and ca.key
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// The replica's name, as in cluster.replicas
        #[arg(long, value_name = "NAME")]
        replica: String,
        /// The validity of the certificate in days, at most until the end of the authority
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
}

impl Certs {
    pub(super) fn run(self) -> Result<(), Exit> {
        let done = match self {
            Self::Init { dir, cluster, days } => init(&dir, &cluster, days),
            Self::Issue { dir, replica, days } => issue_into(&dir, &replica, days),
        };
        done.map_err(|error| failed(format_args!("{error:#}")))
    }
}

fn init(dir: &Path, cluster: &str, days: u32) -> anyhow::Result<()> {
    if cluster.trim().is_empty() {
        bail!("--cluster is empty: write the cluster's name, as in cluster.name");
    }
    let (cert, key) = (dir.join(CA), dir.join(CA_KEY));
    for path in [&cert, &key] {
        if fs::symlink_metadata(path).is_ok() {
            bail!("{} exists, and an existing authority is never replaced: choose another --dir", path.display());
        }
    }
    let made = Authority::make(cluster, days, clock::now())?;
    make_folder(dir)?;
    // The key first: a certificate without a key would look like an authority.
    write_new(&key, &made.key, 0o600)?;
    write_new(&cert, &made.cert, 0o644)?;
    say(format_args!(
        "the authority for cluster {cluster:?} is made, valid until {}: {} and {}",
        rfc3339(made.expires_at),
        cert.display(),
        key.display()
    ));
    say("a person with ca.key can act as any replica: keep ca.key off the replicas' machines");
    say(format_args!("next, for each replica: allclear certs issue --dir {} --replica NAME", dir.display()));
    Ok(())
}

fn issue_into(dir: &Path, replica: &str, days: u32) -> anyhow::Result<()> {
    if replica.trim() != replica || replica.is_empty() || replica.starts_with('.') || replica.contains(['/', '\0']) {
        bail!("{replica:?} cannot be the name of a folder: write a name without /, leading dots and outer spaces");
    }
    let ca = read(&dir.join(CA))?;
    let authority = Authority::read(&ca, &read(&dir.join(CA_KEY))?).with_context(|| dir.display().to_string())?;
    let folder = dir.join(replica);
    let expires_at = issue((&authority, &ca), replica, days, &folder, clock::now())?;
    let (cluster, until, shown) = (authority.cluster(), rfc3339(expires_at), folder.display());
    say(format_args!("the certificate for {replica} of cluster {cluster:?} is made, valid until {until}: {shown}"));
    say(format_args!(
        "copy {shown} to the machine of {replica}, for cert, key and ca of [cluster.tls]; a running replica loads them"
    ));
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let read = fs::read_to_string(path);
    read.with_context(|| format!("cannot read {}; `allclear certs init` makes an authority", path.display()))
}
