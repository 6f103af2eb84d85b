/**
 * A `config.yaml` of the LiteLLM proxy (docs.litellm.ai/docs/proxy/configs, …/proxy/load_balancing,
 * …/proxy/reliability, …/mcp). Deployments with the same service, address and key become one provider; entries of the
 * same `model_name` become the targets of one model.
 */
import type { Path } from '../apply/documents.ts'
import { type Conversion, type Fields, presetOf, recordName, variableName, windowOf } from './conversion.ts'

const strategies: Readonly<Record<string, string>> = {
  'simple-shuffle': 'weighted',
  'least-busy': 'least_busy',
  'latency-based-routing': 'lowest_latency',
  'cost-based-routing': 'lowest_cost',
}

export function fromLitellm(file: Conversion): void {
  const models = new Map<string, Fields[]>()
  const providers = new Map<string, string>()
  for (const path of file.each('model_list')) readDeployment(file, path, { models, providers })
  const strategy = strategyOf(file)
  const aliases = aliasesOf(file, models)
  const fallbacks = fallbacksOf(file, new Set([...models.keys(), ...aliases.keys()]))
  const add = (name: string, targets: readonly Fields[], others: readonly string[] | undefined) => {
    const several = targets.length > 1
    file.add('models', {
      name,
      targets: targets.map(({ prices, ...target }) => ({ ...target, ...(several && prices ? { price: prices } : {}) })),
      strategy: several ? strategy : null,
      price: several ? null : targets[0]?.prices,
      fallbacks: others,
    })
  }
  for (const [name, targets] of models) add(name, targets, fallbacks.get(name))
  for (const [name, of] of aliases) add(name, models.get(of) ?? [], fallbacks.get(name) ?? fallbacks.get(of))
  readBudget(file)
  for (const path of file.each('mcp_servers')) readMcpServer(file, path)
  explain(file)
}

interface Found {
  models: Map<string, Fields[]>
  providers: Map<string, string>
}

function readDeployment(file: Conversion, path: Path, { models, providers }: Found): void {
  const params: Path = [...path, 'litellm_params']
  const name = file.takeText(...path, 'model_name')
  const model = file.takeText(...params, 'model')
  if (name === null || model === null) {
    file.note(path, 'names no model')
    return
  }
  const slash = model.indexOf('/')
  const [prefix, upstream] = slash < 0 ? ['openai', model] : [model.slice(0, slash), model.slice(slash + 1)]
  const provider = providerOf(file, params, prefix, providers)
  if (provider === null) return
  if (name.includes('*') || upstream.includes('*')) {
    file.note([...path, 'model_name'], `every model of the provider ${provider} is asked for as ${provider}/MODEL`)
    return
  }
  const prices = pricesOf(file, path)
  const targets = models.get(name) ?? []
  const weight = file.takeNumber(...params, 'weight')
  models.set(name, [...targets, { provider, upstream_model: upstream, ...(weight === null ? {} : { weight }), prices }])
}

function providerOf(file: Conversion, params: Path, prefix: string, providers: Map<string, string>): string | null {
  const preset = presetOf(prefix)
  const base = file.takeText(...params, 'api_base')
  const key = file.look(...params, 'api_key')
  const same = JSON.stringify([prefix, base, key])
  const known = providers.get(same)
  if (known !== undefined) {
    file.take(...params, 'api_key')
    return known
  }
  if (preset === null && base === null) {
    file.note([...params, 'model'], `There is no provider ${prefix}: add one of kind openai with its base_url`)
    return null
  }
  const taken = [...providers.values()]
  const first = recordName(preset ?? prefix)
  const name = taken.includes(first) ? recordName(`${first}-${taken.length + 1}`) : first
  providers.set(same, name)
  const timeout = file.takeNumber(...params, 'timeout')
  file.add('providers', {
    name,
    ...(preset === null ? { kind: 'openai' } : { preset }),
    base_url: base,
    api_key: secretOf(file, [...params, 'api_key'], variableName(`${name}_API_KEY`)),
    allow_unlisted_models: preset === null ? true : null,
    timeouts: timeout === null ? null : { total_seconds: Math.max(1, Math.ceil(timeout)) },
  })
  return name
}

/** `os.environ/NAME` is a variable. A secret that stands in the file is not copied. */
export function secretOf(file: Conversion, path: Path, otherwise: string): Fields | null {
  const text = file.takeText(...path)
  if (text === null) return null
  const [, name] = /^os\.environ\/(\w+)$/.exec(text) ?? []
  if (name !== undefined) return { env: name }
  file.note(path, `The secret itself stands here and is not copied: put it into the variable ${otherwise}`)
  return { env: otherwise }
}

const million = 1_000_000

function pricesOf(file: Conversion, path: Path): Fields | null {
  const price = (name: string): number | null =>
    file.takeNumber(...path, 'litellm_params', name) ?? file.takeNumber(...path, 'model_info', name)
  const [input, output] = [price('input_cost_per_token'), price('output_cost_per_token')]
  if (input === null || output === null) return null
  const rounded = (value: number) => Number((value * million).toFixed(6))
  return { input_per_million: rounded(input), output_per_million: rounded(output) }
}

function strategyOf(file: Conversion): string {
  const path = ['router_settings', 'routing_strategy']
  const named = file.takeText(...path)
  const strategy = strategies[named ?? 'simple-shuffle']
  if (strategy === undefined) file.note(path, `There is no such strategy: targets are chosen by their weights`)
  return strategy ?? 'weighted'
}

/** By the model that they stand in for. Names that are none of `known` are noted and left out. */
function fallbacksOf(file: Conversion, known: ReadonlySet<string>): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const section of ['litellm_settings', 'router_settings']) {
    for (const path of file.each(section, 'fallbacks')) {
      for (const each of file.each(...path)) {
        const name = String(each.at(-1))
        const others = file.take(...each)
        if (!known.has(name) || !Array.isArray(others)) {
          file.note(each, known.has(name) ? 'names no list of models' : 'names no model of the list')
          continue
        }
        const isKnown = (other: unknown): other is string => typeof other === 'string' && known.has(other)
        for (const [index, other] of others.entries()) {
          if (!isKnown(other)) file.note([...each, index], 'names no model of the list, so it is no fallback')
        }
        const models = others.filter(isKnown)
        if (models.length > 0) found.set(name, models)
      }
    }
  }
  return found
}

/** An alias is a model with the same targets: here by its name the name of that model. */
function aliasesOf(file: Conversion, models: ReadonlyMap<string, unknown>): Map<string, string> {
  const found = new Map<string, string>()
  for (const path of file.each('router_settings', 'model_group_alias')) {
    const of = file.takeText(...path)
    if (of === null || !models.has(of)) file.note(path, 'names no model of the list')
    else found.set(String(path.at(-1)), of)
  }
  return found
}

function readBudget(file: Conversion): void {
  const amount = file.takeNumber('litellm_settings', 'max_budget')
  if (amount === null) return
  const duration = file.takeText('litellm_settings', 'budget_duration')
  const window = duration === null ? 'total' : windowOf(duration)
  if (window === null)
    file.note(
      ['litellm_settings', 'budget_duration'],
      'A budget is for a day, a week, a month or in total: month is written',
    )
  file.add('budgets', {
    name: 'litellm',
    max_budget: amount,
    window: window ?? 'month',
    scope: { kind: 'organization' },
  })
}

function readMcpServer(file: Conversion, path: Path): void {
  const name = recordName(String(path.at(-1)))
    .replaceAll(/_+/g, '_')
    .replace(/_$/, '')
  const url = file.takeText(...path, 'url')
  const transport = file.take(...path, 'transport')
  const program = file.takeText(...path, 'command')
  if (transport === 'sse')
    file.note([...path, 'transport'], 'Servers are reached by Streamable HTTP: ask whether this one speaks it')
  if (url === null && program === null) {
    file.note(path, 'has neither url nor command')
    return
  }
  const given = file.take(...path, 'args')
  file.add('mcp_servers', {
    name,
    url,
    command: url === null ? { program, args: Array.isArray(given) ? given.map(String) : [] } : null,
  })
}

const reasons: readonly (readonly [Path, string])[] = [
  [['general_settings', 'master_key'], 'The administrator has a token of this installation instead'],
  [['general_settings', 'database_url'], 'The installation has databases of its own'],
  [['litellm_settings', 'num_retries'], 'How often a gateway retries is its own setting'],
  [['router_settings', 'num_retries'], 'How often a gateway retries is its own setting'],
  [['litellm_settings', 'context_window_fallbacks'], 'Fallbacks are for failures of a provider only'],
  [['litellm_settings', 'content_policy_fallbacks'], 'Fallbacks are for failures of a provider only'],
  [['litellm_settings', 'cache_params'], 'Answers are kept by a policy of the kind answer-cache'],
  [['litellm_settings', 'cache'], 'Answers are kept by a policy of the kind answer-cache'],
  [['litellm_settings', 'request_timeout'], 'Timeouts stand at each provider: timeouts.total_seconds'],
  [['router_settings', 'timeout'], 'Timeouts stand at each provider: timeouts.total_seconds'],
  [['guardrails'], 'Write policies: pii, secrets, prompt-injection, term-filter or webhook'],
]

function explain(file: Conversion): void {
  for (const [path, reason] of reasons) if (file.look(...path) !== null) file.note(path, reason)
  for (const path of file.each('model_list')) {
    for (const name of ['rpm', 'tpm']) {
      const limit = [...path, 'litellm_params', name]
      if (file.look(...limit) !== null)
        file.note(limit, 'Rates are of tokens, access policies and consumer groups, not of targets')
    }
    const version = [...path, 'litellm_params', 'api_version']
    if (file.look(...version) !== null) file.note(version, 'The provider kind says the version')
  }
}
