/** The guide on the overview, from a fresh installation to the moment when it has nothing left to say; by keyboard. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chat, createToken } from '../support/client.ts'
import { allThere, endConsole, make, openConsole, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

test('leads through the first hour, shows the first request when it arrives, and goes when all is done', async () => {
  const { gatehouse } = await sharedConsole()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/')
  await allThere(page)
  const guide = page.locator('.first-hour')
  await guide.getByText('0 of 6 steps done').waitFor()
  expect(await seriousInBothThemes(page, 'first-hour-start', '.first-hour')).toEqual([])

  await guide.getByLabel('Service').selectOption('vllm')
  await guide.getByText('Works without a key').waitFor()
  await guide.getByRole('button', { name: 'Add and try it' }).focus()
  await page.keyboard.press('Enter')
  // Nothing answers there: the test says so, the step is not done, and the status is not healthy.
  await guide.getByText(/fails/).first().waitFor()
  await guide.getByText('1 of 6 steps done').waitFor()
  const status = page.locator('section[aria-label="Status"]')
  await status.getByText('The last connection test of the provider vllm failed').waitFor()
  expect(await status.getByText('Healthy').count()).toBe(0)
  await make('/v1/catalog/providers', { name: 'other', kind: 'openai', base_url: 'http://127.0.0.1:9/v1' })
  await guide.getByRole('button', { name: 'Test again' }).focus()
  await page.keyboard.press('Enter')
  await guide.getByText('2 of 6 steps done').waitFor()
  await guide.getByRole('button', { name: 'Next: make a token for an application' }).focus()
  await page.keyboard.press('Enter')
  await guide.getByRole('link', { name: 'Make a token' }).waitFor()

  const token = await createToken(gatehouse, { name: 'shop', roles: ['member'] })
  await opened.within('/tokens')
  await opened.within('/')
  await guide.getByText('3 of 6 steps done').waitFor()
  await guide.getByText('Waiting for the first request').waitFor()
  await (await chat(gatehouse, { token: token.token_value, model: 'simulator/echo', text: 'Hello' })).text()
  await guide.getByText('A request arrived').waitFor()
  expect(await seriousInBothThemes(page, 'first-hour-request', '.first-hour')).toEqual([])
  await guide.getByRole('link', { name: 'See what was decided' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'simulator/echo' }).waitFor()

  await make('/v1/policies', { name: 'one', kind: 'secrets', stages: ['pre_request'], config: { action: 'block' } })
  await opened.within('/')
  await guide.getByText('5 of 6 steps done').waitFor()
  // Once requests are served it takes one line.
  expect(await guide.getByRole('link', { name: 'Set a budget' }).isVisible()).toBe(false)
  await guide.locator('summary').focus()
  await page.keyboard.press('Enter')
  await guide.getByRole('link', { name: 'Set a budget' }).waitFor()

  await make('/v1/budgets', { name: 'all', max_budget: 5, window: 'month', scope: { kind: 'organization' } })
  await opened.within('/tokens')
  await opened.within('/')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await allThere(page)
  expect(await guide.count()).toBe(0)
})
