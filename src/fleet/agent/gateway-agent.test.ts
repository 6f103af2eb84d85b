/**
 * A worker from start to stop, with a control plane that is away or lies. Long because each guarantee has its test
 * here.
 */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { eventually } from '../../../test/support/eventually.ts'
import { type Event, noAttribution } from '../../events/event.ts'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { systemClock, timestamp } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { closeIn, openIn } from '../testing/outbox-exchanges.ts'
import { movableClock, TemporaryFleet } from '../testing/temporary-fleet.ts'

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

const event = (): Event => ({
  event_id: newId(),
  event_type: 'gateway.request.outcome',
  request_id: 'request',
  timestamp: timestamp(Date.now() - 1000),
  verdict: 'allow',
  reason_code: 'ok',
  config_version: 1,
  event_attribution: { ...noAttribution, gateway_id: fleet.gatewayId },
  exchange_id: newId(),
})

const logTables = ['event_segments', 'event_blocks', 'segment_facets', 'segment_chains', 'chains']
const refusedOf = z.object({ refused: z.object({ invalid_api_token: z.number() }) })

describe('a gateway worker', () => {
  test('becomes ready with the catalog its gateway may use and with decrypted credentials', async () => {
    const worker = await fleet.worker('a')
    expect(() => worker.status.assertCurrent()).toThrow('still starting')
    await eventually(() => worker.ready().ok)
    worker.status.assertCurrent()
    expect(worker.status.gatewayId).toBe(fleet.gatewayId)
    expect(worker.status.gatewayUrl).toBe('http://localhost:2')
    expect(worker.view.providers()).toMatchObject([{ id: fleet.providerId, apiKey: 'upstream-key' }])
    expect(worker.view.model('one')).toMatchObject({ providerId: fleet.providerId, upstreamModel: 'one' })
    const body = new TextEncoder().encode('prompt')
    expect(worker.status.promptHash(body)).toMatch(/^key-1:[0-9a-f]{64}$/)
    expect(Math.abs(worker.now() - Date.now())).toBeLessThan(2000)
  })

  test('reads tokens by their hash, new ones at once, and reports a state that cannot be read', async () => {
    const worker = await fleet.worker('a')
    const hash = fleet.addToken()
    await eventually(() => worker.ready().ok)
    expect(worker.view.token(hash)).toMatchObject({ hash, roles: ['member'], revokedAt: null })
    expect(worker.view.token('none')).toBeNull()
    const unreadable = await fleet.worker('b', { stateFile: join(fleet.directory, 'missing.db') })
    expect(() => unreadable.view.token(hash)).toThrow(expect.objectContaining({ code: 'dependency_unavailable' }))
    expect(unreadable.ready().ok).toBe(false)
  })

  test('has a revocation before the revoke call is answered', async () => {
    const worker = await fleet.worker('a')
    const revoked: string[] = []
    worker.onRevoked((hashes) => revoked.push(...hashes))
    await eventually(() => worker.ready().ok)
    const hash = fleet.addToken()
    expect(worker.view.token(hash)?.revokedAt).toBeNull()
    const { version } = fleet.revoke(hash)
    const propagation = await fleet.control.fleet.propagation(version)
    expect(propagation).toMatchObject({ connected: 1, acknowledged: 1, unreachable: [] })
    expect(worker.view.isRevoked(hash) || worker.view.token(hash)?.revokedAt !== null).toBe(true)
    expect(revoked).toEqual([hash])
    await eventually(() => worker.view.version === version)
    expect(worker.view.isRevoked(hash)).toBe(false)
    expect(worker.view.token(hash)?.revokedAt).toBe(1)
  })

  test('reopens a broken stream and learns what it missed', async () => {
    let streams = 0
    fleet.interfere = (path, _request, forward) => {
      if (path.endsWith('/stream')) streams++
      return forward()
    }
    const worker = await fleet.worker('a', { random: () => 0 })
    await eventually(() => worker.ready().ok)
    const hash = fleet.addToken()
    worker.view.token(hash)
    const port = await fleet.stopControlPlane()
    const { version } = fleet.revoke(hash)
    fleet.startControlPlane(port)
    const before = streams
    await eventually(() => streams > before && worker.view.version === version)
    expect(worker.view.token(hash)?.revokedAt).toBe(1)
    await eventually(async () => (await fleet.control.fleet.propagation(version)).acknowledged === 1)
    expect(streams).toBeGreaterThan(1)
  })

  test('ships each event to the ledger once and in order, under loss and repetition', async () => {
    let posts = 0
    fleet.interfere = async (path, request, forward) => {
      if (!path.endsWith('/events')) return forward()
      posts++
      if (posts % 3 === 1) return new Response(null, { status: 502 })
      const answer = await forward()
      await request.arrayBuffer().catch(() => undefined)
      return posts % 3 === 2 ? new Response(null, { status: 502 }) : answer
    }
    const worker = await fleet.worker('a', { random: () => 0 })
    const events = Array.from({ length: 60 }, event)
    for (const each of events) {
      const id = each.exchange_id ?? ''
      await openIn(worker.journal, id, { ...each, verdict: 'error', reason_code: 'gateway.interrupted' })
      await closeIn(worker.journal, id, each)
    }
    await eventually(async () => (await fleet.events()).length === events.length)
    await eventually(() => worker.counters.outboxUnacknowledged === 0)
    const found = await fleet.events()
    expect(found.map(({ event_id }) => event_id)).toEqual(events.map((each) => each.event_id))
    expect(found.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(posts).toBeGreaterThan(2)
  })

  test('ships after a restart what was left, interrupted exchanges included', async () => {
    const first = await fleet.worker('a')
    await eventually(() => first.ready().ok)
    await first.journal.refuse(event())
    const open = event()
    await openIn(first.journal, open.exchange_id ?? '', open)
    await first.drain()
    expect(await fleet.events()).toHaveLength(1)
    await fleet.worker('a')
    await eventually(async () => (await fleet.events()).length === 2)
    expect((await fleet.events()).at(-1)).toMatchObject({ seq: 2, event_id: open.event_id })
  })

  test('sums up refusals of unknown callers and records the rest when it stops', async () => {
    const worker = await fleet.worker('a')
    await eventually(() => worker.ready().ok)
    const flood = async () => {
      const refusal = { verdict: 'deny', reason_code: 'invalid_api_token' } as const
      await Promise.all(Array.from({ length: 250 }, () => worker.journal.refuse({ ...event(), ...refusal })))
    }
    const recorded = async () => {
      const found = (await recordedEvents(fleet.ledger)).filter(({ reason_code }) =>
        ['invalid_api_token', 'refusals.summed'].includes(reason_code),
      )
      const told = found.map(({ details }) => refusedOf.safeParse(details).data?.refused.invalid_api_token ?? 1)
      return { events: found.length, told: told.reduce((sum, each) => sum + each, 0) }
    }
    await flood()
    await eventually(async () => (await recorded()).told === 250)
    await flood()
    await worker.drain()
    const found = await recorded()
    expect(found.told).toBe(500)
    expect(found.events).toBeLessThan(500)
  })

  test('stops in time and closes its outbox when the control plane does not answer', async () => {
    const worker = await fleet.worker('a', { drainTimeoutMs: 400 })
    await eventually(() => worker.counters.connected === 1)
    fleet.interfere = () => new Promise(() => undefined)
    await worker.journal.refuse(event())
    const began = performance.now()
    await worker.drain()
    expect(performance.now() - began).toBeLessThan(10_000)
    const warnings: unknown[] = []
    await fleet.worker('a', { log: { ...silentLog, warn: (_fields, message) => warnings.push(message) } })
    expect(warnings).toEqual([])
  })

  test('refuses a data directory in use by another worker, and a control plane over plain HTTP', async () => {
    await fleet.worker('a')
    await expect(fleet.worker('a')).rejects.toMatchObject({ code: 'conflict' })
    await expect(fleet.worker('b', { apiUrl: 'http://gate.example.com' })).rejects.toMatchObject({
      code: 'invalid_parameter',
      param: 'api_url',
    })
  })

  test('stops when another process takes its worker over', async () => {
    let fenced = 0
    const former = await fleet.worker('a', { onFenced: () => fenced++ })
    await eventually(() => former.ready().ok)
    mkdirSync(join(fleet.directory, 'copy', 'worker'), { recursive: true })
    cpSync(
      join(fleet.directory, 'a', 'worker', 'instance.json'),
      join(fleet.directory, 'copy', 'worker', 'instance.json'),
    )
    const latter = await fleet.worker('copy')
    await eventually(() => fenced === 1 && latter.ready().ok)
    expect(former.counters.connected).toBe(0)
    expect(latter.counters.connected).toBe(1)
    expect(existsSync(join(fleet.directory, 'a', 'worker', 'fenced'))).toBe(true)
  })

  test('goes on when a restored ledger names an earlier process of the same worker', async () => {
    let fenced = 0
    const worker = await fleet.worker('a', { onFenced: () => fenced++ })
    await eventually(() => worker.ready().ok)
    const older = "update workers set stream_id = 'former', holder = 'former', connected_at = connected_at - 1000"
    await fleet.ledger.write([{ sql: older, args: [] }])
    const holder = async () => (await fleet.ledger.read<{ holder: string }>('select holder from workers'))[0]?.holder
    await eventually(async () => (await holder()) !== 'former' && worker.counters.connected === 1)
    await eventually(async () => (await fleet.control.usage.epoch()).length > 0)
    const since = performance.now()
    await eventually(() => 1000 * worker.counters.secondsSinceFresh < performance.now() - since)
    expect(fenced).toBe(0)
  })

  test('reports after a restart how many of its events the ledger had, so that a ledger with fewer reconciles', async () => {
    const clock = movableClock()
    const first = await fleet.worker('a', { clock })
    await eventually(() => first.ready().ok)
    // It is kept every few seconds.
    clock.skip(6000)
    await first.journal.refuse(event())
    await eventually(async () => (await fleet.events()).length === 1)
    await first.drain()
    await fleet.ledger.write(
      [...logTables, 'lease_balances'].map((table) => ({ sql: `delete from ${table}`, args: [] })),
    )
    await fleet.worker('a')
    await eventually(async () => (await fleet.control.usage.epoch()).some(({ writer }) => writer === 'restored'))
    await eventually(async () => (await fleet.events()).length === 1)
  })

  test('starts as another instance when the ledger has more of its chain than the worker', async () => {
    const first = await fleet.worker('a')
    await first.journal.refuse(event())
    await eventually(async () => (await fleet.events()).length === 1)
    await first.drain()
    mkdirSync(join(fleet.directory, 'b', 'worker'), { recursive: true })
    cpSync(join(fleet.directory, 'a', 'worker', 'instance.json'), join(fleet.directory, 'b', 'worker', 'instance.json'))
    let ended = false
    const rolledBack = await fleet.worker('b', {
      onRetired() {
        ended = true
      },
    })
    await eventually(() => ended)
    await rolledBack.drain()
    const next = await fleet.worker('b')
    await next.journal.refuse(event())
    await eventually(async () => (await fleet.events()).length === 3)
    expect(new Set((await fleet.events()).map(({ chain }) => chain)).size).toBe(2)
    const found = await recordedEvents(fleet.ledger)
    expect(found.filter(({ event_type }) => event_type === 'fleet.enrolled')).toHaveLength(2)
    expect(found.map(({ event_type }) => event_type)).toContain('gateway.instance_replaced')
  })

  test('loses no event that a host crash took back: later events move to the next instance', async () => {
    const first = await fleet.worker('a')
    const shipped = Array.from({ length: 5 }, event)
    for (const each of shipped.slice(0, 3)) await first.journal.refuse(each)
    await eventually(async () => (await fleet.events()).length === 3)
    cpSync(join(fleet.directory, 'a', 'worker'), join(fleet.directory, 'crashed', 'worker'), { recursive: true })
    for (const each of shipped.slice(3)) await first.journal.refuse(each)
    await eventually(async () => (await fleet.events()).length === 5)
    await first.drain()
    const port = await fleet.stopControlPlane()
    let ended = false
    const crashed = await fleet.worker('crashed', {
      apiUrl: `http://127.0.0.1:${port}`,
      random: () => 0,
      onRetired() {
        ended = true
      },
    })
    const served = Array.from({ length: 4 }, event)
    for (const each of served) await crashed.journal.refuse(each)
    fleet.startControlPlane(port)
    await eventually(() => ended)
    await crashed.drain()
    await fleet.worker('crashed')
    await eventually(async () => (await fleet.events()).length === 10)
    const found = (await fleet.events()).map(({ event_id }) => event_id)
    for (const each of [...shipped, ...served]) expect(found.filter((id) => id === each.event_id)).toHaveLength(1)
  })

  test("continues from the ledger's head after a gap, on the same stream", async () => {
    let streams = 0
    let gaps = 0
    fleet.interfere = async (path, _request, forward) => {
      if (path.endsWith('/stream')) streams++
      if (!path.endsWith('/events') || gaps > 0) return forward()
      gaps++
      await fleet.ledger.write(logTables.map((table) => ({ sql: `delete from ${table}`, args: [] })))
      return forward()
    }
    const worker = await fleet.worker('a')
    await eventually(() => worker.ready().ok)
    gaps = 1
    await Promise.all([worker.journal.refuse(event()), worker.journal.refuse(event())])
    await eventually(async () => (await fleet.events()).length === 2)
    gaps = 0
    await worker.journal.refuse(event())
    await eventually(async () => (await fleet.events()).length === 3)
    expect({ streams, gaps }).toEqual({ streams: 1, gaps: 1 })
  })

  test('serves without a control plane until max_staleness, also after a restart', async () => {
    const clock = movableClock()
    const first = await fleet.worker('a', { clock })
    await eventually(() => first.ready().ok)
    await fleet.stopControlPlane()
    clock.skip(299_000)
    expect(first.ready().ok).toBe(true)
    await first.drain()
    const second = await fleet.worker('a', { clock })
    expect(second.ready()).toMatchObject({ ok: true, warning: expect.stringContaining('not been reached') })
    expect(second.view.providers()).toHaveLength(1)
    clock.skip(5000)
    expect(second.ready().ok).toBe(false)
    expect(() => second.status.assertCurrent()).toThrow(expect.objectContaining({ code: 'token_state_stale' }))
  })

  test("uses the control plane's time on a host with a wrong clock, also after a restart without it", async () => {
    const clock = { now: () => Date.now() - 600_000, monotonic: () => performance.now() }
    const first = await fleet.worker('a', { clock })
    await eventually(() => first.ready().ok)
    expect(Math.abs(first.now() - Date.now())).toBeLessThan(2000)
    await fleet.stopControlPlane()
    await eventually(() => first.counters.connected === 0)
    await first.drain()
    const second = await fleet.worker('a', { clock })
    expect(second.ready().ok).toBe(true)
    expect(Math.abs(second.now() - Date.now())).toBeLessThan(2000)
  })

  test('opens kept keys only with its own runtime token', async () => {
    const first = await fleet.worker('a')
    await eventually(() => first.ready().ok)
    await first.drain()
    await fleet.stopControlPlane()
    const other = await fleet.worker('a', { apiToken: 'another' })
    expect(other.ready().ok).toBe(false)
    expect(other.view.providers()).toEqual([])
  })

  test('loses its session when its runtime token is revoked, reports that at once, and becomes stale', async () => {
    const clock = movableClock()
    const worker = await fleet.worker('a', { clock, random: () => 0 })
    await eventually(() => worker.ready().ok)
    fleet.revoke(fleet.runtimeTokenHash)
    await eventually(() => worker.counters.connected === 0)
    await eventually(() => !worker.ready().ok)
    expect(worker.ready().reason).toContain('restart')
    expect(await fleet.ledger.read('select * from runtime_sessions')).toEqual([])
    clock.skip(301_000)
    await Bun.sleep(120)
    expect(worker.ready().ok).toBe(false)
  })

  test('counts as unreachable until it is stale when it does not answer', async () => {
    const worker = await fleet.worker('a')
    await eventually(() => worker.ready().ok)
    const hash = fleet.addToken()
    fleet.interfere = async () => new Response(null, { status: 503 })
    await Bun.sleep(60)
    const began = systemClock.now()
    const { version } = fleet.change(() => undefined, [hash])
    const {
      connected,
      acknowledged,
      unreachable,
      effective_by: effectiveBy,
    } = await fleet.control.fleet.propagation(version)
    expect({ connected, acknowledged }).toEqual({ connected: 1, acknowledged: 0 })
    expect(unreachable).toMatchObject([{ gateway_id: fleet.gatewayId }])
    expect(Date.parse(effectiveBy)).toBeGreaterThan(began + 290_000)
    expect(unreachable[0]?.until).toBe(effectiveBy)
  })
})
