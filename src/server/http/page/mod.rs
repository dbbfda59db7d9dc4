//! The page: static files inside the program. The page reads `/v1/watch` and `/v1/events`.

use axum::Router;
use axum::http::header;
use axum::routing::get;

struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! file {
    ($path:literal, $kind:literal, $name:literal) => {
        File { path: $path, kind: $kind, text: include_str!($name) }
    };
}

const FILES: &[File] = &[
    file!("/", "text/html; charset=utf-8", "page.html"),
    file!("/page.css", "text/css; charset=utf-8", "page.css"),
    file!("/page.svg", "image/svg+xml", "page.svg"),
    file!("/page.js", "text/javascript; charset=utf-8", "page.js"),
    file!("/page/tree.js", "text/javascript; charset=utf-8", "tree.js"),
    file!("/page/words.js", "text/javascript; charset=utf-8", "words.js"),
    file!("/page/feed.js", "text/javascript; charset=utf-8", "feed.js"),
    file!("/page/cluster.js", "text/javascript; charset=utf-8", "cluster.js"),
    file!("/page/event.js", "text/javascript; charset=utf-8", "event.js"),
    file!("/page/chart.js", "text/javascript; charset=utf-8", "chart.js"),
    file!("/page/commands.js", "text/javascript; charset=utf-8", "commands.js"),
    file!("/page/workloads.js", "text/javascript; charset=utf-8", "workloads.js"),
    file!("/page/history.js", "text/javascript; charset=utf-8", "history.js"),
];

/// The policy: no foreign content, no inline content, no frame around the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

pub(super) fn router() -> Router {
    FILES.iter().fold(Router::new(), |router, File { path, kind, text }| {
        let headers = [
            (header::CONTENT_TYPE, *kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        router.route(path, get(move || async move { (headers, *text) }))
    })
}
