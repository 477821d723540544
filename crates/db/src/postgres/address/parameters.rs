//! All parameters of a connection to PostgreSQL, and whether Windlass supports them.

use super::AddressError;

/// Whether Windlass supports a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// Yes, with the same meaning as in libpq.
    Full,
    /// Only these values, because they ask for Windlass's own behaviour. Other values are refused, because ignoring them might
    /// be unsafe.
    OnlyValues(&'static [&'static str]),
    /// It is ignored, because it makes no difference.
    Ignored,
}

/// A parameter of a connection.
#[derive(Debug)]
pub(super) struct Parameter {
    /// The name in a URL and in a service file.
    pub(super) name: &'static str,
    /// The environment variable for it.
    pub(super) variable: Option<&'static str>,
    pub(super) support: Support,
}

const fn supported(name: &'static str, variable: &'static str) -> Parameter {
    Parameter { name, variable: Some(variable), support: Support::Full }
}

const fn without_variable(name: &'static str, support: Support) -> Parameter {
    Parameter { name, variable: None, support }
}

const fn only(name: &'static str, variable: &'static str, values: &'static [&'static str]) -> Parameter {
    Parameter { name, variable: Some(variable), support: Support::OnlyValues(values) }
}

const fn ignored(name: &'static str, variable: &'static str) -> Parameter {
    Parameter { name, variable: Some(variable), support: Support::Ignored }
}

/// The schema of the tables. Only Windlass has this parameter.
pub(super) const SCHEMA: &str = "schema";

/// Every parameter that libpq knows, and [`SCHEMA`].
pub(super) const PARAMETERS: &[Parameter] = &[
    supported("host", "PGHOST"),
    supported("hostaddr", "PGHOSTADDR"),
    supported("port", "PGPORT"),
    supported("dbname", "PGDATABASE"),
    supported("user", "PGUSER"),
    supported("password", "PGPASSWORD"),
    supported("passfile", "PGPASSFILE"),
    supported("service", "PGSERVICE"),
    without_variable(SCHEMA, Support::Full),
    supported("sslmode", "PGSSLMODE"),
    supported("sslrootcert", "PGSSLROOTCERT"),
    supported("sslcert", "PGSSLCERT"),
    supported("sslkey", "PGSSLKEY"),
    supported("sslcrl", "PGSSLCRL"),
    supported("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    supported("channel_binding", "PGCHANNELBINDING"),
    supported("target_session_attrs", "PGTARGETSESSIONATTRS"),
    supported("application_name", "PGAPPNAME"),
    without_variable("fallback_application_name", Support::Full),
    supported("options", "PGOPTIONS"),
    supported("connect_timeout", "PGCONNECT_TIMEOUT"),
    without_variable("keepalives", Support::Full),
    without_variable("keepalives_idle", Support::Full),
    without_variable("keepalives_interval", Support::Full),
    without_variable("keepalives_count", Support::Full),
    without_variable("tcp_user_timeout", Support::Full),
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
    without_variable("sslpassword", Support::OnlyValues(&[""])),
    without_variable("replication", Support::OnlyValues(&["false", "off", "no", "0"])),
    // Texts are always sent as UTF-8, and Kerberos is never used.
    ignored("client_encoding", "PGCLIENTENCODING"),
    ignored("krbsrvname", "PGKRBSRVNAME"),
    ignored("gsslib", "PGGSSLIB"),
];

/// The parameter of this name.
pub(super) fn find(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

/// The error for an unknown parameter. `place` says where the name was found.
pub(super) fn unknown(name: &str, place: &str) -> AddressError {
    let next_step = match nearest(name) {
        Some(known) => format!("did you mean `{known}`?"),
        None => {
            let known: Vec<&str> = PARAMETERS
                .iter()
                .filter(|parameter| parameter.support == Support::Full)
                .map(|parameter| parameter.name)
                .collect();
            format!("there are {}", known.join(", "))
        }
    };
    AddressError::new(format!("`{name}` {place} is no parameter of a connection"), next_step)
}

/// The parameter with the most similar name, if one is similar enough.
fn nearest(name: &str) -> Option<&'static str> {
    /// The least similarity of two names, where 1 means that they are equal.
    const SIMILARITY_MIN: f64 = 0.88;
    let folded = name.to_ascii_lowercase().replace('-', "_");
    PARAMETERS
        .iter()
        .filter(|parameter| parameter.support == Support::Full)
        .map(|parameter| (strsim::jaro_winkler(&folded, parameter.name), parameter.name))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
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
    fn the_error_of_a_misspelled_parameter_names_the_right_one() {
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
