//! `comporta check`

#[test]
fn standard_input_is_a_batch_like_any_other() {
    let folder = crate::Folder::new(&[]);
    let told = folder.run_with_input(&["check", "-", "--rule", "unique: [id]"], b"id\n1\n1\n");
    assert!(told.starts_with("exit 1\n"), "{told}");
    assert!(told.contains("2 of 2 rows share 1 value of `id`"), "{told}");
}
