//! Free SQL over the batch and declared tables, run by DataFusion: no files, no other tables, no writing (S29,
//! S30).

use crate::error::{Error, ErrorKind, Result};
use crate::job::{Job, Tables};
use crate::program::Slot;
use crate::world::{ScanRequest, Source};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use comporta_rules::{Bound, Measure, MeasureValue};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::prelude::{SQLOptions, SessionConfig};
use datafusion::scalar::ScalarValue;
use futures::{StreamExt, TryStreamExt};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Runs the queries of all checks.
pub(crate) async fn run_queries(
    job: &Job,
    slots: &[Slot],
    source: &Arc<dyn Source>,
    tables: &dyn Tables,
    spill_dir: &Path,
) -> HashMap<(usize, usize), MeasureValue> {
    let mut values = HashMap::new();
    let mut opened: Option<Result<Queries>> = None;
    for (index, slot) in slots.iter().enumerate() {
        let Ok(Bound::Table(table)) = &slot.bound.bound else {
            continue;
        };
        for (position, measure) in table.measures.iter().enumerate() {
            let (text, scalar) = match measure {
                Measure::ScalarQuery(text) => (text, true),
                Measure::FailedRows(text) => (text, false),
                _ => continue,
            };
            // One session serves all queries, and is opened only if there is one.
            if opened.is_none() {
                opened = Some(session(job, source, tables, spill_dir).await);
            }
            let found = match &opened {
                Some(Ok(session)) => run_query(session, text, scalar).await,
                Some(Err(error)) => Err(error.clone()),
                None => Err(Error::internal("no session was opened")),
            };
            values.insert(
                (index, position),
                found.unwrap_or_else(|error| MeasureValue::Error(error.message)),
            );
        }
    }
    values
}

async fn run_query(session: &Queries, text: &str, scalar: bool) -> Result<MeasureValue> {
    let mut stream = session.stream(text).await?;
    let columns = stream.schema().fields().len();
    let mut rows = 0u64;
    let mut value = None;
    while let Some(batch) = stream.try_next().await? {
        if rows == 0 && batch.num_rows() > 0 && scalar {
            value = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
        }
        rows += batch.num_rows() as u64;
    }
    Ok(match scalar {
        true => MeasureValue::Scalar {
            rows,
            columns,
            value: value.filter(|_| rows == 1 && columns == 1),
        },
        false => MeasureValue::Failures(rows),
    })
}

/// A DataFusion session that knows `batch` and the declared tables and nothing else.
pub(crate) struct Queries {
    context: SessionContext,
    columns: BTreeMap<String, Vec<String>>,
    batch: Vec<String>,
}

/// Opens a session over a source.
pub(crate) async fn session(
    job: &Job,
    source: &Arc<dyn Source>,
    tables: &dyn Tables,
    spill_dir: &Path,
) -> Result<Queries> {
    let mut config = SessionConfig::new()
        .with_target_partitions(job.parallelism.max(1))
        .with_information_schema(false)
        .set_bool("datafusion.sql_parser.enable_ident_normalization", false)
        .set_bool("datafusion.sql_parser.parse_float_as_decimal", true)
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false);
    config.options_mut().execution.time_zone = Some(job.surroundings.timezone.to_string());
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(job.memory_bytes.max(64 << 20))))
        .with_disk_manager_builder(
            DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![spill_dir.to_path_buf()])),
        )
        .build_arc()?;
    let context = SessionContext::new_with_config_rt(config, runtime);
    let mut columns = BTreeMap::new();
    context.register_table(
        "batch",
        Arc::new(BatchTable {
            source: source.clone(),
            parallelism: job.parallelism,
        }),
    )?;
    for name in &job.surroundings.tables {
        // A table that cannot be opened is an error of the queries that name it, not of the others.
        if let Ok(table) = tables.open(name).await {
            columns.insert(name.clone(), names_of(&table.schema()));
            context.register_table(
                name.as_str(),
                Arc::new(BatchTable {
                    source: table,
                    parallelism: job.parallelism,
                }),
            )?;
        }
    }
    Ok(Queries {
        context,
        columns,
        batch: names_of(&source.schema()),
    })
}

fn names_of(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

impl Queries {
    /// Plans and starts a query, with names resolved as everywhere (S20).
    pub(crate) async fn stream(&self, text: &str) -> Result<SendableRecordBatchStream> {
        let batch: Vec<&str> = self.batch.iter().map(String::as_str).collect();
        let prepared = comporta_rules::sql::prepare_query(text, &batch, &self.columns)
            .map_err(|error| Error::new(ErrorKind::Invalid, error.message))?;
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let frame = self.context.sql_with_options(&prepared, options).await.map_err(plain)?;
        frame.execute_stream().await.map_err(plain)
    }

    /// Adds a table under another name.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }
}

fn plain(error: DataFusionError) -> Error {
    Error::from(error)
}

/// A source as a table of DataFusion.
#[derive(Debug)]
struct BatchTable {
    source: Arc<dyn Source>,
    parallelism: usize,
}

#[async_trait::async_trait]
impl TableProvider for BatchTable {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.source.schema().fields().len()).collect();
        let projection = projection.cloned().unwrap_or(all);
        let schema = Arc::new(self.source.schema().project(&projection)?);
        let request = ScanRequest {
            projection,
            parallelism: self.parallelism.max(1),
            raw: false,
        };
        // One partition that starts the scan when it is read; the streams within run side by side.
        let partition = Arc::new(SourcePartition {
            source: self.source.clone(),
            request,
            schema: schema.clone(),
        });
        let plan = StreamingTableExec::try_new(schema, vec![partition], None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

#[derive(Debug)]
struct SourcePartition {
    source: Arc<dyn Source>,
    request: ScanRequest,
    schema: SchemaRef,
}

impl PartitionStream for SourcePartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (source, request, schema) = (self.source.clone(), self.request.clone(), self.schema.clone());
        let expected = schema.clone();
        let batches = futures::stream::once(async move {
            let streams = source.scan(request).await.map_err(external)?;
            Ok::<_, DataFusionError>(futures::stream::select_all(streams).map(move |chunk| {
                let batch = chunk.map_err(external)?.batch;
                Ok(RecordBatch::try_new_with_options(
                    expected.clone(),
                    batch.columns().to_vec(),
                    &arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
                )?)
            }))
        })
        .try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
