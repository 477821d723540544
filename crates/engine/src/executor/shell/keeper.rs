//! The keeper: a tiny process beside the engine that kills the engine's jobs when the engine dies.
//!
//! Even `kill -9` closes the pipe between them; the keeper then kills every group it was told of and
//! ends. It is a shell with three built-ins, so nothing has to be installed or found. Where no shell
//! is, nothing is lost but time: the next attempt of a job sweeps what an earlier one left.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::Pid;

/// Reads `+ group` and `- group` until the pipe ends; then kills the groups that are left, and removes
/// the worker's scratch folder, which nobody else would.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
live=
while read -r change group; do
    case $change in
        +) live="$live $group" ;;
        -) rest=
           for other in $live; do [ "$other" = "$group" ] || rest="$rest $other"; done
           live=$rest ;;
    esac
done
for group in $live; do kill -9 "-$group"; done 2>/dev/null
exec /bin/rm -rf -- "$1"
"#;

/// The handle of the keeper, started with the first process.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    process: OnceLock<Option<Mutex<Child>>>,
}

impl Keeper {
    /// A group runs. `scratch` is the folder to remove when the engine is gone.
    pub(super) fn add(&self, group: Pid, scratch: &Path) {
        self.process.get_or_init(|| match start(scratch) {
            Ok(child) => Some(Mutex::new(child)),
            Err(error) => {
                tracing::warn!(%error, "no shell to keep watch: jobs may outlive a killed engine for a while");
                None
            }
        });
        self.tell('+', group);
    }

    /// A group is no more.
    pub(super) fn remove(&self, group: Pid) {
        self.tell('-', group);
    }

    fn tell(&self, change: char, group: Pid) {
        let Some(Some(child)) = self.process.get() else { return };
        let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = child.stdin.as_mut() {
            // One write per message. A keeper that does not read must not hold the engine up: the pipe
            // does not block, and what does not fit is lost to the keeper, not to the sweep.
            let _full_or_gone = pipe.write_all(format!("{change} {}\n", group.as_raw_nonzero()).as_bytes());
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(Some(child)) = self.process.get_mut() {
            let child = child.get_mut().unwrap_or_else(PoisonError::into_inner);
            drop(child.stdin.take());
            let _gone = child.wait();
        }
    }
}

fn start(scratch: &Path) -> std::io::Result<Child> {
    let child = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "windlass-keeper"])
        .arg(scratch)
        // Of a job's environment it must have nothing: it would be swept as a part of that job.
        .env_clear()
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(pipe) = &child.stdin {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    Ok(child)
}
