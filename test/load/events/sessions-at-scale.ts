/**
 * How long the view of sessions takes in a ledger of many events, and what sessions cost at ingest. Each record is two
 * events or three; a session has 25 requests.
 *
 *   bun test/load/events/sessions-at-scale.ts [--requests 450000] [--without]
 *
 * `--without` leaves sessions out, to compare the cost of ingest.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ingestEvents } from '../../../src/events/ingest/ingest.ts'
import { ChainWalk, chainStart } from '../../../src/events/log/chain.ts'
import { mergeSegments } from '../../../src/events/log/merge-segments.ts'
import { eventsOf } from '../../../src/events/log/record.ts'
import { conditionsOf } from '../../../src/events/query/filters.ts'
import { readEventPage } from '../../../src/events/query/query.ts'
import { readSessions, type SessionQuery } from '../../../src/events/sessions/read-sessions.ts'
import { testOwner } from '../../../src/events/testing/ledger.ts'
import { lineOf } from '../../../src/events/testing/worker-chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { newId } from '../../../src/lib/ids.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { percentile, timesOf } from '../generator/timing.ts'
import { openLedger } from './events-at-scale.ts'
import { exchangeOf, workers, world } from './scale-records.ts'

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '450000' }, without: { type: 'boolean', default: false } },
})
const requests = Number(values.requests)
const batch = 250
const days = 30 * 86_400_000
const clients = ['claude-code', 'codex', 'opencode', 'gemini-cli']
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sessions-'))
const ledger = await openLedger(directory)
const [worker] = workers
if (worker === undefined) throw new Error('There is no worker')

const since = Date.now() - days
let [head, events, spent] = [{ seq: 0, digest: chainStart(worker.chain) }, 0, 0]
for (let made = 0; made < requests; made += batch) {
  const receivedAt = Math.floor(since + ((made + batch) / requests) * days)
  const texts = Array.from({ length: batch }, (_, index) => {
    const number = made + index
    const record = exchangeOf(number, worker.gateway, receivedAt - batch + index)
    events += eventsOf(record)
    if (values.without) return JSON.stringify(record)
    const session = Math.floor(number / 1000) * 40 + (number % 40)
    record.event_attribution.session_id = `session-${session}`
    record.event_attribution.token_id = world.tokens[session % world.tokens.length] ?? null
    record.event_attribution.client = clients[session % clients.length]
    record.details = { ...record.details, called_tools: ['Bash', `tool-${number % 7}`] }
    return JSON.stringify(record)
  })
  const walk = new ChainWalk(head.digest)
  for (const [index, text] of texts.entries()) walk.step(head.seq + 1 + index, text)
  const before = process.cpuUsage()
  head = await ingestEvents(ledger, {
    ...{ chain: worker.chain, gatewayId: worker.gateway, first: head.seq + 1, digest: walk.digest, receivedAt },
    ...{ lines: texts.map(lineOf), newId, log: silentLog, bookingStatements: () => [], onIngested: () => undefined },
  })
  const { user, system } = process.cpuUsage(before)
  spent += user + system
  if (made % (64 * batch) === 0) await mergeSegments(ledger)
  await ledger.write([{ sql: 'delete from pending_event_rollups', args: [] }])
}
await mergeSegments(ledger)
const [{ sessions } = { sessions: 0 }] = await ledger.read<{ sessions: number }>(
  'select count(*) as sessions from event_sessions',
)
console.log(`${requests} requests, ${events} events, ${sessions} sessions`)
console.log(`ingest: ${(spent / requests).toFixed(1)} µs of the processor a request`)

const caller = { principal: testOwner, visibility: { teams: 'every' as const, ownTokens: [] } }

async function ask(name: string, work: (round: number) => Promise<{ length: number }>): Promise<void> {
  let found = 0
  const times = await timesOf(40, async (round) => {
    found += (await work(round)).length
  })
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
  console.log(`${name.padEnd(40)} p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${found / 40} found`)
}

const list = async (asked: Partial<SessionQuery>) =>
  (await readSessions(ledger, { since: '30d', limit: 50, ...asked }, { since, caller })).sessions
const teamOf = (round: number) => world.teams[round % world.teams.length]
const tokenOf = (round: number) => world.tokens[round % world.tokens.length]

await ask('list, first page', () => list({}))
await ask('list by client', (round) => list({ client: clients[round % clients.length] }))
await ask('list by unknown client', () => list({ client: 'none' }))
await ask('list by team', (round) => list({ team: teamOf(round) }))
await ask('list by token', (round) => list({ token: tokenOf(round) }))
await ask('list by client and token', (round) => list({ client: clients[round % 4], token: tokenOf(round) }))
const { next_cursor: cursor } = await readSessions(ledger, { since: '30d', limit: 50 }, { since, caller })
await ask('list, second page', () => list({ cursor: cursor ?? '' }))
const sessionOf = (round: number) => `session-${Math.floor(((round + 0.5) / 40) * sessions)}`
await ask('one session', (round) => list({ session_id: sessionOf(round) }))
await ask('turns of one session', async (round) => {
  const filters = { since: '30d', session_id: sessionOf(round), event_type: 'gateway.request.outcome' }
  const conditions = await conditionsOf(ledger, filters, caller)
  const options = {
    filters,
    since,
    order: 'oldest',
    limit: 50,
    cursor: undefined,
    conditions,
    clock: systemClock,
  } as const
  return (await readEventPage(ledger, options)).events
})
ledger.close()
rmSync(directory, { recursive: true, force: true })
