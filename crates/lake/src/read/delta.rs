//! Delta tables: the log names the files and the values of their partitions, Parquet reads them.

use super::files::Input;
use super::parquet::ParquetSource;
use super::partitions::Partitions;
use arrow::datatypes::{Field, Schema};
use comporta_contract::source::{Compression, Format, SourceSpec};
use comporta_engine::{Error, ErrorKind, Result};
use datafusion::scalar::ScalarValue;
use deltalake::kernel::engine::arrow_conversion::TryIntoArrow;
use deltalake::{DeltaTable, DeltaTableBuilder, DeltaTableError};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use url::Url;

/// Opens a table in a local folder at the version or instant that the source names, or at the newest.
///
/// # Errors
/// There is no table or version, a file of the log is gone, or the table uses what is not understood:
/// deletion vectors and column mapping.
pub async fn open(spec: &SourceSpec, place: &str, base: &Path) -> Result<ParquetSource> {
    if super::files::is_remote(place) {
        let place = super::files::without_secrets(place);
        return Err(Error::invalid(format!("the table `{place}` is not in a local folder"))
            .hint("tables in object stores are not read by this version"));
    }
    let folder = base.join(place.strip_prefix("file://").unwrap_or(place));
    let folder = folder
        .canonicalize()
        .map_err(|error| Error::from(error).context(format!("the table `{place}`")))?;
    let table = load(spec, place, &folder).await?;
    let state = table.snapshot().map_err(|error| failed(place, &error))?;
    let metadata = serde_json::to_value(state.metadata()).unwrap_or_default();
    let mapping = metadata["configuration"]["delta.columnMapping.mode"].as_str();
    if mapping.is_some_and(|mode| mode != "none") {
        return Err(unsupported(place, "column mapping"));
    }
    let schema: Schema = state
        .schema()
        .as_ref()
        .try_into_arrow()
        .map_err(|error| Error::internal(format!("the schema of `{place}`: {error}")))?;
    let keys = metadata["partitionColumns"].as_array().into_iter().flatten();
    let fields: Vec<Field> = keys
        .filter_map(|key| schema.field_with_name(key.as_str()?).ok().cloned())
        .collect();
    let (mut inputs, mut values) = (Vec::new(), Vec::new());
    for file in state.log_data().iter() {
        if file.deletion_vector_descriptor().is_some() {
            return Err(unsupported(place, "deletion vectors"));
        }
        let name = file.path().into_owned();
        let written = file.partition_values_map();
        let mut of_file = Vec::with_capacity(fields.len());
        for field in &fields {
            let text = written.get(field.name()).cloned().flatten();
            of_file.push(match text {
                Some(text) => ScalarValue::try_from_string(text, field.data_type())?,
                None => ScalarValue::try_from(field.data_type())?,
            });
        }
        values.push(of_file);
        inputs.push(input(&folder, place, name)?);
    }
    let mut digest = Sha256::new();
    digest.update(metadata["id"].as_str().unwrap_or_default());
    digest.update(format!("@{}", state.version()));
    let fingerprint = format!("{:x}", digest.finalize());
    let description = format!("{place} (version {})", state.version());
    let known = (Arc::new(schema), Partitions::known(fields, values));
    // Footers are read apart from the tasks that serve others.
    super::blocking(move || ParquetSource::open_files(inputs, description, fingerprint, Vec::new(), Some(known))).await
}

async fn load(spec: &SourceSpec, place: &str, folder: &Path) -> Result<DeltaTable> {
    let url =
        Url::from_directory_path(folder).map_err(|()| Error::invalid(format!("`{place}` is no place for a table")))?;
    let mut builder = DeltaTableBuilder::from_url(url).map_err(|error| failed(place, &error))?;
    if let Some(version) = spec.version {
        builder = builder.with_version(version);
    }
    if let Some(instant) = &spec.timestamp {
        builder = builder.with_datestring(instant).map_err(|_| {
            Error::invalid(format!("`timestamp: {instant}` is no instant")).hint("write it as `2024-12-31T12:00:00Z`")
        })?;
    }
    builder.load().await.map_err(|error| failed(place, &error))
}

fn input(folder: &Path, place: &str, name: String) -> Result<Input> {
    if name.contains("://") {
        return Err(unsupported(place, "files outside its folder"));
    }
    let path = folder.join(&name);
    let metadata = path.metadata().map_err(|error| {
        Error::new(
            ErrorKind::Corrupt,
            format!("the table `{place}` names `{name}`, which cannot be read: {error}"),
        )
        .hint("an older version may have been vacuumed; read a newer one")
    })?;
    Ok(Input {
        path,
        name,
        bytes: metadata.len(),
        modified: metadata.modified().ok(),
        partitions: Vec::new(),
        format: Format::Parquet,
        compression: Compression::None,
        spool: None,
    })
}

fn unsupported(place: &str, what: &str) -> Error {
    Error::invalid(format!(
        "the table `{place}` uses {what}, which this version does not read"
    ))
    .hint("rewrite the table without them, or give its files as Parquet")
}

fn failed(place: &str, error: &DeltaTableError) -> Error {
    let kind = match error {
        DeltaTableError::NotATable(_) | DeltaTableError::InvalidVersion(_) => ErrorKind::NotFound,
        DeltaTableError::ObjectStore { .. } => ErrorKind::Unavailable,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("the table `{place}` cannot be opened: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{OpenOptions, open};
    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::Int64Type;
    use comporta_engine::{Chunk, ScanRequest};
    use futures::TryStreamExt;

    async fn append(folder: &Path, ids: &[i64], city: &str) {
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        let cities: ArrayRef = Arc::new(StringArray::from(vec![city; ids.len()]));
        let batch = RecordBatch::try_from_iter_with_nullable([("city", cities, true), ("id", ids, true)]).unwrap();
        let url = Url::from_directory_path(folder).unwrap();
        let table = DeltaTableBuilder::from_url(url).unwrap().build().unwrap();
        table.write([batch]).with_partition_columns(["city"]).await.unwrap();
    }

    #[tokio::test]
    async fn the_newest_or_a_named_version_is_read_with_its_partitions() {
        let folder = tempfile::tempdir().unwrap();
        append(folder.path(), &[1, 2], "São Paulo").await;
        append(folder.path(), &[3], "Porto").await;
        let mut spec = SourceSpec {
            delta: Some(".".into()),
            ..SourceSpec::default()
        };
        let newest = open(&spec, folder.path(), &OpenOptions::default()).await.unwrap();
        let request = ScanRequest {
            projection: vec![1, 0],
            parallelism: 2,
            raw: true,
        };
        let streams = newest.scan(request).await.unwrap();
        let chunks: Vec<Chunk> = futures::stream::select_all(streams).try_collect().await.unwrap();
        let mut rows: Vec<(i64, String)> = Vec::new();
        for chunk in &chunks {
            let ids = chunk.batch.column(0).as_primitive::<Int64Type>();
            let cities = chunk.batch.column(1).as_string::<i32>();
            rows.extend((0..chunk.rows()).map(|row| (ids.value(row), cities.value(row).to_string())));
        }
        rows.sort();
        assert_eq!(
            rows,
            [(1, "São Paulo".into()), (2, "São Paulo".into()), (3, "Porto".into())]
        );
        spec.version = Some(0);
        let first = open(&spec, folder.path(), &OpenOptions::default()).await.unwrap();
        assert_eq!((first.statistics().rows, newest.statistics().rows), (Some(2), Some(3)));
        assert_ne!(first.fingerprint(), newest.fingerprint());
        spec.version = Some(9);
        assert!(open(&spec, folder.path(), &OpenOptions::default()).await.is_err());
    }
}
