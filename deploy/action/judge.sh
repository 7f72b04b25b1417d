#!/usr/bin/env bash
# What action.yml runs: lint, then the backtest, into one markdown REPORT; the exit code is the worse of both.
# The whole of lint is told; only findings of SEVERITY fail.
set -uo pipefail
read -r -a manifests <<< "$MANIFESTS"
conditions=()
while IFS= read -r line; do [ -z "$line" ] || conditions+=(--fail-if "$line"); done <<< "${FAIL_IF:-}"

{
  echo "## trimtab"
  echo
  trimtab lint -o markdown "${manifests[@]}"
} > "$REPORT"
trimtab lint --severity "${SEVERITY:-error}" "${manifests[@]}" > /dev/null
linted=$?
tested=0
if [ -n "${LOAD:-}" ]; then
  policies=()
  if [ -n "${BASE:-}" ]; then  # all manifests are the new side, in whatever order: the autoscaler and its workload
    new=$(mktemp -d)
    tar -cf - "${manifests[@]}" 2> /dev/null | tar -xf - -C "$new"
    policies=(--compare "$BASE" "$new")
  else
    for file in "${manifests[@]}"; do policies+=(-f "$file"); done
  fi
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
