//! From documents and settings to a [`Job`]: the checks resolved, those left out set apart, the clock read.

use crate::contract::nearest::nearest;
use crate::contract::node::{Node, Text};
use crate::contract::pipeline::Pipeline;
use crate::contract::rules_file::{OnEmpty, RulesFile};
use crate::contract::source::TypeName;
use crate::contract::{Diagnostic, Diagnostics, LogicalType, Severity};
use crate::engine::job::Job;
use crate::rules::Check;
use crate::rules::check::{Surroundings, find_repeated};
use crate::rules::rule::Documents;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use chrono_tz::Tz;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

/// Failing rows shown per check where nothing else is asked for.
pub const SAMPLE_DEFAULT: usize = 5;
/// Memory for keys and ranks before they go to disk, in bytes, where nothing else is asked for.
pub const MEMORY_BYTES_DEFAULT: usize = 128 * 1024 * 1024;
/// How far in the future a newest value may be, in seconds, where the document does not say.
pub const FUTURE_TOLERANCE_SECONDS_DEFAULT: u64 = 300;

/// What a caller may decide beside the documents.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The clock reading; the real one otherwise.
    pub now: Option<DateTime<Utc>>,
    /// Whether every outcome but `pass` holds, `observe` aside.
    pub strict: bool,
    /// Failing rows shown per check, at most.
    pub sample: Option<usize>,
    /// Names, tags or globs of the checks to evaluate; all if empty.
    pub only: Vec<String>,
    /// Names, tags or globs of the checks to leave out.
    pub skip: Vec<String>,
    /// What an empty batch does; the document's choice otherwise.
    pub on_empty: Option<OnEmpty>,
    /// The default severity where the document names none.
    pub on_fail: Option<Severity>,
    /// Columns with personal data.
    pub masked: BTreeSet<String>,
    /// Whether statistics of files are left unused.
    pub ignore_statistics: bool,
    /// Streams read at the same time, at most.
    pub parallelism: Option<NonZeroUsize>,
    /// Memory for keys and ranks before they go to disk, in bytes.
    pub memory_bytes: Option<usize>,
}

/// The job of a `check`. What is wrong is in the diagnostics; with an error among them the job must not run.
pub fn check_job(
    data: &str,
    document: &RulesFile,
    text: Option<&Arc<Text>>,
    settings: &Settings,
    diagnostics: &mut Diagnostics,
) -> Job {
    let on_fail = document.on_fail.or(settings.on_fail).unwrap_or(Severity::Fail);
    let documents = Documents::from(document);
    comporta_rules::rules::custom::check_templates(&documents, diagnostics);
    let mut checks = Vec::new();
    for call in &document.rules {
        checks.extend(Check::resolve(call, on_fail, &documents, diagnostics));
    }
    find_repeated(&checks, &document.rules, diagnostics);
    let (checks, left_out) = choose(checks, settings, diagnostics);
    Job {
        pipeline: data.to_string(),
        unit: None,
        layer: None,
        contract: None,
        checks,
        left_out,
        gate: document.gate.clone(),
        on_empty: settings.on_empty.unwrap_or(document.on_empty),
        on_fail,
        surroundings: Surroundings {
            timezone: timezone(document, text, diagnostics),
            now: settings.now.unwrap_or_else(|| SystemTime::now().into()),
            future_tolerance_seconds: document
                .future_tolerance_seconds
                .unwrap_or(FUTURE_TOLERANCE_SECONDS_DEFAULT),
            tables: document.tables.keys().cloned().collect(),
        },
        strict: settings.strict,
        sample: settings.sample.unwrap_or(SAMPLE_DEFAULT),
        masked: settings.masked.clone(),
        use_statistics: !settings.ignore_statistics,
        parallelism: settings.parallelism.map_or_else(default_parallelism, NonZeroUsize::get),
        memory_bytes: settings.memory_bytes.unwrap_or(MEMORY_BYTES_DEFAULT),
    }
}

/// The job of a `run`.
pub fn run_job(pipeline: &Pipeline, settings: &Settings, diagnostics: &mut Diagnostics) -> Job {
    let mut job = check_job(
        &pipeline.name,
        &pipeline.document,
        Some(&pipeline.text),
        settings,
        diagnostics,
    );
    job.layer = pipeline.layer.map(|layer| layer.to_string());
    if let Some(contract) = &pipeline.contract {
        diagnostics.push(
            contract
                .error("not-yet", "`contract` is not supported by this version")
                .why("its checks would be ignored, and the run would prove less than the document says")
                .hint("write the checks under `rules:`, or include a file of rules"),
        );
    }
    if pipeline.name.trim().is_empty() && !diagnostics.has_errors() {
        diagnostics.push(Diagnostic::error("missing-key", "`pipeline` is blank").hint("give the pipeline a name"));
    }
    job
}

/// Types that the rules declare (`type` and `schema` checks), for columns that `source: { schema: … }` leaves open:
/// text is read as what the document says it is (S17). A check with a `where` speaks of some rows only and
/// declares nothing; what is no type is the rule's own fault to report.
pub fn declared_types(document: &RulesFile) -> IndexMap<String, TypeName> {
    let mut declared = IndexMap::new();
    let mut declare = |name: &str, written: Option<&str>| {
        if let Some(Ok(ty)) = written.map(LogicalType::parse) {
            declared.entry(name.to_string()).or_insert(TypeName(ty));
        }
    };
    for call in document.rules.iter().filter(|call| call.attributes.filter.is_none()) {
        let parameters = &call.parameters;
        match call.rule.as_str() {
            "type" => {
                if let Some(column) = parameters.get("column").and_then(Node::as_text) {
                    declare(column, parameters.get("is").and_then(Node::as_text));
                }
            }
            "schema" => {
                for entry in parameters.get("columns").map(Node::entries).unwrap_or_default() {
                    declare(&entry.key, entry.value.as_text());
                }
            }
            _ => {}
        }
    }
    let written = document.source.as_ref().and_then(|source| source.schema.as_ref());
    declared.retain(|name, _| written.is_none_or(|written| !written.contains_key(name)));
    declared
}

fn default_parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn timezone(document: &RulesFile, text: Option<&Arc<Text>>, diagnostics: &mut Diagnostics) -> Tz {
    let Some(name) = &document.timezone else { return Tz::UTC };
    if let Ok(timezone) = Tz::from_str(name) {
        return timezone;
    }
    let known: Vec<&str> = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()).collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(zone) => format!("did you mean `{zone}`?"),
        None => "write a name of the IANA database, such as `Europe/Lisbon` or `UTC`".to_string(),
    };
    let mut diagnostic = Diagnostic::error("unknown-timezone", format!("`{name}` is no time zone")).hint(hint);
    let root = text.and_then(|text| Node::parse(text, &mut Diagnostics::default()));
    if let Some(node) = root.as_ref().and_then(|root| root.get("timezone")) {
        diagnostic = diagnostic.at(&node.text, node.span);
    }
    diagnostics.push(diagnostic);
    Tz::UTC
}

/// Sets apart the checks to leave out. A pattern that chooses nothing is a mistake: the run would prove other
/// things than its author thinks.
fn choose(checks: Vec<Check>, settings: &Settings, diagnostics: &mut Diagnostics) -> (Vec<Check>, Vec<Check>) {
    for (option, patterns) in [("--only", &settings.only), ("--skip", &settings.skip)] {
        for pattern in patterns {
            if checks.iter().any(|check| chosen(check, pattern)) {
                continue;
            }
            let mut names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            names.extend(
                checks
                    .iter()
                    .flat_map(|check| check.attributes.tags.iter().map(String::as_str)),
            );
            let hint = match nearest(pattern, names.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "a check is chosen by its name, its rule, one of its tags, or a pattern with `*`".to_string(),
            };
            let message = format!("`{option} {pattern}` chooses no check");
            diagnostics.push(Diagnostic::error("nothing-chosen", message).hint(hint));
        }
    }
    checks.into_iter().partition(|check| {
        let wanted = settings.only.is_empty() || settings.only.iter().any(|pattern| chosen(check, pattern));
        wanted && !settings.skip.iter().any(|pattern| chosen(check, pattern))
    })
}

fn chosen(check: &Check, pattern: &str) -> bool {
    let names = [check.name.as_str(), check.definition.name];
    let tags = check.attributes.tags.iter().map(String::as_str);
    names.into_iter().chain(tags).any(|name| matches(pattern, name))
}

/// Whether a name fits a pattern in which `*` stands for any text and `?` for one character.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // The last `*`, and how much of the name it has swallowed.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, swallowed)) = star {
            star = Some((at, swallowed + 1));
            p = at + 1;
            n = swallowed + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|sign| *sign == '*')
}

/// An instant as people write it: RFC 3339, or a date or timestamp without zone, which are read as UTC.
///
/// # Errors
/// What is expected, as a fragment.
pub fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let text = text.trim();
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.with_timezone(&Utc));
    }
    for form in [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ] {
        if let Ok(local) = NaiveDateTime::parse_from_str(text, form) {
            return Ok(local.and_utc());
        }
    }
    match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        Ok(date) => Ok(date.and_time(chrono::NaiveTime::MIN).and_utc()),
        Err(_) => Err("an instant is written as `2026-08-21T06:00:00Z` or `2026-08-21`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::rules_file::NoIncludes;

    fn job(yaml: &str, settings: &Settings) -> (Job, Vec<&'static str>) {
        let text = Text::new("rules.yml", yaml);
        let mut diagnostics = Diagnostics::default();
        let names = crate::rules::registry::names();
        let file = RulesFile::parse(&text, &names, &NoIncludes, &mut diagnostics);
        let job = check_job("orders.csv", &file, Some(&text), settings, &mut diagnostics);
        (job, diagnostics.0.iter().map(|d| d.code).collect())
    }

    fn names(checks: &[Check]) -> Vec<&str> {
        checks.iter().map(|check| check.name.as_str()).collect()
    }

    #[test]
    fn patterns_match_names_in_whole() {
        for (pattern, name, expected) in [
            ("unique(*)", "unique(id)", true),
            ("*id*", "not_null(id)", true),
            ("unique", "unique(id)", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn checks_are_chosen_by_name_rule_or_tag() {
        let yaml = "rules:\n- not_null: [id, name]\n  tags: [keys]\n- unique: id\n- row_count: { min: 1 }\n";
        let only = Settings {
            only: vec!["keys".into(), "unique".into()],
            skip: vec!["*(name)".into()],
            ..Settings::default()
        };
        let (job, codes) = job(yaml, &only);
        assert_eq!(codes, Vec::<&str>::new());
        assert_eq!(names(&job.checks), ["not_null(id)", "unique(id)"]);
        assert_eq!(names(&job.left_out), ["not_null(name)", "row_count"]);
    }

    #[test]
    fn a_pattern_that_chooses_nothing_and_an_unknown_zone_are_faults() {
        let settings = Settings {
            only: vec!["uniqe(id)".into()],
            ..Settings::default()
        };
        let (_, codes) = job("timezone: Europe/Lisbn\nrules:\n- unique: id\n", &settings);
        assert_eq!(codes, ["nothing-chosen", "unknown-timezone"]);
    }

    #[test]
    fn rules_declare_types_that_the_source_leaves_open() {
        let yaml = "source: { schema: { a: date } }\nrules:\n- type: { column: a, is: int }\n\
                    - type: { column: b, is: \"decimal(12,2)\" }\n- type: { column: c, is: int }\n  where: a > 1\n\
                    - schema: { columns: { b: string, d: boolean, e: nonsense } }\n";
        let text = Text::new("rules.yml", yaml);
        let file = RulesFile::parse(&text, &["type", "schema"], &NoIncludes, &mut Diagnostics::default());
        let declared: Vec<String> = declared_types(&file)
            .iter()
            .map(|(name, ty)| format!("{name} {}", ty.0))
            .collect();
        assert_eq!(declared, ["b decimal(12,2)", "d boolean"]);
    }

    #[test]
    fn instants_are_read_in_the_forms_people_write() {
        for text in [
            "2026-08-21",
            "2026-08-21T00:00:00Z",
            "2026-08-21 00:00",
            "2026-08-21T02:00:00+02:00",
        ] {
            assert_eq!(
                instant(text).unwrap().to_rfc3339(),
                "2026-08-21T00:00:00+00:00",
                "{text}"
            );
        }
        assert!(instant("yesterday").is_err());
    }
}
