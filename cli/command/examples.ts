/**
 * Examples of every command, for its help and the handbook: what stands after the command's name. A test holds that each
 * command has one and that each is valid. `list`, `get` and `delete` of a record need no row.
 */
const examples: Readonly<Record<string, readonly string[]>> = {
  up: ['', '--data /var/lib/gatehouse --gateway-listen 0.0.0.0:7080', '--config gatehouse.yaml --gateway-workers 4'],
  demo: ['', '--data ./look --rate 5'],
  'control-plane': ['--data /var/lib/gatehouse --base-url https://gatehouse.example.com'],
  'gateway serve': ['--api-url https://gatehouse.example.com --data /var/lib/gatehouse'],
  'gateway create': ['--name edge', '--name edge --provider openai --prompt-caching'],
  'gateway update': ['edge --provider openai --provider anthropic', 'edge --clear providers'],
  'gateway bounds': ['edge', 'edge --max-instances 4 --address 10.0.0.0/8'],

  'token create': [
    '--name app --purpose general --team-id research --model "gpt-4o*" --max-budget 50',
    '--name edge --purpose gateway-runtime --gateway-id edge --team-id research',
    '--name trial --purpose general --key-class disposable --max-requests 100 --expires-in 1d',
  ],
  'token list': ['', '--status active --team-id research'],
  'token update': ['app --max-budget 20 --model gpt-4o-mini'],
  'token rotate': ['app --grace 12h', 'app --yes'],
  'token clone': ['app --name app-test --max-requests 100 --expires-in 7d'],
  'token delete': ['app --yes'],
  'token emergency-revoke': ['app --explanation "Found in a public repository" --revoke-active-sessions --yes'],
  'token alerts': [''],
  'token views': [''],
  'token validate': ['< secret.txt'],
  connect: ['claude-code', 'codex --model gpt-5 --max-budget 20 --write', 'codex --undo'],

  'provider create': [
    '--preset groq --api-key-env GROQ_API_KEY',
    '--name local --kind openai --base-url http://127.0.0.1:8000/v1 --allow-unlisted-models',
  ],
  'provider update': ['openai --api-key-env OPENAI_API_KEY', 'openai --idle-timeout 60'],
  'provider status': [''],
  'provider test': ['openai', 'openai --model gpt-4o-mini'],
  'model list': ['', '--provider openai'],
  'model create': ['gpt-4o --provider openai --fallback claude-sonnet-4-5'],
  'model update': ['gpt-4o --fallback gpt-4o-mini', 'gpt-4o --clear fallbacks'],
  'model price': ['gpt-4o'],
  'cache clear': ['', '--model gpt-4o'],
  'mcp-server create': [
    '--name tickets --url https://mcp.example.com/mcp --header-env Authorization=TICKETS_TOKEN',
    '--name files --program /usr/local/bin/mcp-files --argument=--read-only',
  ],
  'mcp-server update': ['tickets --url https://mcp.example.com/v2/mcp'],
  'mcp-server tools': ['tickets'],
  'mcp-server import': ['claude_desktop_config.json --dry-run', '.mcp.json'],
  'mcp-server changes': ['tickets'],
  'mcp-server approve': ['tickets --held', 'tickets --digest 5f1d7a84db00'],
  'mcp-server dismiss': ['tickets --digest 5f1d7a84db00', 'tickets --held'],
  'mcp-server withdraw': ['tickets --digest 5f1d7a84db00'],

  'policy apply': ['--file policies.yaml --dry-run'],
  'policy test': ['--request request.json --file policies.yaml', '--request request.json --policy-id pii'],
  'policy replay': ['pii --since 7d'],
  'policy order': ['pii,secrets,model-access'],
  apply: ['--file gatehouse.yaml --dry-run', '--file gatehouse.yaml'],
  'escalation list': ['', '--status queued --since 1d'],
  'escalation claim': ['01990000-0000-7000-8000-000000000001'],
  'escalation unclaim': ['01990000-0000-7000-8000-000000000001'],
  'escalation resolve': [
    '01990000-0000-7000-8000-000000000001 --allow --note "Checked with legal" --grant-once 15m',
    '01990000-0000-7000-8000-000000000001 --block --undo-seconds 10',
  ],
  'escalation undo': ['01990000-0000-7000-8000-000000000001'],
  export: ['', '--only providers,models,budgets'],
  'import litellm': ['config.yaml'],
  'import portkey': ['config.json --model gpt-4o'],
  'import bifrost': ['config.json'],
  'connection disconnect': ['tracker'],

  'alert create': [
    '--name "Team budget" --condition budget_share --scope team --scope-id research --threshold 80 --threshold 100',
    '--name Refusals --condition refusals --threshold 20 --at-least 50 --severity critical',
  ],
  'alert update': ['Refusals --quiet-minutes 60', 'Refusals --no-enabled'],
  'alert history': ['', '--state open'],
  'alert test': ['Refusals'],
  'alert-channel create': [
    '--name on-call --kind pagerduty --routing-key-env PAGERDUTY_KEY',
    '--name hook --kind webhook --url-env HOOK_URL --signing-secret-env HOOK_SECRET',
  ],
  'alert-channel update': ['on-call --no-enabled'],
  'alert-channel test': ['on-call'],
  'sink create': [
    '--name siem --kind splunk --url https://splunk.example.com:8088 --token-env SPLUNK_TOKEN',
    '--name archive --kind s3 --url https://s3.eu-central-1.amazonaws.com --s3-bucket audit --s3-region eu-central-1',
  ],
  'sink update': ['siem --format ocsf', 'siem --no-enabled'],
  'sink test': ['siem'],
  'sink verify': ['archive', '--from ./audit'],
  'master-key rotate': [''],
  'master-key status': [''],
  'install helm': ['./chart'],
  'install grafana': ['./monitoring'],

  'team create': ['--name research'],
  'team update': ['research --name science'],
  'team members': ['research'],
  'team add-member': ['research ada@example.com'],
  'team remove-member': ['research ada@example.com'],
  'user create': ['--email ada@example.com --name Ada --role member'],
  'user update': ['ada@example.com --role auditor', 'ada@example.com --status disabled'],
  'user list': ['', '--role owner'],
  'user invite': ['ada@example.com'],
  'user remove-second-factor': ['ada@example.com --yes'],
  'user unlink': ['ada@example.com --yes'],
  'access-review list': ['--unused-days 90', '--reason unused'],
  'access-review revoke': ['--token-id app --yes', '--reason unused --unused-days 180 --yes'],
  'identity-provider create': [
    '--name okta --issuer https://example.okta.com --client-id gatehouse --client-secret-env OKTA_SECRET --domain example.com',
  ],
  'identity-provider update': ['okta --domain example.com --domain example.org'],
  'scim-token create': ['--identity-provider-id okta --name okta-scim'],
  'scim-token revoke': ['okta-scim --yes'],
  'managed-settings create': [`--name research --team-id research --settings '{"permissions":{"deny":["WebFetch"]}}'`],
  'managed-settings update': ['research --priority 10'],
  'oauth-client list': ['', '--status active'],
  'oauth-client create': ['--name Notes --redirect-uri https://notes.example.com/callback --scope gateway:invoke'],
  'oauth-client update': ['Notes --scope gateway:invoke --scope events:read'],
  'oauth-client deactivate': ['Notes'],
  'oauth-client activate': ['Notes'],
  'workload-identity create': [
    '--name cluster --issuer https://kubernetes.default.svc --audience gatehouse --token-id cluster-base',
  ],
  'workload-identity update': ['cluster --no-enabled'],
  'workload-identity revoke': ['cluster --subject system:serviceaccount:default:app'],
  'workload-identity allow': ['cluster --subject system:serviceaccount:default:app'],
  'workload-identity read-keys': ['cluster'],

  'budget create': [
    '--name month --max-budget 500',
    '--name research --max-budget 50 --scope team --scope-id research',
    '--name customers --max-budget 5 --per customer',
  ],
  'budget update': ['research --max-budget 80'],
  'budget values': ['customers', 'customers --value acme'],
  'consumer-group create': ['--name batch --requests-per-minute 600 --team-id research'],
  'consumer-group update': ['batch --tokens-per-minute 200000'],
  'dimension create': ['--name customer --source header --source-key x-customer-id --max-values 20000'],
  'dimension update': ['customer --required'],
  'access-policy create': ['--name small --model "gpt-4o-mini*" --requests-per-minute 30'],
  'access-policy update': ['small --requests-per-minute 60', 'small --clear models'],
  'usage costs': ['--month 2026-11 --by team,dimension:customer', '--month 2026-11 --format focus'],
  'usage report': ['--month 2026-11 --by team,model', '--since 7d --by token,tag:project --format csv'],
  'usage reconcile': ['october.csv --provider openai --month 2026-10'],
  'usage accounts': ['', '--prefix budget/'],
  'usage rates': [''],
  'usage workers': [''],
  'usage release': ['GATEWAY/INSTANCE/0 --yes'],
  'usage excesses': [''],
  'usage forget-excess': ['openai gpt-4o'],
  'usage resume': ['--yes'],

  'events tail': ['--since 15m --wide', '--since 1h --follow --verdict blocked --team research'],
  'events sessions': ['--since 1d --client claude-code'],
  'events export': ['--since 7d --format csv --columns model,token,cost > events.csv'],
  'events verify': ['', '--since 30d'],
  'events rebuild-rollups': [''],
  top: ['', '--once --since 15m'],
  logs: ['/var/log/gatehouse.log --level warn', '--follow', '< gatehouse.log'],
  doctor: ['', '--data /var/lib/gatehouse'],
  backup: ['gatehouse.backup --data /var/lib/gatehouse --passphrase-env PASSPHRASE'],
  restore: ['gatehouse.backup --data /var/lib/gatehouse --passphrase-env PASSPHRASE'],
  'config explain': ['', '--config gatehouse.yaml'],
  'install systemd': ['> /etc/systemd/system/gatehouse.service'],
  'install kubernetes': ['> gatehouse.yaml'],
  'install compose': ['> compose.yaml'],
  'install clickhouse': ['> gatehouse-events.sql'],
  'install keys': ['./keys'],
  'auth login': ['', '--headless --api-url https://gatehouse.example.com'],
  'auth logout': [''],
  'auth status': [''],
  'auth setup-link': ['--data /var/lib/gatehouse'],
  'completion bash': ['> ~/.local/share/bash-completion/completions/gatehouse'],
  'completion zsh': ['> ~/.zfunc/_gatehouse'],
  'completion fish': ['> ~/.config/fish/completions/gatehouse.fish'],
  'completion powershell': [''],
  openapi: ['> openapi.json'],
  help: ['', 'policies/pii', 'token create'],
  version: [''],
}

export const commandsWithExamples: readonly string[] = Object.keys(examples)

/** The examples of the command that these words name, as whole lines without the executable's name. */
export function examplesOf(path: string): string[] {
  const usual = path.endsWith(' list') ? [''] : /^\S+ (get|delete)$/.test(path) ? [exampleOfRecord(path)] : []
  return (examples[path] ?? usual).map((rest) => `${path} ${rest}`.trim())
}

/** What a record of each kind might be called, with what confirms a deletion. */
function exampleOfRecord(path: string): string {
  const [kind = '', verb] = path.split(' ')
  const name = names[kind] ?? 'research'
  return verb === 'delete' ? `${name} --yes` : name
}

const names: Readonly<Record<string, string>> = {
  ...{ gateway: 'edge', token: 'app', provider: 'openai', model: 'gpt-4o', 'mcp-server': 'tickets', policy: 'pii' },
  ...{ user: 'ada@example.com', 'identity-provider': 'okta', 'oauth-client': 'Notes', 'workload-identity': 'cluster' },
  ...{
    'consumer-group': 'batch',
    'access-policy': 'small',
    dimension: 'customer',
    escalation: '01990000-0000-7000-8000-000000000001',
  },
}
