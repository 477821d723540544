//! The texts of a file that are templates or expressions, and are still to be checked.

use crate::expression::{Form, Place};
use crate::files::Input;
use crate::key::{Key, TextKind};
use crate::report::Span;
use crate::tree::{Node, Value};

/// The templates and expressions of one job or of the workflow. They are checked when all names of the file are known.
#[derive(Debug, Default)]
pub(crate) struct Templates<'t> {
    pub(super) texts: Vec<LookingUpText<'t>>,
    /// The files of other jobs that the job gets, and where the file names them.
    pub(super) inputs: Box<[(Input, Span)]>,
}

/// A text that looks up names.
#[derive(Debug)]
pub(super) struct LookingUpText<'t> {
    pub(super) text: &'t str,
    /// Where the file has the text.
    pub(super) span: Span,
    pub(super) place: Place,
    pub(super) form: TextForm,
}

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextForm {
    /// Expressions between braces.
    Template,
    /// One expression. The place says what it must give.
    Bare,
    /// One expression that may give any value.
    Value,
    /// A script, which must not have templates.
    Script,
}

impl TextForm {
    fn of(form: Form) -> TextForm {
        match form {
            Form::Template => TextForm::Template,
            Form::Bare => TextForm::Bare,
        }
    }

    /// How its expressions stand in the file.
    pub(super) fn of_expressions(self) -> Form {
        match self {
            TextForm::Template | TextForm::Script => Form::Template,
            TextForm::Bare | TextForm::Value => Form::Bare,
        }
    }
}

impl<'t> Templates<'t> {
    /// Adds the node if it is a template or an expression. The key says which of them it may be.
    pub(crate) fn add(&mut self, node: &'t Node<'_>, key: &Key) {
        let Value::Text(text) = &node.value else { return };
        match key.text {
            TextKind::Plain => (),
            TextKind::Template(place) => {
                if super::is_template(text) {
                    self.push(text, node.span.clone(), place, TextForm::Template);
                }
            }
            TextKind::Expression(place) => self.push(text, node.span.clone(), place, TextForm::Bare),
            TextKind::Value(place) => self.push(text, node.span.clone(), place, TextForm::Value),
        }
    }

    /// Adds a script that may have templates by mistake.
    pub(crate) fn add_script(&mut self, node: &'t Node<'_>) {
        if let Value::Text(text) = &node.value
            && super::is_template(text)
        {
            self.push(text, node.span.clone(), Place::Environment, TextForm::Script);
        }
    }

    /// Adds a file of another job.
    pub(crate) fn add_input(&mut self, input: Input, span: Span) {
        // Few jobs have any, and a file may have many jobs.
        let mut inputs = std::mem::take(&mut self.inputs).into_vec();
        inputs.push((input, span));
        self.inputs = inputs.into();
    }

    /// The files of other jobs.
    pub(crate) fn inputs(&self) -> &[(Input, Span)] {
        &self.inputs
    }

    /// Changes the place of all texts that stand in `from`.
    pub(crate) fn move_all(&mut self, from: Place, to: Place) {
        self.texts.iter_mut().filter(|text| text.place == from).for_each(|text| text.place = to);
    }

    /// Adds a text that is in no file. Errors in it have no position.
    pub(crate) fn add_text(&mut self, text: &'t str, place: Place, form: Form) {
        self.push(text, 0..0, place, TextForm::of(form));
    }

    /// Adds an expression that is in no file and may give any value.
    pub(crate) fn add_value(&mut self, text: &'t str, place: Place) {
        self.push(text, 0..0, place, TextForm::Value);
    }

    fn push(&mut self, text: &'t str, span: Span, place: Place, form: TextForm) {
        self.texts.push(LookingUpText { text, span, place, form });
    }
}
