//! Objects of one JSON file: one a line, or the elements of an array.

use super::decode::{self, Bytes};
use super::files::Input;
use super::tape::LONGEST_RECORD;
use comporta_engine::Result;
use encoding_rs::Encoding;
use serde::de::IgnoredAny;
use std::io::{BufRead, BufReader, Read};

/// The objects of a file, as text.
pub struct Objects {
    input: Input,
    source: BufReader<Bytes>,
    array: bool,
    done: bool,
}

impl Objects {
    /// Opens a file; one that begins with `[` is an array.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(input: &Input, encoding: Option<&'static Encoding>) -> Result<Self> {
        let source = BufReader::with_capacity(1 << 17, decode::text(input, encoding)?);
        let mut objects = Objects {
            input: input.clone(),
            source,
            array: false,
            done: false,
        };
        if objects.peek()? == Some(b'[') {
            objects.array = true;
            objects.source.consume(1);
        }
        Ok(objects)
    }

    /// The next sign that is no blank, left where it is.
    fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            let buffer = self.source.fill_buf().map_err(|error| self.input.failed(error))?;
            let Some(&first) = buffer.first() else {
                return Ok(None);
            };
            if !first.is_ascii_whitespace() {
                return Ok(Some(first));
            }
            self.source.consume(1);
        }
    }

    /// Reads the text of the next object; `false` at the end.
    ///
    /// # Errors
    /// The file cannot be read on, or an array is not closed.
    pub fn next(&mut self, text: &mut Vec<u8>) -> Result<bool> {
        text.clear();
        if self.done {
            return Ok(false);
        }
        match (self.array, self.peek()?) {
            (false, None) => Ok(false),
            (false, Some(_)) => self.line(text),
            (true, None) => Err(self.input.corrupt("the array is not closed")),
            (true, Some(b']')) => {
                self.source.consume(1);
                self.done = true;
                match self.peek()? {
                    None => Ok(false),
                    Some(_) => Err(self.input.corrupt("there is text behind the end of the array")),
                }
            }
            (true, Some(b',')) => {
                self.source.consume(1);
                self.element(text)
            }
            (true, Some(_)) => self.element(text),
        }
    }

    fn line(&mut self, text: &mut Vec<u8>) -> Result<bool> {
        let mut limited = self.source.by_ref().take(LONGEST_RECORD + 1);
        limited
            .read_until(b'\n', text)
            .map_err(|error| self.input.failed(error))?;
        self.hold_limit(text)?;
        Ok(true)
    }

    fn hold_limit(&self, text: &[u8]) -> Result<()> {
        match text.len() as u64 > LONGEST_RECORD {
            true => Err(self.input.corrupt("an object of more than 64 MiB")),
            false => Ok(()),
        }
    }

    /// Reads up to the comma or bracket that ends an element.
    fn element(&mut self, text: &mut Vec<u8>) -> Result<bool> {
        let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
        loop {
            let buffer = self.source.fill_buf().map_err(|error| self.input.failed(error))?;
            if buffer.is_empty() {
                return Err(self.input.corrupt("the array is not closed"));
            }
            let mut end = None;
            for (index, byte) in buffer.iter().enumerate() {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if quoted => escaped = true,
                    b'"' => quoted = !quoted,
                    _ if quoted => {}
                    b',' | b']' if depth == 0 => {
                        end = Some(index);
                        break;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            let taken = end.unwrap_or(buffer.len());
            text.extend_from_slice(&buffer[..taken]);
            self.source.consume(taken);
            self.hold_limit(text)?;
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// The fields of an object and the text of their values; `None` if the text is no object.
pub fn fields(text: &[u8]) -> Option<Vec<(String, &str)>> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if !text.starts_with('{') || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return None;
    }
    // From here on the text is known to be well-formed: every key has a colon and a value.
    let bytes = text.as_bytes();
    let mut fields = Vec::new();
    let mut at = 1;
    loop {
        at += bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace() || **byte == b',')
            .count();
        if bytes.get(at)? == &b'}' {
            return Some(fields);
        }
        let key = at..value_end(bytes, at);
        at = key.end;
        at += bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace() || **byte == b':')
            .count();
        let value = at..value_end(bytes, at);
        at = value.end;
        fields.push((serde_json::from_str(text.get(key)?).ok()?, text.get(value)?));
    }
}

/// Where the value that begins here ends.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (index, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return index + 1;
                }
            }
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return index,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            b',' if depth == 0 => return index,
            byte if depth == 0 && byte.is_ascii_whitespace() => return index,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_split_without_touching_the_numbers() {
        let found = fields(br#" {"a": 1.10, "b\"}":"x,}\"", "c" : [1, {"d":2}] ,"e":null} "#).unwrap();
        let found: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        assert_eq!(
            found,
            [
                ("a", "1.10"),
                ("b\"}", r#""x,}\"""#),
                ("c", r#"[1, {"d":2}]"#),
                ("e", "null")
            ]
        );
        assert_eq!(fields(b"{}").unwrap().len(), 0);
        for broken in ["{", "[1]", "{\"a\":}", "{\"a\":1} x", "1"] {
            assert!(fields(broken.as_bytes()).is_none(), "{broken}");
        }
    }
}
