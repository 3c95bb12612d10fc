//! The command line. What a command alone takes stands in its own file; what several take stands here.

use crate::commands::{check, completions, history, plan, rules, run, schema};
use crate::failure::Failure;
use crate::render::{Format, FormatRequest};
use clap::{Args, Parser, Subcommand, ValueEnum};
use comporta::contract::source::{Compression, Format as DataFormat, OneOrMany, SourceSpec, TypeName};
use comporta::contract::types::LogicalType;
use comporta::prepare::Settings;
use indexmap::IndexMap;
use std::num::NonZeroUsize;

const AFTER_HELP: &str = "\
Examples:
  comporta check orders.csv --rule 'not_null: [order_id]' --rule 'unique: [order_id]'
  comporta check 'landing/*.parquet' --rules orders.rules.yaml --format junit=report.xml
  comporta run orders.yaml
  comporta rules range

Exit codes:
  0   published, or it would be
  1   held back because of what the data is
  2   the command line or a document is wrong; nothing was read
  3   could not tell; safe to retry
  70  a bug of comporta

COMPORTA_LOG=debug says on standard error what is being done. NO_COLOR is respected.";

/// The gate before publication: lets good rows through, holds bad rows back, writes down what it saw.
#[derive(Debug, Parser)]
#[command(name = "comporta", version, about, after_help = AFTER_HELP, propagate_version = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge data against rules; write nothing unless asked
    Check(Box<check::Arguments>),
    /// Run a pipeline: source, transform, gate, target, quarantine, report
    Run(Box<run::Arguments>),
    /// Show what a check or a run would read and write; touch nothing
    Plan(Box<plan::Arguments>),
    /// List the rules, or show the page of one
    Rules(rules::Arguments),
    /// List earlier runs with decision, rows and score
    History(history::Arguments),
    /// Print the JSON Schema of rules files, pipelines or reports
    Schema(schema::Arguments),
    /// Print completions for a shell
    Completions(completions::Arguments),
}

/// How data is read. What stands here outweighs the `source:` of a document.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadArguments {
    /// The format, where the extension does not tell it
    #[arg(long, value_name = "FORMAT", value_parser = data_format)]
    input_format: Option<DataFormat>,
    /// The compression, where neither extension nor first bytes tell it: none, gzip, zstd, bz2, xz
    #[arg(long, value_name = "NAME", value_parser = compression)]
    compression: Option<Compression>,
    /// The sign between fields of a CSV file; `\t` or `tab` is a tab [default: `,`, a tab for .tsv]
    #[arg(long, value_name = "SIGN", value_parser = sign)]
    delimiter: Option<char>,
    /// The sign around fields of a CSV file [default: `"`]
    #[arg(long, value_name = "SIGN", value_parser = sign)]
    quote: Option<char>,
    /// The sign before a quote inside a quoted field [default: the quote doubled]
    #[arg(long, value_name = "SIGN", value_parser = sign)]
    escape: Option<char>,
    /// The first line of a CSV file names the columns (the default)
    #[arg(long, overrides_with = "no_header")]
    header: bool,
    /// The first line of a CSV file is data
    #[arg(long, overrides_with = "header")]
    no_header: bool,
    /// Names of the columns of a CSV file without a header
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    columns: Vec<String>,
    /// A cell that means null, beside the empty one; may be given several times
    #[arg(long = "null", value_name = "TEXT")]
    nulls: Vec<String>,
    /// The encoding of text: utf-8, latin-1, windows-1252 … [default: utf-8]
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
    /// The type of a column, as `amount=decimal(12,2)`; may be given several times
    #[arg(long = "type", value_name = "COLUMN=TYPE", value_parser = column_type)]
    types: Vec<(String, LogicalType)>,
    /// How dates are written, as dd/MM/yyyy [default: ISO 8601]
    #[arg(long, value_name = "FORM")]
    date_format: Option<String>,
    /// How timestamps are written, as `dd/MM/yyyy HH:mm:ss` [default: ISO 8601]
    #[arg(long, value_name = "FORM")]
    timestamp_format: Option<String>,
    /// The version of a Delta table to read [default: the newest]
    #[arg(long, value_name = "NUMBER", conflicts_with = "table_timestamp")]
    table_version: Option<u64>,
    /// The instant at which to read a Delta table
    #[arg(long, value_name = "ISO")]
    table_timestamp: Option<String>,
}

impl ReadArguments {
    /// The source with what the command line says of it; `data` replaces its place.
    pub(crate) fn apply(&self, source: &mut SourceSpec, data: &[String]) {
        if !data.is_empty() {
            source.path = Some(OneOrMany(data.to_vec()));
            (source.csv, source.json, source.parquet, source.arrow, source.delta) = (None, None, None, None, None);
        }
        set(&mut source.format, self.input_format);
        set(&mut source.compression, self.compression);
        set(&mut source.delimiter, self.delimiter);
        set(&mut source.quote, self.quote);
        set(&mut source.escape, self.escape);
        set(&mut source.encoding, self.encoding.clone());
        set(&mut source.date_format, self.date_format.clone());
        set(&mut source.timestamp_format, self.timestamp_format.clone());
        if self.header || self.no_header {
            source.header = Some(self.header);
        }
        if !self.columns.is_empty() {
            source.columns = Some(self.columns.clone());
        }
        if !self.nulls.is_empty() {
            source.nulls = Some(OneOrMany(self.nulls.clone()));
        }
        if !self.types.is_empty() {
            let schema = source.schema.get_or_insert_with(IndexMap::new);
            schema.extend(self.types.iter().map(|(name, ty)| (name.clone(), TypeName(ty.clone()))));
        }
        if self.table_version.is_some() || self.table_timestamp.is_some() {
            source.version = self.table_version;
            source.timestamp.clone_from(&self.table_timestamp);
        }
    }
}

fn set<T>(option: &mut Option<T>, given: Option<T>) {
    if given.is_some() {
        *option = given;
    }
}

/// How the batch is judged.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Judging")]
pub(crate) struct JudgeArguments {
    /// The clock reading of the run, for freshness and the report (without a zone: UTC) [default: now]
    #[arg(long, value_name = "ISO", value_parser = comporta::prepare::instant)]
    now: Option<chrono::DateTime<chrono::Utc>>,
    /// Evaluate only these checks: a name, a rule, a tag, or a pattern with `*`; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave these checks out; they are reported as not evaluated
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// What an empty batch does, whatever the document says
    #[arg(long, value_name = "WHAT", value_enum)]
    on_empty: Option<OnEmpty>,
    /// Hold on every outcome but `pass`, checks of severity `observe` aside
    #[arg(long)]
    strict: bool,
    /// Show at most N failing rows per check [default: 5]
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// A column with personal data: its values are never shown; may be given several times
    #[arg(long = "mask", value_name = "COLUMN")]
    masked: Vec<String>,
    /// Read every column, even where a file's own statistics prove a check
    #[arg(long)]
    no_statistics: bool,
    /// Read at most N streams at the same time [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Memory for keys before they go to disk, in MiB [default: 128]
    #[arg(long, value_name = "MIB")]
    memory: Option<NonZeroUsize>,
}

impl JudgeArguments {
    /// The same as settings of the library.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            now: self.now,
            strict: self.strict,
            sample: self.sample,
            only: self.only.clone(),
            skip: self.skip.clone(),
            on_empty: self.on_empty.map(|choice| match choice {
                OnEmpty::Hold => comporta::contract::rules_file::OnEmpty::Hold,
                OnEmpty::Publish => comporta::contract::rules_file::OnEmpty::Publish,
            }),
            on_fail: None,
            masked: self.masked.iter().cloned().collect(),
            ignore_statistics: self.no_statistics,
            parallelism: self.threads,
            memory_bytes: self.memory.map(|mib| mib.get().saturating_mul(1024 * 1024)),
        }
    }
}

/// What an empty batch does.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnEmpty {
    /// It is held back
    Hold,
    /// It is published, if its table rules hold
    Publish,
}

/// How the result is said.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// text, json, junit, github or markdown; with `=PATH` to a file; may be given several times [default: text]
    #[arg(long = "format", value_name = "FORMAT[=PATH]", value_parser = FormatRequest::parse)]
    formats: Vec<FormatRequest>,
    /// List every check in text, those that pass too
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Show no progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
}

impl OutputArguments {
    /// The formats asked for, text if none.
    ///
    /// # Errors
    /// Two results on standard output that cannot be told apart.
    pub(crate) fn requests(&self) -> Result<Vec<FormatRequest>, Failure> {
        if self.formats.is_empty() {
            return Ok(vec![FormatRequest {
                format: Format::Text,
                path: None,
            }]);
        }
        let on_stdout: Vec<Format> = self
            .formats
            .iter()
            .filter(|f| f.path.is_none())
            .map(|f| f.format)
            .collect();
        let for_machines = |format: &&Format| matches!(format, Format::Json | Format::Junit);
        if on_stdout.len() > 1
            && let Some(format) = on_stdout.iter().find(for_machines)
        {
            return Err(Failure::usage(
                format!("`{format}` shares standard output with another format, so no program could read it"),
                format!("give one of them a file: `--format {format}=PATH`"),
            ));
        }
        Ok(self.formats.clone())
    }

    /// Whether a program reads standard output as JSON, so that faults are said as JSON too.
    pub(crate) fn is_json(&self) -> bool {
        self.formats
            .iter()
            .any(|request| request.format == Format::Json && request.path.is_none())
    }
}

fn data_format(text: &str) -> Result<DataFormat, String> {
    Ok(match text {
        "csv" => DataFormat::Csv,
        "tsv" => DataFormat::Tsv,
        "jsonl" => DataFormat::Jsonl,
        "json" => DataFormat::Json,
        "parquet" => DataFormat::Parquet,
        "arrow" => DataFormat::Arrow,
        "delta" => DataFormat::Delta,
        _ => return Err("one of csv, tsv, jsonl, json, parquet, arrow, delta is expected".into()),
    })
}

fn compression(text: &str) -> Result<Compression, String> {
    Ok(match text {
        "none" => Compression::None,
        "gzip" => Compression::Gzip,
        "zstd" => Compression::Zstd,
        "bz2" => Compression::Bz2,
        "xz" => Compression::Xz,
        _ => return Err("one of none, gzip, zstd, bz2, xz is expected".into()),
    })
}

fn sign(text: &str) -> Result<char, String> {
    let mut signs = text.chars();
    match (text, signs.next(), signs.next()) {
        ("\\t" | "tab", _, _) => Ok('\t'),
        (_, Some(one), None) => Ok(one),
        _ => Err("a single character is expected".into()),
    }
}

fn column_type(text: &str) -> Result<(String, LogicalType), String> {
    let (column, ty) = text
        .split_once('=')
        .ok_or("COLUMN=TYPE is expected, as `amount=decimal(12,2)`")?;
    Ok((column.to_string(), LogicalType::parse(ty)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn signs_and_types_are_read_as_written() {
        assert_eq!(sign("\\t"), Ok('\t'));
        assert_eq!(sign(";"), Ok(';'));
        assert!(sign(";;").is_err());
        assert_eq!(column_type("a=int64").unwrap().1, LogicalType::Integer(Some(64)));
        assert!(column_type("a=intt").is_err());
        assert!(column_type("a").is_err());
    }
}
