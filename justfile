# What must be green before a change is handed in.
ready:
    .ci/run

test *ARGS:
    cargo test --workspace {{ARGS}}

# All cases of spec/, or those whose file and title contain CASE.
spec:
    cargo test --workspace --test it every_case -- --nocapture

# Writes what came out into the outcome blocks: read the difference.
accept:
    UPDATE=1 cargo test --workspace --test it every_case

# Writes the reference and the schemas anew from the code.
gen:
    UPDATE=1 cargo test --workspace --bins reference
