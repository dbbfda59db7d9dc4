//! Compiles every `.proto` of this folder into Rust, without `protoc`.
//! `src/wire/pb.rs` includes what comes out; the descriptor set serves reflection, and `/openapi.json` is made of it.
//! A package has one build script only, so what a release is linked without stands here too.

mod openapi;

use std::path::{Path, PathBuf};

use protox::prost_reflect::DescriptorPool;

type Failure = Box<dyn std::error::Error>;

/// A panic ends a release at once, so nothing ever unwinds; the tables for it would be a seventh of the program. A panic
/// still tells where it was; the calls that led there had no names before either, in a program that is stripped. Where
/// everything is linked statically what looks for the calls needs its own tables, or it aborts.
const WITHOUT_UNWINDING: &str =
    "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.eh_frame_hdr) *(.gcc_except_table*) } } INSERT AFTER .text;";

/// What is answered over HTTP and where, without the messages' schemas.
const PATHS: &str = "src/ops/openapi.json";

fn main() -> Result<(), Failure> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed={PATHS}");
    let mut files = Vec::new();
    collect(Path::new("proto"), &mut files)?;
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    let pool = DescriptorPool::from_file_descriptor_set(descriptors.clone())?;
    std::fs::write(out.join("openapi.json"), openapi::document(&std::fs::read_to_string(PATHS)?, &pool)?)?;
    tonic_prost_build::configure()
        .bytes(".")
        // one shape for `allclear.operator.v1` and the status JSON
        .type_attribute(".allclear.operator.v1", "#[derive(serde::Serialize, serde::Deserialize)]")
        .include_file("protos.rs")
        .compile_fds(descriptors)?;
    let is_dynamic = !std::env::var("CARGO_CFG_TARGET_FEATURE")?.split(',').any(|feature| feature == "crt-static");
    if std::env::var("PROFILE")? == "release" && std::env::var("CARGO_CFG_TARGET_ENV")? == "gnu" && is_dynamic {
        let script = out.join("without_unwinding.ld");
        std::fs::write(&script, WITHOUT_UNWINDING)?;
        println!("cargo:rustc-link-arg-bin=allclear=-Wl,-T,{}", script.display());
    }
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
