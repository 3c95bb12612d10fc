//! `comporta check`

#[test]
fn standard_input_is_a_batch_like_any_other() {
    let folder = crate::Folder::new(&[]);
    let told = folder.run_with_input(&["check", "-", "--rule", "unique: [id]"], b"id\n1\n1\n");
    assert!(told.starts_with("exit 1\n"), "{told}");
    assert!(told.contains("2 of 2 rows share 1 value of `id`"), "{told}");
}

#[test]
fn the_default_severity_of_an_included_file_is_inherited_and_not_written_on_each_check() {
    let folder = crate::Folder::new(&[
        ("a.csv", "id\n1\n1\n"),
        (
            "shared.yaml",
            "rules:\n  - row_count: { min: 1 }\n  - unique: [id]\non_fail: quarantine\n",
        ),
        ("rules.yaml", "rules:\n  - include: shared.yaml\n"),
    ]);
    let told = folder.run(&["check", "a.csv", "--rules", "rules.yaml"]);
    assert!(told.starts_with("exit 0\n"), "{told}");
    assert!(told.contains("fail → quarantine  unique(id)"), "{told}");
}
