//! Addresses of the network: names, numbers, mail, links.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Labels of letters, digits and inner hyphens (RFC 1123), at most 63 long and 253 together. The last one is no
/// number, for then it would be an address.
pub fn hostname(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 253 && text.split('.').all(label) && text.rsplit('.').next().is_some_and(|last| !numeric(last))
}

/// Four numbers from 0 to 255 without leading zeros, which some readers take for octal.
pub fn ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

/// The text forms of RFC 4291, without a zone.
pub fn ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

/// Either of the two.
pub fn ip(text: &str) -> bool {
    ipv4(text) || ipv6(text)
}

/// Six pairs of hexadecimal digits with `:` or `-` between them all, or three groups of four with dots.
pub fn mac(text: &str) -> bool {
    let grouped = |sign: char, groups: usize, width: usize| {
        text.split(sign).count() == groups
            && text
                .split(sign)
                .all(|group| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    grouped(':', 6, 2) || grouped('-', 6, 2) || grouped('.', 3, 4)
}

/// A mailbox as people have them: dot-separated atoms (RFC 5321 and 5322, letters beyond ASCII as in RFC 6531)
/// of at most 64 bytes, `@`, and a domain of at least two labels. Quoted names and bare addresses are legal in
/// mail headers and always a fault in data, so they are none here.
pub fn email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_atom_sign);
    text.len() <= 254
        && (1..=64).contains(&local.len())
        && local.split('.').all(atom)
        && domain.contains('.')
        && domain_name(domain)
}

fn is_atom_sign(sign: char) -> bool {
    match sign.is_ascii() {
        true => sign.is_ascii_alphanumeric() || "!#$%&'*+/=?^_`{|}~-".contains(sign),
        false => !sign.is_whitespace() && !sign.is_control(),
    }
}

/// A host name whose labels may hold letters of any alphabet (RFC 5890), as people write them.
fn domain_name(text: &str) -> bool {
    if text.is_ascii() {
        return hostname(text);
    }
    text.len() <= 253
        && text.split('.').all(|label| {
            let signs = label.chars().all(|sign| sign.is_alphanumeric() || sign == '-');
            !label.is_empty() && label.len() <= 63 && signs && !label.starts_with('-') && !label.ends_with('-')
        })
}

/// An absolute URL with a host (RFC 3986): scheme, `://`, host or address, port, path. Blanks and signs that must
/// be escaped are not taken.
pub fn url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let scheme_fits = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (user, place),
        None => ("", authority),
    };
    scheme_fits && written(user) && host_and_port(place) && written(tail)
}

fn host_and_port(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((address, rest)) => {
                return ipv6(address) && (rest.is_empty() || rest.strip_prefix(':').is_some_and(port_fits));
            }
            None => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    (ipv4(host) || domain_name(host)) && port.is_none_or(port_fits)
}

fn port_fits(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
}

/// Whether text may stand in a URL as it is: no blank, no control, none of the signs that must be escaped, and
/// every `%` with two hexadecimal digits behind it.
fn written(text: &str) -> bool {
    let signs = text
        .chars()
        .all(|sign| !sign.is_whitespace() && !sign.is_control() && !"\"<>\\^`{|}".contains(sign));
    let escapes = text.split('%').skip(1).all(|rest| {
        rest.as_bytes()
            .get(..2)
            .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
    });
    signs && escapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn addresses_have_numbers_that_addresses_have() {
        assert_format(
            ipv4,
            &["0.0.0.0", "255.255.255.255", "10.1.2.3"],
            &[
                "999.1.1.1",
                "01.2.3.4",
                "1.2.3",
                "1.2.3.4.5",
                "1.2.3.4 ",
                "1.2.3.-4",
                "256.1.1.1",
            ],
        );
        assert_format(
            ipv6,
            &["::", "::1", "2001:db8::8a2e:370:7334", "::ffff:1.2.3.4", "FE80::1"],
            &[
                "1.2.3.4",
                "2001:db8:::1",
                "12345::",
                "fe80::1%eth0",
                "1:2:3:4:5:6:7",
                "g::1",
            ],
        );
        assert_format(ip, &["1.2.3.4", "::1"], &["a.b", "1.2.3"]);
        assert_format(
            mac,
            &["00:1A:2b:3c:4d:5e", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e"],
            &[
                "00:1a:2b:3c:4d",
                "00:1a-2b:3c:4d:5e",
                "001a2b3c4d5e",
                "0g:1a:2b:3c:4d:5e",
            ],
        );
    }

    #[test]
    fn host_names_keep_to_their_labels() {
        let long = format!("{}.com", "a".repeat(64));
        assert_format(
            hostname,
            &[
                "localhost",
                "example.com",
                "a-b.c1.io",
                "xn--bcher-kva.example",
                "3com.com",
            ],
            &[
                "-a.com",
                "a-.com",
                "a..b",
                ".a",
                "a.",
                "a_b.com",
                "1.2.3.4",
                "exa mple.com",
                &long,
            ],
        );
    }

    #[test]
    fn mailboxes_have_a_name_and_a_domain() {
        let long = format!("{}@a.com", "a".repeat(65));
        assert_format(
            email,
            &[
                "ana@example.com",
                "a.b+c_d@sub.example.co",
                "o'neil@example.ie",
                "josé@exemplo.pt",
                "a@bücher.example",
            ],
            &[
                "ana",
                "ana@",
                "@example.com",
                "ana@example",
                "a b@example.com",
                "a..b@example.com",
                ".a@example.com",
                "a.@example.com",
                "a@b@c.com",
                "ana@example..com",
                "ana@-example.com",
                "ana@1.2.3.4",
                "ana@example.com ",
                "\"a b\"@example.com",
                &long,
            ],
        );
    }

    #[test]
    fn links_are_absolute_and_have_a_host() {
        assert_format(
            url,
            &[
                "http://example.com",
                "https://user:pw@example.com:8080/a/b?c=d#e",
                "ftp://1.2.3.4/x",
                "http://[::1]:80/",
                "https://localhost/%20",
                "https://exemplo.pt/ação",
            ],
            &[
                "example.com",
                "http://",
                "http:///path",
                "http://exa mple.com",
                "http://example.com:99999",
                "http://example.com/a b",
                "http://example.com/%zz",
                "http://999.1.1.1/",
                "1http://a.com",
                "javascript:alert(1)",
                "http://[::1",
                "http://a.com/<b>",
                "mailto:a@b.com",
            ],
        );
    }
}
