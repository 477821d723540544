//! The web server of a service, or of `windlass web`.

use std::io;

use windlass_web::{Hook, ListenAddress, Listener, Sentences, WebOptions, WebServer};

use crate::arguments::GlobalOptions;
use crate::commands::doctor;
use crate::database::Database;
use crate::error::Failure;
use crate::text::reasons;

/// What it means that another process listens on the default address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenPort {
    /// A second service on this machine, which executes jobs without a page.
    IsAWarning,
    /// The command has nothing else to do.
    IsAnError,
}

/// A running web server. Dropping it ends it.
pub(crate) struct Web {
    server: WebServer,
    base_path: String,
}

impl Web {
    /// Starts the server. `None` if the default address is taken, and that is a warning.
    pub(crate) fn start(
        global: &GlobalOptions,
        database: &Database,
        options: &WebOptions,
        taken: TakenPort,
    ) -> Result<Option<Web>, Failure> {
        let address = options.listen.socket();
        let listener = match (Listener::bind(options), options.listen, taken) {
            (Ok(listener), _, _) => listener,
            (Err(error), ListenAddress::Default, TakenPort::IsAWarning) if is_taken(&error) => {
                tracing::warn!(
                    "another process listens on {address}, so this one has no web page; set `listen` under [web], or \
                     `enabled = false`"
                );
                return Ok(None);
            }
            (Err(error), _, _) => {
                return Err(Failure::usage(
                    format!("the web server can't listen on {address}: {error}"),
                    "choose another address: `listen` under [web] of windlass.toml, or `windlass web --listen`",
                ));
            }
        };
        let server =
            WebServer::start(listener, database.store(), sentences(global, database), options.clone())
                .map_err(|error| Failure::no_resources(&format!("the web server can't start: {error}")))?;
        Ok(Some(Web { server, base_path: options.base_path.clone() }))
    }

    /// Takes messages of other services from now on.
    pub(crate) fn set_hooks(&self, hooks: &[Hook]) {
        self.server.set_hooks(hooks.to_vec());
    }

    /// The address for browsers of this machine.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{}/", self.server.address(), self.base_path)
    }
}

/// Texts as the verbs `why` and `doctor` print them.
fn sentences(global: &GlobalOptions, database: &Database) -> Sentences {
    let (of_reasons, of_doctor, of_file) = (global.clone(), global.clone(), database.clone());
    let database = database.clone();
    Sentences::new(
        move |reason, job, now_ms| {
            let text = reasons::sentence(reason, job, now_ms, &of_reasons);
            anstream::adapter::strip_str(&text).to_string()
        },
        move || doctor::report(&of_doctor, &database).map_err(|failure| failure.plain()),
    )
    .with_file(move || doctor::file_reading(&of_file))
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}
