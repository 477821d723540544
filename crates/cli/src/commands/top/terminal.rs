//! The terminal: taken over at the beginning, and given back in the end, whatever the end is.

use std::io::{self, Write};
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::draw::{Line, width_of};
use super::keys::keys_of;
use super::state::Key;

/// The bytes of keys that are read at a time.
const INPUT_BYTES: usize = 1_024;
/// The screen of a terminal that does not tell its size.
const UNKNOWN_SIZE: (usize, usize) = (80, 24);
/// Another screen than that of the shell, without wrapping of lines and without a cursor.
const TAKE: &str = "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J";
const GIVE_BACK: &str = "\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l";

/// The settings that the terminal had, while it is taken over. It is given back once: a second time would move the cursor over
/// what was written since.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal while `windlass top` has it.
pub(super) struct Screen {
    /// The lines that are shown, and the size for which they were written.
    shown: Vec<String>,
    size: (usize, usize),
}

impl Screen {
    /// Takes the terminal over. A panic in any thread gives it back before it is reported.
    pub(super) fn open() -> io::Result<Screen> {
        let before = tcgetattr(io::stdin())?;
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            give_back();
            report(information);
        }));
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let screen = Screen { shown: Vec::new(), size: (0, 0) };
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        write(TAKE)?;
        Ok(screen)
    }

    /// The columns and rows of the terminal.
    pub(super) fn size() -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            Ok(_) | Err(_) => UNKNOWN_SIZE,
        }
    }

    /// Whether the terminal has another size than at the last picture.
    pub(super) fn has_new_size(&self) -> bool {
        Screen::size() != self.size
    }

    /// Writes the lines that differ from those on the screen.
    pub(super) fn show(&mut self, picture: &[Line], size: (usize, usize)) -> io::Result<()> {
        let lines: Vec<String> = picture.iter().map(|line| coded(line, size.0)).collect();
        let mut text = String::new();
        if size != self.size {
            self.shown.clear();
            text.push_str("\x1b[0m\x1b[2J");
        }
        for (row, line) in lines.iter().enumerate() {
            if self.shown.get(row) != Some(line) {
                text.push_str(&format!("\x1b[{};1H{line}", row + 1));
            }
        }
        (self.shown, self.size) = (lines, size);
        write(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// The line with the codes of its styles. The rest of its row is erased; without a rest, the code would erase the last character.
fn coded(line: &Line, columns: usize) -> String {
    let text: String =
        line.iter().map(|span| format!("{}{}{:#}", span.style, span.text, span.style)).collect();
    if width_of(line) < columns { text + "\x1b[K" } else { text }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn give_back() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // Nothing can be done about a terminal that is gone.
        let _ = write(GIVE_BACK);
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
    }
}

/// The keys that were pressed, after at most `longest`. An error if the terminal is gone.
pub(super) fn wait_for_keys(longest: Duration) -> io::Result<Vec<Key>> {
    let stdin = io::stdin();
    let pause = Timespec::try_from(longest).ok();
    let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], pause.as_ref());
    match ready {
        Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut bytes = [0; INPUT_BYTES];
    // The buffer of `Stdin` would keep bytes that the next poll does not see.
    let count = match rustix::io::read(&stdin, &mut bytes) {
        Err(Errno::INTR | Errno::AGAIN) => return Ok(Vec::new()),
        read => read?,
    };
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(keys_of(&bytes[..count]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Command;

    use super::*;

    const ON_A_SCREEN: &str = include_str!("../../../../../tests/tests/black_box/on_a_screen.py");
    /// Set for the process of this test that has a terminal.
    const HAS_SCREEN: &str = "WINDLASS_TEST_HAS_SCREEN";

    /// The test starts itself on a terminal of its own, and panics there.
    #[test]
    fn a_panic_of_any_thread_gives_the_terminal_back_before_it_is_reported() {
        if std::env::var_os(HAS_SCREEN).is_some() {
            let screen = Screen::open().unwrap();
            let panicked = std::thread::spawn(|| panic!("as planned")).join();
            assert!(panicked.is_err());
            // As if the process ended here.
            std::mem::forget(screen);
            return;
        }
        let program = std::env::current_exe().unwrap();
        let name =
            concat!(module_path!(), "::a_panic_of_any_thread_gives_the_terminal_back_before_it_is_reported");
        let (_crate, name) = name.split_once("::").unwrap();
        let output = Command::new("python3")
            .args(["-c", ON_A_SCREEN, "[]"])
            .arg(program)
            .args(["--exact", name, "--nocapture"])
            .env(HAS_SCREEN, "1")
            .output()
            .unwrap();
        let seen: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let raw = seen["raw"].as_str().unwrap();
        let (taken, reported) = (raw.find(TAKE), raw.find("as planned"));
        let given_back = raw.find(GIVE_BACK);
        assert!(taken.is_some() && taken < given_back && given_back < reported, "{seen:#}");
        assert_eq!(seen["settings_are_as_before"], true, "{seen:#}");
        assert_eq!(seen["is_on_the_other_screen"], false, "{seen:#}");
        assert_eq!(seen["cursor_is_shown"], true, "{seen:#}");
    }
}
