/**
 * A `config.json` of Bifrost (docs.getbifrost.ai/deployment-guides/config-json). Each entry of `providers` becomes a
 * provider of that name, so that `openai/MODEL` names the same as before. Virtual keys are secrets: what they may use and
 * how fast becomes an access policy, what they may spend a budget, which tokens then name.
 */
import type { Path } from '../apply/documents.ts'
import { type Conversion, type Fields, presetOf, recordName, variableName, windowOf } from './conversion.ts'

export function fromBifrost(file: Conversion): void {
  for (const path of file.each('providers')) readProvider(file, path)
  const governance = new Governance(file)
  for (const path of file.each('governance', 'teams')) governance.team(path)
  for (const path of file.each('governance', 'virtual_keys')) governance.virtualKey(path)
  governance.explain()
  for (const path of file.each('mcp', 'client_configs')) readMcpServer(file, path)
  explain(file)
}

function readProvider(file: Conversion, path: Path): void {
  const called = String(path.at(-1))
  const name = recordName(called)
  const type = file.takeText(...path, 'custom_provider_config', 'base_provider_type')
  const preset = presetOf(type ?? called)
  const base = file.takeText(...path, 'network_config', 'base_url')
  const keys = file.each(...path, 'keys')
  const secrets = keys.flatMap((key, index) => {
    const secret = variableOf(
      file,
      [...key, 'value'],
      variableName(`${name}_API_KEY${index === 0 ? '' : `_${index + 1}`}`),
    )
    file.take(...key, 'name')
    file.take(...key, 'id')
    return secret === null ? [] : [secret]
  })
  const [first, ...others] = secrets
  const weights = new Set(keys.map((key) => file.takeNumber(...key, 'weight') ?? 1))
  if (weights.size > 1) file.note([...path, 'keys'], 'Keys are used in turn, whatever their weights')
  const listed = keys.map((key) => [...key, 'models']).filter((at) => Array.isArray(file.look(...at)))
  const models = [...new Set(listed.flatMap((at) => textsOf(file.take(...at))))]
  const everything = models.length === 0 || models.includes('*')
  if (preset === null && base === null)
    file.note(path, `It is not said what ${called} is: openai is written; give its kind and base_url`)
  const idle = file.takeNumber(...path, 'network_config', 'stream_idle_timeout_in_seconds')
  const total = file.takeNumber(...path, 'network_config', 'default_request_timeout_in_seconds')
  const timeouts = {
    ...(idle === null ? {} : { idle_seconds: idle }),
    ...(total === null ? {} : { total_seconds: total }),
  }
  file.add('providers', {
    name,
    ...(preset === null ? { kind: 'openai' } : { preset }),
    base_url: base,
    api_key: first === undefined ? null : { env: first },
    more_api_keys:
      others.length === 0 ? null : { command: ['sh', '-c', `echo ${others.map((each) => `"$${each}"`).join(' ')}`] },
    headers: headersOf(file, [...path, 'network_config', 'extra_headers'], name),
    allow_unlisted_models: everything,
    timeouts: Object.keys(timeouts).length === 0 ? null : timeouts,
  })
  for (const model of everything ? [] : models) {
    file.add('models', { name: `${name}/${model}`, targets: [{ provider: name, upstream_model: model }] })
  }
  for (const alias of keys.flatMap((key) => file.each(...key, 'aliases'))) {
    const target = { provider: name, upstream_model: file.takeText(...alias) }
    file.add('models', { name: `${name}/${String(alias.at(-1))}`, targets: [target] })
  }
}

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

/** The variable of `env.NAME`. A secret that stands in the file is not copied. */
function variableOf(file: Conversion, path: Path, otherwise: string): string | null {
  const value = file.look(...path)
  if (value === null || value === '') return null
  const text = file.takeText(...path) ?? ''
  const [, name] = /^env\.(\w+)$/.exec(text) ?? []
  if (name !== undefined) return name
  file.note(path, `The secret itself stands here and is not copied: put it into the variable ${otherwise}`)
  return otherwise
}

/** A header may hold a secret, so its value is not copied. */
function headersOf(file: Conversion, path: Path, provider: string): Fields | null {
  const headers = file.each(...path).map((at) => {
    const name = String(at.at(-1))
    return [name, { env: variableOf(file, at, variableName(`${provider}_${name}`)) ?? variableName(name) }]
  })
  return headers.length === 0 ? null : Object.fromEntries(headers)
}

class Governance {
  readonly #file: Conversion
  readonly #budgets: ReadonlyMap<string, Path>
  readonly #rates: ReadonlyMap<string, Path>
  readonly #named = new Set<string>()

  constructor(file: Conversion) {
    this.#file = file
    const byId = (list: string) =>
      new Map(file.each('governance', list).map((path) => [String(file.take(...path, 'id')), path]))
    this.#budgets = byId('budgets')
    this.#rates = byId('rate_limits')
  }

  team(path: Path): void {
    const name = this.#file.takeText(...path, 'name') ?? String(this.#file.look(...path, 'id'))
    this.#file.take(...path, 'id')
    this.#file.add('teams', { name })
    this.#budget(path, name, { kind: 'team', name })
    const rates = this.#ratesOf(path)
    if (rates !== null) this.#file.add('consumer_groups', { name, ...rates, members: { teams: [name] } })
  }

  virtualKey(path: Path): void {
    const file = this.#file
    const name = file.takeText(...path, 'name') ?? String(file.look(...path, 'id'))
    file.take(...path, 'id')
    const configs = file.each(...path, 'provider_configs')
    const providers = configs.flatMap((config) => file.takeText(...config, 'provider') ?? []).map(recordName)
    const models = configs.flatMap((config, index) => {
      const allowed = textsOf(file.take(...config, 'allowed_models'))
      const all = allowed.length === 0 || allowed.includes('*')
      return all ? [`${providers[index]}/*`] : allowed.flatMap((model) => [model, `${providers[index]}/${model}`])
    })
    const restricts = models.some((model) => !model.endsWith('/*'))
    file.add('access_policies', {
      name,
      ...this.#ratesOf(path),
      providers: providers.length === 0 ? null : [...new Set(providers)],
      models: restricts ? [...new Set(models)] : null,
    })
    const budget = this.#budget(path, name, { kind: 'token' })
    const also = budget ? ` and the budget "${name}"` : ''
    file.note([...path, 'value'], `A token is made by gatehouse token create, with the access policy "${name}"${also}`)
  }

  /** Budgets and rates that nothing names. */
  explain(): void {
    for (const [id, path] of [...this.#budgets, ...this.#rates]) {
      if (!this.#named.has(id)) this.#file.note(path, 'No team and no virtual key names it')
    }
  }

  #budget(path: Path, name: string, scope: Fields): boolean {
    const file = this.#file
    const id = file.takeText(...path, 'budget_id')
    const at = id === null ? undefined : this.#budgets.get(id)
    if (id === null || at === undefined) return false
    this.#named.add(id)
    const [amount, duration] = [file.takeNumber(...at, 'max_limit'), file.takeText(...at, 'reset_duration')]
    const window = windowOf(duration)
    if (window === null)
      file.note([...at, 'reset_duration'], 'A budget is for a day, a week, a month or in total: month is written')
    if (amount !== null) file.add('budgets', { name, max_budget: amount, window: window ?? 'month', scope })
    return amount !== null
  }

  #ratesOf(path: Path): Fields | null {
    const file = this.#file
    const id = file.takeText(...path, 'rate_limit_id')
    const at = id === null ? undefined : this.#rates.get(id)
    if (id === null || at === undefined) return null
    this.#named.add(id)
    const rate = (what: string): number | null => {
      const [limit, every] = [
        file.takeNumber(...at, `${what}_max_limit`),
        file.takeText(...at, `${what}_reset_duration`),
      ]
      if (limit === null || every === '1m') return limit
      file.note([...at, `${what}_reset_duration`], 'Rates are by the minute: the limit is left out')
      return null
    }
    const rates = { requests_per_minute: rate('request'), tokens_per_minute: rate('token') }
    return Object.fromEntries(Object.entries(rates).filter(([, limit]) => limit !== null))
  }
}

function readMcpServer(file: Conversion, path: Path): void {
  const name = recordName(file.takeText(...path, 'name') ?? 'server')
    .replaceAll(/_+/g, '_')
    .replace(/_$/, '')
  const type = file.takeText(...path, 'connection_type')
  const url = file.takeText(...path, 'connection_string')
  const stdio: Path = [...path, 'stdio_config']
  const program = file.takeText(...stdio, 'command')
  if (type === 'sse')
    file.note([...path, 'connection_type'], 'Servers are reached by Streamable HTTP: ask whether this one speaks it')
  if (url === null && program === null) {
    file.note(path, 'has neither an address nor a command')
    return
  }
  const variables = textsOf(file.take(...stdio, 'envs'))
  file.add('mcp_servers', {
    name,
    url,
    command: url === null ? { program, args: textsOf(file.take(...stdio, 'args')) } : null,
    environment: variables.length === 0 ? null : Object.fromEntries(variables.map((each) => [each, { env: each }])),
  })
}

const reasons: readonly (readonly [Path, string])[] = [
  [['$schema'], 'gatehouse apply --schema has the schema of the new file'],
  [['encryption_key'], 'The installation has a master key of its own'],
  [['client'], 'These are settings of each gateway: gatehouse config explain'],
  [['config_store'], 'The installation has databases of its own'],
  [['logs_store'], 'The event log keeps every decision'],
  [['vector_store'], 'There is no cache by meaning; answer-cache keeps equal requests'],
  [['plugins'], 'Policies and settings take their place'],
  [['guardrails_config'], 'Write policies: pii, secrets, prompt-injection, term-filter or webhook'],
  [['governance', 'auth_config'], 'People sign in to the console: gatehouse user create'],
  [['governance', 'customers'], 'There are teams, and none above them'],
  [['governance', 'routing_rules'], 'Write targets of models, and policies of the kind condition'],
]

function explain(file: Conversion): void {
  for (const [path, reason] of reasons) if (file.look(...path) !== null) file.note(path, reason)
  for (const path of file.each('providers')) {
    const concurrency = [...path, 'concurrency_and_buffer_size']
    if (file.look(...concurrency) !== null) file.note(concurrency, 'A gateway has one setting for requests at once')
    for (const name of ['max_retries', 'retry_backoff_initial', 'retry_backoff_max']) {
      const at = [...path, 'network_config', name]
      if (file.look(...at) !== null) file.note(at, 'How often a gateway retries is its own setting')
    }
  }
}
