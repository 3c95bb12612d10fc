use super::*;
use crate::read::{OpenOptions, open};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use comporta_contract::source::{OneOrMany, TypeName};
use comporta_contract::types::LogicalType;
use comporta_engine::ErrorKind;
use futures::TryStreamExt;
use std::io::Write;

async fn read_with(files: &[(&str, &[u8])], spec: SourceSpec) -> Result<(Arc<dyn Source>, Vec<Chunk>)> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let spec = SourceSpec {
        path: Some(OneOrMany(vec!["*".into()])),
        ..spec
    };
    let source = open(&spec, folder.path(), &OpenOptions::default()).await?;
    let projection = (0..source.schema().fields().len()).collect();
    let streams = source
        .scan(ScanRequest {
            projection,
            parallelism: 2,
            raw: true,
        })
        .await?;
    let mut chunks: Vec<Chunk> = futures::stream::select_all(streams).try_collect().await?;
    chunks.sort_by_key(|chunk| chunk.place);
    Ok((source, chunks))
}

async fn read(text: &str) -> Result<(Arc<dyn Source>, Vec<Chunk>)> {
    read_with(&[("a.csv", text.as_bytes())], SourceSpec::default()).await
}

fn declared(types: &[(&str, &str)]) -> SourceSpec {
    let types = types
        .iter()
        .map(|(name, text)| ((*name).into(), TypeName(LogicalType::parse(text).unwrap())));
    SourceSpec {
        schema: Some(types.collect()),
        ..SourceSpec::default()
    }
}

#[tokio::test]
async fn types_are_inferred_and_an_empty_cell_is_null_quoted_or_not() {
    let (source, chunks) = read("id,code,name\n1,007,\"a, b\"\n,,\"\"\n").await.unwrap();
    let schema = source.schema();
    let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
    assert_eq!(types, [DataType::Int64, DataType::Utf8, DataType::Utf8]);
    let batch = &chunks[0].batch;
    assert_eq!(batch.column(2).as_string::<i32>().value(0), "a, b");
    assert!((0..3).all(|column| batch.column(column).is_null(1)));
    assert!(source.parsed_columns().is_empty() && chunks[0].is_clean());
}

#[tokio::test]
async fn bad_cells_and_lines_keep_their_text_and_do_not_stop_the_rest() {
    let text = b"id,price\r\n1,2.50\r\nx,2.505\r\n3\r\n4,1,\"q\"\r\n5,\xff\r\n6,7\r\n";
    let spec = declared(&[("ID", "int64"), ("price", "decimal(12,2)")]);
    let (source, chunks) = read_with(&[("a.csv", text)], spec).await.unwrap();
    assert_eq!(source.parsed_columns(), [0, 1]);
    let chunk = &chunks[0];
    assert_eq!(chunk.rows(), 6);
    let prices = chunk.batch.column(1).as_primitive::<Decimal128Type>();
    assert_eq!((prices.value(0), prices.value(5)), (250, 700));
    assert_eq!(chunk.bad_cells_of(0).unwrap().raw.value(1), "x");
    assert_eq!(chunk.bad_cells_of(1).unwrap().raw.value(1), "2.505");
    let lines = chunk.bad_lines.as_ref().unwrap();
    assert_eq!(
        lines.bad.iter().collect::<Vec<_>>(),
        [false, false, true, true, true, false]
    );
    assert_eq!((lines.raw.value(2), lines.raw.value(3)), ("3", "4,1,\"q\""));
}

#[tokio::test]
async fn a_quote_left_open_is_a_broken_line_even_if_the_fields_count_right() {
    let (_, chunks) = read("id,name\n1,a\n2,\"open\n3,c\n").await.unwrap();
    let lines = chunks[0].bad_lines.as_ref().unwrap();
    assert_eq!(lines.bad.iter().collect::<Vec<_>>(), [false, true]);
    assert_eq!(lines.raw.value(1), "2,\"open\n3,c");
    assert!(read("id,name\n1,\"a\"\"\"").await.unwrap().1[0].is_clean());
}

#[tokio::test]
async fn names_given_twice_and_files_without_a_header_are_errors() {
    let error = read("a,b,a,b\n1,2,3,4\n").await.unwrap_err();
    assert!(error.message.contains("`a`, `b`"), "{}", error.message);
    assert!(read("").await.unwrap_err().message.contains("empty"));
    let (source, chunks) = read("a,b\n").await.unwrap();
    assert_eq!((source.schema().fields().len(), chunks.len()), (2, 0));
}

#[tokio::test]
async fn every_compression_is_undone_and_a_cut_file_is_corrupt() {
    let text: String = std::iter::once("id\n".to_string())
        .chain((0..5000).map(|row| format!("{row}\n")))
        .collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text.as_bytes()).unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for bytes in [gzip.clone(), bz2.finish().unwrap(), xz.finish().unwrap(), zstd.clone()] {
        let (_, chunks) = read_with(&[("a.csv", &bytes)], SourceSpec::default()).await.unwrap();
        assert_eq!(chunks.iter().map(Chunk::rows).sum::<usize>(), 5000);
        assert_eq!(chunks[0].batch.column(0).as_primitive::<Int64Type>().value(4999), 4999);
    }
    for bytes in [&gzip, &zstd] {
        let cut = &bytes[..bytes.len() / 2];
        assert_eq!(
            read_with(&[("a.csv", cut)], SourceSpec::default())
                .await
                .unwrap_err()
                .kind,
            ErrorKind::Corrupt
        );
    }
}

#[tokio::test]
async fn encodings_and_byte_order_marks_are_undone() {
    let latin = SourceSpec {
        encoding: Some("latin-1".into()),
        ..SourceSpec::default()
    };
    let utf16: Vec<u8> = "\u{feff}nome\nSão\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let cases: [(&[u8], SourceSpec); 3] = [
        (b"nome\nS\xe3o\n", latin),
        ("\u{feff}nome\nSão\n".as_bytes(), SourceSpec::default()),
        (&utf16, SourceSpec::default()),
    ];
    for (bytes, spec) in cases {
        let (source, chunks) = read_with(&[("a.csv", bytes)], spec).await.unwrap();
        assert_eq!(source.schema().field(0).name(), "nome");
        assert_eq!(chunks[0].batch.column(0).as_string::<i32>().value(0), "São");
    }
}

#[tokio::test]
async fn options_of_the_dialect_are_followed() {
    let spec = SourceSpec {
        delimiter: Some(';'),
        quote: Some('\''),
        header: Some(false),
        columns: Some(vec!["a".into(), "b".into()]),
        nulls: Some(OneOrMany(vec!["NA".into()])),
        ..SourceSpec::default()
    };
    let (source, chunks) = read_with(&[("a.csv", b"'x;y';NA\nz;2\n")], spec).await.unwrap();
    assert_eq!(source.schema().field(1).data_type(), &DataType::Int64);
    assert_eq!(chunks[0].batch.column(0).as_string::<i32>().value(0), "x;y");
    assert_eq!((chunks[0].rows(), chunks[0].batch.column(1).is_null(0)), (2, true));
}

#[tokio::test]
async fn files_are_matched_by_name_and_numbered_each_from_one() {
    let files: [(&str, &[u8]); 2] = [("a.csv", b"x,y\n1,2\n"), ("b.csv", b"y,z\n3.5,4\n")];
    let (source, chunks) = read_with(&files, SourceSpec::default()).await.unwrap();
    assert_eq!(source.schema().field(1).data_type(), &DataType::Float64);
    assert_eq!(
        chunks[1].place,
        Place {
            source: 1,
            first_row: 1
        }
    );
    assert!(chunks[1].batch.column(0).is_null(0) && chunks[0].batch.column(2).is_null(0));
}
