/** Reads the facts of an installation with an operator's token: workers, revoked runtime tokens, restores. */
import { z } from 'zod'
import { type ControlPlaneFacts, readControlPlane } from './control-plane-facts.ts'
import type { Probe } from './probe.ts'

/** How long a revoked runtime token is reported with the keys it could have exposed. */
const lookBackDays = 90
const dayMs = 86_400_000
const mostPages = 20

const instant = z.iso.datetime()

const twoHeartbeatsMs = 2000

const workerSchema = z.object({
  worker: z.string(),
  gateway_name: z.string(),
  version: z.string(),
  connected: z.boolean(),
  acknowledged_version: z.number(),
  state_version: z.number(),
  last_heartbeat_at: instant.nullable(),
  serves_until: instant.nullable(),
  left_at: instant.nullable(),
})
const heldWorkerSchema = z.object({
  worker: z.string(),
  last_heartbeat_at: instant,
  lost_at: instant.nullable(),
  released_at: instant.nullable(),
  pending_reconciliation: z.boolean(),
  held: z.array(z.object({ account: z.string(), amount: z.number() })),
})
const excessSchema = z.object({ provider_id: z.string(), model: z.string(), excess: z.number(), at: instant })
const rateSchema = z.object({ account: z.string(), absent: z.number(), absent_until: instant.nullable() })
const tokenSchema = z.object({
  id: z.string(),
  name: z.string(),
  bindings: z.object({ gateway_id: z.string().optional() }),
  revocation: z.object({ at: instant }).nullable(),
})
const gatewaySchema = z.object({ id: z.string(), name: z.string(), providers: z.array(z.string()).nullable() })
const providerSchema = z.object({
  id: z.string(),
  name: z.string(),
  has_api_key: z.boolean(),
  header_names: z.array(z.string()),
  created_at: instant,
})
const sinkSchema = z.object({
  name: z.string(),
  state: z.string(),
  lag_records: z.number(),
  lag_seconds: z.number(),
  error: z.string().nullable(),
})
const eventSchema = z.object({ timestamp: instant, details: z.looseObject({}).nullish() })
const keyChangeSchema = z.object({ provider_id: z.string(), fields: z.array(z.string()) })

export type WorkerFacts = z.infer<typeof workerSchema>

/** Null when the token may not read it, or when reading failed. */
export interface InstallationFacts {
  now: number
  controlPlane: ControlPlaneFacts
  workers: WorkerFacts[] | null
  /** The same workers as the limits know them. */
  holders: z.infer<typeof heldWorkerSchema>[] | null
  /** What providers charged beyond their list prices. */
  excesses: z.infer<typeof excessSchema>[] | null
  /** Rate limits of which unreachable gateways hold a share. */
  absent: z.infer<typeof rateSchema>[] | null
  revoked: z.infer<typeof tokenSchema>[] | null
  gateways: z.infer<typeof gatewaySchema>[] | null
  providers: z.infer<typeof providerSchema>[] | null
  sinks: z.infer<typeof sinkSchema>[] | null
  /** When the credentials of a provider were last changed, by provider id, as far as the caller may see such events. */
  keyChanges: ReadonlyMap<string, number>
  /** When tokens were revoked again because a restored state had them active. */
  restores: number[]
  /** Each time the ledger took tokens from the state because a restored ledger lacked them. */
  takenOver: number[]
}

export interface Installation {
  url: string
  token: string | null
  now: number
}

export async function readInstallation(probe: Probe, { url, token, now }: Installation): Promise<InstallationFacts> {
  const controlPlane = await readControlPlane(probe, { url, token, inTheClear: true })
  if (controlPlane.caller.kind !== 'known' || token === null) {
    const nothing = {
      workers: null,
      holders: null,
      excesses: null,
      absent: null,
      revoked: null,
      gateways: null,
      providers: null,
      sinks: null,
    }
    return { now, controlPlane, ...nothing, keyChanges: new Map(), restores: [], takenOver: [] }
  }
  const list = <Entry>(path: string, field: string, schema: z.ZodType<Entry>) =>
    readPages(probe, { base: controlPlane.url, path, field, token }, schema)
  const since = new Date(now - lookBackDays * dayMs).toISOString()
  const events = (which: string) => list(`/v1/events?since=${since}&${which}`, 'events', eventSchema)
  const [workers, holders, excesses, absent, tokens, gateways, providers, sinks, revivals, takenOver] =
    await Promise.all([
      settledWorkers(() => list('/v1/gateway-workers', 'workers', workerSchema)),
      list('/v1/usage/workers', 'workers', heldWorkerSchema),
      list('/v1/usage/excesses', 'excesses', excessSchema),
      list('/v1/usage/rates?absent=true', 'rates', rateSchema),
      list('/v1/tokens?purpose=gateway_runtime&status=revoked', 'tokens', tokenSchema),
      list('/v1/gateways', 'gateways', gatewaySchema),
      list('/v1/catalog/providers', 'providers', providerSchema),
      list('/v1/sinks', 'sinks', sinkSchema),
      events('event_type=token.revoked&reason_code=state.restored'),
      events('reason_code=ledger.restored'),
    ])
  const revoked = tokens?.filter(({ revocation }) => revocation !== null && revocation.at >= since) ?? null
  // Of these there may be many, and they matter for revoked runtime tokens only.
  const updates = revoked === null || revoked.length === 0 ? null : await events('event_type=catalog.updated')
  return {
    now,
    controlPlane,
    workers,
    holders,
    excesses,
    absent,
    revoked,
    gateways,
    providers,
    sinks,
    keyChanges: keyChangesOf(updates ?? []),
    restores: timesOf(revivals),
    takenOver: timesOf(takenOver),
  }
}

/** A change reaches connected workers within a heartbeat, so workers that are behind are read again after one. */
async function settledWorkers(read: () => Promise<WorkerFacts[] | null>): Promise<WorkerFacts[] | null> {
  const workers = await read()
  const changing =
    workers?.some((worker) => worker.connected && worker.acknowledged_version < worker.state_version) ?? false
  if (!changing) return workers
  await Bun.sleep(twoHeartbeatsMs)
  return await read()
}

interface Listing {
  base: string
  path: string
  field: string
  token: string
}

/** All pages of a list up to a bound; null when one could not be read. */
async function readPages<Entry>(
  probe: Probe,
  { base, path, field, token }: Listing,
  schema: z.ZodType<Entry>,
): Promise<Entry[] | null> {
  const pageSchema = z.looseObject({ next_cursor: z.string().nullable() })
  const entries: Entry[] = []
  const url = new URL(path, base)
  for (let page = 0; page < mostPages; page++) {
    const answer = await probe(url.href, token)
    if (answer.kind === 'silent' || answer.status !== 200) return null
    const parsed = pageSchema.safeParse(answer.body)
    const found = z.array(schema).safeParse(parsed.data?.[field])
    if (!parsed.success || !found.success) return null
    entries.push(...found.data)
    if (parsed.data.next_cursor === null) break
    url.searchParams.set('cursor', parsed.data.next_cursor)
  }
  return entries
}

const timesOf = (events: readonly z.infer<typeof eventSchema>[] | null): number[] =>
  (events ?? []).map(({ timestamp }) => Date.parse(timestamp))

function keyChangesOf(updates: readonly z.infer<typeof eventSchema>[]): Map<string, number> {
  const changes = new Map<string, number>()
  for (const { timestamp, details } of updates) {
    const change = keyChangeSchema.safeParse(details).data
    if (change === undefined || !change.fields.some((field) => field === 'api_key' || field === 'headers')) continue
    changes.set(change.provider_id, Math.max(Date.parse(timestamp), changes.get(change.provider_id) ?? 0))
  }
  return changes
}
