/**
 * The models of the catalog that a token may use, for the examples that are shown with its secret. The gateway decides
 * again at each request, by further rules too, such as policies.
 */
import type { TokenRecord } from '../../api/routes.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'

type TokenScope = Pick<TokenRecord, 'bindings' | 'access_policy_ids'>

/** Works without a key of a provider, so an example with it answers at once. */
const offlineModel = 'simulator/echo'

/** Models that hold conversations, by the languages of the examples. */
const spoken: readonly unknown[] = ['chat', 'responses', 'messages', 'gemini']

interface Records {
  models: readonly JsonObject[]
  providers: readonly JsonObject[]
  policies: readonly JsonObject[]
}

/** The offline model first where the token may use it; then exact names of the token's own filter. */
export function modelsWithin({ bindings, access_policy_ids }: TokenScope, { models, providers, policies }: Records) {
  const named = policies.filter(({ id }) => access_policy_ids.some((one) => one === id))
  const allowedModels = [bindings.model_filter ?? null, ...named.map((policy) => textsOf(policy.models))]
  const allowedProviders = [
    bindings.provider === undefined ? null : [bindings.provider],
    ...named.map((policy) => textsOf(policy.providers)),
  ]
  const nameOf = (id: unknown) => String(providers.find((provider) => provider.id === id)?.name)
  const mayName = (model: string) => allowedModels.every((globs) => globs === null || someFits(globs, model))
  const listed = models
    .filter(({ families }) => !Array.isArray(families) || families.some((family) => spoken.includes(family)))
    .filter(({ provider_id }) =>
      allowedProviders.every((names) => names === null || names.includes(nameOf(provider_id))),
    )
    .map(({ id }) => String(id))
  const exact = (bindings.model_filter ?? []).filter((name) => !name.includes('*'))
  const usable = [...new Set([...exact, ...listed])].filter(mayName)
  return usable.toSorted((one, other) => Number(other === offlineModel) - Number(one === offlineModel))
}

const textsOf = (value: unknown): readonly string[] | null => (Array.isArray(value) ? value.map(String) : null)

/** `*` stands for any run of characters, everything else for itself. */
const someFits = (globs: readonly string[], text: string): boolean =>
  globs.some((glob) => new RegExp(`^${glob.split('*').map(RegExp.escape).join('.*')}$`, 's').test(text))
