#!/usr/bin/env bash
# Runs every example and compares exit code and output with what is expected. UPDATE=1 writes the expectations anew.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}"
comporta="$CARGO_TARGET_DIR/debug/comporta"
[ -x "$comporta" ] || cargo build --bin comporta

failed=0
run() { # NAME EXPECTED-EXIT ARGUMENTS…
    local expected="examples/$1.txt" code=0 actual
    actual="$(NO_COLOR=1 COLUMNS=160 "$comporta" "${@:3}" 2>&1)" || code=$?
    # Times and ids differ from run to run.
    actual="$(sed -E 's/[0-9]+ ms/N ms/; s/run [0-9a-f-]{36}/run ID/' <<<"$actual")"
    [ "$code" = "$2" ] || { echo "FAIL $1: exit code $code, expected $2"; failed=1; }
    if [ "${UPDATE:-}" = 1 ]; then
        mkdir -p "$(dirname "$expected")" && printf '%s\n' "$actual" >"$expected"
    elif ! diff -u "$expected" <(printf '%s\n' "$actual"); then
        echo "FAIL $1: the output differs"; failed=1
    else
        echo "ok   $1"
    fi
}

rm -rf examples/orders/output examples/orders/.comporta
run orders/expected/first 0 run examples/orders/pipeline.yaml --now 2026-11-30T00:00:00Z
run orders/expected/again 0 run examples/orders/pipeline.yaml --now 2026-11-30T00:00:00Z
run orders/expected/published 0 check examples/orders/output/orders --rule 'unique: [order_id]' --rule 'row_count: { min: 6, max: 6 }'
run orders/expected/quarantined 0 check examples/orders/output/quarantine --rule 'row_count: { min: 9, max: 9 }' --rule 'not_null: [_reasons, _source_row]'
run lab/expected/check 0 check examples/lab/pedidos.csv --rules examples/lab/rules.yaml --now 2026-11-30T00:00:00Z
run lab/expected/gate 1 check examples/lab/pedidos.csv --rules examples/lab/rules-with-gate.yaml --now 2026-11-30T00:00:00Z
run four-rules/expected/check 0 check examples/four-rules/load.csv --rules examples/four-rules/rules.yaml --verbose
run quality-rules/expected/check 0 check examples/quality-rules/orders.csv --rules examples/quality-rules/rules.yaml --verbose
exit "$failed"
