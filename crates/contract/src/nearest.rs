//! The nearest name, for hints: "did you mean `severity`?"

/// The candidate closest to `word`, if one is close enough to be a likely slip.
pub fn nearest<'a, I, S>(word: &str, candidates: I) -> Option<String>
where
    I: IntoIterator<Item = &'a S>,
    S: AsRef<str> + ?Sized + 'a,
{
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let candidate = candidate.as_ref();
            (
                strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count().max(3) / 3).max(1))
        .min_by_key(|(distance, candidate)| (*distance, candidate.to_string()))
        .map(|(_, candidate)| candidate.to_string())
}

/// A hint that names the nearest candidate, or lists them all where none is near.
pub fn suggest(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known here: {}", list(candidates)),
    }
}

/// Names in backticks with commas: `a`, `b`, `c`.
pub fn list<S: AsRef<str>>(names: &[S]) -> String {
    names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let keys = ["severity", "where", "nulls"];
        assert_eq!(nearest("serverity", keys).as_deref(), Some("severity"));
        assert_eq!(nearest("Where", keys).as_deref(), Some("where"));
        assert_eq!(nearest("partition", keys), None);
    }
}
