//! `windlass token`: the tokens of the web interface.

use std::time::Duration;

use clap::{Args, Subcommand};
use windlass_engine::store::{NewToken, Role, Secret, Subject};
use windlass_views::{NewTokenView, TokenView};

use crate::arguments::{GlobalOptions, parse_duration, parse_name};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::style::{DIM, YELLOW, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::time;

/// Add, list or revoke tokens of the web interface
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a token; it is shown once
    Add(AddArgs),
    /// List the tokens (the default)
    List,
    /// Revoke a token, and end the sessions that began with it
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    /// A name for it, for example of the program that will use it
    #[arg(value_name = "NAME", value_parser = parse_name)]
    name: String,

    /// What its owner may do: metrics, view, run (start, retry, cancel), edit (queues, schedules) or admin
    #[arg(long, value_name = "ROLE", value_parser = parse_role)]
    role: Role,

    /// It ends by itself after this time, for example 90d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// The name of the token
    #[arg(value_name = "NAME")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass token add dashboard --role view
  windlass token add deploy --role run --expires 90d
  windlass token
  windlass token revoke deploy

A token is shown once. The database has only its SHA-256.";

/// Calls the subcommand.
pub(crate) fn execute(global: &GlobalOptions, args: &TokenArgs) -> Result<(), Failure> {
    match &args.action {
        None | Some(Action::List) => list(global),
        Some(Action::Add(args)) => add(global, args),
        Some(Action::Revoke(args)) => revoke(global, &args.name),
    }
}

/// Reads a role; for clap.
pub(crate) fn parse_role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| format!("a role is one of {}", Role::ALL.map(Role::as_str).join(", ")))
}

fn add(global: &GlobalOptions, args: &AddArgs) -> Result<(), Failure> {
    let database = Database::existing_or_new(global)?;
    let secret = Secret::generate()
        .map_err(|error| Failure::no_resources(&format!("the system has no random bytes: {error}")))?;
    let now_ms = database.store().clock().now_ms();
    let expires_at = args
        .expires
        .map(|expires| now_ms.saturating_add(i64::try_from(expires.as_millis()).unwrap_or(i64::MAX)));
    let token = NewToken { name: args.name.clone(), hash: secret.hash(), role: args.role, expires_at };
    let added = database
        .change(format!("the token {}", args.name), |store| store.access().add_token(token.clone()))?;
    stderr::note(&format!(
        "token `{}` with the role {} is added; it is shown only now:",
        args.name,
        args.role.as_str()
    ));
    let view = NewTokenView::new(&added, secret.text());
    Output { format: global.output }.object(&view, |_| secret.text().to_owned())
}

fn revoke(global: &GlobalOptions, name: &str) -> Result<(), Failure> {
    let database = Database::existing_without_rescue(global)?;
    let revoked = database.change(Subject::Token(name.to_owned()), |store| store.access().revoke_token(name));
    let revoked = match revoked {
        Err(Failure::NotFound { message, .. }) => {
            let help = format!("`{}` lists the tokens", database.hint("token"));
            return Err(Failure::NotFound { message, help });
        }
        other => other?,
    };
    stderr::note(&format!("token `{name}` is revoked, and the sessions that began with it have ended"));
    Output { format: global.output }.object(&TokenView::new(&revoked), |_| String::new())
}

fn list(global: &GlobalOptions) -> Result<(), Failure> {
    let database = Database::existing_without_rescue(global)?;
    let tokens = database.ask(|store| store.access().tokens())?;
    let views: Vec<TokenView> = tokens.iter().map(TokenView::new).collect();
    Output { format: global.output }.list(&views, |_| {
        let now_ms = time::now_ms();
        let mut table = Table::new(&[
            Column::Left("TOKEN"),
            Column::Left("ROLE"),
            Column::Left("ADDED"),
            Column::Left("STATE"),
        ]);
        for token in &tokens {
            let state = match (token.revoked_at, token.expires_at) {
                (Some(at), _) => paint(DIM, format!("revoked {}", time::relative(at, now_ms))),
                (None, Some(at)) if at <= now_ms => {
                    paint(YELLOW, format!("expired {}", time::relative(at, now_ms)))
                }
                (None, Some(at)) => format!("expires {}", time::relative(at, now_ms)),
                (None, None) => String::new(),
            };
            table.row([
                printable(&token.name).into_owned(),
                token.role.as_str().to_owned(),
                time::relative(token.created_at, now_ms),
                state,
            ]);
        }
        table.render(table::stdout_width())
    })
}
