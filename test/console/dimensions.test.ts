/** Dimensions of attribution on the screens: spend by them, the values of a budget, filters, and a request's story. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, chat, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, make, openConsole, picture, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

let budgetId = ''
const strange = 'a=b & <i>c</i>'

beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  await make('/v1/attribution-dimensions', { name: 'customer', source: { kind: 'header', key: 'x-customer-id' } })
  const scope = { kind: 'organization' }
  const each = { name: 'each customer', max_budget: 0.01, window: 'month', scope, per: 'customer' }
  budgetId = (await make('/v1/budgets', each)).id
  const token = await createToken(gatehouse, { metadata_trust: 'caller' })
  await eventually(async () => expect((await api(gatehouse, `/v1/budgets/${budgetId}`)).status).toBe(200))
  for (const [index, customer] of ['acme', 'acme', 'globex', strange].entries()) {
    const [requestId, headers] = [`of-${index}`, { 'x-customer-id': customer }]
    const ask = { token: token.token_value, model: 'simulator/echo', requestId, headers }
    await (await chat(gatehouse, ask)).text()
    await eventsOfRequest(gatehouse, requestId)
  }
}, 240_000)

test('shows the values of a budget with their use, and says of values that used it up that others go on', async () => {
  const { gatehouse } = await sharedConsole()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/budgets/${budgetId}`)
  await allThere(page)
  await page.getByText('Each customer has some of it left.').waitFor()
  const rows = page.locator('section[aria-label="Values of customer"] tbody tr')
  expect(await rows.count()).toBe(3)
  expect(await rows.first().textContent()).toContain('acme')
  expect(await rows.nth(1).textContent()).toContain('of $0.01')
  const { body } = await api(gatehouse, `/v1/budgets/${budgetId}/values?value=globex`)
  const { values } = z.object({ values: z.array(z.looseObject({ spend: z.number() })) }).parse(body)
  // What acme spent, twice as much as the others.
  const changed = { max_budget: Number((2 * (values[0]?.spend ?? 0)).toFixed(9)) }
  await api(gatehouse, `/v1/budgets/${budgetId}`, { method: 'PATCH', body: changed })
  await page.reload()
  await page.getByText('It is used up for 1 of 3 values of customer').waitFor()
  await allThere(page)
  await picture(page, 'budget-values')
  expect(await seriousInBothThemes(page, 'budget-values')).toEqual([])
  await page.getByLabel('Customer', { exact: true }).fill('initech')
  await page.keyboard.press('Enter')
  await page.getByRole('cell', { name: 'initech' }).waitFor()
  expect(await rows.count()).toBe(1)
  await opened.to('/')
  await allThere(page)
  const status = page.locator('section[aria-label="Status"]')
  await status.getByText('The budget each customer is used up for 1 of 3 values of customer').waitFor()
  expect(await status.getByText('Refusing').count()).toBe(0)
  await opened.to('/catalog?kind=budgets')
  await page.getByText('1 of 3 customer values used up').waitFor()
})

test('sums spend up by a dimension, on the page of spend and in the month, and leads to its requests', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/spend')
  await page.getByRole('link', { name: 'Customer' }).click()
  const table = page.locator('section[aria-label="Spend by customer"] tbody')
  await table.getByText('globex').waitFor()
  await allThere(page)
  await picture(page, 'spend-by-customer')
  expect(await seriousInBothThemes(page, 'spend-by-customer')).toEqual([])
  await table.getByRole('link', { name: strange }).click()
  await page.getByRole('heading', { name: 'Traffic' }).waitFor()
  const requests = page.locator('section[aria-label="Requests"] tbody tr')
  await requests.first().waitFor()
  expect(await requests.count()).toBe(1)
  await opened.to('/reports?by=dimension:customer')
  const costs = page.locator('section[aria-label="Costs by customer"] tbody')
  await costs.getByText('acme').waitFor()
  await page.getByText('The forecast is what was spent').waitFor()
  await page.getByLabel('And by').selectOption({ label: 'Model' })
  await page.locator('section[aria-label="Costs by customer and model"] tbody').getByText('acme').first().waitFor()
  expect(await page.getByRole('link', { name: 'FOCUS' }).getAttribute('href')).toMatch(
    /^\/v1\/usage\/costs\/export\?month=\d{4}-\d{2}&format=focus$/,
  )
  await allThere(page)
  await opened.to('/reports?by=dimension:nope')
  await page.getByText('There is no dimension of attribution "nope": declared are dimension:customer').waitFor()
})

test('offers the values of a dimension for the filter of traffic, and shows them in the story of a request', async () => {
  const { gatehouse } = await sharedConsole()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic')
  await page.getByRole('button', { name: 'More filters' }).click()
  const filter = page.getByLabel('Dimension, such as customer=acme')
  await filter.pressSequentially('glo')
  await page.locator('#filter-dimension-list option[value="customer=globex"]').waitFor({ state: 'attached' })
  await filter.fill('customer=globex')
  await filter.press('Enter')
  const requests = page.locator('section[aria-label="Requests"] tbody tr')
  await eventually(async () => expect(await requests.count()).toBe(1))
  const [outcome] = await eventsOfRequest(gatehouse, 'of-3')
  await opened.to(`/traffic/${outcome?.exchange_id}`)
  await page.getByRole('link', { name: strange }).waitFor()
})
