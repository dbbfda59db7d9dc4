//! Where the demo is watched: lines as they come, and on a terminal a board below them that is drawn anew.

use std::io::{self, IsTerminal as _, Write as _};

/// Up to the board's first line, and everything from there on away.
const ERASE: &str = "\x1b[J";
/// A line that is too long is cut, not broken: a broken one would be two to go up over.
const NO_WRAP: (&str, &str) = ("\x1b[?7l", "\x1b[?7h");

#[derive(Clone, Copy)]
pub(super) enum Colour {
    Bold,
    Faint,
    Green,
    Yellow,
    Red,
}

pub(super) struct Screen {
    to_stderr: bool,
    is_live: bool,
    has_colours: bool,
    /// Lines of the board that stand at the end.
    drawn: usize,
}

impl Screen {
    pub(super) fn new(to_stderr: bool, colours_refused: bool) -> Self {
        let is_live = if to_stderr { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        Self { to_stderr, is_live, has_colours: is_live && !colours_refused, drawn: 0 }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.show(&[line.to_owned()], &[]);
    }

    /// New lines to stay, and the board as it is now.
    pub(super) fn show(&mut self, news: &[String], board: &[String]) {
        let mut text = String::new();
        if self.drawn > 0 {
            text = format!("\x1b[{}A\r{ERASE}", self.drawn);
        }
        for line in news {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = 0;
        if self.is_live && !board.is_empty() {
            text.push_str(NO_WRAP.0);
            for line in board {
                text.push_str(line);
                text.push('\n');
            }
            text.push_str(NO_WRAP.1);
            self.drawn = board.len();
        }
        self.write(&text);
    }

    pub(super) fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => "1",
            Colour::Faint => "2",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn write(&self, text: &str) {
        // Where nobody looks any more, nothing is lost.
        if self.to_stderr {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        } else {
            let mut out = io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}
