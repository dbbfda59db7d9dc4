//! Links the program of packages (profile `dist`) without tables for unwinding.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A panic ends the program at once, so nothing ever unwinds; the tables for it would be a seventh of the program. A panic
/// still tells where it was; the calls that led there had no names before either, in a program that is stripped. Where
/// everything is linked statically what looks for the calls needs its own tables, or it aborts.
const WITHOUT_UNWINDING: &str =
    "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.eh_frame_hdr) *(.gcc_except_table*) } } INSERT AFTER .text;";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/build.rs");
    let is_dynamic = !std::env::var("CARGO_CFG_TARGET_FEATURE")?.split(',').any(|feature| feature == "crt-static");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    if is_dist(&out) && std::env::var("CARGO_CFG_TARGET_ENV")? == "gnu" && is_dynamic {
        let script = out.join("without_unwinding.ld");
        std::fs::write(&script, WITHOUT_UNWINDING)?;
        println!("cargo:rustc-link-arg-bin=allclear=-Wl,-T,{}", script.display());
    }
    Ok(())
}

/// `PROFILE` is `release` for every profile that inherits from it; the folder has the profile's own name:
/// `PROFILE/build/PACKAGE/out`.
fn is_dist(out: &Path) -> bool {
    out.ancestors().nth(3).and_then(Path::file_name) == Some(OsStr::new("dist"))
}
