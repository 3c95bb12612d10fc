use crate::{Folder, assert_told};

#[test]
fn rules_are_listed_by_family() {
    let told = Folder::new(&[]).run(&["rules"]);
    assert!(told.starts_with("exit 0\n--- stdout\npresence\n"), "{told}");
    assert!(told.contains("\n  not_null "), "{told}");
    assert!(!told.contains("--- stderr"), "{told}");
}

#[test]
fn a_rule_has_a_page_and_a_description_for_programs() {
    let folder = Folder::new(&[]);
    assert!(folder.run(&["rules", "range"]).contains("# `range`"));
    let json = folder.run(&["rules", "range", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(json.strip_prefix("exit 0\n--- stdout\n").unwrap()).unwrap();
    assert_eq!(json["kind"], "row");
    assert!(json["parameters"]["properties"]["min"].is_object());
}

#[test]
fn an_unknown_rule_is_named_with_the_nearest_one() {
    assert_told!(Folder::new(&[]).run(&["rules", "rnge"]), @"
    exit 2
    --- stderr
    error: there is no rule `rnge`

    hint: did you mean `range`?
    ");
}
