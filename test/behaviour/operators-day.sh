#!/bin/bash
# An operator's day by commands alone, with names instead of ids. The test beside it runs this against an installation
# that has just started: SERVICE_API_URL and SERVICE_API_TOKEN are set, and $GATEWAY_URL and $DATA.
set -euo pipefail

step() { printf '\n== %s\n' "$*"; }
# Fails unless what was said holds each of these texts.
has() {
  local said
  said=$(cat)
  printf '%s\n' "$said"
  for text in "$@"; do
    [[ $said == *"$text"* ]] || { echo "This is missing: $text" >&2; exit 1; }
  done
}

step 'The morning: does everything work?'
gatehouse doctor | has 'It is ready'
gatehouse auth status | has 'API token'
gatehouse provider test simulator --model simulator/echo | has works
gatehouse model list --provider simulator | has simulator/echo
gatehouse model price simulator/echo | has operator
gatehouse gateway list | has local

step 'A new team, with a person'
gatehouse team create --name research | has research
gatehouse user create --email ada@example.com --name Ada --role member | has ada@example.com
gatehouse team add-member research ada@example.com | has Ada
gatehouse team members research | has ada@example.com
gatehouse user invite ada@example.com | has http

step 'What the team may do and spend'
gatehouse budget create --name research-month --scope team --scope-id research --max-budget 50
gatehouse consumer-group create --name research-rate --team-id research --requests-per-minute 600
gatehouse access-policy create --name small --model 'simulator/*' --requests-per-minute 300
cat > policies.yaml <<'POLICIES'
policies:
  - name: no-mail
    kind: pii
    stages: [pre_request]
    config: {types: [email], action: redact}
POLICIES
cat > request.json <<'REQUEST'
{"model": "simulator/echo", "messages": [{"role": "user", "content": "Write to ada@example.com"}]}
REQUEST
gatehouse policy test --file policies.yaml --request request.json | has 'Verdict: redact'
gatehouse apply --file policies.yaml --dry-run
gatehouse apply --file policies.yaml
gatehouse policy list | has no-mail
gatehouse policy get no-mail | has pii
gatehouse policy test --policy-id no-mail --request request.json | has redact

step 'An application gets its token and asks'
SECRET=$(gatehouse token create --name app --purpose general --team-id research --access-policy-id small --max-budget 5)
gatehouse token get app | has active bindings.team_id
export SECRET
gatehouse connect openai-sdk --model simulator/echo --token-env SECRET --gateway-url "$GATEWAY_URL" | has "$GATEWAY_URL"
gatehouse token list --team-id research | has app

step 'What happened'
for attempt in $(seq 100); do
  if gatehouse events tail --since 1h --token app --event-type gateway.request.outcome | grep -q outcome; then break; fi
  sleep 0.1
done
gatehouse events tail --since 1h --token app --wide | has simulator/echo ' 200 ' ' app '
gatehouse events export --since 1h --format csv --columns model,token,cost --team research | has 'simulator/echo'
gatehouse top --once --since 15m | has simulator/echo app
gatehouse usage report --by team,model,token,user,tag | has research simulator/echo app total
gatehouse usage report --by token --format csv --team research | has 'token_id,token,requests'
gatehouse usage report --by model --format json | has '"rows"'
gatehouse usage accounts | has USD
gatehouse usage rates
gatehouse usage workers | has WORKER
gatehouse policy replay no-mail --since 1h | has examined
gatehouse events sessions --since 1h
gatehouse escalation list --status queued
gatehouse events verify | has '0 findings'

step 'A limit is too wide, and a token is due'
gatehouse token update app --max-budget 2 | has 'max_budget'
gatehouse budget update research-month --max-budget 20 | has 20
NEW=$(gatehouse token rotate app --grace 1h)
gatehouse token get app | has active
gatehouse token validate <<< "$NEW" | has true

step 'The secret stands in a public repository'
gatehouse token emergency-revoke app --explanation 'found in a public repository' --yes | has revoked
if gatehouse token validate <<< "$NEW"; then echo 'The secret is still valid' >&2; exit 1; fi
gatehouse token alerts | has emergency_revoked app
gatehouse events tail --since 1h --event-type token.emergency_revoked --wide | has ' app '

step 'Ada leaves'
gatehouse user update ada@example.com --status disabled | has disabled
gatehouse team remove-member research ada@example.com
gatehouse access-review list
gatehouse budget delete research-month --yes
gatehouse consumer-group delete research-rate --yes
gatehouse policy delete no-mail --yes

step 'The evening: a copy, and a look at the whole'
gatehouse backup day.backup --data "$DATA" | has Wrote
gatehouse config explain --data "$DATA" | has "$DATA"
gatehouse doctor | has 'It is ready'
gatehouse help backup | has gatehouse
