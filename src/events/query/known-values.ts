/**
 * Refuses a model, a provider or a reason that no event has and nothing in the installation is called: a mistyped one
 * would find nothing, silently. What was deleted stays known: the catalog keeps its name, and the log its events.
 */
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { nearest } from '../../lib/text/nearest.ts'
import type { Database, Reader } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import { logOf } from '../engine/log-of.ts'
import type { FacetName } from '../log/record.ts'
import { givenReasons } from './given-reasons.ts'

interface Sources {
  state: Reader
  ledger: Database
  clock: Clock
}

interface Named {
  what: string
  facet: FacetName
  names(state: Reader): Promise<readonly string[] | 'any'>
}

const named = {
  model: {
    what: 'model',
    facet: 'model',
    names: async (state) => (await query(state).select({ name: models.id }).from(models)).map(({ name }) => name),
  },
  provider: {
    what: 'provider',
    facet: 'provider',
    names: async (state) =>
      (await query(state).select({ name: providers.name }).from(providers)).map(({ name }) => name),
  },
  reason_code: { what: 'reason', facet: 'reason', names: givenReasons },
} as const satisfies Record<string, Named>

/** The log is searched so long for a value that nothing is called; then it is taken as known. */
const searchMilliseconds = 1000

/** Throws `invalid_parameter`. */
export async function requireKnownValues(
  { state, ledger, clock }: Sources,
  filters: Readonly<Partial<Record<keyof typeof named, string | undefined>>>,
): Promise<void> {
  for (const [param, { what, facet, names }] of Object.entries<Named>(named)) {
    const value = new Map(Object.entries(filters)).get(param)
    if (value === undefined) continue
    const known = await names(state)
    if (known === 'any' || known.includes(value) || (await mayBeInLog(ledger, clock, facet, value))) continue
    const near = nearest(value, known)
    const message = `There is no ${what} "${value}", and no event names one${near === null ? '' : `: did you mean ${near}?`}`
    throw new Failure('invalid_parameter', { param, message })
  }
}

async function mayBeInLog(ledger: Database, clock: Clock, facet: FacetName, value: string): Promise<boolean> {
  const end = clock.monotonic() + searchMilliseconds
  const everything = {
    since: 0,
    until: Number.MAX_SAFE_INTEGER,
    ceiling: Number.MAX_SAFE_INTEGER,
    after: null,
    ids: [],
  }
  for await (const { events } of logOf(ledger).parts({
    ...everything,
    order: 'newest',
    facets: [{ facet, values: [value] }],
  })) {
    if (events.length > 0 || clock.monotonic() > end) return true
  }
  return false
}
