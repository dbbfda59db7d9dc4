//! Compiles every `.proto` file into Rust, without `protoc`; without the feature `replica` only the files of the
//! workload service. `pb.rs` includes the generated code; the descriptor set is used for reflection and for
//! `/openapi.json`.

mod openapi;

use std::path::{Path, PathBuf};

use protox::prost_reflect::DescriptorPool;

type Failure = Box<dyn std::error::Error>;

/// The paths and answers of the HTTP API, without the messages' schemas.
const PATHS: &str = "../../proto/openapi.json";
const PROTOS: &str = "../../proto";
const OF_WORKLOADS: &str = "../../proto/allclear/workload";

fn main() -> Result<(), Failure> {
    println!("cargo:rerun-if-changed={PROTOS}");
    let is_replicas = std::env::var_os("CARGO_FEATURE_REPLICA").is_some();
    let mut files = Vec::new();
    collect(Path::new(if is_replicas { PROTOS } else { OF_WORKLOADS }), &mut files)?;
    files.sort();
    let descriptors = protox::compile(&files, [PROTOS])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    if is_replicas {
        let pool = DescriptorPool::from_file_descriptor_set(descriptors.clone())?;
        std::fs::write(out.join("openapi.json"), openapi::document(&std::fs::read_to_string(PATHS)?, &pool)?)?;
    }
    tonic_prost_build::configure()
        .bytes(".")
        // equal JSON for `allclear.operator.v1` and the status
        .type_attribute(".allclear.operator.v1", "#[derive(serde::Serialize, serde::Deserialize)]")
        .include_file("protos.rs")
        .compile_fds(descriptors)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
