//! Both client libraries of `allclear.workload.v1` keep their promises: one list of scenarios, against a scripted
//! replica on a Unix socket, with the workload as a process of its own.

mod attempts;
mod bench;
mod examples;
mod interrupted;
mod puppet;
pub(crate) mod python;
mod replica;
mod sessions;

/// Each scenario once for every language.
macro_rules! in_both {
    ($($scenario:ident),* $(,)?) => {
        mod rust {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::clients::bench::Bench::new(crate::clients::bench::Tongue::Rust)).await;
            })*
        }
        mod python {
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(tongue) = crate::clients::bench::python() {
                    super::$scenario(crate::clients::bench::Bench::new(tongue)).await;
                }
            })*
        }
    };
}
pub(crate) use in_both;
