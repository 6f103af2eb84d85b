/** The catalog in the console: what a preset needs, how providers are, who answers for a model, quarantine. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { api, chat, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { allThere, endConsole, make, openConsole, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

test('says what a preset needs, and how each provider is', async () => {
  const { gatehouse } = await sharedConsole()
  const { token_value: token } = await createToken(gatehouse)
  await (await chat(gatehouse, { token, model: 'simulator/echo', text: 'Hello' })).text()
  await using opened = await openConsole()
  const { page } = opened
  await eventually(async () => {
    await opened.to('/catalog')
    await allThere(page)
    await page.getByText('Healthy').first().waitFor({ timeout: 2000 })
  })
  expect(await seriousInBothThemes(page, 'catalog-health', 'main')).toEqual([])
  await opened.within('/catalog?kind=providers&open=new')
  await page.getByLabel('Preset', { exact: true }).selectOption('azure')
  await page.getByText('Azure OpenAI: Needs a key').waitFor()
  await page.getByText('https://NAME.openai.azure.com').waitFor()
  expect(await seriousInBothThemes(page, 'catalog-preset', 'dialog')).toEqual([])
})

test('shows who answers for a model', async () => {
  const provider = { kind: 'openai', base_url: 'http://127.0.0.1:9/v1' }
  await make('/v1/catalog/providers', { name: 'first', ...provider })
  await make('/v1/catalog/providers', { name: 'second', ...provider })
  const targets = [
    { provider: 'first', upstream_model: 'large', weight: 3 },
    { provider: 'second', weight: 1 },
  ]
  const { gatehouse } = await sharedConsole()
  const model = { id: 'several', strategy: 'weighted', targets }
  expect((await api(gatehouse, '/v1/catalog/models', { body: model })).status).toBe(201)
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/catalog?kind=models')
  const row = page.getByRole('row', { name: /several/ })
  await row.getByText('first/large').waitFor()
  await row.getByText('second/several').waitFor()
  await row.getByText('Weighted').waitFor()
  expect(await seriousInBothThemes(page, 'catalog-models', 'main')).toEqual([])
})

test('says what a model costs at each target, and whose price it is', async () => {
  const { gatehouse } = await sharedConsole()
  const price = { input_per_million: 7, output_per_million: 8, cached_input_per_million: 0.7 }
  const base_url = 'http://127.0.0.1:9/v1'
  await make('/v1/catalog/providers', { name: 'plain', kind: 'openai', base_url })
  await make('/v1/catalog/providers', { name: 'usual', kind: 'openai', base_url, default_price: price })
  const targets = [
    { provider: 'plain', upstream_model: 'gpt-4o-mini' },
    { provider: 'plain', upstream_model: 'unheard-of' },
    { provider: 'usual', upstream_model: 'unheard-of' },
  ]
  const made = await api(gatehouse, '/v1/catalog/models', { body: { id: 'priced', targets } })
  expect(made.status).toBe(201)
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/catalog?kind=models')
  const row = page.getByRole('row', { name: /priced/ })
  for (const text of [
    '$0.15 / $0.60',
    /price table of \d{4}/,
    'Unknown',
    '$7.00 / $8.00',
    'the default of its provider',
  ]) {
    await row.getByText(text).waitFor()
  }
  await row.getByRole('link', { name: 'priced' }).click()
  const costs = page.getByRole('dialog').getByLabel('What it costs now')
  await costs.getByText('Tokens with a budget are refused here').waitFor()
  await costs.getByText('$0.70').waitFor()
  expect(await seriousInBothThemes(page, 'catalog-price', 'dialog')).toEqual([])
})

/** The labels and titles of groups that show the mark of what is required. */
const marked = (page: Page): Promise<unknown> =>
  page.evaluate(
    '[...document.querySelectorAll("form :is(label, legend)")].filter((one) => getComputedStyle(one, "::after").content.includes("*")).map((one) => one.textContent)',
  )

test('a form marks what it needs and says what the mark means, where it needs anything', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/alerts?kind=alerts&open=new')
  const form = page.getByRole('dialog').locator('form')
  await form.getByLabel('Thresholds').fill('50, 80')
  await form.getByText('Fields marked with * are required').waitFor()
  expect(await marked(page)).toEqual(['Name', 'Condition'])
  await form.getByLabel('Name').fill('two steps')
  await form.getByLabel('Condition').selectOption('budget_share')
  await form.getByRole('button', { name: 'Add' }).click()
  await page.getByRole('cell', { name: '50, 80 %' }).waitFor()
})

test('other forms mark what they need too, and say it of a group in words', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const note = page.getByText('Fields marked with * are required')
  await opened.to('/tokens/new')
  await page.getByRole('radio').first().check()
  await note.waitFor()
  expect(await marked(page)).toEqual(['Name'])
  await opened.to('/reports?kind=invoice')
  await note.waitFor()
  expect(await marked(page)).toEqual(['Provider', 'CSV file'])
  await opened.to('/policies/new?kind=pattern-filter')
  await note.waitFor()
  await page.getByRole('group', { name: 'Stages (required)', exact: true }).waitFor()
})

test('puts an MCP server under quarantine and takes it out again, by keyboard', async () => {
  await make('/v1/catalog/mcp-servers', { name: 'finder', url: 'https://mcp.example.com/mcp' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/catalog?kind=mcp-servers')
  for (const [button, state] of [
    ['Put under quarantine', 'Under quarantine'],
    ['End the quarantine', 'Yes'],
  ] as const) {
    await page.getByRole('button', { name: 'Held offers' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: button }).focus()
    expect(await seriousInBothThemes(page, 'catalog-quarantine', 'dialog')).toEqual([])
    await page.keyboard.press('Enter')
    await page.getByRole('cell', { name: state, exact: true }).waitFor()
  }
})

test('a person who may not change a record reads names instead of ids, dollars, and no version', async () => {
  const { gatehouse } = await sharedConsole()
  const auditor = { email: 'auditor@example.com', name: 'An auditor', password: 'a long secret of an auditor' }
  await make('/v1/users', { ...auditor, role: 'auditor' })
  const team = await make('/v1/teams', { name: 'Checkout' })
  const scope = { kind: 'team', id: team.id }
  const budget = await make('/v1/budgets', { name: 'small', max_budget: 5, window: 'month', scope })
  const price = { input_per_million: 2, output_per_million: 3 }
  await api(gatehouse, '/v1/catalog/models', { body: { id: 'only-read', targets: [{ provider: 'simulator' }], price } })
  await using opened = await openConsole({ as: auditor })
  const { page } = opened
  const dialog = page.getByRole('dialog')
  await opened.to(`/catalog?kind=budgets&open=${budget.id}`)
  await dialog.getByRole('link', { name: 'Checkout' }).waitFor()
  await dialog.getByText('$5.00').first().waitFor()
  expect(await dialog.textContent()).not.toContain(team.id)
  expect(await dialog.getByText('Version').count()).toBe(0)
  await opened.to('/catalog?kind=models&open=only-read')
  await dialog.getByRole('link', { name: 'simulator', exact: true }).waitFor()
  // Above the facts the price of each target is said too.
  await dialog.getByText('Input per million').waitFor()
  await dialog.getByText('$2.00').nth(1).waitFor()
})
