//! A headless browser for one test, driven on loopback.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Far longer than any step takes on a loaded machine; only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) struct Browser {
    http: reqwest::Client,
    /// The address of the browser session.
    session: String,
    driver: Child,
    profile: TempDir,
}

/// The driver takes one free port for IPv4 and for IPv6, and ends if another test has the second.
const TRIES: usize = 5;

/// A running driver and its port; `None` if the driver has ended without a port.
fn driver_on_a_port(program: &Path, profile: &TempDir) -> Option<(Child, u16)> {
    let mut driver = Command::new(program);
    // files left behind by a killed driver are deleted with the profile
    driver.arg("--port=0").env("TMPDIR", profile.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut driver = driver.spawn().unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
    if let Some(port) = lines.find_map(|line| port_in(&line)) {
        return Some((driver, port));
    }
    driver.wait().unwrap();
    None
}

impl Browser {
    /// `None` without a browser.
    pub(crate) async fn start() -> Option<Self> {
        let Some((browser, driver)) = program("chromium").zip(program("chromedriver")) else {
            crate::left_out::lacks("chromium");
            return None;
        };
        let profile = TempDir::with_prefix("browser").unwrap();
        let (driver, port) = (0..TRIES).find_map(|_| driver_on_a_port(&driver, &profile)).expect("chromedriver starts");
        let http = allclear::http_client::plain().unwrap().build().unwrap();
        let mut started = Self { http, session: format!("http://127.0.0.1:{port}/session"), driver, profile };
        let arguments = [
            "--headless=new".to_owned(),
            // the only way to start as root; the browser loads nothing but the page
            "--no-sandbox".into(),
            "--disable-dev-shm-usage".into(),
            "--disable-background-networking".into(),
            "--disable-component-update".into(),
            "--no-first-run".into(),
            // only loopback names resolve, and one name leads to the address of replicas
            "--host-resolver-rules=MAP rebound.example 127.0.0.3, MAP * ~NOTFOUND, EXCLUDE 127.0.0.*".into(),
            "--hide-scrollbars".into(),
            format!("--user-data-dir={}", started.profile.path().display()),
        ];
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": { "binary": browser, "args": arguments } });
        let session = started.post("", &json!({ "capabilities": { "alwaysMatch": wanted } })).await;
        started.session = format!("{}/{}", started.session, session["sessionId"].as_str().unwrap());
        Some(started)
    }

    pub(crate) async fn open(&self, address: &str) {
        self.post("/url", &json!({ "url": address })).await;
    }

    /// The return value of a function body in the page.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// The result of an asynchronous script, which ends by calling its last argument.
    pub(crate) async fn finish(&self, script: &str) -> Value {
        self.post("/execute/async", &json!({ "script": script, "args": [] })).await
    }

    /// The visible text.
    pub(crate) async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// Waits until the visible text contains all parts.
    pub(crate) async fn until_it_says(&self, parts: &[&str]) {
        let began = Instant::now();
        loop {
            let text = self.text().await;
            let Some(missing) = parts.iter().find(|part| !text.contains(**part)) else { return };
            assert!(began.elapsed() < LIMIT, "the page does not say {missing:?}, but:\n{text}");
            sleep(LOOK_AGAIN).await;
        }
    }

    pub(crate) async fn press(&self, key: &str) {
        let keys = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": keys }] })).await;
    }

    /// Sets the width of the screen, and the colour scheme `light` or `dark`.
    pub(crate) async fn look(&self, width: u32, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.tool("Emulation.setEmulatedMedia", &json!({ "features": features })).await;
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.tool("Emulation.setDeviceMetricsOverride", &screen).await;
    }

    /// A screenshot of the whole page.
    pub(crate) async fn picture(&self, path: &Path) {
        self.screenshot("document.documentElement.scrollHeight", path).await;
    }

    /// A screenshot from the top of the page to the first element that matches the selector.
    pub(crate) async fn picture_above(&self, selector: &str, path: &Path) {
        let height = format!("document.querySelector({selector:?}).getBoundingClientRect().top + window.scrollY");
        self.screenshot(&height, path).await;
    }

    /// A screenshot from the top of the page; `height` is an expression of the page.
    async fn screenshot(&self, height: &str, path: &Path) {
        let size = self.run(&format!("return [document.documentElement.clientWidth, {height}]")).await;
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let shot = self.tool("Page.captureScreenshot", &json!({ "captureBeyondViewport": true, "clip": clip })).await;
        let file = std::fs::File::create(path).unwrap();
        let mut decode = Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(file).spawn().unwrap();
        decode.stdin.take().unwrap().write_all(shot["data"].as_str().unwrap().as_bytes()).unwrap();
        assert!(decode.wait().unwrap().success());
    }

    async fn tool(&self, name: &str, arguments: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": arguments })).await
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.http.post(format!("{}{path}", self.session)).json(body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "the browser refused {path}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver first, as the driver would notice the browser's end; then every process that names the profile.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let profile = self.profile.path().display().to_string();
        let entries = std::fs::read_dir("/proc").into_iter().flatten();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let is_its = |pid: &i32| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|arguments| arguments.contains(&profile))
        };
        for pid in pids.filter(is_its) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn port_in(line: &str) -> Option<u16> {
    line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
}
