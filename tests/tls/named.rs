//! With certificates, a name that also resolves to another server is no obstacle: each attempt verifies the server's
//! identity.

use super::cluster::Cluster;
use super::pki::{Pki, address, refused};
use super::resolver::Resolver;

const HOSTS: [&str; 3] = ["db-0.ac.test", "db-1.ac.test", "db-2.ac.test"];

#[tokio::test]
async fn of_the_addresses_of_a_name_the_one_with_the_right_certificate_is_taken() {
    let Some(resolver) = Resolver::start() else { return };
    let (here, elsewhere) = ([127, 0, 0, 3], [127, 0, 0, 4]);
    resolver.says(HOSTS[0], &[here]);
    resolver.says(HOSTS[1], &[here]);
    resolver.says(HOSTS[2], &[here, elsewhere]);
    let pki = Pki::new();
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).named(&HOSTS, resolver.launcher());
    let mut cluster = plan.cold().await;
    // db-2 listens at the port of db-1, so the first address of db-2 leads to db-1.
    let port = address(&cluster, 1).rsplit_once(':').unwrap().1.to_owned();
    let known_as = ("ALLCLEAR__CLUSTER__REPLICAS__DB_2", format!("{}:{port}", HOSTS[2]));
    let listen = ("ALLCLEAR__CLUSTER__LISTEN", format!("127.0.0.4:{port}"));
    cluster.environments = vec![vec![known_as.clone()], vec![known_as.clone()], vec![known_as, listen]];
    cluster.start_all();
    cluster.ready().await;
    // On a busy machine the second address may have been reached before the first was refused.
    let is_counted = async || refused(&cluster, 0, "wrong_name").await + refused(&cluster, 1, "wrong_name").await > 0;
    cluster.until_true("a refusal of whoever is at the first address", is_counted).await;
}
