//! Serves HTTP/1.1 only, with any set of built-in features. One connection has one request at a time, so there are at
//! most as many unread answers as connections.

use std::convert::Infallible;
use std::io;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// The bytes read ahead of a request, or written ahead of a reader.
const AHEAD: usize = 64 << 10;

/// Serves until `stop`, and until pending requests are answered. `of` returns the connection's data for requests.
pub async fn serve_http1<L: Listener, I: Clone + Send + Sync + 'static>(
    mut listener: L,
    router: Router,
    of: impl Fn(&L::Io, &L::Addr) -> I,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            (stream, address) = listener.accept() => {
                let who = of(&stream, &address);
                connections.spawn(one(stream, who, router.clone(), stop.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
    Ok(())
}

async fn one<S, I>(stream: S, who: I, router: Router, stop: CancellationToken)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    I: Clone + Send + Sync + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(who.clone()));
        let (router, request) = (router.clone(), request.map(Body::new));
        async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {})) }
    });
    let mut connection =
        std::pin::pin!(http1::Builder::new().max_buf_size(AHEAD).serve_connection(TokioIo::new(stream), service));
    // A client that disconnects needs no further answer.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
