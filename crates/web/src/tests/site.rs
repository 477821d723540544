//! A server without a socket, and requests to it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use windlass_db::Database;
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::store::{NewRun, NewToken, Role, Secret};
use windlass_engine::{Clock, Random, Store, TABLES};
use windlass_test_database::{DatabaseKind, TestDatabase};
use windlass_views::DoctorView;
use windlass_workflow::{Source, Workflow};

use super::counted::{Counted, Counts};
use crate::door::{Door, Peer, cookie_name, router};
use crate::live::{Hub, Viewers};
use crate::options::WebOptions;
use crate::rest::DOCUMENT;
use crate::sentences::Sentences;
use crate::threads::DatabaseThreads;

/// When the clock of the tests begins.
pub(crate) const START_MS: i64 = 1_800_000_000_000;

pub(crate) struct Site {
    runtime: tokio::runtime::Runtime,
    router: Router,
    pub(crate) door: Arc<Door>,
    pub(crate) viewers: Arc<Viewers>,
    counts: Arc<Counts>,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    database: TestDatabase,
    _folder: tempfile::TempDir,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn is(&self, status: u16) -> &Reply {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self
    }
}

/// Every answer of REST to any test has a status that the document names for its operation.
fn assert_documented(method: &Method, path: &str, status: StatusCode) {
    // Names of methods are written in capitals, so `get` is another one.
    let is_known = [Method::GET, Method::POST, Method::PUT, Method::PATCH].contains(method);
    let method = method.as_str().to_ascii_lowercase();
    let fits = |template: &str| {
        let parts = template.split('/').zip(path.split('/'));
        template.split('/').count() == path.split('/').count()
            && parts
                .into_iter()
                .all(|(wanted, part)| wanted == part || wanted.starts_with('{') && !part.is_empty())
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let operations = paths.iter().filter(|(template, _)| fits(template)).map(|(_, path)| &path[&method]);
    let Some(operation) = operations.into_iter().find(|operation| is_known && operation.is_object()) else {
        return;
    };
    let responses = operation["responses"].as_object().unwrap();
    let is_named =
        responses.contains_key(status.as_str()) || status.is_success() && responses.contains_key("2XX");
    assert!(is_named, "{method} {path} answers {status}, which the document does not name");
}

/// A request that is being written.
pub(crate) struct Ask<'s> {
    site: &'s Site,
    builder: axum::http::request::Builder,
    host: Option<&'static str>,
    body: Body,
    from: IpAddr,
}

pub(crate) fn sentences() -> Sentences {
    sentences_with(|| Ok(DoctorView { ok: true, findings: Vec::new() }))
}

fn sentences_with(
    health: impl Fn() -> windlass_engine::Result<DoctorView> + Send + Sync + 'static,
) -> Sentences {
    Sentences::new(|_reason, _job, _now_ms| "a reason".to_owned(), health)
}

/// What a site says whose checks read the database.
fn sentences_of(store: &Store) -> Sentences {
    let checked = store.clone();
    sentences_with(move || {
        checked.upkeep().health()?;
        Ok(DoctorView { ok: true, findings: Vec::new() })
    })
}

fn serve(store: &Store, options: WebOptions, sentences: Sentences) -> (Arc<Door>, Arc<Viewers>) {
    let (threads, end) = DatabaseThreads::start(store).unwrap();
    let viewers = Hub::start(store, end.one_more()).unwrap();
    let door = Door::new(options, sentences, threads, Arc::clone(&viewers), store.clock().clone());
    (Arc::new(door), viewers)
}

pub(crate) fn open(database: &TestDatabase, clock: &Clock) -> Arc<dyn Database> {
    let address = database.address();
    match database.kind() {
        DatabaseKind::Sqlite => {
            Arc::new(SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap())
        }
        DatabaseKind::Postgres => {
            let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
            let random = Random::from_seed(1);
            let options = PostgresOptions { clock: clock.clone(), random, ..PostgresOptions::default() };
            Arc::new(PostgresDatabase::open(&address, &TABLES, &options).unwrap())
        }
    }
}

impl Site {
    pub(crate) fn new() -> Site {
        Site::with(WebOptions::default())
    }

    pub(crate) fn with(options: WebOptions) -> Site {
        Site::at(options, Clock::manual(START_MS))
    }

    /// A site whose server says this of the database.
    pub(crate) fn that_says(options: WebOptions, sentences: Sentences) -> Site {
        Site::made_of(options, Clock::manual(START_MS), |_store| sentences)
    }

    pub(crate) fn at(options: WebOptions, clock: Clock) -> Site {
        Site::made_of(options, clock, sentences_of)
    }

    fn made_of(options: WebOptions, clock: Clock, sentences: impl FnOnce(&Store) -> Sentences) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let counted = Counted::new(open(&database, &clock));
        let counts = Arc::clone(&counted.counts);
        let store = Store::new(Arc::new(counted), clock.clone(), Random::from_seed(1));
        let sentences = sentences(&store);
        let (door, viewers) = serve(&store, options, sentences);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Site {
            runtime,
            router: router(&door),
            door,
            viewers,
            counts,
            store,
            clock,
            database,
            _folder: folder,
        }
    }

    /// Changes rows as another program would.
    pub(crate) fn sql(&self, statement: &str) {
        self.database.sql(windlass_test_database::Access::Write).execute(statement);
    }

    /// Ends the server, and starts another one on the same database.
    pub(crate) fn restart(&mut self) {
        self.viewers.stop();
        let (door, viewers) = serve(&self.store, self.door.options.clone(), sentences_of(&self.store));
        self.router = router(&door);
        (self.door, self.viewers) = (door, viewers);
    }

    /// Waits until the hub has waited in vain some times, so that it has read what was to read. Somebody must look.
    pub(crate) fn until_quiet(&self) {
        loop {
            let (reads, waits) = (self.reads(), self.viewers.waits());
            while self.viewers.waits() < waits + 20 {
                std::thread::yield_now();
            }
            if self.reads() == reads {
                return;
            }
        }
    }

    /// How many transactions have read so far.
    pub(crate) fn reads(&self) -> usize {
        self.counts.reads.load(Ordering::SeqCst)
    }

    /// How many transactions have written so far.
    pub(crate) fn writes(&self) -> usize {
        self.counts.writes.load(Ordering::SeqCst)
    }

    /// Lets reads fail, or not any more.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.counts.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Adds a token and returns its secret.
    pub(crate) fn token(&self, name: &str, role: Role) -> String {
        self.token_until(name, role, None)
    }

    pub(crate) fn token_until(&self, name: &str, role: Role, expires_at: Option<i64>) -> String {
        let secret = Secret::generate().unwrap();
        let token = NewToken { name: name.to_owned(), hash: secret.hash(), role, expires_at };
        self.store.access().add_token(token).unwrap();
        secret.text().to_owned()
    }

    /// Begins a session with a link, and returns its cookie as a browser sends it.
    pub(crate) fn session(&self, role: Role) -> String {
        let secret = Secret::generate().unwrap();
        let until = self.clock.now_ms() + 60_000;
        self.store.access().add_link(&secret.hash(), "ada", role, until).unwrap();
        let reply = self.get(&format!("/open?code={}", secret.text())).send();
        reply.is(303);
        cookie_of(&reply)
    }

    /// The token that forms of a session send.
    pub(crate) fn form_token(&self, cookie: &str) -> String {
        let secret = cookie.strip_prefix(&format!("{}=", cookie_name(&self.door.options))).unwrap();
        windlass_engine::store::secret_hash(&format!("form of {secret}"))
    }

    pub(crate) fn get(&self, path: &str) -> Ask<'_> {
        self.ask("GET", path)
    }

    pub(crate) fn post(&self, path: &str) -> Ask<'_> {
        self.ask("POST", path)
    }

    pub(crate) fn ask(&self, method: &str, path: &str) -> Ask<'_> {
        Ask {
            site: self,
            builder: Request::builder().method(method).uri(path),
            host: Some("127.0.0.1:9463"),
            body: Body::empty(),
            from: IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// Submits a run of a workflow with the jobs `a` and `b`.
    pub(crate) fn run(&self) -> i64 {
        let run = NewRun {
            workflow: workflow("two", "[jobs.a]\nrun = 'true'\n[jobs.b]\nrun = 'true'\nneeds = ['a']\n"),
            params: Default::default(),
            dir: None,
            run_key: None,
            occasion: None,
        };
        self.store.runs().submit(run).unwrap().run_id
    }
}

pub(crate) fn workflow(name: &str, rest: &str) -> Workflow {
    let text = format!("name = \"{name}\"\n{rest}");
    let source = Source::new("test.toml".to_owned(), text.into_bytes()).unwrap();
    windlass_workflow::parse(&source).unwrap()
}

/// The cookie of a reply as a browser sends it back.
pub(crate) fn cookie_of(reply: &Reply) -> String {
    reply.header("set-cookie").split(';').next().unwrap().to_owned()
}

/// A stream that is open.
pub(crate) struct Stream<'s> {
    site: &'s Site,
    body: Body,
}

impl Stream<'_> {
    /// The next message; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<String> {
        let frame = self.site.runtime.block_on(self.body.frame())?;
        Some(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
    }

    /// Reads on until a message says that this has changed.
    pub(crate) fn until(&mut self, topic: &str) -> String {
        self.until_one_of(&[topic])
    }

    /// The same with one of several.
    pub(crate) fn until_one_of(&mut self, topics: &[&str]) -> String {
        loop {
            let message = self.next().unwrap_or_else(|| panic!("the stream ended before {topics:?}"));
            if topics.iter().any(|topic| message.contains(&format!("\"{topic}\""))) {
                return message;
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.viewers.stop();
    }
}

impl<'s> Ask<'s> {
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        Ask { builder: self.builder.header(name, value), ..self }
    }

    pub(crate) fn header_bytes(self, name: &str, value: HeaderValue) -> Self {
        Ask { builder: self.builder.header(name, value), ..self }
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn host(self, host: Option<&'static str>) -> Self {
        Ask { host, ..self }
    }

    pub(crate) fn from(self, from: IpAddr) -> Self {
        Ask { from, ..self }
    }

    /// A cookie, the origin of the own pages, and the token of the forms.
    pub(crate) fn by_browser(self, cookie: &str) -> Self {
        let token = self.site.form_token(cookie);
        self.header("cookie", cookie).header("origin", "http://127.0.0.1:9463").header("x-form-token", &token)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(Body::from(body.to_string()))
    }

    pub(crate) fn form(self, fields: &str) -> Self {
        self.header("content-type", "application/x-www-form-urlencoded").body(Body::from(fields.to_owned()))
    }

    pub(crate) fn body(self, body: Body) -> Self {
        Ask { body, ..self }
    }

    fn request(self) -> Request<Body> {
        let builder = match self.host {
            Some(host) => self.builder.header("host", host),
            None => self.builder,
        };
        let mut request = builder.body(self.body).unwrap();
        request.extensions_mut().insert(Peer(self.from));
        request
    }

    /// Opens a stream.
    pub(crate) fn stream(self) -> Stream<'s> {
        let (site, router) = (self.site, self.site.router.clone());
        let request = self.request();
        let response = site.runtime.block_on(router.oneshot(request)).unwrap();
        assert_eq!(response.status(), 200, "{response:?}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Stream { site, body: response.into_body() }
    }

    pub(crate) fn send(self) -> Reply {
        let (site, router) = (self.site, self.site.router.clone());
        let request = self.request();
        let method = request.method().clone();
        let path = request
            .uri()
            .path()
            .strip_prefix(site.door.options.base_path.as_str())
            .unwrap_or_default()
            .to_owned();
        site.runtime.block_on(async move {
            let response = router.oneshot(request).await.unwrap();
            assert_documented(&method, &path, response.status());
            let (parts, mut body) = response.into_parts();
            let bytes =
                match parts.headers.get("content-type").is_some_and(|value| value == "text/event-stream") {
                    // It does not end: its beginning is enough.
                    true => body.frame().await.unwrap().unwrap().into_data().unwrap_or_default(),
                    false => body.collect().await.unwrap().to_bytes(),
                };
            let body = String::from_utf8_lossy(&bytes).into_owned();
            Reply { status: parts.status, headers: parts.headers, body }
        })
    }
}
