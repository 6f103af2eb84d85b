/** Doctor by itself: what it finds is in the API and on /metrics. */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { startMoreGateway } from '../support/more-gateways.ts'

setDefaultTimeout(60_000)

let gatehouse: Gatehouse | null = null
afterEach(() => gatehouse?.stop())

const reportSchema = z.object({
  examined_at: z.iso.datetime().nullable(),
  findings: z.array(
    z.object({ check: z.string(), level: z.string(), what: z.string(), todo: z.string(), since: z.string() }),
  ),
})

test('finds by itself that a gateway has gone', async () => {
  const running = await startGatehouse({ env: { SERVICE_DOCTOR_INTERVAL_SECONDS: '1' } })
  gatehouse = running
  const report = async () => expectAnswer(await api(running, '/v1/findings'), 200, reportSchema)
  const about = async () => (await report()).findings.filter(({ check }) => check === 'workers').map(({ what }) => what)
  const edge = await startMoreGateway(running, 'edge')
  await until('doctor has looked and finds nothing', async () => {
    const { examined_at: examinedAt } = await report()
    return examinedAt !== null && (await about()).length === 0
  })
  await edge[Symbol.asyncDispose]()
  await until('it is found', async () => (await about()).length > 0)
  expect((await about())[0]).toContain('is unreachable')
  const metrics = await (await fetch(`${running.baseUrl}/metrics`)).text()
  expect(metrics).toContain('gatehouse_doctor_findings{check="workers",level="warn"} 1')
  const examined = /gatehouse_doctor_examined_timestamp_seconds (\d+)/.exec(metrics)?.[1]
  expect(Math.abs(Number(examined) * 1000 - Date.now())).toBeLessThan(10_000)
  expect(await api(running, '/v1/findings', { token: null })).toMatchObject({ status: 401 })
})
