/**
 * The models of the catalog that a token may use, for the examples that are shown with its secret. The gateway decides
 * again at each request, by further rules too, such as policies.
 */
import type { ClientLanguage } from '../../../../clients/recipe.ts'
import type { TokenRecord } from '../../api/routes.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'

type TokenScope = Pick<TokenRecord, 'bindings' | 'access_policy_ids'>

/** Models that hold conversations, by the languages of the examples. */
const spoken: readonly unknown[] = ['chat', 'responses', 'messages', 'gemini'] satisfies ClientLanguage[]

/** What providers speak themselves; the gateway translates every other language for them. */
const nativeTo: Readonly<Record<string, readonly ClientLanguage[]>> = {
  openai: ['chat', 'responses'],
  'azure-openai': ['chat', 'responses'],
  anthropic: ['messages'],
  gemini: ['gemini'],
  vertex: ['gemini'],
}

/** A model of each service that serves names which the catalog does not list. */
const usualModels: Readonly<Record<string, string>> = {
  openai: 'gpt-4o',
  anthropic: 'claude-sonnet-4-5',
  gemini: 'gemini-2.5-flash',
}

/** A model at a provider as gateways measured it in the last seconds. */
export interface MeasuredTarget {
  provider: string
  model: string
  circuit_open: boolean
  error_ratio: number
}

export interface Records {
  /** In the order in which they were made. */
  models: readonly JsonObject[]
  providers: readonly JsonObject[]
  policies: readonly JsonObject[]
  targets: readonly MeasuredTarget[]
}

/** From this share of failed calls on, a model is no example. */
const failingShare = 0.5

/** The best order first: what speaks the language itself, others that work, the simulator, what does not work. */
const ranks = ['native', 'translated', 'simulated', 'failing'] as const
type Rank = (typeof ranks)[number]

interface Usable {
  name: string
  /** Undefined of a name that the catalog does not have. */
  provider: JsonObject | undefined
}

/** The models that a token may use, those first that a person would choose for a client of this language. */
export function modelsWithin(
  { bindings, access_policy_ids }: TokenScope,
  { models, providers, policies, targets }: Records,
  language: ClientLanguage,
): string[] {
  const named = policies.filter(({ id }) => access_policy_ids.some((one) => one === id))
  const allowedModels = [bindings.model_filter ?? null, ...named.map((policy) => textsOf(policy.models))]
  const allowedProviders = [
    bindings.provider === undefined ? null : [bindings.provider],
    ...named.map((policy) => textsOf(policy.providers)),
  ]
  const mayName = ({ name }: Usable) => allowedModels.every((globs) => globs === null || someFits(globs, name))
  const mayUse = ({ provider }: Usable) =>
    provider === undefined || allowedProviders.every((names) => names === null || names.includes(String(provider.name)))
  const listed = models
    .filter(({ families }) => !Array.isArray(families) || families.some((family) => spoken.includes(family)))
    .map(({ id, provider_id }) => ({
      name: String(id),
      provider: providers.find((provider) => provider.id === provider_id),
    }))
  const exact = (bindings.model_filter ?? [])
    .filter((name) => !name.includes('*') && !listed.some((model) => model.name === name))
    .map((name) => ({ name, provider: undefined }))
  // The catalog's own record decides who serves a name, also where the token may not use that provider.
  const others = unlisted(providers).filter(
    ({ name }) => !models.some(({ id }) => id === name) && !exact.some((model) => model.name === name),
  )
  const rankOf = ({ name, provider }: Usable): Rank => {
    // The token's own filter names it.
    if (provider === undefined) return 'native'
    const isFailing = targets.some(
      (target) =>
        target.model === name &&
        target.provider === provider.name &&
        (target.circuit_open || target.error_ratio >= failingShare),
    )
    if (isFailing || !isReachable(provider)) return 'failing'
    if (provider.kind === 'simulator') return 'simulated'
    return nativeTo[String(provider.kind)]?.includes(language) === true ? 'native' : 'translated'
  }
  return [...exact, ...listed, ...others]
    .filter((model) => mayName(model) && mayUse(model))
    .map((model) => ({ name: model.name, rank: ranks.indexOf(rankOf(model)) }))
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ name }) => name)
}

/** These need no key: the simulator takes none, and Vertex AI uses the account of the host. */
const keyless: readonly unknown[] = ['simulator', 'vertex']

/** Without an address of its own, a provider is the service itself, which answers nobody else without a key. */
const isReachable = ({ kind, base_url, has_api_key, header_names }: JsonObject): boolean =>
  keyless.includes(kind) ||
  base_url !== null ||
  has_api_key === true ||
  (Array.isArray(header_names) && header_names.length > 0)

/** The first provider that takes names which the catalog does not list gets all of them. */
function unlisted(providers: readonly JsonObject[]): Usable[] {
  const first = providers.find((provider) => provider.allow_unlisted_models === true)
  const name = first?.base_url === null ? usualModels[String(first.kind)] : undefined
  return name === undefined ? [] : [{ name, provider: first }]
}

const textsOf = (value: unknown): readonly string[] | null => (Array.isArray(value) ? value.map(String) : null)

/** `*` stands for any run of characters, everything else for itself. */
const someFits = (globs: readonly string[], text: string): boolean =>
  globs.some((glob) => new RegExp(`^${glob.split('*').map(RegExp.escape).join('.*')}$`, 's').test(text))
