import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type Gatehouse, startGatehouse } from '../harness.ts'
import { openConsole, owner, sharedConsole } from './console.ts'

setDefaultTimeout(60_000)

let fresh: Gatehouse
beforeAll(async () => {
  await sharedConsole()
  fresh = await startGatehouse()
}, 240_000)
afterAll(() => fresh?.stop())

test('the link of the first start makes the owner, leaves no secret in the address, and works once', async () => {
  await using opened = await openConsole({ gatehouse: fresh, as: null })
  const { page } = opened
  await page.goto(fresh.ready.setup_url ?? '')
  await page.getByLabel('Your e-mail address').fill(owner.email)
  expect(page.url()).not.toContain('gthc_')
  await page.getByLabel('Your name').fill(owner.name)
  await page.getByLabel('A new password').fill('short')
  await page.getByRole('button', { name: 'Set up' }).click()
  expect(await page.evaluate(`document.querySelector('input:invalid').autocomplete`)).toBe('new-password')
  await page.getByLabel('A new password').fill(owner.password)
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.goto(fresh.ready.setup_url ?? '')
  await page.reload()
  await page.getByLabel('Setup code').fill(new URL(fresh.ready.setup_url ?? '').hash.slice(1))
  await page.getByLabel('Your e-mail address').fill('thief@example.com')
  await page.getByLabel('Your name').fill('Thief')
  await page.getByLabel('A new password').fill(owner.password)
  await page.getByRole('button', { name: 'Set up' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('link')
})

test('a person who signs in goes on where the address leads, and a wrong password is told', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await opened.to('/tokens?status=active')
  await page.getByLabel('E-mail address').fill(owner.email)
  await page.getByLabel('Password').fill('not the right one')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Password').fill(owner.password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Tokens' }).waitFor()
  expect(page.url()).toEndWith('/console/tokens?status=active')
  await page.getByText('administrator').waitFor()
})

test('a session that ended elsewhere asks to sign in again, in place', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/settings')
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  await page.context().clearCookies()
  // What the page asks for by itself may have found it out before.
  await page.locator('nav a[href$="/tokens"]').dispatchEvent('click')
  await page.getByText('Your session has ended').waitFor()
  expect(page.url()).toEndWith('/console/tokens')
})

test('signing out ends the session', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/settings')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})
