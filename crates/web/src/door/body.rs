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
    read_within(BODY_TIME_MAX, body, headers, route).await
}

async fn read_within(
    time_max: Duration,
    body: Body,
    headers: &HeaderMap,
    route: Route,
) -> Result<Vec<u8>, Problem> {
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
    match tokio::time::timeout(time_max, reading).await {
        Err(_late) => Err(Problem::too_slow()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::too_large(limit)),
        Ok(Err(_broken)) => Err(Problem::invalid("the body did not arrive whole", "send it again")),
        Ok(Ok(collected)) => Ok(collected.to_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;

    use axum::body::Bytes;
    use axum::http::StatusCode;
    use futures_util::stream::{StreamExt, iter, pending};
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_body_that_does_not_end_is_refused() {
        let route =
            crate::route::all().into_iter().find(|route| route.path == "/login" && route.method.changes());
        let begun = iter([Ok::<_, Infallible>(Bytes::from_static(b"tok"))]);
        let body = Body::from_stream(begun.chain(pending()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let headers = HeaderMap::new();
            let reading = read_within(Duration::from_millis(50), body, &headers, route.unwrap());
            let refused = timeout(Duration::from_secs(20), reading).await.unwrap().unwrap_err();
            assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
        });
    }
}
