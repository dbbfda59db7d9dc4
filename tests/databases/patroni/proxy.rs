//! A proxy between the adapter and Patroni, which kills the adapter at a counted point.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::trio::ThreeNodeBed;
use super::rest;

/// The time of the kill, by the number of the adapter's request, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Point {
    /// Patroni never receives the request.
    Before(usize),
    /// Patroni has the request, and goes on by itself.
    Meanwhile(usize),
    /// The answer was there.
    After(usize),
}

#[derive(Default)]
struct Aim {
    point: Option<Point>,
    target: Option<i32>,
    requests: usize,
    /// The request at the time of the kill.
    hit: Option<String>,
}

#[derive(Clone, Default)]
pub(super) struct Proxies(Arc<Mutex<Aim>>);

impl Proxies {
    /// Starts a proxy in front of every member.
    pub(super) fn start(trio: &ThreeNodeBed) -> Self {
        let proxies = Self::default();
        for vm in &trio.vms {
            let listener = TcpListener::bind(&*vm.addresses[2]).unwrap();
            let (patroni, own) = (rest(vm).to_owned(), proxies.clone());
            std::thread::spawn(move || {
                for client in listener.incoming().map_while(Result::ok) {
                    let (patroni, own) = (patroni.clone(), own.clone());
                    // A broken connection does not affect other connections.
                    std::thread::spawn(move || own.pass(client, &patroni));
                }
            });
        }
        proxies
    }

    /// Starts the adapter; no request passes before the adapter's process id is known.
    pub(super) fn aim<T>(&self, point: Point, start: impl FnOnce() -> (T, i32)) -> T {
        let mut aim = self.aimed();
        let (started, target) = start();
        *aim = Aim { point: Some(point), target: Some(target), requests: 0, hit: None };
        started
    }

    /// The request at the time of the kill; `None` where the adapter ended by itself.
    pub(super) fn hit(&self) -> Option<String> {
        let mut aim = self.aimed();
        (aim.point, aim.target) = (None, None);
        aim.hit.take()
    }

    fn aimed(&self) -> MutexGuard<'_, Aim> {
        self.0.lock().unwrap()
    }

    fn pass(&self, mut client: TcpStream, patroni: &str) -> io::Result<()> {
        let request = read(&mut client)?;
        let first = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
        // Members ask each other as well.
        let is_ours = String::from_utf8_lossy(&request).contains("user-agent: allclear/");
        let number = {
            let mut aim = self.aimed();
            aim.requests += usize::from(is_ours);
            aim.requests
        };
        let is_hit = |point| is_ours && self.shoot(point, &first);
        if is_hit(Point::Before(number)) {
            return Ok(());
        }
        let mut server = TcpStream::connect(patroni)?;
        server.write_all(&request)?;
        is_hit(Point::Meanwhile(number));
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        is_hit(Point::After(number));
        client.write_all(&answer)?;
        client.shutdown(Shutdown::Both)
    }

    /// Kills the adapter if `point` is the aim, and returns whether it was.
    fn shoot(&self, point: Point, first: &str) -> bool {
        let mut aim = self.aimed();
        let Some(target) = aim.target.filter(|_| aim.point == Some(point)) else { return false };
        kill(Pid::from_raw(target), Signal::SIGKILL).unwrap();
        aim.hit = Some(format!("{point:?}: {first}"));
        true
    }
}

/// A whole request.
fn read(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(head) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if request.len() >= head + 4 + length.unwrap_or_default() {
                return Ok(request);
            }
        }
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
}
