/**
 * `/v1/sinks`: where copies of the record go. A sink gets the events of every team, so only who sees all of these may
 * make or change one.
 */
import { type AnyElysia, Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { requireVersion } from '../api/entity-tag.ts'
import { recordPage } from '../api/page.ts'
import { idParams } from '../api/resource.ts'
import { resourceRoutes } from '../api/resource-routes.ts'
import { logOf } from '../events/engine/log-of.ts'
import type { Event } from '../events/event.ts'
import { brokenConstraint } from '../events/log/append.ts'
import { readLogHead } from '../events/log/segment-rows.ts'
import type { Signed } from '../events/proof/checkpoint-key.ts'
import { lineStreams } from '../events/query/line-stream.ts'
import { verifyLineSchema } from '../events/verify/verify.ts'
import { visibilityOf } from '../events/visibility.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { timestamp } from '../lib/clock.ts'
import type { Fetch } from '../providers/provider.ts'
import type { Database } from '../store/open.ts'
import { query } from '../store/query.ts'
import { checkpointKeys } from '../store/schema/ledger/events.ts'
import { attributionDimensions } from '../store/schema/state/limits.ts'
import type { Statement } from '../store/statement.ts'
import { bucketArchive } from './archive/bucket-archive.ts'
import { verifyArchive } from './archive/verify-archive.ts'
import { checkSink } from './check-sink.ts'
import { readDeliveries, type SinkAndDelivery, type SinkRow } from './delivery/cursor.ts'
import { type SinkDependencies, sinkEvent, testItem } from './delivery/sink-events.ts'
import { sinkKindOf } from './kinds/index.ts'
import { progressOf } from './sink-lag.ts'
import { configSchema, type SinkCredentials, type SinkReply, sinkResource } from './sink-resource.ts'
import {
  addSink,
  changeSink,
  configOf,
  credentialsOf,
  deleteSink,
  formatOf,
  kindOf,
  listSinks,
  openSink,
  setCredentials,
  tryAgain,
} from './stored-sink.ts'

interface RouteDependencies extends SinkDependencies {
  /** Whether receivers away from this host may be reached without TLS. */
  plainHttp: 'loopback' | 'anywhere'
  fetch: Fetch
  /** The newest checkpoint that this control plane has seen, stored outside the databases. */
  seen(): Signed | null
}

const sinksAtMost = 100
const taken = { param: 'name', message: 'There is a sink of this name already' }

export function sinkRoutes(deps: RouteDependencies): AnyElysia[] {
  const { state, ledger, clock, newId, masterKey, plainHttp } = deps
  const answer = async (id: string): Promise<SinkReply> => {
    const [shown] = await repliesOf(deps, [await requireSink(deps, id)])
    if (shown === undefined) throw new Failure('not_found', { message: missing })
    return shown
  }
  const records = resourceRoutes(sinkResource, {
    list: (query) =>
      recordPage(query, {
        filters: { list: 'sinks' },
        read: async (start, count) =>
          (await listSinks(ledger, start, count)).map((each) => ({ id: each.sink.id, ...each })),
        show: (rows) => repliesOf(deps, rows),
      }),
    get: answer,
    async create(body, call) {
      requireEverything(call.principal)
      const { name, kind, url, filter = null, start, enabled, credentials = {}, format: asked, ...config } = body
      const format = asked ?? sinkKindOf(kind).formats[0]
      checkSink({ kind, url, format, filter, config, credentials }, plainHttp, await dimensionNames(state))
      if ((await readDeliveries(ledger)).length >= sinksAtMost) {
        throw new Failure('conflict', { message: `There are ${sinksAtMost} sinks already: delete one first` })
      }
      const row: SinkRow = {
        ...{ id: newId(), name, kind, url, format, filter, config: JSON.stringify(config) },
        credentialNames: namesOf(credentials),
        ...{ enabled: enabled ? 1 : 0, createdAt: clock.now(), version: 1 },
      }
      const { next } = await readLogHead(ledger)
      const position = start === 'now' ? next : ((await logOf(ledger).oldest()) ?? next)
      const secret = setCredentials(masterKey, row.id, nonEmpty(credentials), clock.now())
      const event = await sinkEvent(deps, { type: 'sink.created', sink: row, details: { kind, url }, by: call })
      await recordChange(deps, event, [...addSink(row, position), ...secret])
      return await answer(row.id)
    },
    async update(id, { credentials, ...changes }, call) {
      requireEverything(call.principal)
      const { sink: before } = await requireSink(deps, id)
      requireVersion(call.headers, before.version)
      const { name = before.name, url = before.url, enabled, filter = before.filter, format, ...parts } = changes
      const config = configSchema.parse(withoutNull({ ...configOf(before), ...given(parts) }))
      const known = await credentialsOf(deps, id)
      if (url !== before.url && credentials === undefined && Object.keys(known).length > 0) {
        throw new Failure('invalid_parameter', {
          param: 'credentials',
          message: 'Send the credentials too: those that are stored are for the former address',
        })
      }
      const after: SinkRow = {
        ...{ ...before, name, url, filter, config: JSON.stringify(config) },
        format: format ?? before.format,
        enabled: enabled === undefined ? before.enabled : Number(enabled),
        ...(credentials === undefined ? {} : { credentialNames: namesOf(credentials ?? {}) }),
      }
      // A stored filter is delivered by, also where it would be refused today.
      const newFilter = changes.filter === undefined ? null : filter
      const checked = { kind: kindOf(before), url, filter: newFilter, config, format: formatOf(after) }
      const stored = { ...checked, credentials: credentials === undefined ? known : (credentials ?? {}) }
      checkSink(stored, plainHttp, await dimensionNames(state))
      const secret = credentials === undefined ? [] : setCredentials(masterKey, id, nonEmpty(credentials), clock.now())
      const fields = Object.keys(given({ credentials, ...changes }))
      const event = await sinkEvent(deps, { type: 'sink.updated', sink: before, details: { fields }, by: call })
      await recordChange(deps, event, [...changeSink(before, after), ...secret])
      return await answer(id)
    },
    async remove(id, call) {
      requireEverything(call.principal)
      const last = await answer(id)
      const { sink: before } = await requireSink(deps, id)
      requireVersion(call.headers, before.version)
      const event = await sinkEvent(deps, { type: 'sink.deleted', sink: before, by: call })
      await recordChange(deps, event, deleteSink(before))
      return last
    },
  })
  return [records, moreRoutes(deps)]
}

const testReplySchema = z.object({
  ok: z.boolean(),
  event_id: z.uuid().describe('Of the test event: look for it at the receiver'),
  error: z.string().nullable(),
})

/** What can be done with a sink beside its record. */
function moreRoutes(deps: RouteDependencies) {
  const { ledger, clock, recorder } = deps
  const stream = lineStreams('An archive is being verified: try again when that has ended')
  return new Elysia({ name: 'sink' })
    .use(conventions)
    .post(
      '/v1/sinks/:id/test',
      async ({ params, principal, requestId, request: { signal } }) => {
        requireEverything(principal)
        const { sink: row } = await requireSink(deps, params.id)
        const sink = await openSink(deps, row)
        const event = await sinkEvent(deps, { type: 'sink.tested', sink, by: { principal, requestId } })
        const receiver = sinkKindOf(sink.kind).open(sink, { fetch: deps.fetch, now: clock.now })
        const items = [testItem(event, sink.format)]
        const error = await receiver
          .send({ first: 0, next: 0, items, proof: null }, signal)
          .then(() => null)
          .catch((thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)))
          .finally(() => receiver.close())
        await recorder.append([{ ...event, details: { ...event.details, error } }])
        if (error === null) await ledger.write([tryAgain(sink.id)])
        return { ok: error === null, event_id: event.event_id, error }
      },
      {
        access: 'members:write',
        params: idParams,
        response: testReplySchema,
        detail: { tags: ['Events'], summary: 'Sends a test event to a sink, and says whether it was taken' },
      },
    )
    .post(
      '/v1/sinks/:id/verify',
      async ({ params, principal, body, request: { signal } }) => {
        requireEverything(principal)
        const { sink: row, delivery } = await requireSink(deps, params.id)
        const sink = await openSink(deps, row)
        if (sink.kind !== 's3' || sink.format !== 'records') {
          throw new Failure('conflict', {
            message:
              'Only objects of S3 with records can be read back: verify another archive by gatehouse sink verify --from PATH',
          })
        }
        const seen = deps.seen()
        const lines = verifyArchive({
          archive: bucketArchive(sink, { fetch: deps.fetch, now: clock.now }, signal),
          pinned: body.keys,
          witnesses: seen === null ? [] : [seen],
          keys: await query(ledger)
            .select({ id: checkpointKeys.id, public_key: checkpointKeys.publicKey })
            .from(checkpointKeys),
          reaches: delivery.position,
        })
        return stream(signal, lines)
      },
      {
        access: 'events:export',
        params: idParams,
        body: z.strictObject({
          keys: z
            .array(z.string().regex(/^[0-9a-f]{64}$/))
            .max(32)
            .describe('The ids of the keys to trust; default: those that the ledger has')
            .default([]),
        }),
        answers: ['application/x-ndjson'],
        failures: [409],
        response: verifyLineSchema,
        detail: {
          tags: ['Events'],
          summary: 'Proves the archive of a sink against the chains: lines of findings, then of chains, then a summary',
        },
      },
    )
}

const missing = 'There is no such sink'

async function requireSink({ ledger }: Pick<RouteDependencies, 'ledger'>, id: string): Promise<SinkAndDelivery> {
  const [found] = await readDeliveries(ledger, id)
  if (found === undefined) throw new Failure('not_found', { message: missing })
  return found
}

function requireEverything(principal: Principal): void {
  if (visibilityOf(principal, { teams: [], tokens: [] }).teams === 'every') return
  throw new Failure('permission_denied', { message: 'A sink gets the events of every team, and this caller does not' })
}

async function repliesOf({ ledger, clock }: RouteDependencies, all: readonly SinkAndDelivery[]): Promise<SinkReply[]> {
  const progress = await progressOf(ledger, all, clock.now())
  return all.flatMap(({ sink }, index) => {
    const { id, name, url, filter, version } = sink
    const own = progress[index]
    if (own === undefined) return []
    return [
      {
        ...{ id, name, url, filter, version, kind: kindOf(sink), format: formatOf(sink), enabled: sink.enabled === 1 },
        ...configOf(sink),
        credential_names: z.array(z.string()).parse(JSON.parse(sink.credentialNames)),
        ...own,
        created_at: timestamp(sink.createdAt),
      },
    ]
  })
}

/** Throws `conflict` where the name is taken or the sink has changed meanwhile. */
async function recordChange({ recorder }: RouteDependencies, event: Event, ledger: readonly Statement[]) {
  try {
    await recorder.change({ event, state: [], ledger })
  } catch (error) {
    if (brokenConstraint(error) === 'unique') throw new Failure('conflict', { ...taken, cause: error })
    throw error
  }
}

/** Deleted ones too: records that have them may still be delivered. */
async function dimensionNames(state: Database): Promise<string[]> {
  const { name } = attributionDimensions
  return (await query(state).selectDistinct({ name }).from(attributionDimensions).orderBy(name)).map((row) => row.name)
}

const namesOf = ({ headers = {}, ...others }: SinkCredentials): string =>
  JSON.stringify([...Object.keys(others), ...Object.keys(headers).map((name) => `headers.${name}`)])

const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
const withoutNull = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
const nonEmpty = <Fields extends object>(fields: Fields | null): Fields | null =>
  fields === null || Object.keys(fields).length === 0 ? null : fields
