/** What leaves the product in forms that other programs read: exported events and the pages of metrics. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createRecorder } from '../../src/events/change.ts'
import { exportFormats, exportText } from '../../src/events/export/export.ts'
import { readLogHead } from '../../src/events/log/segment-rows.ts'
import { conditionsOfAll } from '../../src/events/query/filters.ts'
import { openTestDatabases, type TestDatabases, testEvent } from '../../src/events/testing/ledger.ts'
import { completion, question, startTestGateway } from '../../src/gateway/testing/gateway.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { createControlPlaneMetrics } from '../../src/telemetry/metrics.ts'
import { expectGolden } from './golden-file.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
const clock = { now: () => start, monotonic: () => 0 }
let databases: TestDatabases

beforeAll(async () => {
  databases = await openTestDatabases()
  const recorder = createRecorder({ ...databases, announce: () => undefined, clock, log: silentLog })
  await recorder.append([
    testEvent({ event_id: '0190a0c0-0000-7000-8000-000000000001', details: { model: 'gpt-5', status: 200 } }),
    testEvent({
      event_id: '0190a0c0-0000-7000-8000-000000000002',
      request_id: 'with "quotes", and a comma',
      timestamp: '2026-01-01T00:00:01.000Z',
      verdict: 'deny',
      reason_code: 'policy.pii',
    }),
  ])
})
afterAll(() => databases.remove())

test.each([...exportFormats])('events exported as %s are those of the golden file', async (format) => {
  const window = {
    ...{ since: start - 1, until: null, signal: new AbortController().signal },
    conditions: conditionsOfAll({ teams: 'every', ownTokens: [] }),
    ceiling: (await readLogHead(databases.ledger)).next,
  }
  let text = ''
  for await (const piece of exportText(databases.ledger, window, format)) text += piece.text
  await expectGolden(`product/events.${format}`, text)
})

/** The page without its values, which are times and sizes. */
const withoutValues = (page: string): string => page.replaceAll(/^([^#\n]\S*(?: [^ \n]+=\S*)*) \S+$/gm, '$1')

test("the control plane's page of metrics has the names, labels and help texts of the golden file", async () => {
  const stateReads = () => ({ ageSeconds: 1, stalls: 2, stallSeconds: 15 })
  const doctorReport = async () => ({ examinedAt: 1000, findings: [{ check: 'space', level: 'warn' }] })
  const sink = { name: 'siem', kind: 'http', failing: false, lagRecords: 1, lagSeconds: 2, refused: 0, lost: 0 }
  const unmoved = async () => ({ records: 3, seconds: 7 })
  const sinks = async () => [sink]
  const verifyReport = async () => ({ examinedAt: 1000, findings: [{ what: 'event.altered' }] })
  const channels = [{ name: 'Mail', kind: 'email', failing: false, waiting: 1 }]
  const alerts = async () => ({ open: [{ severity: 'warning', count: 1 }], channels })
  const connectedWorkers = async () => 2
  const metrics = createControlPlaneMetrics({
    connectedWorkers,
    stateReads,
    doctorReport,
    verifyReport,
    sinks,
    alerts,
    unmoved,
  })
  metrics.answered({ method: 'GET', path: '/v1/tokens/{id}', status: 200, seconds: 0.002 })
  metrics.ingested([{ event_type: 'decision' }])
  metrics.propagated(0.03)
  const own = (await metrics.text()).split('\n').filter((line) => line.includes('gatehouse_'))
  await expectGolden('product/control-plane-metrics.txt', withoutValues(`${own.join('\n')}\n`))
})

test("a gateway's page of metrics has the names, labels and help texts of the golden file", async () => {
  const running = await startTestGateway(() => Response.json(completion))
  try {
    expect((await running.chat(question)).status).toBe(200)
    expect((await running.chat(question, { secret: 'nobody' })).status).toBe(401)
    await expectGolden('product/gateway-metrics.txt', withoutValues(await running.gateway.metrics().metrics()))
  } finally {
    await running.stop()
  }
})
