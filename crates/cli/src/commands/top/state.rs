//! What is shown, and what each key and each piece of news makes of it: pure.

use super::data::{FailedRun, GroupName, Lists, News, Request};
use super::layout;
use super::output::Output;
use super::rows::{self, Identity, Row};

/// The longest text of the filter, in characters.
const FILTER_MAX: usize = 100;
/// The rows of the screen that are no part: its head and its foot.
pub(super) const FRAME_ROWS: usize = 2;
/// The rows of a list above its first row: its title and its columns.
pub(super) const LIST_HEAD: usize = 2;
/// The columns by which the output moves to the side.
const SIDE_STEP: usize = 8;

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Queues,
    Running,
    Failures,
    Output,
}

impl Part {
    pub(super) const ALL: [Part; 4] = [Part::Queues, Part::Running, Part::Failures, Part::Output];

    pub(super) fn index(self) -> usize {
        match self {
            Part::Queues => 0,
            Part::Running => 1,
            Part::Failures => 2,
            Part::Output => 3,
        }
    }

    fn after(self, steps: usize) -> Part {
        Part::ALL[(self.index() + steps) % Part::ALL.len()]
    }
}

/// A key, whatever the terminal sends for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Character(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// What a key asks of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Quit,
    Ask(Request),
}

/// What the keys do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Normal,
    /// They write the filter.
    Filter,
    Help,
    /// Asks before it pauses a queue, or ends its pause.
    Confirm {
        queue: String,
        change: QueueChange,
    },
    /// The runs of a group of failures; `None` until they are read.
    Runs {
        name: GroupName,
        runs: Option<Vec<FailedRun>>,
        selected: usize,
    },
}

/// What would be done to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueChange {
    Pause,
    Resume,
}

/// A message at the foot of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    Done(String),
    Problem(String),
}

/// The row that is selected in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Selection {
    index: usize,
    identity: Option<Identity>,
}

/// Everything that is shown.
#[derive(Debug)]
pub(super) struct App {
    /// The address of the database, for people.
    pub(super) database: String,
    pub(super) lists: Option<Lists>,
    pub(super) focus: Part,
    pub(super) mode: Mode,
    pub(super) filter: String,
    pub(super) output: Output,
    pub(super) note: Option<Note>,
    selections: [Selection; 3],
    /// The rows of the terminal.
    screen_rows: usize,
    now_ms: i64,
}

impl App {
    pub(super) fn new(database: String) -> App {
        App {
            database,
            lists: None,
            focus: Part::Running,
            mode: Mode::Normal,
            filter: String::new(),
            output: Output::default(),
            note: None,
            selections: Default::default(),
            screen_rows: 24,
            now_ms: 0,
        }
    }

    /// Sets what the next key and the next picture go by.
    pub(super) fn set_present(&mut self, screen_rows: usize, now_ms: i64) {
        self.screen_rows = screen_rows;
        self.now_ms = now_ms;
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The rows of a list that the filter lets through.
    pub(super) fn rows(&self, part: Part) -> Vec<Row> {
        self.lists
            .as_ref()
            .map(|lists| rows::rows(part, lists, &self.filter, self.now_ms))
            .unwrap_or_default()
    }

    /// The place of the selected row of a list.
    pub(super) fn selected(&self, part: Part) -> usize {
        self.selections.get(part.index()).map_or(0, |selection| selection.index)
    }

    /// The rows of each part of the screen, with its title.
    pub(super) fn heights(&self) -> [usize; 4] {
        // A list that is empty says so in a row.
        let wants = Part::ALL.map(|part| match part {
            Part::Queues | Part::Running | Part::Failures => self.rows(part).len().max(1) + 1,
            Part::Output => usize::MAX,
        });
        layout::heights(self.screen_rows.saturating_sub(FRAME_ROWS), wants, self.focus.index())
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: Key) -> Option<Effect> {
        self.note = None;
        if key == Key::Interrupt {
            return Some(Effect::Quit);
        }
        match self.mode.clone() {
            Mode::Normal => self.press_normal(key),
            Mode::Filter => {
                self.press_in_filter(key);
                None
            }
            Mode::Help => {
                self.mode = Mode::Normal;
                None
            }
            Mode::Confirm { queue, change } => {
                self.mode = Mode::Normal;
                let request = match change {
                    QueueChange::Pause => Request::Pause(queue),
                    QueueChange::Resume => Request::Resume(queue),
                };
                (key == Key::Character('y')).then_some(Effect::Ask(request))
            }
            Mode::Runs { name, runs, selected } => self.press_in_runs(key, name, runs, selected),
        }
    }

    /// Takes up what was read or done.
    pub(super) fn take(&mut self, news: News) {
        match news {
            News::Lists(lists) => {
                self.lists = Some(*lists);
                self.note = self.note.take().filter(|note| matches!(note, Note::Done(_)));
                self.keep_selections();
            }
            News::Output { job_id, lines, placement, is_over } => {
                self.output.take(job_id, lines, placement, is_over);
            }
            News::Runs { name: of, runs: read } => {
                if let Mode::Runs { name, runs, .. } = &mut self.mode
                    && *name == of
                {
                    *runs = Some(read);
                }
            }
            News::Done(text) => self.note = Some(Note::Done(text)),
            News::Problem(text) => self.note = Some(Note::Problem(text)),
        }
    }

    /// The job whose output must be read from now on, if it is another one than before.
    pub(super) fn job_to_follow(&mut self) -> Option<Request> {
        // Who reads an output is not taken away from it by the end of its job.
        if self.focus == Part::Output || self.output.is_pinned() {
            return None;
        }
        let rows = self.rows(Part::Running);
        let Identity::Job(job_id) = rows.get(self.selected(Part::Running))?.identity else { return None };
        let name = self.lists.as_ref()?.running.iter().find(|job| job.id == job_id).map(rows::job_name)?;
        self.output.open(job_id, name).then_some(Request::Follow(job_id))
    }

    fn press_normal(&mut self, key: Key) -> Option<Effect> {
        match key {
            Key::Character('q') => return Some(Effect::Quit),
            Key::Character('?') => self.mode = Mode::Help,
            Key::Character('/') => self.mode = Mode::Filter,
            Key::Character(digit @ '1'..='4') => {
                self.focus = Part::ALL[digit as usize - '1' as usize];
            }
            Key::Character('p') => self.ask_about_queue(),
            Key::Tab => self.focus = self.focus.after(1),
            Key::BackTab => self.focus = self.focus.after(Part::ALL.len() - 1),
            Key::Escape => {
                self.filter.clear();
                self.keep_selections();
            }
            Key::Enter => return self.open(),
            Key::Left => self.output.move_left(SIDE_STEP),
            Key::Right => self.output.move_right(SIDE_STEP),
            Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End
            | Key::Character(_)
            | Key::Backspace
            | Key::Interrupt => self.press_to_move(key),
        }
        None
    }

    fn press_to_move(&mut self, key: Key) {
        let Some(movement) = Movement::of(key) else { return };
        let height = self.heights()[self.focus.index()];
        if self.focus == Part::Output {
            self.output.scroll(movement, height.saturating_sub(1));
            return;
        }
        let rows = self.rows(self.focus);
        let page = height.saturating_sub(LIST_HEAD).max(1);
        let index = movement.apply(self.selected(self.focus), rows.len(), page);
        self.select(self.focus, index, &rows);
        if self.focus == Part::Running {
            self.output.unpin();
        }
    }

    fn press_in_filter(&mut self, key: Key) {
        match key {
            Key::Enter | Key::Tab | Key::Down => self.mode = Mode::Normal,
            Key::Escape => {
                self.filter.clear();
                self.mode = Mode::Normal;
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Character(character) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(character);
            }
            Key::Character(_)
            | Key::Up
            | Key::Left
            | Key::Right
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End
            | Key::BackTab
            | Key::Interrupt => {}
        }
        self.keep_selections();
    }

    fn press_in_runs(
        &mut self,
        key: Key,
        name: GroupName,
        runs: Option<Vec<FailedRun>>,
        selected: usize,
    ) -> Option<Effect> {
        let known = runs.as_deref().unwrap_or_default();
        match (key, known.get(selected)) {
            (Key::Character('q'), _) => return Some(Effect::Quit),
            (Key::Escape | Key::Left | Key::Backspace, _) => self.mode = Mode::Normal,
            (Key::Enter, Some(run)) => {
                let job = rows::safe(&run.job);
                let name = run.run_id.map_or_else(|| job.clone(), |run_id| format!("{run_id}/{job}"));
                let job_id = run.job_id;
                self.mode = Mode::Normal;
                self.focus = Part::Output;
                let is_another = self.output.open(job_id, name);
                self.output.pin();
                return is_another.then_some(Effect::Ask(Request::Follow(job_id)));
            }
            (other, _) => {
                if let Some(movement) = Movement::of(other) {
                    let page = self.screen_rows.saturating_sub(FRAME_ROWS + LIST_HEAD).max(1);
                    let selected = movement.apply(selected, known.len(), page);
                    self.mode = Mode::Runs { name, runs, selected };
                }
            }
        }
        None
    }

    /// Opens the selected row.
    fn open(&mut self) -> Option<Effect> {
        let row = self.rows(self.focus).into_iter().nth(self.selected(self.focus))?;
        match row.identity {
            Identity::Queue(_) => None,
            // Its output is shown already, or will be with the next picture.
            Identity::Job(_) => {
                self.output.unpin();
                let request = self.job_to_follow();
                self.focus = Part::Output;
                request.map(Effect::Ask)
            }
            Identity::Group(name) => {
                let groups = &self.lists.as_ref()?.failures.groups;
                let group = groups.iter().find(|group| GroupName::of(group) == name)?;
                let (run_ids, job_ids) = (group.run_ids.clone(), group.job_ids.clone());
                self.mode = Mode::Runs { name: name.clone(), runs: None, selected: 0 };
                Some(Effect::Ask(Request::Open { name, run_ids, job_ids }))
            }
        }
    }

    fn ask_about_queue(&mut self) {
        if self.focus != Part::Queues {
            self.note = Some(Note::Problem("p pauses a queue: select one with 1 and the arrows".to_owned()));
            return;
        }
        let rows = self.rows(Part::Queues);
        let Some(Identity::Queue(queue)) =
            rows.get(self.selected(Part::Queues)).map(|row| row.identity.clone())
        else {
            return;
        };
        let queues = self.lists.iter().flat_map(|lists| &lists.queues);
        let is_paused = queues.into_iter().any(|known| known.name == queue && known.paused_at.is_some());
        let change = if is_paused { QueueChange::Resume } else { QueueChange::Pause };
        self.mode = Mode::Confirm { queue, change };
    }

    fn select(&mut self, part: Part, index: usize, rows: &[Row]) {
        if let Some(selection) = self.selections.get_mut(part.index()) {
            *selection = Selection { index, identity: rows.get(index).map(|row| row.identity.clone()) };
        }
    }

    /// Selects the same rows as before in lists that have changed, or the rows that are in their places.
    fn keep_selections(&mut self) {
        for part in [Part::Queues, Part::Running, Part::Failures] {
            let rows = self.rows(part);
            let before = &self.selections[part.index()];
            let same = before
                .identity
                .as_ref()
                .and_then(|identity| rows.iter().position(|row| row.identity == *identity));
            let index = same.unwrap_or(before.index).min(rows.len().saturating_sub(1));
            self.select(part, index, &rows);
        }
    }
}

/// A movement in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Movement {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl Movement {
    fn of(key: Key) -> Option<Movement> {
        match key {
            Key::Up | Key::Character('k') => Some(Movement::Up),
            Key::Down | Key::Character('j') => Some(Movement::Down),
            Key::PageUp => Some(Movement::PageUp),
            Key::PageDown | Key::Character(' ') => Some(Movement::PageDown),
            Key::Home | Key::Character('g') => Some(Movement::First),
            Key::End | Key::Character('G') => Some(Movement::Last),
            Key::Character(_)
            | Key::Left
            | Key::Right
            | Key::Enter
            | Key::Escape
            | Key::Tab
            | Key::BackTab
            | Key::Backspace
            | Key::Interrupt => None,
        }
    }

    /// The place after the movement among `count` rows, of which a page shows `page`.
    pub(super) fn apply(self, index: usize, count: usize, page: usize) -> usize {
        let last = count.saturating_sub(1);
        match self {
            Movement::Up => index.saturating_sub(1),
            Movement::Down => index.saturating_add(1),
            Movement::PageUp => index.saturating_sub(page),
            Movement::PageDown => index.saturating_add(page),
            Movement::First => 0,
            Movement::Last => last,
        }
        .min(last)
    }
}
