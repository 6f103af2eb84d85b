/**
 * The providers that a start makes by itself (providers/README.md): the simulator, and one for each key in the
 * environment. A start finds what an earlier one made by its origin, whatever its name is now, and writes only what
 * differs: the base URL and the key that the environment names. So starting again, or several at once, changes nothing.
 * What a person decided stays: a new name, a base URL that no variable names, models that were deleted or serve another
 * provider, and a deleted provider, which does not come back. A key that is gone from the environment leaves its record
 * as it is.
 *
 * What the rows of the state database hold, for those who read them:
 *
 *   providers.name                 what `bindings.provider` names; unique
 *   providers.base_url             as the operator wrote it, without a trailing slash; null for the kind's own
 *   providers.sealed_credentials   seal(data key, JSON {"api_key": string | null, "headers": {name: value}}, provider id);
 *                                  null where there are none. The data key is the ledger's secret `provider-key:<id>`,
 *                                  32 bytes in base64; gateways get it by bootstrap.
 *   providers.origin               what a start made it from: `simulator`, or the variable with its key; null for others
 *   providers.position             the order in which they were made: the first that takes unlisted models wins
 *   models.upstream_model          the provider's name for it; null where it is the id
 *   models.families, fallbacks     JSON arrays of text, or null
 *   models.price, default_price    JSON {"input_per_million": number, "output_per_million": number} in dollars, or null
 */
import { and, eq, not, sql } from 'drizzle-orm'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import type { Change, Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import type { Database } from '../../store/open.ts'
import { condition, hasRow, insert, newStateVersion, query, statement, update } from '../../store/query.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import type { Statement } from '../../store/statement.ts'
import { keepDataKey, noCredentials, openCredentials, openDataKey, sealCredentials } from '../credentials.ts'
import { providerKinds } from '../kinds/index.ts'
import { presets } from '../presets/presets.ts'

interface RegistrationOptions {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: MasterKey
  environment: Readonly<Record<string, string | undefined>>
  clock: Clock
  newId: NewId
  randomBytes(size: number): Uint8Array
  log: Log
}

interface FoundProvider {
  /** What it is found again by: `simulator`, or the variable that has its key. */
  origin: string
  name: string
  kind: string
  /** Null: no variable names one. */
  baseUrl: string | null
  apiKey: string | null
  allowUnlistedModels: boolean
  models: readonly string[]
}

const simulator: FoundProvider = {
  origin: 'simulator',
  name: 'simulator',
  kind: 'simulator',
  baseUrl: null,
  apiKey: null,
  allowUnlistedModels: false,
  models: ['simulator/echo', 'simulator/lorem'],
}

/** One dollar a million tokens each way. */
const simulatorPrice = JSON.stringify({ input_per_million: 1, output_per_million: 1, per_image: 0.000016 })

/** Makes or updates the providers. Throws `invalid_parameter`, naming the variable, for a base URL that is none. */
export async function registerProvidersFromEnvironment(options: RegistrationOptions): Promise<void> {
  for (const found of [simulator, ...findProviders(options.environment)]) await register(options, found)
}

/** The providers for which the environment has a key. */
export function findProviders(environment: RegistrationOptions['environment']): FoundProvider[] {
  return presets.flatMap(({ name, kind: { kind, environment: variables } }) => {
    if (variables === null) return []
    const { apiKey: key, baseUrl } = variables
    const apiKey = environment[key]?.trim()
    if (apiKey === undefined || apiKey === '') return []
    const url = baseUrl === null ? null : baseUrlOf(environment[baseUrl], baseUrl)
    return [{ origin: key, name, kind, baseUrl: url, apiKey, allowUnlistedModels: true, models: [] }]
  })
}

function baseUrlOf(text: string | undefined, variable: string): string | null {
  if (text === undefined || text === '') return null
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.search !== '') {
    const message = `${variable} must be an http or https URL without user or query`
    throw new Failure('invalid_parameter', { message, param: variable })
  }
  return url.href.replace(/\/+$/, '')
}

async function register(options: RegistrationOptions, found: FoundProvider): Promise<void> {
  const present = await findProvider(options.state, found.origin)
  if (present === null) {
    await create(options, found)
  } else if (present.deleted === 1) {
    if (found.apiKey !== null) {
      options.log.info(
        { variable: found.origin },
        `The provider that was made from ${found.origin} has been deleted and stays so: make one with provider create`,
      )
    }
  } else if (await differs(options, present, found)) {
    await refresh(options, present, found)
  }
}

type ProviderRow = typeof providers.$inferSelect

/** What an earlier start made, deleted or not. */
async function findProvider(state: Database, origin: string): Promise<ProviderRow | null> {
  return (await query(state).select().from(providers).where(eq(providers.origin, origin)).get()) ?? null
}

const ofThisName = (name: string) => and(eq(providers.name, name), eq(providers.deleted, 0))

async function create(options: RegistrationOptions, found: FoundProvider): Promise<void> {
  const { recorder, clock, newId } = options
  const kind = providerKinds.get(found.kind)
  const problem = kind?.addressProblem(found.baseUrl, {}) ?? null
  if (problem !== null) {
    options.log.warn(
      { provider: found.name, origin: found.origin },
      `No provider is made from ${found.origin}: set ${kind?.environment?.baseUrl} too. ${problem}`,
    )
    return
  }
  if ((await query(options.state).$count(providers, ofThisName(found.name))) > 0) {
    options.log.warn(
      { provider: found.name, origin: found.origin },
      `No provider is made from ${found.origin}: there is another provider named ${found.name}. Rename that one, or give it the key with provider update`,
    )
    return
  }
  const id = newId()
  const dataKey = options.randomBytes(32)
  const provider = statement(
    insert(providers).values({
      id,
      origin: found.origin,
      name: found.name,
      kind: found.kind,
      baseUrl: found.baseUrl,
      sealedCredentials: sealCredentials(dataKey, id, { ...noCredentials, apiKey: found.apiKey }),
      allowUnlistedModels: found.allowUnlistedModels ? 1 : 0,
      position: sql`(select coalesce(max(position), 0) + 1 from ${providers})`,
      version: newStateVersion,
    }),
  )
  const event = eventOf(options, 'catalog.created', { ...found, id })
  try {
    await recorder.change({
      event,
      guard: condition(not(hasRow(providers, ofThisName(found.name)))),
      state: [provider, ...found.models.map((model) => listModel(model, id, clock.now()))],
      ledger: [keepDataKey(options, id, dataKey, clock.now())],
    })
  } catch (error) {
    // Another process that started at the same time was first.
    if ((await findProvider(options.state, found.origin)) === null) throw error
  }
}

/** Lists a model, unless the catalog has or had one of this id: that one is a person's. */
const listModel = (model: string, providerId: string, createdAt: number): Statement =>
  statement(
    insert(models)
      .values({ id: model, providerId, price: simulatorPrice, createdAt, version: newStateVersion })
      .onConflictDoNothing(),
  )

async function refresh(options: RegistrationOptions, present: ProviderRow, found: FoundProvider): Promise<void> {
  const known = await openDataKey(options, present.id)
  const dataKey = known ?? options.randomBytes(32)
  const { sealedCredentials: sealed } = present
  // Headers and further keys that an operator has added stay.
  const held = known === null || sealed === null ? noCredentials : openCredentials(known, present.id, sealed)
  // A variable that is not set changes nothing: what a person wrote stays.
  const baseUrl = found.baseUrl ?? present.baseUrl
  const change: Change = {
    event: eventOf(options, 'catalog.updated', { ...found, id: present.id, name: present.name, baseUrl }),
    guard: condition(hasRow(providers, and(eq(providers.id, present.id), eq(providers.version, present.version)))),
    state: [
      statement(
        update(providers)
          .set({
            baseUrl,
            sealedCredentials: sealCredentials(dataKey, present.id, { ...held, apiKey: found.apiKey }),
            version: newStateVersion,
          })
          .where(eq(providers.id, present.id)),
      ),
    ],
    ledger: [keepDataKey(options, present.id, dataKey, options.clock.now())],
  }
  try {
    await options.recorder.change(change)
  } catch (error) {
    // Another process that started at the same time, with the same environment, was first.
    const now = await findProvider(options.state, found.origin)
    if (now === null || (await differs(options, now, found))) throw error
  }
}

async function differs(options: RegistrationOptions, present: ProviderRow, found: FoundProvider): Promise<boolean> {
  if (found.baseUrl !== null && found.baseUrl !== present.baseUrl) return true
  if (present.sealedCredentials === null || found.apiKey === null) {
    return (present.sealedCredentials === null) !== (found.apiKey === null)
  }
  const dataKey = await openDataKey(options, present.id)
  if (dataKey === null) return true
  return openCredentials(dataKey, present.id, present.sealedCredentials).apiKey !== found.apiKey
}

/** The event has the base URL, never the key. */
function eventOf(
  { clock, newId }: RegistrationOptions,
  type: 'catalog.created' | 'catalog.updated',
  provider: FoundProvider & { id: string },
) {
  const { id, name, kind, baseUrl, allowUnlistedModels: allow_unlisted_models, models } = provider
  return controlPlaneEvent({
    type,
    principal: { ...anonymous, name: 'system:start' },
    requestId: 'start',
    teamId: null,
    details: { provider_id: id, name, kind, base_url: baseUrl, allow_unlisted_models, models },
    configVersion: 0,
    clock,
    newId,
  })
}
