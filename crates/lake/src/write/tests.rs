//! Every format and strategy, written and read back; what is left after failures.

use super::{Role, target};
use arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StringViewArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use comporta_contract::pipeline::{TargetSpec, WriteCompression, WriteStrategy};
use comporta_engine::{CommitInfo, Committed, ErrorKind, Result, RunIntent, Staging, Target};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn batch(from: i64, rows: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows));
    let names: ArrayRef = Arc::new(StringArray::from_iter(
        (0..rows).map(|row| (row % 3 != 0).then(|| format!("a,{}", row % 2))),
    ));
    RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("name", names, true)]).unwrap()
}

fn evidence(pipeline: &str, unit: &str, rows: usize) -> RecordBatch {
    let text = |value: &str| Arc::new(StringArray::from(vec![value; rows])) as ArrayRef;
    let rule = Arc::new(Field::new("rule", DataType::Utf8, false));
    let reasons = StructArray::from(vec![(rule.clone(), text("not_null"))]);
    let item = Arc::new(Field::new("item", DataType::Struct(vec![rule].into()), false));
    let list = ListArray::new(item, OffsetBuffer::from_lengths(vec![1; rows]), Arc::new(reasons), None);
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["raw"; rows]));
    RecordBatch::try_from_iter_with_nullable([
        ("amount", views, true),
        ("_reasons", Arc::new(list) as ArrayRef, true),
        ("_pipeline", text(pipeline), false),
        ("_unit", text(unit), false),
    ])
    .unwrap()
}

fn intent(run: &str, pipeline: &str, unit: &str) -> RunIntent {
    RunIntent {
        run_id: run.to_owned(),
        pipeline: pipeline.to_owned(),
        unit: unit.to_owned(),
        fingerprint: "f".to_owned(),
        rules_digest: "r".to_owned(),
        started_at: chrono::DateTime::UNIX_EPOCH,
    }
}

fn info(run: &str, pipeline: &str, unit: &str, rows: u64) -> CommitInfo {
    CommitInfo {
        run_id: run.to_owned(),
        pipeline: pipeline.to_owned(),
        unit: unit.to_owned(),
        contract_version: Some("1.0.0".to_owned()),
        rules_digest: "r".to_owned(),
        rows,
    }
}

fn spec(format: &str, place: &str, write: Option<WriteStrategy>) -> TargetSpec {
    let mut spec = TargetSpec {
        write,
        ..TargetSpec::default()
    };
    let place = Some(place.to_owned());
    match format {
        "delta" => spec.delta = place,
        "parquet" => spec.parquet = place,
        "csv" => spec.csv = place,
        _ => spec.jsonl = place,
    }
    spec
}

async fn staged(target: &Arc<dyn Target>, batches: &[RecordBatch], intent: &RunIntent) -> Result<Box<dyn Staging>> {
    let schema = batches[0].schema();
    target.prepare(&schema).await?;
    let staging = target.stage(schema, intent).await?;
    let mut tasks = Vec::new();
    for batch in batches {
        let mut writer = staging.writer()?;
        let batch = batch.clone();
        tasks.push(tokio::spawn(async move {
            writer.write(batch).await?;
            writer.finish().await
        }));
    }
    for task in tasks {
        task.await.unwrap()?;
    }
    Ok(staging)
}

async fn publish(
    target: &Arc<dyn Target>,
    batches: &[RecordBatch],
    run: &str,
    pipeline: &str,
    unit: &str,
) -> Result<Committed> {
    let staging = staged(target, batches, &intent(run, pipeline, unit)).await?;
    let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    staging.commit(info(run, pipeline, unit, rows)).await
}

/// Names below a folder, hidden ones too, without the log of Delta.
fn names(folder: &Path) -> Vec<String> {
    super::disk::files_below(folder)
        .unwrap()
        .into_iter()
        .map(|path| path.strip_prefix(folder).unwrap().display().to_string())
        .filter(|name| !name.contains("_delta_log"))
        .collect()
}

fn parquet_ids(path: &Path) -> Vec<i64> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap())
        .unwrap()
        .build()
        .unwrap();
    let mut ids: Vec<i64> = reader
        .flat_map(|batch| {
            let batch = batch.unwrap();
            let ids = batch.column_by_name("id").unwrap();
            ids.as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
        })
        .collect();
    ids.sort_unstable();
    ids
}

async fn delta_rows(path: &Path) -> usize {
    let url = url::Url::from_directory_path(path).unwrap();
    let table = deltalake::open_table(url).await.unwrap();
    let files: Vec<PathBuf> = table
        .snapshot()
        .unwrap()
        .log_data()
        .iter()
        .map(|file| path.join(file.object_store_path().as_ref()))
        .collect();
    files
        .iter()
        .map(|file| super::parquet_file::rows(file).unwrap() as usize)
        .sum()
}

const BOTH: [&str; 3] = ["parquet", "csv", "jsonl"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_file_is_replaced_and_knows_its_run() {
    for format in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let target = target(
            &spec(format, &format!("new/x.{format}"), None),
            folder.path(),
            Role::Valid,
        )
        .unwrap();
        let first = publish(&target, &[batch(0, 10), batch(10, 5)], "r1", "p", "all")
            .await
            .unwrap();
        assert_eq!((first.rows, first.files), (15, 1), "{format}");
        assert_eq!(target.committed("r1").await.unwrap(), Some(first));
        publish(&target, &[batch(0, 3)], "r2", "p", "all").await.unwrap();
        assert_eq!(target.committed("r1").await.unwrap(), None);
        assert_eq!(target.committed("r2").await.unwrap().unwrap().rows, 3);
        let data: Vec<_> = names(folder.path())
            .into_iter()
            .filter(|name| !name.ends_with(".json"))
            .collect();
        assert_eq!(data, [format!("new/x.{format}")]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_grows_by_one_file_per_run() {
    for format in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let target = target(
            &spec(format, "x", Some(WriteStrategy::Append)),
            folder.path(),
            Role::Valid,
        )
        .unwrap();
        publish(&target, &[batch(0, 10)], "r1", "p", "all").await.unwrap();
        let second = publish(&target, &[batch(10, 7), batch(20, 0)], "r2", "p", "all")
            .await
            .unwrap();
        assert_eq!(second.rows, 7);
        assert_eq!(target.committed("r1").await.unwrap().unwrap().rows, 10);
        assert_eq!(target.committed("r3").await.unwrap(), None);
        let expected = [
            "x/_comporta.json".to_owned(),
            format!("x/part-r1.{format}"),
            format!("x/part-r2.{format}"),
        ];
        assert_eq!(names(folder.path()), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_replaced_as_a_whole() {
    for format in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let target = target(
            &spec(format, "x", Some(WriteStrategy::Overwrite)),
            folder.path(),
            Role::Valid,
        )
        .unwrap();
        publish(&target, &[batch(0, 10)], "r1", "p", "all").await.unwrap();
        publish(&target, &[batch(0, 4)], "r2", "p", "all").await.unwrap();
        assert_eq!(target.committed("r2").await.unwrap().unwrap().rows, 4);
        assert_eq!(target.committed("r1").await.unwrap(), None);
        assert_eq!(
            names(folder.path()),
            ["x/_comporta.json".to_owned(), format!("x/part-r2.{format}")]
        );
        fs::write(folder.path().join("x/notes.txt"), "mine").unwrap();
        let error = target.prepare(&batch(0, 1).schema()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        assert!(error.message.contains("notes.txt"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_can_be_partitioned() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec("parquet", "x", Some(WriteStrategy::Overwrite));
    spec.partition_by = vec!["name".to_owned()];
    let target = target(&spec, folder.path(), Role::Valid).unwrap();
    for run in ["r1", "r2"] {
        let committed = publish(&target, &[batch(0, 9), batch(9, 9)], run, "p", "all")
            .await
            .unwrap();
        assert_eq!(committed.rows, 18);
    }
    assert!(
        names(&folder.path().join("x"))
            .iter()
            .any(|name| name.starts_with("name="))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_many_writers_arrive_once() {
    let folder = tempfile::tempdir().unwrap();
    for compression in [
        WriteCompression::Snappy,
        WriteCompression::Zstd,
        WriteCompression::Gzip,
        WriteCompression::None,
    ] {
        let mut spec = spec("parquet", "x.parquet", None);
        spec.compression = Some(compression);
        let target = target(&spec, folder.path(), Role::Valid).unwrap();
        let batches: Vec<_> = (0..4).map(|task| batch(task * 150_000, 150_000)).collect();
        publish(&target, &batches, "r1", "p", "all").await.unwrap();
        let ids = parquet_ids(&folder.path().join("x.parquet"));
        assert!(ids == (0..600_000).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_text_is_counted_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["csv", "jsonl"] {
        for compression in [WriteCompression::Gzip, WriteCompression::Zstd] {
            let mut spec = spec(format, &format!("{format}-{compression:?}"), None);
            spec.compression = Some(compression);
            let target = target(&spec, folder.path(), Role::Valid).unwrap();
            let rows = publish(&target, &[evidence("p", "u", 5)], "r1", "p", "all")
                .await
                .unwrap()
                .rows;
            assert_eq!(rows, 5);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aborted_run_leaves_nothing() {
    for (format, place) in [("parquet", "x"), ("csv", "x.csv"), ("jsonl", "x"), ("delta", "x")] {
        for write in [None, Some(WriteStrategy::Overwrite)] {
            let folder = tempfile::tempdir().unwrap();
            let target = target(&spec(format, place, write), folder.path(), Role::Valid).unwrap();
            let staging = staged(&target, &[batch(0, 9)], &intent("r1", "p", "all"))
                .await
                .unwrap();
            staging.abort().await.unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{format}");
            assert_eq!(target.committed("r1").await.unwrap(), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_run_left_is_removed_and_what_others_stage_is_not() {
    for (format, place) in [("parquet", "x"), ("csv", "x.csv"), ("jsonl", "x"), ("delta", "x")] {
        let folder = tempfile::tempdir().unwrap();
        let target = target(&spec(format, place, None), folder.path(), Role::Valid).unwrap();
        publish(&target, &[batch(0, 9)], "r0", "q", "all").await.unwrap();
        let dead = staged(&target, &[batch(0, 9)], &intent("dead", "p", "all"))
            .await
            .unwrap();
        std::mem::forget(dead);
        let other = staged(&target, &[batch(0, 9)], &intent("live", "p2", "all"))
            .await
            .unwrap();
        assert!(
            names(folder.path()).iter().any(|name| name.contains("dead")),
            "{format}"
        );
        publish(&target, &[batch(0, 2)], "r1", "p", "all").await.unwrap();
        assert!(
            !names(folder.path()).iter().any(|name| name.contains("dead")),
            "{format}"
        );
        other.commit(info("live", "p2", "all", 9)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_does_not_hold_what_was_counted_is_refused() {
    for format in ["parquet", "csv", "jsonl", "delta"] {
        let folder = tempfile::tempdir().unwrap();
        let target = target(&spec(format, "x", None), folder.path(), Role::Valid).unwrap();
        let staging = staged(&target, &[batch(0, 9)], &intent("r1", "p", "all"))
            .await
            .unwrap();
        let error = staging.commit(info("r1", "p", "all", 10)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal);
        assert!(names(folder.path()).is_empty(), "{format}: {:?}", names(folder.path()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evidence_of_the_same_unit_is_replaced_even_by_none() {
    let odd = "orders eu/é%20=x";
    for format in ["parquet", "csv", "jsonl", "delta"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let target = target(&spec(format, "x", None), folder.path(), Role::Quarantine).unwrap();
        publish(&target, &[evidence(odd, "2024", 5)], "r1", odd, "2024")
            .await
            .unwrap();
        publish(&target, &[evidence(odd, "2025", 3)], "r2", odd, "2025")
            .await
            .unwrap();
        let rows = publish(&target, &[evidence(odd, "2024", 2)], "r3", odd, "2024")
            .await
            .unwrap()
            .rows;
        assert_eq!(rows, 2);
        assert_eq!(target.committed("r1").await.unwrap().is_some(), format == "delta");
        assert_eq!(target.committed("r3").await.unwrap().unwrap().rows, 2);
        assert_eq!(target.committed("r2").await.unwrap().unwrap().rows, 3);
        if format == "delta" {
            assert_eq!(delta_rows(&path).await, 5);
        }
        publish(&target, &[evidence(odd, "2024", 0)], "r4", odd, "2024")
            .await
            .unwrap();
        assert_eq!(target.committed("r4").await.unwrap().unwrap().rows, 0, "{format}");
        if format == "delta" {
            assert_eq!(delta_rows(&path).await, 3);
        } else {
            let data = names(&path)
                .into_iter()
                .filter(|name| name.starts_with("quarantine-"))
                .count();
            assert_eq!(data, 2);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delta_table_is_made_added_to_and_replaced_in_one_commit_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let append = target(&spec("delta", "x", None), folder.path(), Role::Valid).unwrap();
    let first = publish(&append, &[batch(0, 10), batch(10, 10)], "r1", "p", "all")
        .await
        .unwrap();
    assert_eq!((first.rows, first.version, first.files), (20, Some(0), 2));
    let second = publish(&append, &[batch(20, 5)], "r2", "p", "all").await.unwrap();
    assert_eq!((second.rows, second.version), (5, Some(1)));
    assert_eq!(delta_rows(&path).await, 25);
    let overwrite = target(
        &spec("delta", "x", Some(WriteStrategy::Overwrite)),
        folder.path(),
        Role::Valid,
    )
    .unwrap();
    publish(&overwrite, &[batch(0, 3)], "r3", "p", "all").await.unwrap();
    assert_eq!(delta_rows(&path).await, 3);
    assert_eq!(append.committed("r1").await.unwrap(), Some(first));
    let empty = publish(&append, &[batch(0, 0)], "r4", "p", "all").await.unwrap();
    assert_eq!((empty.rows, empty.version), (0, Some(3)));
    assert!(!names(&path).iter().any(|name| name.ends_with(".staging")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replacement_that_raced_with_another_writer_is_a_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let overwrite = target(
        &spec("delta", "x", Some(WriteStrategy::Overwrite)),
        folder.path(),
        Role::Valid,
    )
    .unwrap();
    publish(&overwrite, &[batch(0, 3)], "r1", "p", "all").await.unwrap();
    let slow = staged(&overwrite, &[batch(0, 4)], &intent("slow", "p", "all"))
        .await
        .unwrap();
    publish(&overwrite, &[batch(0, 5)], "fast", "q", "all").await.unwrap();
    let error = slow.commit(info("slow", "p", "all", 4)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
    assert_eq!(delta_rows(&folder.path().join("x")).await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partitioned_delta_table_keeps_odd_values() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec("delta", "x", None);
    spec.partition_by = vec!["name".to_owned()];
    let target = target(&spec, folder.path(), Role::Valid).unwrap();
    publish(&target, &[batch(0, 9)], "r1", "p", "all").await.unwrap();
    publish(&target, &[batch(9, 9)], "r2", "p", "all").await.unwrap();
    assert_eq!(delta_rows(&folder.path().join("x")).await, 18);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_do_not_fit_what_is_there_are_refused_by_column() {
    let other: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("extra", DataType::Int64, true),
    ]));
    for format in ["parquet", "csv", "delta"] {
        let folder = tempfile::tempdir().unwrap();
        let target = target(&spec(format, "x", None), folder.path(), Role::Valid).unwrap();
        publish(&target, &[batch(0, 3)], "r1", "p", "all").await.unwrap();
        target.prepare(&batch(0, 1).schema()).await.unwrap();
        let error = target.prepare(&other).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(
            error.message.contains("`extra`") && error.message.contains("`name`"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for (format, place) in [
        ("parquet", "file/x"),
        ("csv", "file/x.csv"),
        ("delta", "file/x"),
        ("delta", "file"),
        ("jsonl", "file"),
    ] {
        let target = target(&spec(format, place, None), folder.path(), Role::Valid).unwrap();
        let error = target.prepare(&batch(0, 1).schema()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused, "{format} {place}: {error}");
        assert!(error.hint.is_some());
    }
    let far = target(&spec("delta", "s3://bucket/x", None), folder.path(), Role::Valid).unwrap_err();
    assert_eq!(far.kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn a_folder_that_was_moved_aside_by_a_killed_run_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(
        &spec("parquet", "x", Some(WriteStrategy::Overwrite)),
        folder.path(),
        Role::Valid,
    )
    .unwrap();
    publish(&target, &[batch(0, 3)], "r1", "p", "all").await.unwrap();
    fs::rename(folder.path().join("x"), folder.path().join(".x.p.dead.aside")).unwrap();
    let staging = staged(&target, &[batch(0, 9)], &intent("r2", "p", "all"))
        .await
        .unwrap();
    assert_eq!(target.committed("r1").await.unwrap().unwrap().rows, 3);
    staging.abort().await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_told_as_such() {
    let schema = batch(0, 1).schema();
    let encoding = super::sink::Encoding::of(&spec("csv", "x.csv", None)).unwrap();
    let sink = encoding.open(Path::new("/dev/full"), schema, "r1").unwrap();
    let mut writer = sink.clone().writer().unwrap();
    let error = match writer.write(batch(0, 500_000)).await {
        Err(error) => error,
        Ok(()) => sink.close().unwrap_err(),
    };
    assert_eq!(error.kind, ErrorKind::Refused, "{error}");
}
