use crate::Folder;

#[test]
fn every_document_has_a_schema() {
    for document in ["rules", "pipeline", "report"] {
        let told = Folder::new(&[]).run(&["schema", document]);
        let json = told.strip_prefix("exit 0\n--- stdout\n").unwrap();
        let schema: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(schema["title"], format!("comporta {document}"));
    }
}
