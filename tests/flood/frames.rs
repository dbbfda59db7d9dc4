//! HTTP/2 as bytes, for clients that break the protocol.

/// The connection preface, which every client sends before its first frame.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A window so large that no window update is necessary.
pub(crate) const OPEN: u32 = 0x7fff_ffff;

/// The first bytes of every client.
pub(crate) fn beginning() -> Vec<u8> {
    [PREFACE, &settings(OPEN)].concat()
}

/// Settings with the window of each answer and of the connection: how much may be sent before a window update.
pub(crate) fn settings(window: u32) -> Vec<u8> {
    let initial = [&[0, 4], &window.to_be_bytes()[..]].concat();
    let mut bytes = frame(SETTINGS, 0, 0, &initial);
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0, 0]));
    bytes
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const PRIORITY_UPDATE: u8 = 16;
/// An unknown frame type.
pub(crate) const UNKNOWN: u8 = 0xfa;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const PADDED: u8 = 8;
const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The header of a gRPC call; the message follows.
pub(crate) fn call(stream: u32, path: &str) -> Vec<u8> {
    // :method POST and :scheme http of the static table, the rest literally.
    let mut fields = vec![0x83, 0x86];
    let mut literal = |name: &[u8], value: &str| {
        fields.extend(name);
        fields.push(u8::try_from(value.len()).unwrap());
        fields.extend(value.as_bytes());
    };
    literal(&[0x04], path);
    literal(&[0x01], "localhost");
    literal(&[0x0f, 0x10], "application/grpc");
    literal(b"\x00\x02te", "trailers");
    frame(HEADERS, END_HEADERS, stream, &fields)
}

/// A GET request over HTTP/2, as browsers send it.
pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    let mut fields = vec![0x82, 0x86];
    for (name, value) in [(0x04, path), (0x01, "localhost")] {
        fields.extend([name, u8::try_from(value.len()).unwrap()]);
        fields.extend(value.as_bytes());
    }
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields)
}

/// A gRPC message: the announced length, and the first bytes.
pub(crate) fn message(announced: u32, begins: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(announced.to_be_bytes());
    bytes.extend(begins);
    bytes
}

/// A call with an empty message.
pub(crate) fn whole_call(stream: u32, path: &str) -> Vec<u8> {
    let mut bytes = call(stream, path);
    bytes.extend(frame(DATA, END_STREAM, stream, &message(0, &[])));
    bytes
}
