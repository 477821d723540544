//! The web server of a service, or of `windlass web`.

use std::io;

use windlass_web::{Hook, ListenAddress, Listener, Sentences, TlsFiles, TlsIdentity, WebOptions, WebServer};

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
    tls: Option<TlsFiles>,
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
        if options.shares_one_address() {
            tracing::warn!(
                "all requests seem to come from one address, and share its ten failures a minute: `behind_proxy` is set \
                 without `trusted_proxies` under [web]"
            );
        }
        let tls = options.tls.clone();
        let listener = match &tls {
            None => listener,
            Some(files) => listener.with_tls(identity(files)?),
        };
        let server =
            WebServer::start(listener, database.store(), sentences(global, database), options.clone())
                .map_err(|error| Failure::no_resources(&format!("the web server can't start: {error}")))?;
        Ok(Some(Web { server, base_path: options.base_path.clone(), tls }))
    }

    /// Takes messages of other services from now on.
    pub(crate) fn set_hooks(&self, hooks: &[Hook]) {
        self.server.set_hooks(hooks.to_vec());
    }

    /// Reads the certificate and its key again. If they can't be used, the former ones stay.
    pub(crate) fn read_certificate_again(&self) {
        let Some(files) = &self.tls else { return };
        match TlsIdentity::load(files) {
            Ok(identity) => {
                self.server.replace_certificate(identity);
                tracing::info!("the certificate of the web server was read again");
            }
            Err(reason) => tracing::error!("the former certificate of the web server stays: {reason}"),
        }
    }

    /// The address for browsers of this machine.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}/runs", self.server.address(), self.base_path)
    }
}

fn identity(files: &TlsFiles) -> Result<TlsIdentity, Failure> {
    TlsIdentity::load(files).map_err(|reason| {
        Failure::usage(
            format!("the web server has no certificate: {reason}"),
            "correct `tls_cert` and `tls_key` under [web]: files in PEM that fit each other",
        )
    })
}

/// Texts as the verbs `why` and `doctor` print them.
fn sentences(global: &GlobalOptions, database: &Database) -> Sentences {
    let (of_reasons, of_doctor, of_file) = (global.clone(), global.clone(), database.clone());
    let (of_attention, attended) = (global.clone(), database.clone());
    let database = database.clone();
    Sentences::new(
        move |reason, job, now_ms| {
            let text = reasons::sentence(reason, job, now_ms, &of_reasons);
            anstream::adapter::strip_str(&text).to_string()
        },
        move || doctor::report(&of_doctor, &database, doctor::TrialWrite::LeftOut),
    )
    .with_file(move || doctor::file_reading(&of_file))
    .with_attention(move |store| doctor::attention(&of_attention, &attended, store))
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}
