//! Transforms: what happens to a batch before the gate. Their result is kept on disk, so that it can be scanned
//! again with every row in the same place. Rows carry where they come from, cells that did not parse keep their
//! raw text, and lines that are no rows pass every step on their way to quarantine.

use crate::error::{Error, ErrorKind, Result};
use crate::job::{Job, Tables};
use crate::query::session;
use crate::spool::{LINE, ORIGIN, ORIGIN_ROW, SpoolSource, Spooled, hidden, raw_name};
use crate::world::Source;
use comporta_contract::pipeline::{Deduplicate, Step, Transform};
use comporta_contract::{Literal, LogicalType, Node};
use comporta_rules::scope::match_name;
use comporta_rules::{Scope, literals, sql};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::dataframe::DataFrame;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, TryCast, cast, is_null, lit, when};
use datafusion::prelude::Column;
use datafusion::scalar::ScalarValue;
use indexmap::IndexMap;
use std::path::Path;
use std::sync::Arc;

/// A transformed batch and what became of the rows.
#[derive(Debug)]
pub(crate) struct Transformed {
    pub(crate) source: Arc<dyn Source>,
    /// Rows of the original source.
    pub(crate) read: u64,
    /// Rows left out, by step.
    pub(crate) dropped: IndexMap<String, u64>,
    /// Rows that a query made beyond those it read.
    pub(crate) added: u64,
}

/// Runs the steps over a source.
///
/// # Errors
/// A step names something that is not there, or cannot be computed: nothing is published then.
pub(crate) async fn transform(
    steps: &[Transform],
    job: &Job,
    source: &Arc<dyn Source>,
    tables: &dyn Tables,
    spill_dir: &Path,
) -> Result<Transformed> {
    let mut current: Arc<dyn Source> =
        Arc::new(SpoolSource::new(Spooled::of_source(source, spill_dir).await?, source)?);
    let read = current.statistics().rows.unwrap_or(0);
    let mut transformed = Transformed {
        source: current.clone(),
        read,
        dropped: IndexMap::new(),
        added: 0,
    };
    for step in steps {
        let before = current.statistics().rows.unwrap_or(0);
        let spooled = run_step(step, job, &current, tables, spill_dir)
            .await
            .map_err(|error| {
                let (line, _) = step.node.text.line_column(step.node.span.start);
                error.context(format!(
                    "{}:{line}: transform `{}`",
                    step.node.text.name,
                    step.step.name()
                ))
            })?;
        current = Arc::new(SpoolSource::new(spooled, source)?);
        let after = current.statistics().rows.unwrap_or(0);
        if after < before {
            *transformed.dropped.entry(step.step.name().to_string()).or_default() += before - after;
        }
        transformed.added += after.saturating_sub(before);
    }
    transformed.source = current;
    Ok(transformed)
}

async fn run_step(
    step: &Transform,
    job: &Job,
    source: &Arc<dyn Source>,
    tables: &dyn Tables,
    spill_dir: &Path,
) -> Result<Spooled> {
    // One partition: the rows of a transform must come in the same order whenever it is run.
    let job = Job {
        parallelism: 1,
        ..job.clone()
    };
    let whole: Arc<dyn Source> = Arc::new(crate::spool::WithOrigins::new(source.clone()));
    let session = session(&job, &whole, tables, spill_dir).await?;
    let stream = match &step.step {
        Step::Sql(node) => {
            let text = node.as_text().unwrap_or_default();
            session.stream(text).await?
        }
        other => {
            let frame = session.context().table("batch").await?;
            let shape = Shape {
                job: &job,
                columns: frame.schema().as_arrow().clone(),
            };
            shape.apply(frame, other)?.execute_stream().await?
        }
    };
    Spooled::write(stream, spill_dir).await
}

/// A step's view of the batch: its columns, hidden ones included.
struct Shape<'a> {
    job: &'a Job,
    columns: Schema,
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

impl Shape<'_> {
    fn visible(&self) -> Vec<&str> {
        self.columns
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .filter(|name| !hidden(name))
            .collect()
    }

    /// The exact name of a column.
    fn find(&self, written: &str) -> Result<String> {
        let visible = self.visible();
        let found = match_name(written, &visible).map_err(|error| Error::invalid(error.message))?;
        found.map(str::to_string).ok_or_else(|| {
            let hint = comporta_contract::nearest::suggest(written, &visible);
            Error::invalid(format!("column `{written}` is not in the data; {hint}"))
        })
    }

    fn has(&self, name: &str) -> bool {
        self.columns.column_with_name(name).is_some()
    }

    fn data_type(&self, name: &str) -> Result<&DataType> {
        Ok(self.columns.field_with_name(name)?.data_type())
    }

    /// TRUE on rows that must reach the gate whatever a step thinks of them: lines that are no rows, and rows
    /// with a bad cell in one of the columns.
    fn must_pass(&self, columns: &[String]) -> Expr {
        let raws = columns.iter().map(|name| raw_name(name)).filter(|name| self.has(name));
        raws.fold(column(LINE).is_not_null(), |pass, raw| {
            pass.or(column(&raw).is_not_null())
        })
    }

    fn apply(&self, frame: DataFrame, step: &Step) -> Result<DataFrame> {
        Ok(match step {
            Step::Filter(node) => self.filter(frame, node)?,
            Step::Select(names) => self.select(frame, names)?,
            Step::Rename(names) => self.rename(frame, names)?,
            Step::Cast(types) => self.cast(frame, types)?,
            Step::Trim(names) => self.text(frame, names, |value| {
                datafusion::functions::string::expr_fn::btrim(vec![value])
            })?,
            Step::Lower(names) => self.text(frame, names, datafusion::functions::string::expr_fn::lower)?,
            Step::Upper(names) => self.text(frame, names, datafusion::functions::string::expr_fn::upper)?,
            Step::FillNull(values) => self.fill_null(frame, values)?,
            Step::Deduplicate(deduplicate) => self.deduplicate(frame, deduplicate)?,
            Step::Sql(_) => return Err(Error::internal("a query is run by its own way")),
        })
    }

    fn filter(&self, frame: DataFrame, node: &Node) -> Result<DataFrame> {
        let visible = self.columns.project(
            &(0..self.columns.fields().len())
                .filter(|i| !hidden(self.columns.field(*i).name()))
                .collect::<Vec<_>>(),
        )?;
        let nothing = Default::default();
        let scope = Scope::new(
            &visible,
            self.job.surroundings.timezone,
            self.job.surroundings.now,
            &nothing,
            &[],
        );
        let expr = sql::expression(node.as_text().unwrap_or_default(), &scope)
            .map_err(|error| Error::new(ErrorKind::Invalid, error.message))?;
        let keep = expr.is_true().or(self.must_pass(&scope.used()));
        Ok(frame.filter(keep)?)
    }

    fn select(&self, frame: DataFrame, names: &[String]) -> Result<DataFrame> {
        let mut exprs = Vec::new();
        for name in names {
            let name = self.find(name)?;
            exprs.push(column(&name));
            if self.has(&raw_name(&name)) {
                exprs.push(column(&raw_name(&name)));
            }
        }
        exprs.extend([LINE, ORIGIN, ORIGIN_ROW].map(column));
        Ok(frame.select(exprs)?)
    }

    fn rename(&self, frame: DataFrame, names: &IndexMap<String, String>) -> Result<DataFrame> {
        let mut renamed = IndexMap::new();
        for (old, new) in names {
            renamed.insert(self.find(old)?, new.clone());
        }
        let taken: Vec<&str> = self
            .visible()
            .into_iter()
            .filter(|name| !renamed.contains_key(*name))
            .collect();
        for new in renamed.values() {
            if taken.contains(&new.as_str()) || renamed.values().filter(|other| *other == new).count() > 1 {
                return Err(Error::invalid(format!("there would be two columns `{new}`")));
            }
        }
        let exprs = self.columns.fields().iter().map(|field| {
            let name = field.name();
            let new = renamed.iter().find_map(|(old, new)| {
                if name == old {
                    Some(new.clone())
                } else {
                    (*name == raw_name(old)).then(|| raw_name(new))
                }
            });
            match new {
                Some(new) => column(name).alias(new),
                None => column(name),
            }
        });
        Ok(frame.select(exprs.collect::<Vec<_>>())?)
    }

    fn cast(&self, frame: DataFrame, types: &IndexMap<String, LogicalType>) -> Result<DataFrame> {
        let mut frame = frame;
        for (name, logical) in types {
            let name = self.find(name)?;
            let wanted = comporta_rules::types::arrow_type(logical);
            let parsed = Expr::TryCast(TryCast::new(Box::new(column(&name)), wanted));
            let raw = raw_name(&name);
            let lost = column(&name).is_not_null().and(is_null(parsed.clone()));
            let as_text = cast(column(&name), DataType::Utf8);
            let before = if self.has(&raw) {
                column(&raw)
            } else {
                lit(ScalarValue::Utf8(None))
            };
            let kept = when(lost, as_text).otherwise(before)?;
            frame = frame.with_column(&raw, kept)?.with_column(&name, parsed)?;
        }
        Ok(frame)
    }

    fn text(&self, frame: DataFrame, names: &[String], function: fn(Expr) -> Expr) -> Result<DataFrame> {
        let mut frame = frame;
        for name in names {
            let name = self.find(name)?;
            let data_type = self.data_type(&name)?;
            if !matches!(
                literals::value_type(data_type),
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            ) {
                return Err(Error::invalid(format!(
                    "column `{name}` is {}, not text",
                    literals::type_name(data_type)
                )));
            }
            let changed = cast(function(column(&name)), data_type.clone());
            frame = frame.with_column(&name, changed)?;
        }
        Ok(frame)
    }

    fn fill_null(&self, frame: DataFrame, values: &IndexMap<String, Literal>) -> Result<DataFrame> {
        let mut frame = frame;
        let nothing = Default::default();
        let scope = Scope::new(
            &self.columns,
            self.job.surroundings.timezone,
            self.job.surroundings.now,
            &nothing,
            &[],
        );
        for (name, value) in values {
            let name = self.find(name)?;
            let value = literals::member(self.data_type(&name)?, value, &scope)
                .map_err(|error| Error::invalid(error.message))?
                .ok_or_else(|| Error::invalid(format!("`{value}` does not fit column `{name}`")))?;
            // A cell that did not parse is unknown, not missing: it is not filled.
            let filled = when(
                column(&name)
                    .is_null()
                    .and(!self.must_pass(std::slice::from_ref(&name))),
                lit(value),
            )
            .otherwise(column(&name))?;
            frame = frame.with_column(&name, filled)?;
        }
        Ok(frame)
    }

    /// Keeps the first row of each key. Rows whose key has an unknown part have no twin and are all kept.
    fn deduplicate(&self, frame: DataFrame, step: &Deduplicate) -> Result<DataFrame> {
        let keys: Vec<String> = step.keys.0.iter().map(|name| self.find(name)).collect::<Result<_>>()?;
        let mut order = Vec::new();
        for written in &step.order_by.0 {
            let (name, ascending) = match written.rsplit_once(' ') {
                Some((name, word)) if word.eq_ignore_ascii_case("desc") => (name.trim(), false),
                Some((name, word)) if word.eq_ignore_ascii_case("asc") => (name.trim(), true),
                _ => (written.trim(), true),
            };
            let expr = match name {
                "source_file" if self.find(name).is_err() => column(ORIGIN),
                "source_row" if self.find(name).is_err() => column(ORIGIN_ROW),
                name => column(&self.find(name)?),
            };
            order.push(expr.sort(ascending, false));
        }
        // The place of the row makes the order total, so that the same row wins whenever this is run.
        order.push(column(ORIGIN).sort(true, false));
        order.push(column(ORIGIN_ROW).sort(true, false));
        const RANK: &str = "__comporta_rank";
        let rank = row_number()
            .partition_by(keys.iter().map(|name| column(name)).collect())
            .order_by(order)
            .build()?;
        let unknown = keys.iter().fold(self.must_pass(&keys), |unknown, name| {
            unknown.or(column(name).is_null())
        });
        let names: Vec<&str> = self
            .columns
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let ranked = frame
            .window(vec![rank.alias(RANK)])?
            .filter(column(RANK).eq(lit(1u64)).or(unknown))?;
        Ok(ranked.select(names.into_iter().map(column).collect::<Vec<_>>())?)
    }
}
