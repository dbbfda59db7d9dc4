//! What is asked for and not there yet is refused.

use super::read_with;

#[test]
fn what_the_environment_asks_for_is_refused_by_its_variable() {
    let environment = [("ALLCLEAR__CLUSTER__TLS__CERT", "/c.pem")];
    let said = read_with("replica.data_dir = \"/d\"", &environment).unwrap_err().to_string();
    let expected = "environment variable ALLCLEAR__CLUSTER__TLS__CERT: `cluster.tls` is refused: this version cannot \
                    encrypt; remove it and set `cluster.insecure = true` on a network that nobody else can reach";
    assert_eq!(said, expected);
}
