//! A wire from one replica to another, with states that block the wire, withhold replies, or cut the wire.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    /// Nothing gets through until the wire is whole again.
    Blocked,
    /// Requests get through; replies do not, and never will.
    Holding,
    /// The connections open before are closed; new connections work.
    Cut,
}

pub(crate) struct Wire {
    pub(crate) address: String,
    state: watch::Sender<State>,
}

impl Wire {
    pub(crate) async fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = watch::Sender::new(State::Whole);
        let watched = state.subscribe();
        // The task ends with the test's runtime.
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&target).await else { continue };
                tokio::spawn(connect(near, far, watched.clone()));
            }
        });
        Self { address, state }
    }

    pub(crate) fn block(&self) {
        self.state.send_replace(State::Blocked);
    }

    pub(crate) fn mend(&self) {
        self.state.send_replace(State::Whole);
    }

    pub(crate) fn hold_replies(&self) {
        self.state.send_replace(State::Holding);
    }

    pub(crate) fn cut(&self) {
        self.state.send_replace(State::Cut);
    }
}

async fn connect(near: TcpStream, far: TcpStream, mut state: watch::Receiver<State>) {
    let after_cut = *state.borrow() == State::Cut;
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let (requests, replies) =
        (pump(near_in, far_out, state.clone(), false), pump(far_in, near_out, state.clone(), true));
    tokio::select! {
        // The cut comes first, so a reply arriving together with the cut is not let through.
        biased;
        _ = state.wait_for(|now| *now == State::Cut), if !after_cut => {}
        () = requests => {}
        () = replies => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>, replies: bool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(size @ 1..) = from.read(&mut bytes).await {
        let now = *state.borrow();
        if now == State::Blocked || (replies && now == State::Holding) {
            let _ = state.wait_for(|next| *next != now).await;
        }
        // Held bytes are never delivered: the connection ends with them.
        let held = replies && now == State::Holding;
        if held || to.write_all(&bytes[..size]).await.is_err() {
            return;
        }
    }
}
