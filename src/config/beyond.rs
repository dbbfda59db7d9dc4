//! What a configuration may ask for and this version does not do. Whoever builds it takes its line out.

/// Refused: `cluster.tls`.
pub(super) const TLS: &str = "`cluster.tls` is refused: this version cannot encrypt; remove it and set \
                              `cluster.insecure = true` on a network that nobody else can reach";
