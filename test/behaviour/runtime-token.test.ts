import { expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { tokenPage } from '../support/answers.ts'
import { api, chat, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(120_000)

const runtimeTokenOf = async (gatehouse: Gatehouse): Promise<string> => {
  const page = expectAnswer(await api(gatehouse, '/v1/tokens?purpose=gateway_runtime&status=active'), 200, tokenPage)
  return page.tokens[0]?.id ?? ''
}
const readyzOf = async (gatehouse: Gatehouse) => (await fetch(`${gatehouse.gatewayUrl}/readyz`)).status
const answers = async (gatehouse: Gatehouse) =>
  (await chat(gatehouse, { token: gatehouse.adminToken, model: 'simulator/echo', text: 'Hello' })).status === 200

test('a gateway survives a rotation of its runtime token, reports a revocation and recovers by a restart', async () => {
  const directory = temporaryDirectory()
  const dataDirectory = join(directory, 'data')
  try {
    const first = await startGatehouse({ dataDirectory })
    const { adminToken } = first
    const before = first.gatewayPid()
    const id = await runtimeTokenOf(first)
    expect((await api(first, `/v1/tokens/${id}/rotate`, { body: {} })).status).toBe(201)
    await until('another gateway process answers', async () => {
      try {
        return first.gatewayPid() !== before && (await answers(first))
      } catch {
        // Between two processes nobody listens.
        return false
      }
    })
    const rotated = await runtimeTokenOf(first)
    expect((await api(first, `/v1/tokens/${rotated}`, { method: 'DELETE' })).status).toBe(200)
    await until('the gateway says that its token is refused', async () => (await readyzOf(first)) === 503)
    expect(await (await fetch(`${first.gatewayUrl}/readyz`)).text()).toContain('restart')
    expect(first.stderr()).toContain('runtime_token_refused')
    await first.end('SIGTERM')
    await first.stop()

    const second = await startGatehouse({ dataDirectory, adminToken })
    expect(await readyzOf(second)).toBe(200)
    expect(await answers(second)).toBe(true)
    await second.stop()
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
