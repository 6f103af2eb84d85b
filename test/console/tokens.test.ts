import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { api, chat, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { allThere, endConsole, make, openConsole, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

const shownSecret = async (page: Page): Promise<string> => (await page.locator('[data-secret]').textContent()) ?? ''

async function statusOf(token: string): Promise<number> {
  const { gatehouse } = await sharedConsole()
  const answer = await chat(gatehouse, { token, model: 'simulator/echo' })
  await answer.text()
  return answer.status
}

test('a token form begins with the role, shows the secret once to copy, and the gateway accepts it', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens')
  await page.getByRole('link', { name: 'New token' }).click()
  expect(await page.getByLabel('Name').count()).toBe(0)
  await page.getByLabel('Member').check()
  await page.getByLabel('Name').fill('made in the console')
  await page.getByRole('button', { name: 'Create token' }).click()
  const secret = await shownSecret(page)
  expect(secret).toMatch(/^gth_\w{36}$/)
  await page.getByRole('button', { name: 'Copy', exact: true }).click()
  await page.getByText('Token copied').waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret)
  expect(await page.locator('pre').textContent()).toContain(`Bearer ${secret}`)
  expect(page.url()).not.toContain(secret)
  expect(await statusOf(secret)).toBe(200)
  await page.getByRole('link', { name: 'I have saved it' }).click()
  await page.getByRole('heading', { name: 'made in the console' }).waitFor()
  expect(await page.content()).not.toContain(secret)
})

test('a token is renamed and narrowed on its page, where its requests, spend and models are', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'before', max_requests: 10 })
  expect(await statusOf(token.token_value)).toBe(200)
  await using opened = await openConsole()
  const { page } = opened
  await until('its request is counted', async () => {
    await opened.to(`/tokens/${token.id}`)
    await allThere(page)
    return (await page.getByRole('row', { name: /simulator\/echo/ }).count()) === 1
  })
  await page.getByRole('link', { name: 'Requests 1', exact: true }).waitFor()
  expect(await seriousInBothThemes(page, 'token-usage')).toEqual([])
  await page.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog')
  expect(await seriousInBothThemes(page, 'token-change', 'dialog')).toEqual([])
  await dialog.getByLabel('Name').fill('after')
  await dialog.getByLabel('Requests (fewer)').fill('11')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.locator('.fault').waitFor()
  await dialog.getByLabel('Requests (fewer)').fill('1')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('1 of 1 gateway acknowledged').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('heading', { name: 'after' }).waitFor()
  expect(await statusOf(token.token_value)).not.toBe(200)
})

test('tokens chosen in the list are revoked together, confirmed by their number', async () => {
  const { gatehouse } = await sharedConsole()
  const [one, two] = [
    await createToken(gatehouse, { name: 'bulk 1' }),
    await createToken(gatehouse, { name: 'bulk 2' }),
  ]
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens?name=bulk')
  await page.getByLabel('Choose bulk 1').check()
  await page.getByLabel('Choose all').check()
  await page.getByRole('button', { name: 'Revoke 2 tokens' }).click()
  const dialog = page.getByRole('dialog')
  expect(await seriousInBothThemes(page, 'revoke-many', 'dialog')).toEqual([])
  expect(await dialog.getByRole('button', { name: 'Revoke' }).isDisabled()).toBe(true)
  await dialog.getByRole('textbox').fill('2')
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await dialog.getByText('1 of 1 gateway acknowledged').waitFor()
  expect([await statusOf(one.token_value), await statusOf(two.token_value)]).toEqual([401, 401])
  await dialog.getByRole('button', { name: 'Done' }).click()
  await until('both are shown as revoked', async () => (await page.locator('tbody').getByText('Revoked').count()) === 2)
})

test('an API refusal is shown at its field', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name').fill('without limits')
  await page.getByLabel('Disposable').check()
  await page.getByRole('button', { name: 'Create token' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('max_requests')
  await page.getByLabel('Requests', { exact: true }).fill('5')
  await page.getByRole('button', { name: 'Create token' }).click()
  expect(await shownSecret(page)).toStartWith('gth_')
})

test('a revocation is confirmed by name, shows its progress and takes effect', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'to be revoked' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${token.id}`)
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  const dialog = page.getByRole('dialog')
  expect(await dialog.getByRole('button', { name: 'Revoke' }).isDisabled()).toBe(true)
  await dialog.getByRole('textbox').fill('to be revoked')
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('1 of 1 gateway acknowledged').waitFor()
  expect(await statusOf(token.token_value)).toBe(401)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('Revoked', { exact: true }).waitFor()
})

test('an emergency revocation asks for a reason first and leads to its proof', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'leaked' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${token.id}`)
  await page.getByRole('button', { name: 'Emergency revoke' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Type leaked to confirm').fill('leaked')
  expect(await dialog.getByRole('button', { name: 'Revoke now' }).isDisabled()).toBe(true)
  await dialog.getByLabel('Reason').fill('It was in a public repository')
  await dialog.getByRole('button', { name: 'Revoke now' }).click()
  await page.getByRole('heading', { name: 'Revoked in emergency' }).waitFor()
  expect(await statusOf(token.token_value)).toBe(401)
  await dialog.getByRole('link').click()
  await page.getByText('"event_type": "token.emergency_revoked"').waitFor()
  expect(await page.content()).not.toContain(token.token_value)
  await page.goBack()
  await page.getByText('It was in a public repository').waitFor()
})

test('a rotation shows the new secret and ends the old one', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'to be rotated' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${token.id}`)
  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  const secret = await shownSecret(page)
  expect([await statusOf(secret), await statusOf(token.token_value)]).toEqual([200, 401])
})

test('a clone shows its source’s limits, may only narrow them and marks a wider field', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'a source', max_requests: 10 })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${token.id}`)
  await page.getByRole('button', { name: 'Clone' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('The source has 10').waitFor()
  await dialog.getByLabel('Requests (fewer)').fill('11')
  await dialog.getByRole('button', { name: 'Clone' }).click()
  await dialog.locator('.fault').waitFor()
  await dialog.getByLabel('Requests (fewer)').fill('2')
  await dialog.getByRole('button', { name: 'Clone' }).click()
  expect(await statusOf(await shownSecret(page))).toBe(200)
})

test('the access review lists the token of a person who left, and revokes what is chosen', async () => {
  const { gatehouse } = await sharedConsole()
  const credentials = { email: 'lea@example.com', password: 'a long enough secret 4' }
  const lea = await make('/v1/users', { ...credentials, name: 'Lea Left', role: 'admin' })
  await using theirs = await openConsole({ as: credentials })
  const session = await (await theirs.page.context().request.get(`${gatehouse.baseUrl}/v1/auth/session`)).json()
  const made = await theirs.page.context().request.post(`${gatehouse.baseUrl}/v1/tokens`, {
    data: { name: 'left behind', purpose: 'general' },
    headers: { 'x-csrf-token': session.csrf_token, origin: gatehouse.baseUrl },
  })
  expect(made.status()).toBe(201)
  await api(gatehouse, `/v1/users/${lea.id}`, { method: 'PATCH', body: { status: 'disabled' } })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/people?kind=review')
  const row = page.getByRole('row', { name: /left behind/ })
  await row.getByText('Its creator left').waitFor()
  await row.getByRole('checkbox').check()
  expect(await seriousInBothThemes(page, 'access-review')).toEqual([])
  await page.getByRole('button', { name: 'Revoke 1' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await row.waitFor({ state: 'detached' })
})

test('filters are kept in the address and survive a reload', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens')
  await page.getByLabel('Purpose').selectOption('gateway_runtime')
  await page.getByText('local gateway').waitFor()
  expect(new URL(page.url()).search).toBe('?purpose=gateway_runtime')
  await page.reload()
  await page.getByText('local gateway').waitFor()
  expect(await page.getByText('administrator').count()).toBe(0)
  await page.getByRole('button', { name: 'Clear purpose' }).click()
  await page.getByText('administrator').waitFor()
})

test('part of a name finds tokens in the list and in the search', async () => {
  const { gatehouse } = await sharedConsole()
  await createToken(gatehouse, { name: 'Payroll nightly' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens')
  const name = page.getByRole('textbox', { name: 'Name' })
  await name.fill('payROLL')
  await name.press('Enter')
  await page.getByText('administrator').waitFor({ state: 'detached' })
  await page.getByText('Payroll nightly').waitFor()
  expect(new URL(page.url()).search).toBe('?name=payROLL')
  await name.fill('nobody has this')
  await name.press('Enter')
  await page.getByText('No token matches these filters').waitFor()
  await name.blur()
  await page.keyboard.press('/')
  await page.keyboard.type('NIGHTLY')
  await page.keyboard.press('Enter')
  await page.getByRole('main').getByRole('link', { name: 'Payroll nightly' }).click()
  await page.getByRole('heading', { name: 'Payroll nightly' }).waitFor()
})

test('choosing a role does not move the roles', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  const roles = page.getByRole('radio')
  const places = async () =>
    await Promise.all([0, 1, 2, 3].map(async (index) => (await roles.nth(index).boundingBox())?.y))
  await roles.first().waitFor()
  const before = await places()
  await roles.first().check()
  await page.getByLabel('Name').waitFor()
  expect(await places()).toEqual(before)
})
