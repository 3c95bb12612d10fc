//! The real process is killed at every named point and run again: target, quarantine and history end like those
//! of one clean run. And two processes at once never publish twice.

use crate::Folder;

/// Every point at which the program can be made to die, in order of the flow.
const POINTS: &[&str] = &[
    "begun",
    "write:before_stage",
    "write:staging",
    "staging",
    "write:staged",
    "staged",
    "decided",
    "write:before_commit",
    "write:after_commit",
    "quarantined",
    "published",
    "reported",
];

const ORDERS: &str = "id,amount\n1,5.00\n2,-1.00\n3,7.50\n3,7.50\n4,none\n";

fn pipeline(target: &str) -> String {
    format!(
        "pipeline: orders\nsource:\n  path: orders.csv\n  schema: {{ id: int64, amount: \"decimal(12,2)\" }}\n\
         rules:\n  - unique: [id]\n  - range: {{ column: amount, min: 0 }}\non_fail: quarantine\n\
         quarantine: {{ parquet: out/quarantine }}\ntarget: {{ {target}, write: append }}\n\
         report: {{ parquet: out/report }}\n"
    )
}

/// Rows of a place, by the program's own count.
fn rows(folder: &Folder, place: &str) -> u64 {
    let output = folder
        .command(&[
            "check",
            place,
            "--rule",
            "row_count: { min: 0 }",
            "--on-empty",
            "publish",
            "--format",
            "json",
        ])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    report["rows"]["read"]
        .as_u64()
        .unwrap_or_else(|| panic!("{place}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn killed_everywhere(target: &str, place: &str) {
    for point in POINTS {
        let folder = Folder::new(&[("orders.csv", ORDERS), ("p.yaml", &pipeline(target))]);
        let died = folder
            .command(&["run", "p.yaml"])
            .env("COMPORTA_FAULT", point)
            .output()
            .unwrap();
        assert!(!died.status.success(), "{point}: nothing died there");
        let again = folder.command(&["run", "p.yaml"]).output().unwrap();
        assert_eq!(
            again.status.code(),
            Some(0),
            "{point}: {}",
            String::from_utf8_lossy(&again.stderr)
        );
        assert_eq!(rows(&folder, place), 1, "{point}: published rows");
        assert_eq!(rows(&folder, "out/quarantine"), 4, "{point}: quarantined rows");
    }
}

#[test]
fn a_delta_table_is_appended_to_once_wherever_the_process_dies() {
    killed_everywhere("delta: out/orders", "out/orders");
}

#[test]
fn a_folder_of_parquet_is_appended_to_once_wherever_the_process_dies() {
    killed_everywhere("parquet: out/orders", "out/orders");
}

#[test]
fn two_processes_at_once_publish_each_its_rows_or_say_who_holds_the_pipeline() {
    let folder = Folder::new(&[("orders.csv", ORDERS), ("p.yaml", &pipeline("delta: out/orders"))]);
    let running: Vec<_> = (0..4)
        .map(|_| {
            folder
                .command(&["run", "p.yaml"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let codes: Vec<Option<i32>> = running
        .into_iter()
        .map(|mut child| child.wait().unwrap().code())
        .collect();
    let published = codes.iter().filter(|code| **code == Some(0)).count();
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 3))), "{codes:?}");
    assert!(published >= 1, "{codes:?}");
    assert_eq!(rows(&folder, "out/orders"), published as u64);
    assert_eq!(rows(&folder, "out/quarantine"), 4);
}
