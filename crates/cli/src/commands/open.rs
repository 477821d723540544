//! `windlass open`: makes a link that signs a person in. Who may write to the database may enter.

use clap::Args;
use windlass_engine::store::{Role, Secret};
use windlass_views::{Instant, OpenedView};
use windlass_web::WebOptions;

use crate::arguments::GlobalOptions;
use crate::commands::token::parse_role;
use crate::config;
use crate::database::{Database, present_user};
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;

/// How long the link works.
const LINK_MS: i64 = 60_000;

/// Make a link that signs you in to the web page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OpenArgs {
    /// What the session may do: view, run, edit or admin
    #[arg(long, value_name = "ROLE", default_value = "admin", value_parser = parse_role)]
    role: Role,
}

const EXAMPLES: &str = "\
Examples:
  windlass open
  windlass open --role view

The link works once, within a minute. It needs `windlass serve` or
`windlass web` on this database.";

/// Prints the link.
pub(crate) fn execute(global: &GlobalOptions, args: &OpenArgs) -> Result<(), Failure> {
    let options = config::read_here(global.config().as_deref())?.web.options();
    let database = Database::existing_without_rescue(global)?;
    let secret = Secret::generate()
        .map_err(|error| Failure::no_resources(&format!("the system has no random bytes: {error}")))?;
    let expires_at = database.store().clock().now_ms() + LINK_MS;
    let user = present_user();
    database.change(format!("a link with the role {}", args.role.as_str()), |store| {
        store.access().add_link(&secret.hash(), &user, args.role, expires_at)
    })?;
    let url = format!("{}/open?code={}", address(&options), secret.text());
    stderr::note("the link works once, within a minute:");
    let view = OpenedView { url, role: args.role.as_str(), expires_at: Instant::at(expires_at) };
    Output { format: global.output }.object(&view, |view| view.url.clone())
}

/// Where a browser finds the server: under the first name of `hosts`, or on this machine.
fn address(options: &WebOptions) -> String {
    let socket = options.listen.socket();
    let origin = match (options.is_secure(), options.hosts.first()) {
        (true, Some(host)) if options.tls.is_none() || host.contains(':') => format!("https://{host}"),
        (true, Some(host)) => format!("https://{host}:{}", socket.port()),
        (true, None) if options.tls.is_some() => format!("https://{socket}"),
        (_, _) => format!("http://{socket}"),
    };
    format!("{origin}{}", options.base_path)
}
