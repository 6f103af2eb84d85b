/** Pages recover by themselves when the control plane is back. */
import { afterAll, setDefaultTimeout, test } from 'bun:test'
import { endConsole, openConsole } from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

const away = { error: { message: 'It is away', code: 'dependency_unavailable', param: null } }

test('what could not be read comes by itself once the control plane answers again, also of a range that is over', async () => {
  await using opened = await openConsole()
  const { page } = opened
  for (const path of ['/spend?range=yesterday', '/catalog?kind=budgets', '/']) {
    await page.route('**/v1/**', (route) =>
      route.request().url().includes('/v1/auth/') ? route.continue() : route.fulfill({ status: 503, json: away }),
    )
    await opened.to(path)
    await page.getByText('Not reachable').first().waitFor()
    await page.unroute('**/v1/**')
    await page.getByText('Not reachable').first().waitFor({ state: 'detached', timeout: 20_000 })
  }
})
