//! What all pages share: the bar on top, the reader, and what the reader may do.

use super::assets::assets;
use super::times::Times;

/// The main parts of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The list of runs, and one run.
    Runs,
    /// The workflows.
    Workflows,
    /// What waits for a person.
    Approvals,
    /// The queues.
    Queues,
    /// The state of the system.
    System,
    /// None of them.
    Other,
}

/// What a reader may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Only look.
    View,
    /// Start, retry and cancel runs.
    Run,
    /// Change queues and schedules.
    Edit,
    /// Everything.
    Admin,
}

/// Who reads a page, and from where.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The path before all paths: empty, or `/windlass`.
    pub base: String,
    /// The zone of the reader, and now.
    pub times: Times,
    /// What the reader may do.
    pub rights: Rights,
    /// The token that forms send back.
    pub form_token: String,
    /// Who is signed in; nobody for a request with a token of its own.
    pub signed_in: Option<SignedIn>,
    /// Numbers in the bar.
    pub badges: Badges,
}

/// Whose session it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The name, as the record of changes has it.
    pub name: String,
    /// The role.
    pub role: &'static str,
}

/// Numbers beside the names of the main parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Badges {
    /// Approvals that wait for a person.
    pub approvals: i64,
    /// Queues that are paused.
    pub paused_queues: usize,
}

/// A main part of the site, as the bar shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The section.
    pub section: Section,
    /// The path of its first page.
    pub path: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The id of its symbol.
    pub symbol: &'static str,
    /// A number beside its name.
    pub badge: Option<PartBadge>,
}

/// A number, and what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartBadge {
    /// The number.
    pub number: i64,
    /// What is counted, as one word.
    pub meaning: &'static str,
}

/// Everything around the content of a page.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The path before all paths.
    pub base: String,
    /// The part of the site.
    pub section: Section,
    /// The title of the page.
    pub title: String,
    /// The place that the reader's zone is named for.
    pub place: String,
    /// The name of the zone.
    pub zone: String,
    /// The time of day.
    pub clock: String,
    /// Now, for the script.
    pub now_ms: i64,
    /// What the reader may do.
    pub rights: Rights,
    /// The token that forms send back.
    pub form_token: String,
    /// Who is signed in.
    pub signed_in: Option<SignedIn>,
    /// Numbers in the bar.
    pub badges: Badges,
}

impl Frame {
    /// The frame of a page for a reader.
    #[must_use]
    pub fn new(reader: &Reader, section: Section, title: &str) -> Frame {
        Frame {
            base: reader.base.clone(),
            section,
            title: title.to_owned(),
            place: reader.times.place(),
            zone: reader.times.zone.name().to_owned(),
            clock: reader.times.minute(reader.times.now_ms),
            now_ms: reader.times.now_ms,
            rights: reader.rights,
            form_token: reader.form_token.clone(),
            signed_in: reader.signed_in.clone(),
            badges: reader.badges,
        }
    }

    /// The main parts.
    #[must_use]
    pub fn parts(&self) -> [Part; 5] {
        let part = |section, path, name, symbol| Part { section, path, name, symbol, badge: None };
        let badge = |number, meaning| (number > 0).then_some(PartBadge { number, meaning });
        let paused = i64::try_from(self.badges.paused_queues).unwrap_or(i64::MAX);
        [
            part(Section::Runs, "/runs", "Runs", "n-runs"),
            part(Section::Workflows, "/workflows", "Workflows", "n-workflows"),
            Part {
                badge: badge(self.badges.approvals, "waiting"),
                ..part(Section::Approvals, "/approvals", "Approvals", "n-approvals")
            },
            Part { badge: badge(paused, "paused"), ..part(Section::Queues, "/queues", "Queues", "n-queues") },
            part(Section::System, "/system", "System", "n-system"),
        ]
    }

    /// Whether the reader may start, retry and cancel.
    #[must_use]
    pub fn may_run(&self) -> bool {
        self.rights >= Rights::Run
    }

    /// Whether the reader may change queues and schedules.
    #[must_use]
    pub fn may_edit(&self) -> bool {
        self.rights >= Rights::Edit
    }

    /// Whether the reader may see tokens and changes.
    #[must_use]
    pub fn may_administer(&self) -> bool {
        self.rights >= Rights::Admin
    }

    /// The version of the files beside the page.
    #[must_use]
    pub fn assets(&self) -> &'static str {
        &assets().version
    }

    /// The path of the style sheet.
    #[must_use]
    pub fn style(&self) -> String {
        format!("{}/assets/{}", self.base, assets().style.name)
    }

    /// The path of the script.
    #[must_use]
    pub fn script(&self) -> String {
        format!("{}/assets/{}", self.base, assets().script.name)
    }

    /// The path of the icon.
    #[must_use]
    pub fn icon(&self) -> String {
        format!("{}/assets/{}", self.base, assets().icon.name)
    }
}
