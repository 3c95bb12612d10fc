//! From bytes of a file to UTF-8 text: decompression, encoding, byte order mark.

use super::files::Input;
use comporta_contract::source::Compression;
use comporta_engine::{Error, Result};
use encoding_rs::{Decoder, Encoding, UTF_8};
use std::io::{BufReader, Read};

/// A stream of bytes that can move between tasks.
pub type Bytes = Box<dyn Read + Send>;

const BUFFER: usize = 1 << 17;

/// The file's bytes, decompressed.
///
/// # Errors
/// The file cannot be opened.
pub fn plain(input: &Input) -> Result<Bytes> {
    let file = BufReader::with_capacity(BUFFER, input.open()?);
    Ok(match input.compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(file).map_err(|error| input.failed(error))?),
        Compression::Bz2 => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(file)),
    })
}

/// The encoding that a document names.
///
/// # Errors
/// There is no such encoding.
pub fn encoding(label: Option<&str>) -> Result<Option<&'static Encoding>> {
    let Some(label) = label else {
        return Ok(None);
    };
    let known = match label.to_ascii_lowercase().as_str() {
        "latin-1" | "latin_1" => Some(encoding_rs::WINDOWS_1252),
        lower => Encoding::for_label(lower.as_bytes()),
    };
    match known {
        Some(encoding) => Ok(Some(encoding)),
        None => Err(Error::invalid(format!("unknown encoding `{label}`"))
            .hint("use `utf-8`, `latin-1`, `windows-1252`, `utf-16le`, or another WHATWG label")),
    }
}

/// The file as text. UTF-8 is passed on as it is, so that what is broken in it can be told by line; a byte
/// order mark is removed and wins over nothing said.
///
/// # Errors
/// The file cannot be opened or read.
pub fn text(input: &Input, encoding: Option<&'static Encoding>) -> Result<Bytes> {
    let mut bytes = plain(input)?;
    let mut head = Vec::new();
    bytes
        .by_ref()
        .take(3)
        .read_to_end(&mut head)
        .map_err(|error| input.failed(error))?;
    let mark = Encoding::for_bom(&head);
    let (encoding, skip) = match (encoding, mark) {
        (None, Some((marked, length))) => (marked, length),
        (Some(named), Some((marked, length))) if named == marked => (named, length),
        (named, _) => (named.unwrap_or(UTF_8), 0),
    };
    let rest = std::io::Cursor::new(head.split_off(skip)).chain(bytes);
    Ok(match encoding == UTF_8 {
        true => Box::new(rest),
        false => Box::new(Transcoder {
            source: Box::new(rest),
            decoder: encoding.new_decoder_without_bom_handling(),
            input: vec![0; BUFFER],
            start: 0,
            end: 0,
            last: false,
            done: false,
            spare: Vec::new(),
        }),
    })
}

/// Turns another encoding into UTF-8 as it is read. What is malformed becomes U+FFFD.
struct Transcoder {
    source: Bytes,
    decoder: Decoder,
    input: Vec<u8>,
    start: usize,
    end: usize,
    last: bool,
    done: bool,
    /// Text that did not fit into a small caller's buffer.
    spare: Vec<u8>,
}

impl Read for Transcoder {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while self.spare.is_empty() && !self.done {
            if self.start == self.end && !self.last {
                self.start = 0;
                self.end = self.source.read(&mut self.input)?;
                self.last = self.end == 0;
            }
            let mut text = vec![0; BUFFER];
            let (result, read, written, _) =
                self.decoder
                    .decode_to_utf8(&self.input[self.start..self.end], &mut text, self.last);
            self.start += read;
            self.done = self.last && result == encoding_rs::CoderResult::InputEmpty;
            text.truncate(written);
            self.spare = text;
        }
        let length = out.len().min(self.spare.len());
        out[..length].copy_from_slice(&self.spare[..length]);
        self.spare.drain(..length);
        Ok(length)
    }
}
