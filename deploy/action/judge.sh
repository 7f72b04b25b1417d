#!/usr/bin/env bash
# What action.yml runs: lint, then the backtest, into one markdown REPORT; the exit code is that of the stricter of both.
set -uo pipefail
read -r -a manifests <<< "$MANIFESTS"
conditions=()
while IFS= read -r line; do [ -z "$line" ] || conditions+=(--fail-if "$line"); done <<< "${FAIL_IF:-}"

{
  echo "## trimtab"
  echo
  trimtab lint -o markdown "${manifests[@]}"
} > "$REPORT"
linted=$?
tested=0
if [ -n "${LOAD:-}" ]; then
  policies=(); for file in "${manifests[@]}"; do policies+=(-f "$file"); done
  if [ -n "${BASE:-}" ]; then policies=(--compare "$BASE" "${manifests[@]}"); fi
  {
    echo
    trimtab backtest -o markdown --load "$LOAD" "${policies[@]}" "${conditions[@]}" 2> "$REPORT.notes"
  } >> "$REPORT"
  tested=$?
  sed 's/^/> /' "$REPORT.notes" >> "$REPORT"
fi
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$REPORT" >> "$GITHUB_STEP_SUMMARY"
[ -z "${GITHUB_OUTPUT:-}" ] || echo "report=$REPORT" >> "$GITHUB_OUTPUT"
exit $(( linted > tested ? linted : tested ))
