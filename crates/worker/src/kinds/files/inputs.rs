//! Puts artifacts of other jobs into the folder of a job.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use windlass_engine::RunFiles;
use windlass_engine::store::KeptArtifact;
use windlass_engine::transition::Outcome;
use windlass_workflow::files::{FilePattern, Input};
use windlass_workflow::limits;

use crate::handler::{Attempt, failed, failed_for_good};
use crate::kinds::values::read_with_retries;

/// How many names an error shows.
const SHOWN_MAX: usize = 5;

/// Puts the files of one input into the folder.
pub(super) fn put(
    attempt: &Attempt,
    folder: &Path,
    input: &Input,
    pattern: &FilePattern,
) -> Result<(), Outcome> {
    let files = super::folder_for_files(attempt)?;
    let kept = read_with_retries(attempt, || attempt.artifacts_of(&input.job))?;
    let matching = choose(input, pattern, &kept).map_err(failed_for_good)?;
    for kept in matching {
        if attempt.stop().cause().is_some() {
            return Err(Outcome::Unstarted);
        }
        let target =
            if input.is_folder() { format!("{}{}", input.to, kept.artifact.path) } else { input.to.clone() };
        copy(attempt, files, folder, &target, &kept.artifact.hash).map_err(|error| {
            failed(format!("the input `{target}` ({} of {}): {error}", kept.artifact.path, kept.job))
        })?;
    }
    Ok(())
}

/// The artifacts that match. Pure.
fn choose<'k>(
    input: &Input,
    pattern: &FilePattern,
    kept: &'k [KeptArtifact],
) -> Result<Vec<&'k KeptArtifact>, String> {
    let Input { to, job, .. } = input;
    let text = pattern.text();
    let mut matching: Vec<&KeptArtifact> =
        kept.iter().filter(|kept| pattern.matches(&kept.artifact.path)).collect();
    if matching.is_empty() {
        return Err(match kept {
            [] => format!("the input `{to}`: job `{job}` kept no files"),
            kept => format!(
                "the input `{to}`: no artifact of job `{job}` matches `{text}`; it has {}",
                names(kept)
            ),
        });
    }
    if matching.len() > limits::ARTIFACTS {
        return Err(format!("the input `{to}`: more than {} files match `{text}`", limits::ARTIFACTS));
    }
    matching.sort_by(|one, other| one.artifact.path.cmp(&other.artifact.path));
    if let Some(pair) = matching.windows(2).find(|pair| pair[0].artifact.path == pair[1].artifact.path) {
        let (one, other, path) = (&pair[0].job, &pair[1].job, &pair[0].artifact.path);
        return Err(format!(
            "the input `{to}`: `{one}` and `{other}` both keep {path}; put {{{{ index }}}} into the path of the artifacts"
        ));
    }
    match (matching.len(), input.is_folder()) {
        (1, _) | (_, true) => Ok(matching),
        (several, false) => Err(format!(
            "the input `{to}`: {several} artifacts of job `{job}` match `{text}`; write `{to}/` to put them into a folder"
        )),
    }
}

fn names(kept: &[KeptArtifact]) -> String {
    let shown: Vec<&str> = kept.iter().take(SHOWN_MAX).map(|kept| kept.artifact.path.as_str()).collect();
    match kept.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Writes the file beside its place and renames it.
fn copy(attempt: &Attempt, files: &RunFiles, folder: &Path, target: &str, hash: &str) -> io::Result<()> {
    let folder = folder.canonicalize().map_err(|error| {
        io::Error::new(error.kind(), format!("the folder {}: {error}: check `dir`", folder.display()))
    })?;
    let place = place(files, &folder, target)?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    // Names have at most 255 bytes.
    let name: String = name.chars().take(50).collect();
    let beside = place.with_file_name(format!(".{name}.windlass-{}", attempt.idempotency_key()));
    let _absent = fs::remove_file(&beside);
    let mut content = files.open_content(hash)?;
    let copied = File::create_new(&beside).and_then(|mut file| io::copy(&mut content, &mut file));
    let placed = copied.and_then(|_bytes| fs::rename(&beside, &place));
    if placed.is_err() {
        let _absent = fs::remove_file(&beside);
    }
    placed
}

/// The path of a file below the folder. Its folders are made.
fn place(files: &RunFiles, folder: &Path, target: &str) -> io::Result<PathBuf> {
    let place = folder.join(target);
    let parent = place.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    let real = parent.canonicalize()?;
    let place = real.join(place.file_name().unwrap_or_default());
    if !real.starts_with(folder) {
        return Err(io::Error::other("its folder is a link that leads out of the folder of the job"));
    }
    if files.is_own(&place) {
        return Err(io::Error::other("this file belongs to the database"));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::store::Artifact;

    use super::*;

    fn chosen(to: &str, pattern: &str, kept: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let input = Input::parse(to, &format!("jobs.a/{pattern}")).unwrap();
        let kept: Vec<KeptArtifact> = kept
            .iter()
            .map(|(job, path)| {
                let artifact = Artifact { path: (*path).to_owned(), hash: String::new(), bytes: 0 };
                KeptArtifact { job_id: 1, job: (*job).to_owned(), artifact }
            })
            .collect();
        let chosen = choose(&input, &FilePattern::parse(pattern).unwrap(), &kept)?;
        Ok(chosen.into_iter().map(|kept| kept.artifact.path.clone()).collect())
    }

    #[test]
    fn an_input_is_one_file_or_a_folder_of_files() {
        let kept = [("a[1]", "out/b"), ("a[0]", "out/a"), ("a[0]", "c")];
        assert_eq!(chosen("x", "out/a", &kept).unwrap(), ["out/a"]);
        assert_eq!(chosen("x/", "out/*", &kept).unwrap(), ["out/a", "out/b"]);
        for (to, pattern, kept, reason) in [
            ("x", "out/*", &kept[..], "2 artifacts of job `a` match `out/*`; write `x/`"),
            ("x", "d", &kept[..], "no artifact of job `a` matches `d`; it has out/b, out/a, c"),
            ("x", "d", &[], "job `a` kept no files"),
            ("x/", "*", &[("a[0]", "c"), ("a[1]", "c")], "`a[0]` and `a[1]` both keep c"),
        ] {
            let error = chosen(to, pattern, kept).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_file_is_put_below_the_folder_and_never_over_the_database() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().canonicalize().unwrap().join("job");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.join("away")).unwrap();
        let files = RunFiles::beside(&folder.join("w.db"));
        assert_eq!(place(&files, &folder, "a/b/c").unwrap(), folder.join("a/b/c"));
        for wrong in ["away/x", "w.db", "w.db-wal", "w.db.files/x"] {
            assert!(place(&files, &folder, wrong).is_err(), "{wrong}");
        }
    }
}
