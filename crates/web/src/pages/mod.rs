//! The pages: functions from views to HTML.
