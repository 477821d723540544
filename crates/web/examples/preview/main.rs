//! Writes pages made of fixed data into a folder, to look at them without a server:
//! `cargo run -p windlass-web --example preview -- FOLDER`.
#![allow(clippy::unwrap_used)]

mod run;
mod runs;

use std::path::{Path, PathBuf};

use windlass_web::pages::assets::assets;
use windlass_web::pages::run::{Panel, View};
use windlass_web::pages::times::Times;
use windlass_web::pages::{Badges, Reader, Rights, SignedIn};

/// Sunday 22 November 2026, 07:42:00 in Berlin.
const NOW_MS: i64 = 1_795_329_720_000;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("the folder to write to"));
    std::fs::create_dir_all(folder.join("assets")).unwrap();
    let times = Times { zone: Times::zone("Europe/Berlin"), now_ms: NOW_MS };
    let reader = Reader {
        base: ".".to_owned(),
        times,
        rights: Rights::Admin,
        form_token: "token".to_owned(),
        signed_in: Some(SignedIn { name: "ada".to_owned(), role: "admin" }),
        badges: Badges { approvals: 2, paused_queues: 1 },
    };
    for asset in [&assets().style, &assets().script, &assets().icon] {
        std::fs::write(folder.join("assets").join(&asset.name), asset.bytes).unwrap();
    }
    write(&folder, "runs.html", &windlass_web::pages::runs::page(&runs::data(NOW_MS), &reader).unwrap());
    for view in [View::Timeline, View::Graph, View::Table] {
        let data = run::data(NOW_MS, view, Panel::Log);
        let page = windlass_web::pages::run::page(&data, &reader).unwrap();
        write(&folder, &format!("run-{}.html", view.name()), &page);
    }
    for panel in [Panel::Attempts, Panel::Data, Panel::Why, Panel::Definition] {
        let data = run::data(NOW_MS, View::Timeline, panel);
        let page = windlass_web::pages::run::page(&data, &reader).unwrap();
        write(&folder, &format!("run-{}.html", panel.name()), &page);
    }
    write(&folder, "run-large.html", &windlass_web::pages::run::page(&run::large(NOW_MS), &reader).unwrap());
    write(
        &folder,
        "runs-empty.html",
        &windlass_web::pages::runs::page(&runs::nothing(NOW_MS), &reader).unwrap(),
    );
}

fn write(folder: &Path, name: &str, page: &str) {
    std::fs::write(folder.join(name), page).unwrap();
    println!("{}", folder.join(name).display());
}
