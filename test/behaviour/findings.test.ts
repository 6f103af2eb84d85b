/** Doctor by itself: what it finds is in the API and on /metrics. */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { api, createToken, expectAnswer, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, run, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { startMoreGateway } from '../support/more-gateways.ts'

setDefaultTimeout(60_000)

let gatehouse: Gatehouse | null = null
const directories: string[] = []
afterEach(async () => {
  await gatehouse?.stop()
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true })
})

const eachSecond = { SERVICE_DOCTOR_INTERVAL_SECONDS: '1' }

const reportSchema = z.object({
  examined_at: z.iso.datetime().nullable(),
  findings: z.array(
    z.object({ check: z.string(), level: z.string(), what: z.string(), todo: z.string(), since: z.string() }),
  ),
})

test('finds by itself that a gateway has gone', async () => {
  const running = await startGatehouse({ env: eachSecond })
  gatehouse = running
  const report = async () => expectAnswer(await api(running, '/v1/findings'), 200, reportSchema)
  const about = async () => (await report()).findings.filter(({ check }) => check === 'workers').map(({ what }) => what)
  const edge = await startMoreGateway(running, 'edge')
  await until('doctor has looked and finds nothing', async () => {
    const { examined_at: examinedAt } = await report()
    return examinedAt !== null && (await about()).length === 0
  })
  await edge[Symbol.asyncDispose]()
  // The other worker may be seen for a moment before it has the newest version.
  await until('it alone is found', async () => {
    const found = await about()
    return found.length === 1 && found[0]?.includes('is unreachable') === true
  })
  const metrics = await (await fetch(`${running.baseUrl}/metrics`)).text()
  expect(metrics).toContain('gatehouse_doctor_findings{check="workers",level="warn"} 1')
  const examined = /gatehouse_doctor_examined_timestamp_seconds (\d+)/.exec(metrics)?.[1]
  expect(Math.abs(Number(examined) * 1000 - Date.now())).toBeLessThan(10_000)
  expect(await api(running, '/v1/findings', { token: null })).toMatchObject({ status: 401 })
})

test('finds by itself that the state was restored, as doctor does', async () => {
  const [data, there] = [temporaryDirectory(), temporaryDirectory()]
  directories.push(data, there)
  const before = await startGatehouse({ dataDirectory: data })
  gatehouse = before
  const token = await createToken(before)
  expect(await run(['backup', join(there, 'backup'), '--data', data])).toMatchObject({ code: 0 })
  await revoke(before, token.id)
  await before.stop()
  expect(await run(['restore', join(there, 'backup'), '--data', data])).toMatchObject({ code: 0 })
  const after = await startGatehouse({ dataDirectory: data, adminToken: before.adminToken, env: eachSecond })
  gatehouse = after
  const restored = async () => {
    const { findings } = await expectAnswer(await api(after, '/v1/findings'), 200, reportSchema)
    return findings.filter(({ check }) => check === 'restored').map(({ what }) => what)
  }
  await until('it is found', async () => (await restored()).length > 0)
  const [found] = await restored()
  expect(found).toContain('The state was restored from an older copy')
  expect((await operate(after, 'doctor')).stdout).toContain(found ?? 'nothing was found')
})
