//! The terminal: live progress and colours, unless the user turned them off.

use std::process::Command;

use windlass_tests::Sandbox;

/// Runs its arguments on a new terminal and prints the output. Ends with the exit code of the program.
const ON_A_TERMINAL: &str =
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

const SLOW: &str = "name = \"slow\"\n[jobs.first]\nrun = 'sleep 0.5'\n\
                    [jobs.second]\nneeds = [\"first\"]\nrun = 'echo the reason >&2; exit 3'\n";

/// The settings of the user.
#[derive(PartialEq, Eq)]
enum Wish {
    Nothing,
    NoColour,
}

/// What `windlass run` writes to a terminal.
fn shown(sandbox: &Sandbox, wish: Wish) -> String {
    let file = sandbox.write("slow.toml", SLOW);
    let program = windlass_tests::binary::windlass().to_string_lossy().into_owned();
    let arguments = ["-c", ON_A_TERMINAL, &program, "run", &file];
    let mut command = sandbox.prepared(Command::new("python3"), &arguments);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
    if wish == Wish::NoColour {
        command.env("NO_COLOR", "1");
    }
    sandbox.start(command).wait().exited(1).stdout
}

/// Whether a colour was chosen: `ESC [ 3x m` and the like.
pub(crate) fn has_colour(text: &str) -> bool {
    let mut codes = text.split("\u{1b}[").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
        rest[end..].starts_with('m').then_some(&rest[..end])
    });
    codes.any(|code| code.split(';').any(|part| part.len() == 2 && matches!(part.as_bytes()[0], b'3' | b'9')))
}

#[test]
fn progress_moves_and_a_failure_is_shown_at_once() {
    let text = shown(&Sandbox::new(), Wish::Nothing);
    assert!(text.contains("first") && text.contains("second"), "{text:?}");
    assert!(text.contains('\u{1b}'), "nothing moved: {text:?}");
    assert!(text.contains("the reason"), "{text:?}");
    assert!(has_colour(&text), "{text:?}");
    assert!(text.contains("0/2") || text.contains("0 of 2"), "not how far it is: {text:?}");
}

#[test]
fn no_color_is_honoured() {
    let text = shown(&Sandbox::new(), Wish::NoColour);
    assert!(!has_colour(&text), "{text:?}");
    assert!(text.contains("the reason"), "{text:?}");
}

#[test]
fn colours_are_told_from_other_codes() {
    assert!(has_colour("\u{1b}[31mred") && has_colour("\u{1b}[1;92mgreen"));
    assert!(!has_colour("\u{1b}[2K\u{1b}[1mbold\u{1b}[0m") && !has_colour("3m"));
}
