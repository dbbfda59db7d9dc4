//! Generates `src/wire/generated` from `proto`. Run this after each change of `proto`:
//!
//! ```text
//! cargo run --package allclear-codegen
//! ```
//!
//! The generated files are part of the repository: a build needs no compiler of `.proto` files, whose packages take
//! an eighth of the time of a first build. With `--check` the program writes nothing, and fails if a file differs.

mod openapi;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use protox::prost_reflect::DescriptorPool;
use protox::prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use ring::digest::{SHA256, digest};

const PROTOS: &str = "proto";
const GENERATED: &str = "src/wire/generated";
/// The paths and answers of the HTTP API, without the schemas of the messages.
const PATHS: &str = "proto/openapi.json";

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).context("no root above the package")?;
    std::env::set_current_dir(root)?;
    let is_check = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => bail!("{other:?} is not known; the only option is --check"),
    };
    let wanted = generate()?;
    let present = present()?;
    if is_check {
        for name in wanted.keys().chain(present.keys()) {
            ensure!(
                wanted.get(name) == present.get(name),
                "{GENERATED}/{name} differs from {PROTOS}; run `cargo run --package allclear-codegen`"
            );
        }
        return Ok(());
    }
    for name in present.keys().filter(|name| !wanted.contains_key(*name)) {
        fs::remove_file(Path::new(GENERATED).join(name))?;
    }
    for (name, content) in &wanted {
        fs::write(Path::new(GENERATED).join(name), content)?;
    }
    Ok(())
}

/// The content of each generated file, by name.
fn generate() -> Result<BTreeMap<String, Vec<u8>>> {
    let mut sources = Vec::new();
    collect(Path::new(PROTOS), &mut sources)?;
    sources.sort_by_key(|path| path.display().to_string());
    let protos: Vec<_> = sources.iter().filter(|path| path.extension().is_some_and(|it| it == "proto")).collect();
    let descriptors = protox::compile(&protos, [PROTOS])?;
    let folder = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .bytes(".")
        // equal JSON for `allclear.operator.v1` and the status
        .type_attribute(".allclear.operator.v1", "#[derive(serde::Serialize, serde::Deserialize)]")
        .out_dir(folder.path())
        .compile_fds(descriptors.clone())?;
    let mut files = files_in(folder.path())?;
    files.insert("descriptors.bin".into(), prost::Message::encode_to_vec(&of_services(&descriptors)));
    let pool = DescriptorPool::from_file_descriptor_set(descriptors)?;
    files.insert("openapi.json".into(), openapi::document(&fs::read_to_string(PATHS)?, &pool)?.into_bytes());
    files.insert("sources.sha256".into(), digests(&sources)?.into_bytes());
    Ok(files)
}

/// The files that define services, and the files these import, without comments. Every start of a replica reads them.
fn of_services(all: &FileDescriptorSet) -> FileDescriptorSet {
    let mut wanted: Vec<&str> =
        all.file.iter().filter(|file| !file.service.is_empty()).map(FileDescriptorProto::name).collect();
    let mut place = 0;
    while let Some(name) = wanted.get(place) {
        let imports = all.file.iter().filter(|file| file.name() == *name).flat_map(|file| &file.dependency);
        let new: Vec<&str> = imports.map(String::as_str).filter(|import| !wanted.contains(import)).collect();
        wanted.extend(new);
        place += 1;
    }
    let kept = all.file.iter().filter(|file| wanted.contains(&file.name()));
    let file = kept.map(|file| FileDescriptorProto { source_code_info: None, ..file.clone() }).collect();
    FileDescriptorSet { file }
}

/// A line for each source, as `sha256sum` prints it. A test compares these lines, and needs no compiler for it.
fn digests(sources: &[PathBuf]) -> Result<String> {
    let mut lines = String::new();
    for path in sources {
        let digest = digest(&SHA256, &fs::read(path)?);
        for byte in digest.as_ref() {
            write!(lines, "{byte:02x}")?;
        }
        writeln!(lines, "  {}", path.display())?;
    }
    Ok(lines)
}

fn present() -> Result<BTreeMap<String, Vec<u8>>> {
    fs::create_dir_all(GENERATED)?;
    files_in(Path::new(GENERATED))
}

fn files_in(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    fs::read_dir(folder)?
        .map(|entry| {
            let entry = entry?;
            Ok((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?))
        })
        .collect()
}

/// Every `.proto` file, and the paths of the HTTP API.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto" || extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}
