//! Reads the body of a request, within its limits.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::problem::Problem;
use crate::route::Route;

/// How long a body may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// Reads the body of a route that takes one. A body that says that it is too long is refused before it is read.
pub(super) async fn read(body: Body, headers: &HeaderMap, route: Route) -> Result<Vec<u8>, Problem> {
    if !route.method.changes() {
        return Ok(Vec::new());
    }
    let limit = route.body_max;
    let said: Option<usize> = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse().ok());
    if said.is_some_and(|length| length > limit) {
        return Err(Problem::too_large(limit));
    }
    let reading = Limited::new(body, limit).collect();
    match tokio::time::timeout(BODY_TIME_MAX, reading).await {
        Err(_late) => Err(Problem::too_slow()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::too_large(limit)),
        Ok(Err(_broken)) => Err(Problem::invalid("the body did not arrive whole", "send it again")),
        Ok(Ok(collected)) => Ok(collected.to_bytes().to_vec()),
    }
}
