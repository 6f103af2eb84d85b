/** The status of the overview: whether all is well, and what is not. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chat, createToken } from '../support/client.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, make, openConsole, picture, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

const since = '2026-05-01T12:00:00.000Z'
const finding = (level: 'warn' | 'fail', what: string) => ({
  check: 'workers',
  level,
  what,
  todo: 'Look at its host',
  since,
})

test('the overview says that all is well, and names what doctor found', async () => {
  await using opened = await openConsole()
  const { page } = opened
  let findings: object[] = []
  await page.route(/\/v1\/findings/, (route) =>
    route.fulfill({ json: { examined_at: since, findings, next_cursor: null } }),
  )
  const shown = page.locator('section[aria-label="Status"]')
  await opened.to('/')
  await allThere(page)
  await shown.getByText('Healthy').waitFor()
  findings = [finding('warn', 'Worker one is unreachable'), finding('fail', 'Worker two is <b>lost</b>')]
  await page.reload()
  await allThere(page)
  await shown.getByText('Degraded').waitFor()
  const lines = await shown.getByRole('listitem').allTextContents()
  expect(lines.some((line) => line.startsWith('Worker one is unreachable. Look at its host'))).toBe(true)
  expect(lines.some((line) => line.startsWith('Worker two is <b>lost</b>. Look at its host'))).toBe(true)
  await picture(page, 'findings')
  expect(await seriousInBothThemes(page, 'findings')).toEqual([])
})

test('the overview does not say that all is well before it has read which MCP servers wait for approval', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const away = { error: { message: 'It is away', code: 'dependency_unavailable', param: null } }
  const path = /\/v1\/catalog\/waiting-mcp-offers/
  await page.route(path, (route) => route.fulfill({ status: 503, json: away }))
  await opened.to('/')
  await page.locator('main').getByText('Not reachable').first().waitFor()
  expect(await page.getByText('Healthy').count()).toBe(0)
  await page.unroute(path)
  await page.locator('section[aria-label="Status"]').getByText('Healthy').waitFor()
  // While it is read for the first time, the status is not known either.
  const { promise: held, resolve: answer } = Promise.withResolvers<void>()
  await page.route(path, async (route) => {
    await held
    await route.continue()
  })
  const others = ['findings', 'budgets', 'gateway-workers', 'alert-firings', 'tokens/alerts', 'events/series']
  const read = others.map((other) => page.waitForResponse((response) => response.url().includes(`/v1/${other}`)))
  await page.reload()
  for (const response of await Promise.all(read)) await response.finished()
  await page.waitForTimeout(500)
  expect(await page.getByText('Healthy').count()).toBe(0)
  answer()
  await page.locator('section[aria-label="Status"]').getByText('Healthy').waitFor()
})

test('the overview names a budget that is used up, what it refuses, and where to go on', async () => {
  const { gatehouse } = await sharedConsole()
  const budget = await make('/v1/budgets', {
    ...{ name: 'too small', max_budget: 0.000000001, window: 'month' },
    scope: { kind: 'token' },
  })
  const token = await createToken(gatehouse, { name: 'stopped', bindings: { budget_id: budget.id } })
  for (let index = 0; index < 6; index += 1) {
    const requestId = `refused-${index}`
    await (await chat(gatehouse, { token: token.token_value, model: 'simulator/echo', requestId })).text()
    await eventsOfRequest(gatehouse, requestId)
  }
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  await opened.to('/')
  await allThere(page)
  const shown = page.locator('section[aria-label="Status"]')
  await shown.getByText('Refusing').first().waitFor()
  expect(await shown.textContent()).toContain('100 % of the requests of the last 10 minutes (6 of 6) were refused')
  expect(await shown.textContent()).toContain('a budget is spent or reserved by running requests')
  await opened.to(`/budgets/${budget.id}`)
  await page.getByRole('heading', { name: 'too small' }).waitFor()
  await allThere(page)
  const refused = page.locator('section[aria-label="Newest refused requests"] tbody tr')
  await refused.nth(5).waitFor()
  expect(await refused.count()).toBe(6)
  expect(await page.getByText('6 requests refused in this window').count()).toBe(1)
  expect(await seriousInBothThemes(page, 'budget-refusing-390')).toEqual([])
  await page.locator('section[aria-label="Newest refused requests"] tbody a').first().press('Enter')
  await page.getByText('the budget “too small” has too little left').first().waitFor()
  expect(await page.getByRole('link', { name: 'too small' }).count()).toBe(1)
})
