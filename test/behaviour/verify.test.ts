/** Whether the record of events can be altered unseen, by whoever can write the ledger's file. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, operate, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { eventsInLedger, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const directory = temporaryDirectory()
const dataDirectory = join(directory, 'data')
let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  await executable()
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream, dataDirectory })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
  rmSync(directory, { recursive: true, force: true })
})

test('events verify names an event altered in the file, exits 1 and says what is not covered', async () => {
  const witness = join(dataDirectory, 'gateway', 'worker', 'checkpoint.json')
  await until('the gateway keeps what it saw', () => existsSync(witness), { withinMs: 60_000 })
  const token = (await createToken(gatehouse)).token_value
  for (let index = 0; index < 5; index++) await (await chat(gatehouse, { token, requestId: `request-${index}` })).text()
  await until('all are in the ledger', () => outcomesOf(eventsInLedger(gatehouse), 'request-4').length === 1)

  const whole = await operate(gatehouse, 'events', 'verify')
  expect(whole.code).toBe(0)
  expect(whole.stdout).toMatch(/^\d+ events in \d+ records of 2 chains, 0 findings\n$/)
  expect(whole.stderr).toMatch(/Signed up to checkpoint 1 .* with key [0-9a-f]{64}\n/)
  expect(whole.stderr).toMatch(/records are younger than that/)
  expect(statSync(join(dataDirectory, 'checkpoint-key')).mode & 0o777).toBe(0o600)
  const { key_id: key } = JSON.parse(readFileSync(witness, 'utf8'))
  expect((await operate(gatehouse, 'events', 'verify', '--key', key, '--witness', witness, '--since', '1h')).code).toBe(
    0,
  )
  expect((await operate(gatehouse, 'events', 'verify', '--key', '0'.repeat(64))).code).toBe(1)

  await gatehouse.end('SIGTERM')
  await gatehouse.stop()
  {
    using ledger = new Database(join(dataDirectory, 'ledger.db'))
    ledger.run('update event_segments set received_at = received_at + 1')
  }
  gatehouse = await startGatehouse({ upstream, dataDirectory, adminToken: gatehouse.adminToken })
  const found = await operate(gatehouse, 'events', 'verify')
  expect(found.code).toBe(1)
  expect(found.stdout).toMatch(/^log \d+(–\d+)? received_at: .*\(segment\.index_altered\)\n/)
  const json = await operate(gatehouse, 'events', 'verify', '--json')
  const lines = json.stdout
    .trim()
    .split('\n')
    .map((line): { kind: string } => JSON.parse(line))
  expect(lines.map(({ kind }) => kind)).toContain('finding')
  expect(lines.at(-1)).toMatchObject({ kind: 'summary' })

  await gatehouse.end('SIGTERM')
  await gatehouse.stop()
  {
    using ledger = new Database(join(dataDirectory, 'ledger.db'))
    ledger.run('update event_segments set received_at = received_at - 1')
    const [row] = ledger
      .query<{ first_position: number; body: Uint8Array }, []>('select first_position, body from event_blocks limit 1')
      .all()
    const body = row?.body ?? new Uint8Array()
    const flipped = body.with(body.length >> 1, (body[body.length >> 1] ?? 0) ^ 1)
    ledger.run('update event_blocks set body = ? where first_position = ?', [flipped, row?.first_position ?? 0])
  }
  gatehouse = await startGatehouse({ upstream, dataDirectory, adminToken: gatehouse.adminToken })
  const damaged = await operate(gatehouse, 'events', 'verify')
  expect(damaged.code).toBe(1)
  expect(damaged.stdout).toMatch(/^\S+ \d+(–\d+)?: .*\(events\.damaged\)$/m)
})

test('events verify is allowed only to readers of every team’s events', async () => {
  const member = (await createToken(gatehouse)).token_value
  const answer = await fetch(`${gatehouse.baseUrl}/v1/events/verify`, {
    headers: { authorization: `Bearer ${member}` },
  })
  expect(answer.status).toBe(403)
  expect((await api(gatehouse, '/v1/events/verify?key=short')).status).toBe(422)
})
