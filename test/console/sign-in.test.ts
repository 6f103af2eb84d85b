import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { codeOfStep, stepAt } from '../../src/members/people/totp.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { endConsole, make, openConsole, owner, seriousFindings, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)

/** What an app with this key shows now, or in a later step. */
function codeOf(key: string, later = 0): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const bits = [...key.trim()].map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0')).join('')
  const secret = Uint8Array.from((bits.match(/.{8}/g) ?? []).map((eight) => Number.parseInt(eight, 2)))
  return codeOfStep(secret, stepAt(Date.now()) + later)
}

let fresh: Gatehouse
beforeAll(async () => {
  ;[fresh] = await Promise.all([startGatehouse(), sharedConsole()])
}, 240_000)
afterAll(endConsole)
afterAll(() => fresh?.stop())

test('the link of the first start creates the owner, leaves no secret in the address and works once', async () => {
  await using opened = await openConsole({ gatehouse: fresh, as: null })
  const { page } = opened
  await page.goto(fresh.ready.setup_url ?? '')
  await page.getByLabel('Your e-mail address').fill(owner.email)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await seriousFindings(page)).toEqual([])
  }
  expect(page.url()).not.toContain('gthc_')
  await page.getByLabel('Your name').fill(owner.name)
  await page.getByLabel('New password').fill('short')
  await page.getByRole('button', { name: 'Set up' }).click()
  expect(await page.evaluate(`document.querySelector('input:invalid').autocomplete`)).toBe('new-password')
  await page.getByLabel('New password').fill(owner.password)
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  const used = fresh.ready.setup_url ?? ''
  await page.goto('about:blank')
  await page.goto(used)
  await page.getByText(`You are signed in as ${owner.email}.`).waitFor()
  await page.context().clearCookies()
  await page.goto('about:blank')
  await page.goto(used)
  await page.getByRole('heading', { name: 'Gatehouse is set up' }).waitFor()
  expect(await page.getByRole('textbox').count()).toBe(0)
  expect(await seriousFindings(page)).toEqual([])
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByLabel('Password').waitFor()
})

test('an invited person sets a password by the link, which leaves no secret in the address', async () => {
  await using admin = await openConsole()
  await make('/v1/users', { email: 'ina@example.com', name: 'Ina Invited' })
  await admin.to('/people')
  await admin.page
    .getByRole('row', { name: /Ina Invited/ })
    .getByRole('button', { name: 'Invite' })
    .click()
  const dialog = admin.page.getByRole('dialog')
  const link = (await dialog.locator('[data-secret]').textContent()) ?? ''
  expect(await seriousInBothThemes(admin.page, 'invitation-link', 'dialog')).toEqual([])
  await dialog.getByRole('button', { name: 'Done' }).click()
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await page.goto(link)
  await page.getByRole('heading', { name: /Welcome, Ina Invited/ }).waitFor()
  expect(await seriousInBothThemes(page, 'invitation')).toEqual([])
  expect(page.url()).toEndWith('/console/invitation')
  await page.getByLabel('New password').fill('a long enough secret 3')
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.goto('about:blank')
  await page.goto(link)
  await page.getByText('The invitation is unknown, used or expired').first().waitFor()
})

test('a person adds an authenticator app, and signs in with its code', async () => {
  const credentials = { email: 'tom@example.com', password: 'a long enough secret 5' }
  await make('/v1/users', { ...credentials, name: 'Tom Twofactor' })
  await using opened = await openConsole({ as: credentials })
  const { page } = opened
  await opened.to('/settings')
  await page.getByLabel('Your password').fill(credentials.password)
  await page.getByRole('button', { name: 'Add an authenticator app' }).click()
  const key = (await page.locator('[data-secret]').textContent()) ?? ''
  expect(await seriousInBothThemes(page, 'second-factor')).toEqual([])
  await page.getByLabel('Code').fill(codeOf(key))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByRole('button', { name: 'Remove the app' }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('E-mail address').fill(credentials.email)
  await page.getByLabel('Password').fill(credentials.password)
  await page.keyboard.press('Enter')
  await page.getByText('This account has a second factor').first().waitFor()
  // The code of the step that confirmed the app is used up; the one after it is taken already.
  await page.getByLabel('Code').fill(codeOf(key, 1))
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
})

test('sign-in continues at the requested address, and a wrong password is reported', async () => {
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

test('a session that ended elsewhere asks for a new sign-in in place', async () => {
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

test('sign-out ends the session', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/settings')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('a signed-out page sends no request that is refused', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  const said: string[] = []
  page.on('console', (message) => said.push(message.text()))
  await opened.to('/tokens')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.waitForLoadState('networkidle')
  expect(said).toEqual([])
})

test('all pages of a browser follow a sign-out and a sign-in at once', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/settings')
  const other = await page.context().newPage()
  await other.goto(page.url())
  await other.getByRole('heading', { name: 'Settings' }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await other.getByText('Your session has ended').waitFor()
  await page.getByLabel('E-mail address').fill(owner.email)
  await page.getByLabel('Password').fill(owner.password)
  await page.keyboard.press('Enter')
  await other.getByText('Your session has ended').waitFor({ state: 'detached' })
  await other.getByRole('heading', { name: 'Settings' }).waitFor()
})
