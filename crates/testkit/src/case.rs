//! Cases of `spec/`: behaviour as Markdown that a person reads and a test executes.
//!
//! A case is a heading of level two with fenced blocks below it. The info string of a fence says what it is:
//! `yaml rules`, `csv batch` (read from text, so that cells can fail to parse), `typed batch` (typed, as from
//! Parquet), `typed table NAME`, and `text outcome` with the facts that must come out. `yaml settings` holds
//! `now`, `strict`, `only` and `skip`.

/// One case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Case {
    /// The heading.
    pub title: String,
    /// The line of the heading, from 1.
    pub line: usize,
    /// The rules file.
    pub rules: String,
    /// The batch and whether it is text.
    pub batch: Option<(String, bool)>,
    /// Other tables by name.
    pub tables: Vec<(String, String)>,
    /// Further settings, `key: value` a line.
    pub settings: Vec<(String, String)>,
    /// The facts, one a line.
    pub outcome: Vec<String>,
    /// First and last line of the facts in the file, from 0, without the fences.
    pub outcome_lines: (usize, usize),
}

/// The cases of a file.
///
/// # Errors
/// A block that is none of ours, or a case without rules or outcome, with its line.
pub fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(title) = line.strip_prefix("## ") {
            cases.push(Case {
                title: title.trim().into(),
                line: at + 1,
                ..Case::default()
            });
        }
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            at += 1;
            continue;
        };
        let first = at + 1;
        let Some(length) = lines[first..].iter().position(|line| line.starts_with("```")) else {
            return Err(format!("line {}: the block is not closed", at + 1));
        };
        let Some(case) = cases.last_mut() else {
            return Err(format!("line {}: a block stands before the first case", at + 1));
        };
        let body = lines[first..first + length].to_vec();
        let joined = body.iter().map(|line| format!("{line}\n")).collect::<String>();
        match info.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["yaml", "rules"] => case.rules = joined,
            ["yaml", "settings"] => {
                let pairs = body.iter().filter_map(|line| line.split_once(':'));
                case.settings = pairs
                    .map(|(key, value)| (key.trim().into(), value.trim().into()))
                    .collect();
            }
            ["csv", "batch"] => case.batch = Some((joined, true)),
            ["typed", "batch"] => case.batch = Some((joined, false)),
            ["typed", "table", name] => case.tables.push(((*name).into(), joined)),
            ["text", "outcome"] => {
                case.outcome = body.iter().map(|line| line.trim().to_string()).collect();
                case.outcome_lines = (first, first + length);
            }
            _ => return Err(format!("line {}: `{info}` is no block of a case", at + 1)),
        }
        at = first + length + 1;
    }
    for case in &cases {
        if case.rules.is_empty() || case.outcome_lines == (0, 0) {
            return Err(format!(
                "line {}: `{}` needs rules and an outcome",
                case.line, case.title
            ));
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_a_heading_with_its_blocks() {
        let text = "# S5\n\n## one\n```yaml rules\n- unique: id\n```\n```csv batch\nid:int64\n1\n```\n```text outcome\ndecision publish\n```\n";
        let cases = parse(text).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0].batch, Some(("id:int64\n1\n".into(), true)));
        assert_eq!(cases[0].outcome, ["decision publish"]);
    }

    #[test]
    fn unknown_blocks_and_empty_cases_are_mistakes() {
        assert!(parse("## one\n```yaml rule\n```\n").unwrap_err().contains("line 2"));
        assert!(parse("## one\n").unwrap_err().contains("needs rules"));
    }
}
