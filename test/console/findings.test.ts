/** The status of the overview: whether all is well, and what is not. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { api, chat, createToken } from '../support/client.ts'
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
  const others = ['findings', 'budgets', 'gateway-workers', 'alert-firings', 'tokens/alerts', 'events/recent']
  const read = others.map((other) => page.waitForResponse((response) => response.url().includes(`/v1/${other}`)))
  await page.reload()
  for (const response of await Promise.all(read)) await response.finished()
  await page.waitForTimeout(500)
  expect(await page.getByText('Healthy').count()).toBe(0)
  answer()
  await page.locator('section[aria-label="Status"]').getByText('Healthy').waitFor()
})

test('the overview asks each thing once, and its charts only after the status', async () => {
  await using opened = await openConsole()
  const { page } = opened
  // The charts wait 300 ms at most: in this test, without end.
  await page.addInitScript(`{
    const before = globalThis.setTimeout
    globalThis.setTimeout = (run, ms, ...rest) => (ms === 300 ? 0 : before(run, ms, ...rest))
  }`)
  const asked: string[] = []
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url())
    if (pathname.startsWith('/v1/')) asked.push(`${pathname}${search}`)
  })
  const { promise: held, resolve: answer } = Promise.withResolvers<void>()
  await page.route(/\/v1\/findings/, async (route) => {
    await held
    await route.continue()
  })
  const others = ['budgets', 'gateway-workers', 'alert-firings', 'tokens/alerts', 'events/recent', 'catalog/waiting']
  const read = others.map((other) => page.waitForResponse((response) => response.url().includes(`/v1/${other}`)))
  await opened.to('/')
  for (const response of await Promise.all(read)) await response.finished()
  await page.waitForTimeout(300)
  expect(asked.filter((path) => path.includes('/v1/events/s'))).toEqual([])
  const summary = page.waitForRequest(/\/v1\/events\/summary/)
  answer()
  await summary
  await allThere(page)
  expect(asked.toSorted()).toEqual([...new Set(asked)].toSorted())
})

test('the overview says every alert that is open, however many pages there are', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const firing = (id: number) => ({
    ...{ id: `f${id}`, alert_id: `a${id}`, alert: `Alert ${id}`, condition: 'doctor_finding', subject: 'it' },
    ...{ value: 2, threshold: 2, severity: 'warning', about: 'It is wrong.', fired_at: since, resolved_at: null },
    notices: [],
  })
  await page.route(/\/v1\/alert-firings/, (route) => {
    const isFirst = !route.request().url().includes('cursor=')
    const numbers = Array.from({ length: isFirst ? 100 : 7 }, (_, index) => index + (isFirst ? 0 : 100))
    return route.fulfill({ json: { alert_firings: numbers.map(firing), next_cursor: isFirst ? 'more' : null } })
  })
  await opened.to('/')
  await allThere(page)
  const shown = page.locator('section[aria-label="Status"]')
  await shown.locator('summary').click()
  expect(await shown.getByText('has fired').count()).toBe(107)
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

test('the overview names a model and a provider that fail, and leads to their failed requests', async () => {
  const { gatehouse } = await sharedConsole()
  using failing = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('{}', { status: 500 }) })
  const provider = { kind: 'openai', base_url: `http://127.0.0.1:${failing.port}/v1`, api_key: 'key' }
  const { id } = await make('/v1/catalog/providers', { name: 'acme', ...provider })
  const model = { id: 'acme-large', provider_id: id, families: ['chat'] }
  expect((await api(gatehouse, '/v1/catalog/models', { body: model })).status).toBe(201)
  const token = await createToken(gatehouse, { name: 'caller' })
  // The key of the provider may reach the gateway after the first of them.
  for (let index = 0; index < 8; index += 1) {
    const requestId = `failed-${index}`
    const answer = await chat(gatehouse, { token: token.token_value, model: 'acme-large', requestId })
    await answer.text()
    await eventsOfRequest(gatehouse, requestId)
  }
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/')
  const shown = page.locator('section[aria-label="Status"]')
  await shown.getByText('The provider acme fails 100 % of its requests').waitFor()
  const line = shown.getByRole('listitem').filter({ hasText: 'The model acme-large fails 100 %' })
  await line.getByRole('link', { name: 'See the failed requests' }).click()
  await page.getByRole('heading', { name: 'Traffic' }).waitFor()
  const { searchParams } = new URL(page.url())
  expect([searchParams.get('model'), searchParams.get('verdict')]).toEqual(['acme-large', 'error'])
})

test('the figures and the tables of the overview have the same requests', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'counted' })
  const sent = { token: token.token_value, model: 'simulator/echo', requestId: 'counted' }
  await (await chat(gatehouse, sent)).text()
  await eventsOfRequest(gatehouse, 'counted')
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/')
  await page.getByText('Top tokens').waitFor()
  await allThere(page)
  const figure = await page.locator('.figure-link', { hasText: 'Requests' }).locator('.figure').textContent()
  expect(Number(figure)).toBeGreaterThan(0)
  for (const table of ['Top models', 'Top teams', 'Top tokens']) {
    const counts = await page.locator(`section[aria-label="${table}"] tbody td:nth-child(2)`).allTextContents()
    expect([table, counts.reduce((sum, count) => sum + Number(count), 0)]).toEqual([table, Number(figure)])
  }
})

/** What the control plane answers while it cannot answer; the console does not ask again by itself. */
const refused = { status: 400, json: { error: { message: 'It is refused', code: 'invalid_parameter', param: null } } }

test('"Try again" under the top tokens reads the summary again, which they wait for', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const path = /\/v1\/events\/summary\?/
  await page.route(path, (route) => route.fulfill(refused))
  await opened.to('/')
  const top = page.locator('section.card', { has: page.getByRole('heading', { name: 'Top tokens' }) })
  await top.getByRole('button', { name: 'Try again' }).waitFor()
  await page.unroute(path)
  await top.getByRole('button', { name: 'Try again' }).click()
  await top.locator('tbody tr').first().waitFor()
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
})

test('the top tokens stay where they are read again and refused', async () => {
  await using opened = await openConsole()
  const { page } = opened
  // The overview reads again every 15 seconds: in this test, every half second.
  await page.addInitScript(`{
    const before = globalThis.setInterval
    globalThis.setInterval = (run, ms, ...rest) => before(run, ms === 15000 ? 500 : ms, ...rest)
  }`)
  await opened.to('/')
  const top = page.locator('section.card', { has: page.getByRole('heading', { name: 'Top tokens' }) })
  await top.locator('tbody tr').first().waitFor()
  await page.route(/\/v1\/events\/summary\/tokens/, (route) => route.fulfill(refused))
  await top.getByText('The data shown is from the last successful load.').waitFor()
  expect(await top.locator('tbody tr').count()).toBeGreaterThan(0)
})

test('leads from a failed connection test to the provider, where it can be tested again', async () => {
  const { gatehouse } = await sharedConsole()
  const { id } = await make('/v1/catalog/providers', {
    ...{ name: 'unreachable', kind: 'openai', base_url: 'http://127.0.0.1:9/v1' },
  })
  expect((await api(gatehouse, `/v1/catalog/providers/${id}/test`, { body: {} })).status).toBe(200)
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/')
  const shown = page.locator('section[aria-label="Status"]')
  const line = shown.getByRole('listitem').filter({ hasText: 'test of the provider unreachable failed' })
  await line.getByRole('link', { name: 'Test it again' }).click()
  const dialog = page.getByRole('dialog', { name: 'unreachable' })
  await dialog.getByRole('button', { name: 'Test', exact: true }).click()
  await dialog.getByText('Models fails').waitFor()
})
