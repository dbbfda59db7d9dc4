//! Compiles every `.proto` of this folder into Rust, without `protoc`.
//! `src/wire/pb.rs` includes what comes out; the descriptor set serves reflection.

use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("cargo:rerun-if-changed=proto");
    let mut files = Vec::new();
    collect(Path::new("proto"), &mut files)?;
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure()
        .bytes(".")
        // one shape for `allclear.operator.v1` and the status JSON
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
