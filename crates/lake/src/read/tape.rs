//! Remembers the text behind the records being parsed, so that a broken line can be shown as it stood.

use super::decode::Bytes;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest record: beyond it a quote was surely left open.
pub const LONGEST_RECORD: u64 = 64 << 20;

/// What both the reader underneath and the parser on top know.
#[derive(Debug, Default)]
pub struct Tape {
    kept: Mutex<Kept>,
    record: AtomicU64,
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    /// Where in the text `bytes` begins.
    start: u64,
    bytes: Vec<u8>,
}

/// The text, passed on and remembered.
pub struct Taped {
    source: Bytes,
    tape: Arc<Tape>,
    read: u64,
}

impl Taped {
    /// Remembers what is read from a source.
    pub fn new(source: Bytes) -> (Self, Arc<Tape>) {
        let tape = Arc::new(Tape::default());
        let taped = Taped {
            source,
            tape: Arc::clone(&tape),
            read: 0,
        };
        (taped, tape)
    }
}

impl Read for Taped {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.read.saturating_sub(self.tape.record.load(Ordering::Relaxed)) > LONGEST_RECORD {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                "a record of more than 64 MiB; is a quote left open?",
            ));
        }
        let length = self.source.read(out)?;
        self.read += length as u64;
        if length == 0 && !out.is_empty() {
            self.tape.ended.store(true, Ordering::Relaxed);
        }
        let mut kept = self.tape.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend_from_slice(&out[..length]);
        Ok(length)
    }
}

impl Tape {
    /// Tells where the next record begins.
    pub fn record_at(&self, position: u64) {
        self.record.store(position, Ordering::Relaxed);
    }

    /// Whether the end of the text was seen.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The text between two positions, without the line ends around it.
    pub fn text(&self, from: u64, to: u64) -> Vec<u8> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let index = |at: u64| {
            usize::try_from(at.saturating_sub(kept.start)).map_or(kept.bytes.len(), |at| at.min(kept.bytes.len()))
        };
        let mut text = &kept.bytes[index(from)..index(to)];
        while let [b'\r' | b'\n', rest @ ..] = text {
            text = rest;
        }
        while let [rest @ .., b'\r' | b'\n'] = text {
            text = rest;
        }
        text.to_vec()
    }

    /// Forgets the text before a position.
    pub fn forget(&self, before: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let count = usize::try_from(before.saturating_sub(kept.start)).map_or(0, |count| count.min(kept.bytes.len()));
        kept.bytes.drain(..count);
        kept.start += count as u64;
    }
}
