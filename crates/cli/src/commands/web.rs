//! `windlass web`: serves the pages and the REST interface, and executes nothing.

use std::net::SocketAddr;
use std::path::Path;

use clap::Args;
use windlass_system::wake_ups::WakeUps;
use windlass_web::{Hook, ListenAddress, WebOptions};

use crate::arguments::{GlobalOptions, LogFormat, LogOptions};
use crate::config::{self, Config, ConfiguredHook, parse_listen};
use crate::database::Database;
use crate::error::Failure;
use crate::service::{DEFAULT_LEVEL, TakenPort, Web};
use crate::signals::StopRequests;
use crate::{logging, output, stderr};

/// Serve the web page and the REST interface, without executing jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WebArgs {
    /// The address to listen on [default: `listen` of [web], else 127.0.0.1:9463]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    listen: Option<SocketAddr>,

    #[command(flatten)]
    log: LogOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass web
  windlass web --listen 127.0.0.1:8080
  windlass open                         # a link that signs you in

`windlass serve` serves the same, and executes jobs too. The settings are under
[web] of windlass.toml.";

/// Serves until a signal.
pub(crate) fn execute(global: GlobalOptions, args: &WebArgs) -> Result<(), Failure> {
    let named = global.config();
    let config = config::read_here(named.as_deref())?;
    let global = &global.configured(config.global.clone());
    let format = args.log.format().or(config.log_format).unwrap_or(LogFormat::Text);
    logging::start(logging::service_level(config.log_level.unwrap_or(DEFAULT_LEVEL), global), format);
    let next_step = "use --log-format json for a log with one JSON object per line";
    output::refuse_json(global, "web", "a log", next_step)?;
    let mut hooks = resolved(&config)?;
    let options = options(WebOptions { hooks: hooks.clone(), ..config.web.options }, args.listen)?;
    let database = Database::existing_or_new(global)?;
    let listener = database.store().listen(WakeUps::STOP);
    let requests = StopRequests::listen_with_reload(listener.clone())?;
    let web = Web::start(global, &database, &options, TakenPort::IsAnError)?;
    let address = web.as_ref().map(Web::url).unwrap_or_default();
    let greeting =
        format!("windlass {} serves {address} for {}", env!("CARGO_PKG_VERSION"), database.address());
    match format {
        LogFormat::Text => stderr::note(&greeting),
        LogFormat::Json => tracing::info!("{greeting}"),
    }
    while !requests.is_stopping() {
        if let (true, Some(web)) = (requests.reload_is_wanted(), &web) {
            reload(web, &mut hooks, named.as_deref());
        }
        listener.wait(crate::service::TICK);
    }
    drop(web);
    tracing::info!("stopped");
    requests.outcome(|| global.hint("web"))
}

fn resolved(config: &Config) -> Result<Vec<Hook>, Failure> {
    config.hooks.iter().map(ConfiguredHook::resolve).collect()
}

/// Reads the certificate, the hooks and their secrets again. What can't be used leaves the former ones.
fn reload(web: &Web, hooks: &mut Vec<Hook>, named: Option<&Path>) {
    web.read_certificate_again();
    match config::read_again(named).and_then(|config| resolved(&config)) {
        Ok(new) if new == *hooks => {}
        Ok(new) => {
            web.set_hooks(&new);
            tracing::info!(hooks = new.len(), "the hooks changed");
            *hooks = new;
        }
        Err(failure) => {
            tracing::error!("the configuration is invalid; the former hooks stay:\n{}", failure.plain());
        }
    }
    tracing::info!("reloaded");
}

fn options(configured: WebOptions, listen: Option<SocketAddr>) -> Result<WebOptions, Failure> {
    let options = match listen {
        Some(address) => WebOptions { listen: ListenAddress::Set(address), ..configured },
        None => configured,
    };
    options.check().map_err(|(message, help)| Failure::usage(message, help))?;
    Ok(options)
}
