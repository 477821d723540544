//! The parameters of a connection that PostgreSQL's users know, and what becomes of each.

use super::AddressError;

/// What becomes of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It means what it means to libpq.
    Honoured,
    /// Only these values can be kept, because they ask for what is done anyway. Any other is refused:
    /// leaving out what somebody asked for may be less safe than they think.
    Only(&'static [&'static str]),
    /// It changes nothing here, whatever its value.
    Idle,
}

/// A parameter of a connection.
#[derive(Debug)]
pub(super) struct Parameter {
    /// As in a URL and in a service file.
    pub(super) name: &'static str,
    /// The variable of the environment that stands in for it.
    pub(super) variable: Option<&'static str>,
    pub(super) meaning: Use,
}

const fn honoured(name: &'static str, variable: &'static str) -> Parameter {
    Parameter { name, variable: Some(variable), meaning: Use::Honoured }
}

const fn without_variable(name: &'static str, meaning: Use) -> Parameter {
    Parameter { name, variable: None, meaning }
}

const fn only(name: &'static str, variable: &'static str, values: &'static [&'static str]) -> Parameter {
    Parameter { name, variable: Some(variable), meaning: Use::Only(values) }
}

const fn idle(name: &'static str, variable: &'static str) -> Parameter {
    Parameter { name, variable: Some(variable), meaning: Use::Idle }
}

/// Ours: the schema of the tables. libpq does not know it.
pub(super) const SCHEMA: &str = "schema";

/// Every parameter that libpq knows, and [`SCHEMA`].
pub(super) const PARAMETERS: &[Parameter] = &[
    honoured("host", "PGHOST"),
    honoured("hostaddr", "PGHOSTADDR"),
    honoured("port", "PGPORT"),
    honoured("dbname", "PGDATABASE"),
    honoured("user", "PGUSER"),
    honoured("password", "PGPASSWORD"),
    honoured("passfile", "PGPASSFILE"),
    honoured("service", "PGSERVICE"),
    without_variable(SCHEMA, Use::Honoured),
    honoured("sslmode", "PGSSLMODE"),
    honoured("sslrootcert", "PGSSLROOTCERT"),
    honoured("sslcert", "PGSSLCERT"),
    honoured("sslkey", "PGSSLKEY"),
    honoured("sslcrl", "PGSSLCRL"),
    honoured("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    honoured("channel_binding", "PGCHANNELBINDING"),
    honoured("target_session_attrs", "PGTARGETSESSIONATTRS"),
    honoured("application_name", "PGAPPNAME"),
    without_variable("fallback_application_name", Use::Honoured),
    honoured("options", "PGOPTIONS"),
    honoured("connect_timeout", "PGCONNECT_TIMEOUT"),
    without_variable("keepalives", Use::Honoured),
    without_variable("keepalives_idle", Use::Honoured),
    without_variable("keepalives_interval", Use::Honoured),
    without_variable("keepalives_count", Use::Honoured),
    without_variable("tcp_user_timeout", Use::Honoured),
    only("sslnegotiation", "PGSSLNEGOTIATION", &["postgres"]),
    only("sslcompression", "PGSSLCOMPRESSION", &["0"]),
    only("sslcertmode", "PGSSLCERTMODE", &["allow"]),
    only("sslsni", "PGSSLSNI", &["1"]),
    only("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", &["", "TLSv1.3"]),
    only("gssencmode", "PGGSSENCMODE", &["disable", "prefer"]),
    only("gssdelegation", "PGGSSDELEGATION", &["0"]),
    only("load_balance_hosts", "PGLOADBALANCEHOSTS", &["disable"]),
    only("require_auth", "PGREQUIREAUTH", &[""]),
    only("requirepeer", "PGREQUIREPEER", &[""]),
    only("sslcrldir", "PGSSLCRLDIR", &[""]),
    without_variable("sslpassword", Use::Only(&[""])),
    without_variable("replication", Use::Only(&["false", "off", "no", "0"])),
    // Texts are always sent as UTF-8, and Kerberos is never spoken.
    idle("client_encoding", "PGCLIENTENCODING"),
    idle("krbsrvname", "PGKRBSRVNAME"),
    idle("gsslib", "PGGSSLIB"),
];

/// The parameter of this name.
pub(super) fn find(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

/// The words for a name that no parameter has. `place` says where it stands.
pub(super) fn unknown(name: &str, place: &str) -> AddressError {
    let next_step = match nearest(name) {
        Some(known) => format!("did you mean `{known}`?"),
        None => {
            let known: Vec<&str> = PARAMETERS
                .iter()
                .filter(|parameter| parameter.meaning == Use::Honoured)
                .map(|parameter| parameter.name)
                .collect();
            format!("there are {}", known.join(", "))
        }
    };
    AddressError::new(format!("`{name}` {place} is no parameter of a connection"), next_step)
}

/// What a person most likely meant: one or two letters off, or nearly the same word.
fn nearest(name: &str) -> Option<&'static str> {
    /// How alike two names must be, where 1 is the same.
    const ALIKE: f64 = 0.88;
    let folded = name.to_ascii_lowercase().replace('-', "_");
    PARAMETERS
        .iter()
        .filter(|parameter| parameter.meaning == Use::Honoured)
        .map(|parameter| (strsim::jaro_winkler(&folded, parameter.name), parameter.name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_and_variables_are_unique() {
        let mut names: Vec<&str> = PARAMETERS.iter().map(|parameter| parameter.name).collect();
        let mut variables: Vec<&str> = PARAMETERS.iter().filter_map(|parameter| parameter.variable).collect();
        for words in [&mut names, &mut variables] {
            let before = words.len();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), before);
        }
    }

    #[test]
    fn a_typing_error_is_told_its_right_spelling() {
        let cases = [
            ("ssl_mode", Some("sslmode")),
            ("sslMode", Some("sslmode")),
            ("sslmod", Some("sslmode")),
            ("databse", None),
            ("connect-timeout", Some("connect_timeout")),
            ("aplication_name", Some("application_name")),
            ("scheme", Some("schema")),
            ("currentSchema", None),
            ("pool_size", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name), expected, "{name}");
        }
        let error = unknown("pool_size", "in the address");
        assert!(error.message().contains("`pool_size` in the address"), "{error}");
        assert!(error.next_step().contains("connect_timeout"), "{error}");
    }
}
