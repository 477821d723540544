//! The files beside the pages: one style sheet, one script, one icon. Their names contain a hash of their content, so a
//! browser may keep them for ever.

use std::fmt::Write;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// A file that pages name.
#[derive(Debug)]
pub struct Asset {
    /// Its name below `/assets/`.
    pub name: String,
    /// Its type.
    pub content_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

/// The files by what they are.
#[derive(Debug)]
pub struct Assets {
    /// The style sheet.
    pub style: Asset,
    /// The script.
    pub script: Asset,
    /// The icon of the site.
    pub icon: Asset,
    /// What differs if the style sheet or the script differs, so that an open page notices a newer server.
    pub version: String,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let style =
        asset("windlass", "css", "text/css; charset=utf-8", include_bytes!("../../assets/windlass.css"));
    let script =
        asset("windlass", "js", "text/javascript; charset=utf-8", include_bytes!("../../assets/windlass.js"));
    let icon = asset("icon", "svg", "image/svg+xml", include_bytes!("../../assets/icon.svg"));
    let version = hash(&[style.bytes, script.bytes].concat());
    Assets { style, script, icon, version }
});

/// All assets.
#[must_use]
pub fn assets() -> &'static Assets {
    &ASSETS
}

/// The asset of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Asset> {
    [&ASSETS.style, &ASSETS.script, &ASSETS.icon].into_iter().find(|asset| asset.name == name)
}

fn asset(stem: &str, extension: &str, content_type: &'static str, bytes: &'static [u8]) -> Asset {
    Asset { name: format!("{stem}.{}.{extension}", hash(bytes)), content_type, bytes }
}

fn hash(bytes: &[u8]) -> String {
    let mut hash = String::new();
    for byte in Sha256::digest(bytes).iter().take(6) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The script is written by hand, and nobody waits for it.
    const SCRIPT_BYTES_MAX: usize = 30_000;

    #[test]
    fn assets_are_found_by_their_hashed_names() {
        let assets = assets();
        for asset in [&assets.style, &assets.script, &assets.icon] {
            assert_eq!(find(&asset.name).map(|found| found.bytes), Some(asset.bytes));
        }
        assert!(find("windlass.css").is_none() && find("../windlass.css").is_none());
    }

    #[test]
    fn the_script_is_small() {
        assert!(assets().script.bytes.len() <= SCRIPT_BYTES_MAX);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let Assets { style, script, icon, version: _ } = assets();
        for asset in [style, script, icon] {
            let text = String::from_utf8_lossy(asset.bytes).replace("http://www.w3.org/", "");
            assert!(
                !text.contains("//cdn") && !text.contains("http:") && !text.contains("https:"),
                "{}",
                asset.name
            );
            assert!(!text.contains("@import") && !text.contains("url("), "{}", asset.name);
        }
    }
}
