//! Documents that are wrong: exit 2, everything at once, nothing read.

use crate::{Folder, assert_told};

#[test]
fn every_fault_is_shown_at_once_with_its_place() {
    let folder = Folder::new(&[(
        "orders.rules.yaml",
        "on_fial: warn\nrules:\n  - not_nul: [id]\n  - range: { column: amount, min: 5, max: 1 }\n    serverity: warn\n",
    )]);
    assert_told!(folder.run(&["check", "orders.csv", "--rules", "orders.rules.yaml"]), @"
    exit 2
    --- stderr
    unknown-key

      × unknown key `on_fial`
       ╭─[orders.rules.yaml:1:1]
     1 │ on_fial: warn
       · ───────
     2 │ rules:
       ╰────
      help: did you mean `on_fail`?

    unknown-rule

      × unknown rule `not_nul`
       ╭─[orders.rules.yaml:3:5]
     2 │ rules:
     3 │   - not_nul: [id]
       ·     ───────
     4 │   - range: { column: amount, min: 5, max: 1 }
       ╰────
      help: did you mean `not_null`?

    range-inverted

      × `min` 5 is above `max` 1
       ╭─[orders.rules.yaml:4:12]
     3 │   - not_nul: [id]
     4 │   - range: { column: amount, min: 5, max: 1 }
       ·            ─────────────────┬────────────────
       ·                             ╰── no value can satisfy it, so every row would break it
     5 │     serverity: warn
       ╰────

    unknown-key

      × unknown attribute `serverity`
       ╭─[orders.rules.yaml:5:5]
     4 │   - range: { column: amount, min: 5, max: 1 }
     5 │     serverity: warn
       ·     ─────────
       ╰────
      help: did you mean `severity`?

    4 errors; nothing was read
    ");
}

#[test]
fn faults_are_said_as_json_to_those_who_asked_for_json() {
    let folder = Folder::new(&[("r.yaml", "rules:\n  - not_nul: [id]\n")]);
    assert_told!(folder.run(&["check", "orders.csv", "--rules", "r.yaml", "--format", "json"]), @r#"
    exit 2
    --- stderr
    {
      "errors": [
        {
          "code": "unknown-rule",
          "level": "error",
          "message": "unknown rule `not_nul`",
          "file": "r.yaml",
          "line": 2,
          "column": 5,
          "why": null,
          "hint": "did you mean `not_null`?"
        }
      ]
    }
    "#);
}

#[test]
fn rules_that_are_not_there_or_no_text_are_faults() {
    let folder = Folder::new(&[]);
    folder.write("latin.yaml", b"rules:\n  - not_null: pre\xe7o\n");
    assert_told!(folder.run(&["check", "orders.csv", "--rules", "none.yaml"]), @"
    exit 2
    --- stderr
    document-unreadable

      × `none.yaml` cannot be read: there is no such file
      help: check the path; it is relative to the current folder

    1 error; nothing was read
    ");
    assert_told!(folder.run(&["check", "orders.csv", "--rules", "latin.yaml"]), @"
    exit 2
    --- stderr
    not-utf-8

      × `latin.yaml` is no UTF-8 text
       ╭─[latin.yaml:2:18]
     1 │ rules:
     2 │   - not_null: pre�o
       ·                  ┬
       ·                  ╰── a byte here belongs to no character
       ╰────
      help: save the file as UTF-8

    1 error; nothing was read
    ");
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let folder = Folder::new(&[("bomb.yaml", &bomb)]);
    let told = folder.run(&["check", "orders.csv", "--rules", "bomb.yaml"]);
    assert!(
        told.starts_with("exit 2\n") && told.contains("document-too-large"),
        "{told}"
    );
}

#[test]
fn an_include_that_leaves_the_folder_is_refused() {
    let folder = Folder::new(&[
        ("inside/r.yaml", "rules:\n  - include: ../outside.yaml\n"),
        ("outside.yaml", "- not_null: id\n"),
    ]);
    assert_told!(folder.run(&["check", "orders.csv", "--rules", "inside/r.yaml"]), @"
    exit 2
    --- stderr
    include-unreadable

      × `../outside.yaml` cannot be included
       ╭─[inside/r.yaml:2:14]
     1 │ rules:
     2 │   - include: ../outside.yaml
       ·              ───────┬───────
       ·                     ╰── it lies outside `inside`, the folder of the document that was named
       ╰────

    1 error; nothing was read
    ");
}

#[test]
fn the_command_line_is_held_to_the_same() {
    let folder = Folder::new(&[]);
    assert_told!(folder.run(&["check"]), @"
    exit 2
    --- stderr
    error: no data is named

    hint: name a file, a folder or a glob: `comporta check orders.csv`; `-` is standard input
    ");
    assert_told!(folder.run(&["check", "-", "--rules", "-"]), @"
    exit 2
    --- stderr
    error: both the rules and the data are to come from standard input

    hint: give one of them as a file
    ");
    assert_told!(folder.run(&["check", "a.csv", "--format", "json", "--format", "text"]), @r#"
    exit 2
    --- stderr
    {
      "errors": [
        {
          "code": "invalid",
          "level": "error",
          "message": "`json` shares standard output with another format, so no program could read it",
          "hint": "give one of them a file: `--format json=PATH`"
        }
      ]
    }
    "#);
    assert_told!(folder.run(&["check", "a.csv", "--valid", "good.xlsx", "--rule", "not_null: id"]), @"
    exit 2
    --- stderr
    error: `--valid good.xlsx` does not say in which format rows are to be written

    hint: end the path in `.parquet`, `.csv` or `.jsonl`, or write `delta:FOLDER`
    ");
    assert_told!(folder.run(&["check", "a.csv", "--rule", "not_null: id", "--only", "not_nul(id)"]), @"
    exit 2
    --- stderr
    nothing-chosen

      × `--only not_nul(id)` chooses no check
      help: did you mean `not_null(id)`?

    1 error; nothing was read
    ");
}
