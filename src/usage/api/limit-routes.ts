/**
 * `/v1/budgets`, `/v1/consumer-groups`, `/v1/access-policies` (usage/README.md): the same five calls on each. A change
 * is one of the state, which gateways follow, and its event; the name alone is kept in the ledger.
 */

import { and, not } from 'drizzle-orm'
import { type AnyElysia, Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { readCursor, writeCursor } from '../../api/cursor.ts'
import { requireVersion } from '../../api/entity-tag.ts'
import { pageLimit } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import type { EventType } from '../../events/event-types.ts'
import type { NameClaim, Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { condition } from '../../store/query.ts'
import type { Row } from '../../store/statement.ts'
import type { DepletionView } from '../../tokens/limits/depletion.ts'
import { limitName } from './limit-fields.ts'
import { type LimitKind, limitKinds } from './limit-kind.ts'
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

const pageQuery = z.strictObject({
  limit: pageLimit,
  cursor: z.string().max(500).optional(),
})

export const limitRoutes = (deps: LimitDependencies): AnyElysia[] =>
  limitKinds.map((kind) => limitKindRoutes(deps, kind))

const usageSchema = z
  .object({
    used: z.number().describe('US dollars settled in this window'),
    open: z.number().describe('Held by requests that run, or by gateways that did not answer: may be used yet'),
  })
  .describe('How the budget stands when gateways have given back what no request holds')

const limitKindRoutes = (deps: LimitDependencies, kind: LimitKind) =>
  new Elysia({ name: kind.plural })
    .use(conventions)
    .get(
      kind.path,
      async ({ principal, query: { limit, cursor } }) => {
        const { state, ledger } = deps
        const sight = await limitVisibilityOf(ledger, principal)
        const only = sight === null ? null : await kind.seen(await readLimits(state, kind, null), sight, ledger)
        const filters = { list: kind.kind }
        const after = cursor === undefined ? '' : readCursor(cursor, filters)
        const seenIds = only?.map(({ id }) => String(id)) ?? null
        const found = await readNames(ledger, kind, { after, ids: seenIds, count: limit + 1 })
        const page = found.slice(0, limit)
        const pageIds = page.map(({ id }) => id)
        const rows = only ?? (await readLimits(state, kind, pageIds))
        const byId = new Map(rows.map((row) => [row.id, row]))
        const settled = await totalSettled(deps, kind, rows)
        const records = page.flatMap((named) => {
          const row = byId.get(named.id)
          return row === undefined ? [] : [recordOf(kind, named, row, settled)]
        })
        const last = page.at(-1)
        const next_cursor = found.length > limit && last !== undefined ? writeCursor(last.id, filters) : null
        return { [kind.plural]: records, next_cursor }
      },
      {
        access: 'catalog:read',
        query: pageQuery,
        response: z.object({ [kind.plural]: z.array(recordSchema(kind)), next_cursor: z.string().nullable() }),
        detail: { tags: [kind.tag], summary: `List what there is of each ${kind.word}, in the order they were made` },
      },
    )
    .post(
      kind.path,
      async ({ principal, body: { name: said, ...fields }, requestId, status }) => {
        const name = limitName.parse(said)
        await kind.check(fields, deps.ledger)
        const id = deps.newId()
        await deps.recorder.change({
          claim: claimOf(kind, name, id),
          event: eventOf(deps, kind, { type: 'catalog.created', id, name, principal, requestId, details: fields }),
          state: [addLimit(kind, id, kind.columns(fields))],
          ledger: [addName({ id, kind: kind.kind, name, createdAt: deps.clock.now() })],
        })
        return status(201, await answer(deps, kind, id))
      },
      {
        access: 'catalog:write',
        body: kind.create.extend({ name: limitName }).strict(),
        versioned: true,
        response: { 201: recordSchema(kind) },
        detail: { tags: [kind.tag], summary: `Make a ${kind.word}`.replace('a access', 'an access') },
      },
    )
    .get(
      `${kind.path}/:id`,
      async ({ principal, params: { id } }) => {
        const { named, row } = await requireLimit(deps, kind, id)
        const sight = await limitVisibilityOf(deps.ledger, principal)
        const [seen] = sight === null ? [row] : await kind.seen([row], sight, deps.ledger)
        if (seen === undefined) throw notFound(kind)
        return await answerOf(deps, kind, named, seen)
      },
      {
        access: 'catalog:read',
        params: idParams,
        versioned: true,
        response: recordSchema(kind),
        detail: { tags: [kind.tag], summary: `Read one ${kind.word}` },
      },
    )
    .patch(
      `${kind.path}/:id`,
      async ({ principal, params: { id }, body: { name: said, ...fields }, requestId, request: { headers } }) => {
        const name = limitName.optional().parse(said)
        const { named, row } = await requireLimit(deps, kind, id)
        requireVersion(headers, Number(row.version))
        await kind.check(fields, deps.ledger)
        const event = { type: 'catalog.updated', id, name: name ?? named.name, principal, requestId } as const
        await deps.recorder.change({
          event: eventOf(deps, kind, { ...event, details: { changed: fields } }),
          claim: name === undefined || name === named.name ? undefined : claimOf(kind, name, id),
          guard: condition(isAsRead(kind, id, Number(row.version))),
          state: [changeLimit(kind, id, kind.columns(fields))],
          ledger: name === undefined ? [] : [changeName(id, name)],
        })
        return { ...(await answer(deps, kind, id)), ...(await usageOf(deps, kind, row)) }
      },
      {
        access: 'catalog:write',
        params: idParams,
        body: kind.update.extend({ name: limitName.optional() }).strict(),
        versioned: true,
        ifMatch: true,
        response: recordSchema(kind).extend(kind.account === null ? {} : { usage: usageSchema }),
        detail: { tags: [kind.tag], summary: `Change one ${kind.word}; fields that are left out stay as they are` },
      },
    )
    .delete(
      `${kind.path}/:id`,
      async ({ principal, params: { id }, requestId, request: { headers } }) => {
        const { named, row } = await requireLimit(deps, kind, id)
        requireVersion(headers, Number(row.version))
        const inUse = kind.inUse?.(id, deps.clock.now())
        if (inUse !== undefined && (await inUse.ofLedger(deps.ledger))) {
          throw new Failure('conflict', { message: `Tokens in force still name the ${kind.word}: revoke them first` })
        }
        await deps.recorder.change({
          event: eventOf(deps, kind, {
            type: 'catalog.deleted',
            id,
            name: named.name,
            principal,
            requestId,
            details: {},
          }),
          // A token may have come to name it meanwhile; the state has every token, in the transaction of the change.
          guard: condition(and(isAsRead(kind, id, Number(row.version)), inUse && not(inUse.ofState))),
          state: [changeLimit(kind, id, { deleted: 1 })],
          ledger: [dropName(id)],
        })
        return recordOf(kind, named, row, await totalSettled(deps, kind, [row]))
      },
      {
        access: 'catalog:write',
        params: idParams,
        ifMatch: true,
        response: recordSchema(kind),
        detail: {
          tags: [kind.tag],
          summary: `Delete one ${kind.word} that no token in force names; gives its last record`,
        },
      },
    )

const recordSchema = (kind: LimitKind) =>
  z.object({ id: z.string(), name: z.string() }).extend(kind.record.shape).extend({
    version: z.number().int(),
    created_at: z.iso.datetime(),
  })

const recordOf = (kind: LimitKind, named: NameRow, row: Row, settled: ReadonlyMap<string, number>) => ({
  id: named.id,
  name: named.name,
  ...kind.show(row, settled.get(named.id) ?? 0),
  version: Number(row.version),
  created_at: timestamp(named.createdAt),
})

/** Nano-dollars booked on the accounts of records at this instant, by their ids. */
async function totalSettled({ ledger, clock }: LimitDependencies, { account }: LimitKind, rows: readonly Row[]) {
  if (account === null || rows.length === 0) return new Map<string, number>()
  const now = clock.now()
  const ids = new Map(rows.map((row) => [account(row, now), String(row.id)]))
  const booked = await readSettled(ledger, [...ids.keys()])
  return new Map(booked.map(({ account: name, settled }) => [ids.get(name) ?? '', settled]))
}

async function usageOf({ depletion, clock }: LimitDependencies, kind: LimitKind, row: Row) {
  const account = kind.account?.(row, clock.now())
  if (account === undefined) return {}
  const { used = 0, open = 0 } = (await depletion.recalled([account])).get(account) ?? {}
  return { usage: { used: fromNano(used), open: fromNano(open) } }
}

/** The record of this id. Throws `not_found`. */
async function requireLimit({ state, ledger }: LimitDependencies, kind: LimitKind, id: string) {
  const named = await readName(ledger, kind, id)
  const [row] = await readLimits(state, kind, [id])
  if (named === undefined || row === undefined) throw notFound(kind)
  return { named, row }
}

const notFound = ({ word }: LimitKind): Failure => new Failure('not_found', { message: `There is no such ${word}` })

async function answer(deps: LimitDependencies, kind: LimitKind, id: string) {
  const { named, row } = await requireLimit(deps, kind, id)
  return await answerOf(deps, kind, named, row)
}

async function answerOf(deps: LimitDependencies, kind: LimitKind, named: NameRow, row: Row) {
  const settled = await totalSettled(deps, kind, [row])
  return recordOf(kind, named, row, settled)
}

const claimOf = ({ kind, word }: LimitKind, name: string, own: string): NameClaim => ({
  key: `${kind} ${name}`,
  taken: otherOfName(kind, name, own),
  refusal: new Failure('conflict', { param: 'name', message: `There is another ${word} of this name` }),
})

interface LimitEvent {
  type: EventType
  id: string
  name: string
  principal: Principal
  requestId: string
  details: Record<string, unknown>
}

const eventOf = (
  { clock, newId }: LimitDependencies,
  kind: LimitKind,
  { type, id, name, principal, requestId, details }: LimitEvent,
) =>
  controlPlaneEvent({
    type,
    principal,
    requestId,
    teamId: null,
    details: { kind: kind.kind, id, name, ...details },
    configVersion: 0,
    clock,
    newId,
  })
