/**
 * `/v1/budgets`, `/v1/consumer-groups`, `/v1/access-policies`, `/v1/attribution-dimensions` (usage/README.md): the same
 * five handlers for each. A
 * change is one of the state, which gateways follow, and its event; the ledger has the name too, for lists.
 */

import { and, not } from 'drizzle-orm'
import type { AnyElysia } from 'elysia'
import { requireVersion } from '../../api/entity-tag.ts'
import { type PageQuery, recordPage } from '../../api/page.ts'
import { type RecordCall, resourceRoutes } from '../../api/resource-routes.ts'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import type { EventType } from '../../events/event-types.ts'
import type { NameClaim, Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { condition } from '../../store/query.ts'
import type { Row } from '../../store/statement.ts'
import type { DepletionView } from '../../tokens/limits/depletion.ts'
import { dimensionResource } from '../attribution/dimension-resource.ts'
import { sumsOfValues } from '../attribution/value-accounts.ts'
import { bookedBudget, windowOf } from '../window.ts'
import { accessPolicyResource } from './access-policy-resource.ts'
import { budgetResource, windowSchema } from './budget-resource.ts'
import { consumerGroupResource } from './consumer-group-resource.ts'
import { type Booked, budgetKind, dimensionKind, groupKind, type LimitKind, policyKind } from './limit-kind.ts'
import {
  addLimit,
  addName,
  changeLimit,
  changeName,
  dropName,
  isAsRead,
  type NameRow,
  otherOfName,
  readLimits,
  readName,
  readNames,
  readSettled,
} from './stored-limit.ts'
import { limitVisibilityOf } from './visible-limits.ts'

export interface LimitDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  clock: Clock
  newId: NewId
  depletion: Pick<DepletionView, 'recalled'>
}

export const limitRoutes = (deps: LimitDependencies): AnyElysia[] => [
  resourceRoutes(budgetResource, {
    ...limitHandlers(deps, budgetKind),
    async update(id, body, call) {
      const { row, shown } = await updateLimit(deps, budgetKind, id, body, call)
      return { ...shown, usage: await usageOf(deps, row) }
    },
  }),
  resourceRoutes(consumerGroupResource, limitHandlers(deps, groupKind)),
  resourceRoutes(accessPolicyResource, limitHandlers(deps, policyKind)),
  resourceRoutes(dimensionResource, limitHandlers(deps, dimensionKind)),
]

/** What of a kind does not depend on its fields. */
type Kind = Pick<LimitKind<never, unknown>, 'kind' | 'table' | 'word' | 'account'>

interface Named {
  name?: string | undefined
}

const limitHandlers = <Fields, Shown>(deps: LimitDependencies, kind: LimitKind<Fields, Shown>) => ({
  async list({ name, ...page }: PageQuery & Named, { principal }: RecordCall) {
    const { state, ledger } = deps
    const sight = await limitVisibilityOf(ledger, principal)
    const only = sight === null ? null : await kind.seen(await readLimits(state, kind, null), sight, ledger)
    const seenIds = only?.map(({ id }) => String(id)) ?? null
    return await recordPage(page, {
      filters: { list: kind.kind, name },
      read: (after, count) => readNames(ledger, kind, { name, after, ids: seenIds, count }),
      async show(names) {
        const ids = names.map(({ id }) => id)
        const rows = only ?? (await readLimits(state, kind, ids))
        const byId = new Map(rows.map((row) => [row.id, row]))
        const booked = await readBooked(deps, kind, rows)
        return names.flatMap((named) => {
          const row = byId.get(named.id)
          return row === undefined ? [] : [recordOf(kind, named, row, booked, deps.clock.now())]
        })
      },
    })
  },
  async get(id: string, { principal }: RecordCall) {
    const { named, row } = await requireLimit(deps, kind, id)
    const sight = await limitVisibilityOf(deps.ledger, principal)
    const [seen] = sight === null ? [row] : await kind.seen([row], sight, deps.ledger)
    if (seen === undefined) throw notFound(kind)
    return await answerOf(deps, kind, named, seen)
  },
  async create(body: Fields & { name: string }, call: RecordCall) {
    const { name, ...fields } = body
    await kind.check(body, deps)
    const id = deps.newId()
    const more = await kind.follows?.(deps.ledger, null, body)
    await deps.recorder.change({
      claim: claimOf(kind, name, id),
      event: eventOf(deps, kind, call, { type: 'catalog.created', id, name, details: fields }),
      state: [addLimit(kind, id, { ...kind.columns(body), name }), ...(more?.state ?? [])],
      ledger: [addName({ id, kind: kind.kind, name, createdAt: deps.clock.now() }), ...(more?.ledger ?? [])],
    })
    return await answer(deps, kind, id)
  },
  async update(id: string, body: Fields & Named, call: RecordCall) {
    return (await updateLimit(deps, kind, id, body, call)).shown
  },
  async remove(id: string, call: RecordCall) {
    const { named, row } = await requireLimit(deps, kind, id)
    requireVersion(call.headers, Number(row.version))
    const inUse = kind.inUse?.(id, deps.clock.now())
    const message = await inUse?.found(deps)
    if (message != null) throw new Failure('conflict', { message })
    const more = await kind.follows?.(deps.ledger, row, null)
    await deps.recorder.change({
      event: eventOf(deps, kind, call, { type: 'catalog.deleted', id, name: named.name, details: {} }),
      // A token may have come to name it meanwhile; the state has every token, in the transaction of the change.
      guard: condition(and(isAsRead(kind, id, Number(row.version)), inUse && not(inUse.ofState))),
      state: [changeLimit(kind, id, { deleted: 1 }), ...(more?.state ?? [])],
      ledger: [dropName(id), ...(more?.ledger ?? [])],
    })
    return recordOf(kind, named, row, await readBooked(deps, kind, [row]), deps.clock.now())
  },
})

/** Changes a limit; `row` is what it was before, and `shown` the record after. */
async function updateLimit<Fields, Shown>(
  deps: LimitDependencies,
  kind: LimitKind<Fields, Shown>,
  id: string,
  body: Fields & Named,
  call: RecordCall,
): Promise<{ row: Row; shown: Shown }> {
  const { name, ...fields } = body
  const { named, row } = await requireLimit(deps, kind, id)
  requireVersion(call.headers, Number(row.version))
  await kind.check(body, deps)
  const more = await kind.follows?.(deps.ledger, row, body)
  const touched = [...(kind.touches?.(id) ?? []), ...(more?.state ?? [])]
  await deps.recorder.change({
    event: eventOf(deps, kind, call, {
      type: 'catalog.updated',
      id,
      name: name ?? named.name,
      details: { changed: fields },
    }),
    claim: name === undefined || name === named.name ? undefined : claimOf(kind, name, id),
    guard: condition(isAsRead(kind, id, Number(row.version))),
    state: [changeLimit(kind, id, { ...kind.columns(body), name: name ?? named.name }), ...touched],
    ledger: [...(name === undefined ? [] : [changeName(id, name)]), ...(more?.ledger ?? [])],
  })
  return { row, shown: await answer(deps, kind, id) }
}

const recordOf = <Fields, Shown>(
  kind: LimitKind<Fields, Shown>,
  { id, name, createdAt }: NameRow,
  row: Row,
  booked: ReadonlyMap<string, Booked>,
  now: number,
): Shown => {
  const common = { id, name, version: Number(row.version), created_at: timestamp(createdAt) }
  return kind.show(common, row, booked.get(id) ?? { used: 0, values: null }, now)
}

/** What is booked on the accounts of records at this instant, by their ids. */
async function readBooked({ ledger, clock }: LimitDependencies, { account }: Kind, rows: readonly Row[]) {
  const found = new Map<string, Booked>()
  if (account === null || rows.length === 0) return found
  const now = clock.now()
  const ids = new Map(rows.filter(({ per }) => per === null).map((row) => [account(row, now), String(row.id)]))
  for (const { account: name, settled } of await readSettled(ledger, [...ids.keys()])) {
    found.set(ids.get(name) ?? '', { used: settled, values: null })
  }
  for (const row of rows) {
    if (typeof row.per !== 'string') continue
    const values = await sumsOfValues(ledger, String(row.id), windowOf(account(row, now)), Number(row.maxBudget))
    found.set(String(row.id), { used: values.used, values })
  }
  return found
}

/** How the budget of a row stands when gateways have given back what no request holds. */
async function usageOf({ depletion, ledger, clock }: LimitDependencies, { id, window, per, maxBudget }: Row) {
  const account = bookedBudget(String(id), windowSchema.parse(window), clock.now()).booked
  if (typeof per === 'string') {
    const sums = await sumsOfValues(ledger, String(id), windowOf(account), Number(maxBudget))
    return { used: fromNano(sums.used), open: fromNano(sums.open) }
  }
  const { used = 0, open = 0 } = (await depletion.recalled([account])).get(account) ?? {}
  return { used: fromNano(used), open: fromNano(open) }
}

/** The record of this id. Throws `not_found`. */
async function requireLimit({ state, ledger }: LimitDependencies, kind: Kind, id: string) {
  const named = await readName(ledger, kind, id)
  const [row] = await readLimits(state, kind, [id])
  if (named === undefined || row === undefined) throw notFound(kind)
  return { named, row }
}

const notFound = ({ word }: { word: string }): Failure =>
  new Failure('not_found', { message: `There is no such ${word}` })

async function answer<Fields, Shown>(deps: LimitDependencies, kind: LimitKind<Fields, Shown>, id: string) {
  const { named, row } = await requireLimit(deps, kind, id)
  return await answerOf(deps, kind, named, row)
}

async function answerOf<Fields, Shown>(
  deps: LimitDependencies,
  kind: LimitKind<Fields, Shown>,
  named: NameRow,
  row: Row,
) {
  return recordOf(kind, named, row, await readBooked(deps, kind, [row]), deps.clock.now())
}

const claimOf = ({ kind, word }: Kind, name: string, own: string): NameClaim => ({
  key: `${kind} ${name}`,
  taken: otherOfName(kind, name, own),
  refusal: new Failure('conflict', { param: 'name', message: `There is another ${word} of this name` }),
})

interface LimitEvent {
  type: EventType
  id: string
  name: string
  details: Record<string, unknown>
}

const eventOf = (
  { clock, newId }: LimitDependencies,
  { kind }: Kind,
  { principal, requestId }: RecordCall,
  { type, id, name, details }: LimitEvent,
) =>
  controlPlaneEvent({
    type,
    principal,
    requestId,
    teamId: null,
    details: { kind, id, name, ...details },
    configVersion: 0,
    clock,
    newId,
  })
