//! Links the program of packages (profile `dist`) without tables for unwinding.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A panic aborts the program, so nothing ever unwinds; the tables for unwinding would be a seventh of the program. A
/// panic still prints its location; the calls on the stack had no names before either, in a stripped program. In a
/// static binary the search for these calls needs tables of its own, or aborts.
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

/// `PROFILE` is `release` for every profile that inherits from `release`; the folder has the profile's own name:
/// `PROFILE/build/PACKAGE/out`.
fn is_dist(out: &Path) -> bool {
    out.ancestors().nth(3).and_then(Path::file_name) == Some(OsStr::new("dist"))
}
