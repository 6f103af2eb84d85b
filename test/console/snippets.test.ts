/** What connects a client with a new token, as the console shows it beside the secret. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { recipes } from '../../src/clients/index.ts'
import { api } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { repository } from '../support/executable.ts'
import { endConsole, make, openConsole, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

const shownSecret = async (page: Page): Promise<string> => (await page.locator('[data-secret]').textContent()) ?? ''

test('a new token comes with the configuration of each client, for a model, to copy', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const { gatehouse } = await sharedConsole()
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name').fill('for an agent')
  await page.getByRole('textbox', { name: 'Models' }).fill('claude-*\nclaude-sonnet-4-5')
  await page.getByRole('button', { name: 'Create token' }).click()
  const secret = await shownSecret(page)
  expect(await page.locator('pre').textContent()).toContain('"model":"claude-sonnet-4-5"')
  await page.getByLabel('Client').selectOption('Claude Code')
  await page.getByText('In ~/.claude/settings.json').waitFor()
  expect(await page.locator('pre').allTextContents()).toEqual([
    `export GATEHOUSE_TOKEN=${secret}\n`,
    expect.stringContaining(`"ANTHROPIC_BASE_URL": "${gatehouse.gatewayUrl}"`),
  ])
  await page.getByLabel('Model').fill('claude-opus-4-5')
  await page.getByRole('button', { name: 'Copy snippet: In ~/.claude/settings.json' }).click()
  await page.getByText('Snippet copied').waitFor()
  const copied = await page.evaluate('navigator.clipboard.readText()')
  expect(JSON.parse(String(copied)).env).toMatchObject({ ANTHROPIC_MODEL: 'claude-opus-4-5' })
  await page.getByText('gatehouse connect claude-code --write').waitFor()
  for (const { title } of recipes) {
    await page.getByLabel('Client').selectOption(title)
    expect((await page.locator('main pre, main li').allTextContents()).join('\n')).toContain(secret)
  }
  await page.getByLabel('Client').selectOption('Codex')
  expect(await seriousInBothThemes(page, 'new-token-client')).toEqual([])
  await page.getByRole('link', { name: 'I have saved it' }).click()
  await page.getByRole('heading', { name: 'for an agent' }).waitFor()
  expect(await page.content()).not.toContain(secret)
})

/** What a shell writes that runs a script as it was pasted. */
async function pasted(script: string, environment: Record<string, string> = {}): Promise<string> {
  const env = { PATH: process.env.PATH, ...environment }
  const run = Bun.spawn(['sh', '-ec', script], { cwd: repository, env, stdout: 'pipe', stderr: 'pipe' })
  const [out, wrong] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  if ((await run.exited) !== 0) throw new Error(wrong)
  return out
}

test('the snippets of a new token run as pasted: curl, and the SDKs of OpenAI and Anthropic', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name').fill('for a snippet')
  await page.getByRole('textbox', { name: 'Models' }).fill('simulator/e*')
  await page.getByRole('button', { name: 'Create token' }).click()
  await shownSecret(page)
  const blocks = () => page.locator('main pre').allTextContents()
  // Gateways learn of the token within milliseconds.
  await eventually(async () => {
    expect(JSON.parse(await pasted((await blocks()).join('')))).toMatchObject({ model: 'simulator/echo' })
  })
  for (const client of ['OpenAI SDK', 'Anthropic SDK']) {
    await page.getByLabel('Client').selectOption(client)
    const [exports = '', typescript = ''] = await blocks()
    const said = await pasted(`${exports}\nexec "$BUN" -e "$SNIPPET"`, { BUN: process.execPath, SNIPPET: typescript })
    expect(said).toContain('Hello')
  }
  await page.getByRole('link', { name: 'I have saved it' }).click()
})

test('the example of each client uses a model that speaks its language, and runs as pasted', async () => {
  using anthropic = Bun.serve({
    port: 0,
    fetch: () =>
      Response.json({
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-of-ours', stop_reason: 'end_turn' },
        ...{ content: [{ type: 'text', text: 'Said by Claude' }], usage: { input_tokens: 3, output_tokens: 3 } },
      }),
  })
  const provider = await make('/v1/catalog/providers', {
    ...{ name: 'our-anthropic', kind: 'anthropic', base_url: `http://127.0.0.1:${anthropic.port}`, api_key: 'sk-test' },
  })
  const price = { input_per_million: 1, output_per_million: 1 }
  const model = { id: 'claude-of-ours', provider_id: provider.id, price }
  const { gatehouse } = await sharedConsole()
  expect((await api(gatehouse, '/v1/catalog/models', { body: model })).status).toBe(201)
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name').fill('for any model')
  await page.getByRole('button', { name: 'Create token' }).click()
  await shownSecret(page)
  await page.getByLabel('Client').selectOption('Claude Code')
  await page.getByText('In ~/.claude/settings.json').waitFor()
  const blocks = () => page.locator('main pre').allTextContents()
  const settings: unknown = JSON.parse((await blocks())[1] ?? '')
  expect(settings).toMatchObject({ env: { ANTHROPIC_MODEL: 'claude-of-ours' } })
  await page.getByLabel('Client').selectOption('Anthropic SDK')
  const [exports = '', typescript = ''] = await blocks()
  expect(typescript).toContain('claude-of-ours')
  await eventually(async () => {
    const said = await pasted(`${exports}\nexec "$BUN" -e "$SNIPPET"`, { BUN: process.execPath, SNIPPET: typescript })
    expect(said).toContain('Said by Claude')
  })
  await page.getByRole('link', { name: 'I have saved it' }).click()
})
