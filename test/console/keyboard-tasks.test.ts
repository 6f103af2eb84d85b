/** What people come for, done by keyboard alone: each task begins at the overview and uses no pointer. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { chat, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, focused, make, openConsole, sharedConsole, tabTo } from './console.ts'
import { makeAskingPolicy } from './every-screen.ts'

setDefaultTimeout(120_000)

beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

/** Types keys such as `g t` one after another. */
async function press(page: Page, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key)
}

async function beginAtOverview() {
  const opened = await openConsole()
  await opened.to('/')
  await opened.page.getByRole('heading', { name: 'Overview' }).waitFor()
  return opened
}

const arrivedAt = async (page: Page, heading: string): Promise<void> => {
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
  await eventually(async () => expect(await focused(page)).toBe(heading))
}

test('the reason of a refused request is found, and going back leads to its row', async () => {
  const { gatehouse } = await sharedConsole()
  const { token_value: token } = await createToken(gatehouse, { name: 'asks for too much' })
  await (await chat(gatehouse, { token, model: 'no/such-model', text: 'hello', requestId: 'refused' })).text()
  const [event] = await eventsOfRequest(gatehouse, 'refused')
  await using opened = await beginAtOverview()
  const { page } = opened
  await press(page, 'g', 't')
  await arrivedAt(page, 'Traffic')
  expect(await page.locator('[data-announced]').textContent()).toBe('Traffic')
  const row = page.locator(`main a[href*="${event?.exchange_id}"]`)
  await row.waitFor()
  await press(page, 'Shift+Tab')
  await tabTo(page, 'button', 'Skip to the list')
  await press(page, 'Enter', 'Tab')
  expect(await row.and(page.locator(':focus')).count()).toBe(1)
  await press(page, 'Enter')
  await arrivedAt(page, 'no/such-model')
  await page.getByText('model_not_found').first().waitFor()
  await page.goBack()
  await eventually(async () => expect(await row.and(page.locator(':focus')).count()).toBe(1))
})

test('a token is created', async () => {
  await using opened = await beginAtOverview()
  const { page } = opened
  await press(page, 'g', 'k')
  await arrivedAt(page, 'Tokens')
  await tabTo(page, 'link', 'New token')
  await press(page, 'Enter')
  await arrivedAt(page, 'New token')
  await press(page, 'Tab', 'Space')
  await tabTo(page, 'textbox', 'Name')
  await page.keyboard.type('made by keys')
  await press(page, 'Enter')
  await page.locator('[data-secret]').waitFor()
  await tabTo(page, 'link', 'I have saved it')
  await press(page, 'Enter')
  await arrivedAt(page, 'made by keys')
})

test('a token is found by its name and stopped everywhere', async () => {
  const { gatehouse } = await sharedConsole()
  const { token_value: token } = await createToken(gatehouse, { name: 'leaked' })
  await using opened = await beginAtOverview()
  const { page } = opened
  await press(page, '/')
  await page.keyboard.type('leaked')
  await press(page, 'Enter')
  await arrivedAt(page, 'Search: leaked')
  await tabTo(page, 'link', 'leaked')
  await press(page, 'Enter')
  await arrivedAt(page, 'leaked')
  await tabTo(page, 'button', 'Emergency revoke')
  await press(page, 'Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('to confirm').waitFor()
  await tabTo(page, 'textbox', 'Reason')
  await page.keyboard.type('It was in a public repository')
  await tabTo(page, 'textbox', 'Type leaked to confirm')
  await page.keyboard.type('leaked')
  await press(page, 'Enter')
  await eventually(async () => {
    const answer = await chat(gatehouse, { token, model: 'simulator/echo', text: 'hello' })
    await answer.text()
    expect(answer.status).toBe(401)
  })
})

test('a request that waits for a person is allowed', async () => {
  const { gatehouse } = await sharedConsole()
  const { token_value: token } = await createToken(gatehouse, { name: 'asks' })
  await makeAskingPolicy()
  await eventually(async () => {
    const answer = await chat(gatehouse, { token, model: 'simulator/echo', text: 'open the vault', requestId: 'vault' })
    await answer.text()
    expect(answer.headers.get('x-service-verdict')).toBe('ESCALATE')
  })
  await eventsOfRequest(gatehouse, 'vault')
  await using opened = await beginAtOverview()
  const { page } = opened
  await press(page, 'g', 'e')
  await arrivedAt(page, 'Escalations')
  await page.getByLabel('The request').waitFor()
  await tabTo(page, 'button', 'Allow')
  await press(page, 'Enter')
  await page.getByRole('button', { name: 'Undo' }).waitFor()
})

test('a policy is written, tried, created and moved up', async () => {
  await make('/v1/policies', {
    name: 'stands before',
    kind: 'pii',
    stages: ['pre_request'],
    config: { action: 'redact' },
  })
  await using opened = await beginAtOverview()
  const { page } = opened
  await press(page, 'g', 'p')
  await arrivedAt(page, 'Policies')
  await tabTo(page, 'link', 'New policy')
  await press(page, 'Enter')
  await arrivedAt(page, 'New policy')
  await allThere(page)
  await tabTo(page, 'link', 'Term filter')
  await press(page, 'Enter')
  await page.getByLabel('Name').waitFor()
  await tabTo(page, 'textbox', 'Name')
  await page.keyboard.type('no transfers')
  await tabTo(page, 'textbox', 'Terms')
  await page.keyboard.type('transfer')
  await tabTo(page, 'combobox', 'Action')
  await page.keyboard.type('Block')
  await tabTo(page, 'button', 'Try')
  await press(page, 'Enter')
  await page.locator('[data-trial=after]').getByText('no transfers').waitFor()
  await tabTo(page, 'button', 'Create policy', 'Shift+Tab')
  await press(page, 'Enter')
  await arrivedAt(page, 'no transfers')
  await press(page, 'g', 'p')
  await arrivedAt(page, 'Policies')
  const handle = page.getByRole('button', { name: /^no transfers, number/ })
  await handle.waitFor()
  const before = await handle.textContent()
  await press(page, 'Tab')
  await tabTo(page, 'button', /^no transfers, number/)
  await press(page, 'ArrowUp')
  await page.getByText(`no transfers is number ${Number(before) - 1} now`).waitFor()
  expect(await handle.and(page.locator(':focus')).count()).toBe(1)
})
