//! The output of a hook: kept up to a limit, discarded beyond it, and read line by line.

use std::io::Write;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::hooks::one_line;
use crate::secrets::Secrets;

const KEPT: usize = 64 * 1024;
const NOTE: &str = "\n[allclear: output after the first 64 KiB is not kept]\n";
/// The parsed length of a line; the rest is ignored.
const LINE: usize = 4096;
/// The longest text for the cluster.
const TEXT: usize = 300;

/// Reads to the end of the stream, so a hook with endless output never blocks. Secrets are neither passed to `hear` nor
/// kept.
pub(super) async fn keep(
    stream: Option<impl AsyncRead + Unpin>,
    file: &Path,
    secrets: &Secrets,
    mut hear: impl FnMut(&str),
) {
    let Some(mut stream) = stream else { return };
    // The hook matters more than its output: without a file the output is only parsed.
    let mut kept = std::fs::File::create(file).ok();
    let mut room = KEPT;
    let (mut lines, mut cutter) = (LineSplitter::default(), secrets.cutter());
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).await.unwrap_or_default();
        let bytes = if read == 0 { cutter.finish() } else { cutter.push(&buffer[..read]) };
        lines.take(&bytes, &mut hear);
        let fitting = room.min(bytes.len());
        if let Some(file) = &mut kept {
            let _ = file.write_all(&bytes[..fitting]);
        }
        if fitting < bytes.len()
            && let Some(mut full) = kept.take()
        {
            let _ = full.write_all(NOTE.as_bytes());
        }
        room -= fitting;
        if read == 0 {
            break;
        }
    }
    lines.finish(&mut hear);
}

#[derive(Default)]
struct LineSplitter(Vec<u8>);

impl LineSplitter {
    fn take(&mut self, bytes: &[u8], hear: &mut impl FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE - self.0.len();
            self.0.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.finish(hear);
            }
        }
    }

    fn finish(&mut self, hear: &mut impl FnMut(&str)) {
        let line = String::from_utf8_lossy(&self.0);
        if !line.trim().is_empty() {
            hear(line.trim());
        }
        self.0.clear();
    }
}

/// Bounds a text of a hook to one line and to a size fit for the log.
pub(super) fn bounded(text: &str) -> String {
    let shown: String = text.chars().take(TEXT).collect();
    let more = if text.chars().nth(TEXT).is_some() { "…" } else { "" };
    one_line(&shown) + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(chunks: &[&[u8]]) -> Vec<String> {
        let mut heard = Vec::new();
        let mut lines = LineSplitter::default();
        let mut hear = |line: &str| heard.push(line.to_owned());
        for chunk in chunks {
            lines.take(chunk, &mut hear);
        }
        lines.finish(&mut hear);
        heard
    }

    #[test]
    fn lines_are_heard_whole_however_they_arrive() {
        assert_eq!(heard(&[b"a\nb", b"c\n\n  \nd"]), ["a", "bc", "d"]);
        assert_eq!(heard(&[b"\xff\n"]), ["\u{fffd}"]);
    }

    #[test]
    fn a_line_without_an_end_takes_no_memory_without_an_end() {
        let long = vec![b'x'; 10 * LINE];
        assert_eq!(heard(&[&long, &long, b"\nnext"]), ["x".repeat(LINE), "next".into()]);
    }

    #[test]
    fn texts_are_one_line_of_bounded_length() {
        assert_eq!(bounded("a\tb\u{1b}[31mc"), "a b [31mc");
        assert_eq!(bounded(&"é".repeat(1000)).chars().count(), TEXT + 1);
    }
}
