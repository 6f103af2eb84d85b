/**
 * Events in ClickHouse, which is a process of its own here, reached by TLS with a password: it is killed for a while, the
 * control plane is killed between ClickHouse's insert and its answer, and requests go on. Then nothing is missing, nothing
 * is there twice, and the record verifies.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { authority } from '../../src/lib/testing/certificate.ts'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { type Gatehouse, operate, run, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { isAlive, signal } from '../support/processes.ts'
import { eventsInLedger, eventsThroughApi } from '../support/recorded.ts'

setDefaultTimeout(240_000)

const password = 'word-of-clickhouse'
const login = `gatehouse:${password}`
let directory: string
let port: number
let upstream: FakeUpstream
let gatehouse: Gatehouse | null
beforeEach(async () => {
  directory = temporaryDirectory()
  port = await freePort()
  gatehouse = null
  upstream = await startFakeUpstream()
  writeFileSync(join(directory, 'authority.pem'), authority)
})
afterEach(async () => {
  await gatehouse?.stop()
  await upstream.close()
  rmSync(directory, { recursive: true, force: true })
})

/** ClickHouse, and how often it has said that it has an insert. */
async function startServer() {
  const script = join(import.meta.dir, '../fakes/clickhouse-process.ts')
  const options = ['--port', String(port), '--directory', join(directory, 'clickhouse'), '--login', login]
  const child = Bun.spawn([process.execPath, script, ...options, '--pause', '200'], { stdout: 'pipe' })
  let said = ''
  const read = async () => {
    for await (const bytes of child.stdout) said += Buffer.from(bytes).toString()
  }
  const ended = read()
  await until('ClickHouse is ready', () => said.includes('ready'), { withinMs: 60_000 })
  return {
    inserts: () => said.split('inserted').length - 1,
    async kill() {
      child.kill('SIGKILL')
      await Promise.all([child.exited, ended])
    },
  }
}

async function ask(statement: string, database = 'audit'): Promise<string> {
  const answer = await fetch(`https://localhost:${port}/?database=${database}`, {
    ...{ method: 'POST', body: statement, tls: { ca: authority } },
    headers: { authorization: `Basic ${Buffer.from(login).toString('base64')}` },
  })
  expect(answer.status).toBe(200)
  return await answer.text()
}

async function makeTable(): Promise<void> {
  const { stdout } = await run(['install', 'clickhouse'])
  await ask('CREATE DATABASE audit', 'default')
  await ask(stdout)
}

const rows = async (): Promise<number> => Number(await ask('SELECT count() FROM gatehouse_events FORMAT TSV'))

const environment = (): Record<string, string> => ({
  SERVICE_EVENTS_URL: `https://localhost:${port}/audit`,
  SERVICE_EVENTS_USER: 'gatehouse',
  SERVICE_EVENTS_PASSWORD: password,
  SERVICE_EVENTS_MOVE_AFTER_SECONDS: '1',
  SERVICE_DOCTOR_INTERVAL_SECONDS: '1',
  NODE_EXTRA_CA_CERTS: join(directory, 'authority.pem'),
})

/** Requests one after another, from several callers at once, until it is ended. */
function load(running: Gatehouse, token: string) {
  const answered: string[] = []
  const refused: number[] = []
  let ended = false
  const caller = async (name: number) => {
    for (let index = 0; !ended; index += 1) {
      const requestId = `request-${name}-${index}`
      const answer = await chat(running, { token, requestId })
      await answer.text()
      if (answer.status === 200) answered.push(requestId)
      else refused.push(answer.status)
      await Bun.sleep(10)
    }
  }
  const callers = Promise.all([1, 2, 3].map(caller))
  return {
    answered,
    refused,
    async end() {
      ended = true
      await callers
    },
  }
}

const lagOf = async (running: Gatehouse, unit: 'records' | 'seconds'): Promise<number> => {
  const text = await (await fetch(`${running.baseUrl}/metrics`)).text()
  return Number(new RegExp(`^gatehouse_clickhouse_lag_${unit} (\\d+)$`, 'm').exec(text)?.[1])
}

const findingsSchema = z.object({ findings: z.array(z.looseObject({ check: z.string(), what: z.string() })) })
const foundOf = async (running: Gatehouse): Promise<string> => {
  const { findings } = expectAnswer(await api(running, '/v1/findings'), 200, findingsSchema)
  return findings.find(({ check }) => check === 'clickhouse')?.what ?? ''
}

async function killControlPlane(running: Gatehouse): Promise<void> {
  const pid = running.controlPlanePid()
  signal(pid, 'SIGKILL')
  await until('it is gone', () => !isAlive(pid))
  const answers = async () => (await fetch(`${running.baseUrl}/readyz`).catch(() => null))?.ok === true
  await until('the control plane serves again', answers, { withinMs: 60_000 })
}

test('no event is lost or doubled while ClickHouse is away and control planes are killed', async () => {
  let server = await startServer()
  await makeTable()
  const running = await startGatehouse({ upstream, dataDirectory: join(directory, 'data'), env: environment() })
  gatehouse = running
  const requests = load(running, (await createToken(running)).token_value)
  await until('events have moved', async () => (await rows()) > 0, { withinMs: 60_000 })

  await server.kill()
  const before = requests.answered.length
  const held = eventsInLedger(running).length
  await until('the lag is told', async () => (await lagOf(running, 'seconds')) >= 5, { withinMs: 60_000 })
  await until('doctor has found it', async () => (await foundOf(running)).startsWith('ClickHouse does not answer'))
  expect((await operate(running, 'doctor')).stdout).toMatch(/^warn {2}ClickHouse does not answer: \d+ records wait/m)
  expect(requests.answered.length).toBeGreaterThan(before)
  await until('the ledger keeps what comes', () => eventsInLedger(running).length > held + 100)
  expect(await api(running, '/v1/events?since=1h')).toMatchObject({
    status: 503,
    body: {
      error: { code: 'dependency_unavailable', message: 'ClickHouse, which keeps older events, did not answer' },
    },
  })
  await killControlPlane(running)
  expect(await lagOf(running, 'records')).toBeGreaterThan(0)

  server = await startServer()
  for (let kills = 0; kills < 3; kills += 1) {
    const inserts = server.inserts()
    await until('an insert is done and not answered', () => server.inserts() > inserts, {
      withinMs: 60_000,
      everyMs: 2,
    })
    await killControlPlane(running)
  }
  await requests.end()
  await until(
    'everything has moved',
    async () => (await lagOf(running, 'records')) === 0 && eventsInLedger(running).length < 20,
    {
      withinMs: 60_000,
    },
  )
  await server.kill()
  server = await startServer()

  expect(requests.refused).toEqual([])
  const events = await eventsThroughApi(running)
  expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(events.length)
  const outcomes = events.filter(({ event_type }) => event_type === 'gateway.request.outcome')
  expect(outcomes.map(({ request_id }) => request_id).toSorted()).toEqual(requests.answered.toSorted())
  const verified = await operate(running, 'events', 'verify')
  expect(verified.stdout).toContain(', 0 findings')
  expect(verified.code).toBe(0)
  // The handbook's question to the table.
  const handbook = await Bun.file(new URL('../../src/handbook/events-and-audit.md', import.meta.url)).text()
  const [, question = ''] = /```sql\n\s*(SELECT toStartOfHour[^;]+);/.exec(handbook) ?? []
  const counted = (await ask(`SELECT sum(\`sum(requests)\`) FROM (${question}) FORMAT TSV`)).trim()
  expect(Number(counted)).toBe(requests.answered.length)
  await until('doctor finds nothing more', async () => (await foundOf(running)) === '')
  const told = running.stdout() + running.stderr() + (await (await fetch(`${running.baseUrl}/metrics`)).text())
  expect(told).not.toContain(password)
  await server.kill()
})

test('does not start with a wrong password, without a table or with one of another version, and says which', async () => {
  const server = await startServer()
  const start = (change: Record<string, string> = {}) =>
    run(
      [
        'up',
        '--data',
        join(directory, 'data'),
        '--control-plane-listen',
        '127.0.0.1:0',
        '--gateway-listen',
        '127.0.0.1:0',
      ],
      {
        env: { ...environment(), ...change },
      },
    )
  const wrong = await start({ SERVICE_EVENTS_PASSWORD: 'another-word' })
  expect(wrong.code).not.toBe(0)
  expect(wrong.stderr).toContain('ClickHouse refuses the user that is to keep events')
  expect(wrong.stderr + wrong.stdout).not.toContain('another-word')
  expect((await start()).stderr).toContain('has no table for events in this database. Make it: gatehouse install')
  await makeTable()
  await ask("ALTER TABLE gatehouse_events MODIFY COMMENT 'Gatehouse events, schema 0'")
  expect((await start()).stderr).toContain('The table of ClickHouse is of another version of Gatehouse')
  await server.kill()
})
