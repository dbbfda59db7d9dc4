//! The generated messages and services, as modules named like their packages. `cargo run --package allclear-codegen`
//! generates them; without the feature `replica` only the messages of workloads are compiled.
#![allow(clippy::all, clippy::pedantic, clippy::unwrap_used, unreachable_pub)]

pub mod allclear {
    #[cfg(feature = "replica")]
    pub mod cluster {
        pub mod v1 {
            include!("generated/allclear.cluster.v1.rs");
        }
    }
    #[cfg(feature = "replica")]
    pub mod log {
        pub mod v1 {
            include!("generated/allclear.log.v1.rs");
        }
    }
    #[cfg(feature = "replica")]
    pub mod operator {
        pub mod v1 {
            include!("generated/allclear.operator.v1.rs");
        }
    }
    #[cfg(feature = "replica")]
    pub mod raft {
        pub mod v1 {
            include!("generated/allclear.raft.v1.rs");
        }
    }
    pub mod workload {
        pub mod v1 {
            include!("generated/allclear.workload.v1.rs");
        }
    }
}
#[cfg(feature = "replica")]
pub mod opentelemetry {
    pub mod traces {
        include!("generated/opentelemetry.traces.rs");
    }
}

/// The descriptors of every package, for server reflection.
#[cfg(feature = "replica")]
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
