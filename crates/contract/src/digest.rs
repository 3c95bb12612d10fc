//! Digests of canonical JSON: the ids of checks and of whole rule sets (S31).

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of a value's canonical JSON (keys sorted, no white space), as lower-case hex.
pub fn digest(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// The first 16 hex digits of the digest: 64 bits, enough to tell checks of one dataset apart.
pub fn short_digest(value: &Value) -> String {
    digest(value)[..16].to_string()
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (position, key) in keys.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::String(key.clone()));
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter_and_the_order_of_items_does() {
        assert_eq!(digest(&json!({"a": 1, "b": 2})), digest(&json!({"b": 2, "a": 1})));
        assert_ne!(digest(&json!([1, 2])), digest(&json!([2, 1])));
    }
}
