/** The catalog in the console: what a preset needs, how providers are, who answers for a model, quarantine. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
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
  await page.getByLabel('Preset (optional)').selectOption('azure')
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
