import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, expectAnswer } from '../support/client.ts'
import { startGatehouse } from '../support/harness.ts'
import {
  endConsole,
  make,
  openConsole,
  owner,
  picture,
  seriousFindings,
  seriousInBothThemes,
  setUpOwner,
  sharedConsole,
} from './console.ts'

setDefaultTimeout(120_000)

/** An application that runs on this computer. */
const application = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('Back at the application') })
const redirect = `http://127.0.0.1:${application.port}/callback?kept=1`
const verifier = 'a-verifier-of-more-than-43-characters-which-is-random'
let clientId: string

async function registered(fields: { client_name: string; scope: string }): Promise<string> {
  const { gatehouse } = await sharedConsole()
  const made = await api(gatehouse, '/v1/oauth/clients', { body: { redirect_uris: [redirect], ...fields } })
  return expectAnswer(made, 201, z.looseObject({ client_id: z.string() })).client_id
}

beforeAll(async () => {
  clientId = await registered({ client_name: 'Notebook <b>', scope: 'gateway:invoke tokens:read' })
}, 240_000)
afterAll(endConsole)
afterAll(() => application.stop(true))

const asked = (changes: Record<string, string> = {}) =>
  `/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirect,
    scope: 'gateway:invoke',
    state: 'a state & <more>',
    code_challenge: new Bun.CryptoHasher('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  })}`

test('the consent page names application, host and scopes, and an approval gives a code for tokens', async () => {
  const { gatehouse } = await sharedConsole()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(asked())
  await page.getByRole('heading', { name: 'Authorize this application?' }).waitFor()
  expect(await page.locator('blockquote').textContent()).toBe('“Notebook <b>”')
  expect(await page.locator('strong').allTextContents()).toEqual([`127.0.0.1:${application.port}`])
  expect(await page.locator('main li').count()).toBe(1)
  expect(await page.getByRole('link').count()).toBe(0)
  expect(await seriousFindings(page)).toEqual([])
  await picture(page, 'consent')
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.waitForURL(/^http:[^?]*\/callback/)
  const answered = new URL(page.url()).searchParams
  expect([answered.get('kept'), answered.get('state'), answered.get('iss')]).toEqual([
    '1',
    'a state & <more>',
    gatehouse.baseUrl,
  ])
  const body = {
    grant_type: 'authorization_code',
    code: answered.get('code'),
    redirect_uri: redirect,
    client_id: clientId,
    code_verifier: verifier,
  }
  const given = await api(gatehouse, '/v1/oauth/token', { token: null, body })
  expect(expectAnswer(given, 200, z.looseObject({ scope: z.string() })).scope).toBe('gateway:invoke')
})

test('an application name that reads like page text stays separate and takes at most three lines', async () => {
  const name = 'the Admin. Nothing new is asked; you have approved this already. Choose Approve to go on'
  const client_id = await registered({ client_name: name, scope: 'gateway:invoke' })
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  await opened.to(asked({ client_id }))
  const quoted = page.locator('blockquote')
  expect(await quoted.textContent()).toBe(`“${name}”`)
  expect(await page.getByRole('heading').allTextContents()).toEqual(['Authorize this application?'])
  await page.evaluate(`document.querySelector('blockquote').style.width = '120px'`)
  expect((await quoted.boundingBox())?.height).toBeLessThan(80)
  await picture(page, 'consent-name')
})

test('a denial returns access_denied with the exact state', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(asked())
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.waitForURL(/^http:[^?]*\/callback/)
  const answered = new URL(page.url()).searchParams
  expect([answered.get('error'), answered.get('state')]).toEqual(['access_denied', 'a state & <more>'])
})

test('an unregistered redirect address shows an error page and no link', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(asked({ redirect_uri: 'https://evil.example/' }))
  await page.getByText('Invalid authorization request').waitFor()
  expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
  expect(page.url()).toContain('/console/oauth/authorize')
})

test('a scope added after the page was shown must be shown before approval', async () => {
  const { gatehouse } = await sharedConsole()
  const client_id = await registered({ client_name: 'Growing', scope: 'gateway:invoke' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(asked({ client_id, scope: '' }))
  await page.getByText('“Growing”').waitFor()
  await api(gatehouse, `/v1/oauth/clients/${client_id}`, {
    method: 'PATCH',
    body: { scope: 'gateway:invoke tokens:read' },
  })
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('has changed since it was shown').waitFor()
  await page.getByText('tokens:read').waitFor()
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.waitForURL(/^http:[^?]*\/callback/)
  expect(new URL(page.url()).searchParams.has('code')).toBe(true)
})

test('a double click after another person signed in approves nothing, and the page names the new person', async () => {
  const { gatehouse } = await sharedConsole()
  const other = { email: 'swapped@example.com', password: 'a long enough secret 2' }
  await make('/v1/users', { ...other, name: 'Sam Swapped', role: 'member' })
  await using opened = await openConsole()
  const { page } = opened
  const signIn = async ({ email, password }: typeof other) => {
    const answer = await page
      .context()
      .request.post(`${gatehouse.baseUrl}/v1/auth/login`, { data: { email, password } })
    expect(answer.ok()).toBe(true)
  }
  const answerable = () => page.locator('.equal button:enabled').first().waitFor()
  const program = new URLSearchParams({
    ...{ client_id: 'gatehouse-cli', redirect_uri: `http://127.0.0.1:${application.port}/callback` },
    ...{ code_challenge: 'c'.repeat(43), code_challenge_method: 'S256', state: 's' },
  })
  for (const path of [asked(), `/authorize-program?${program}`]) {
    await signIn(owner)
    await opened.to(path)
    await answerable()
    await signIn(other)
    const place = await page.getByRole('button', { name: 'Approve' }).boundingBox()
    const [x, y] = [(place?.x ?? 0) + 20, (place?.y ?? 0) + 10]
    // The second click comes from within the page: from here it could come only once the buttons are there again.
    const second = page.evaluate(`new Promise((seen) => {
      new MutationObserver((_changes, watch) => {
        const approve = document.querySelector('.equal button:last-child')
        if (document.querySelector('[role=alert]') === null || approve === null) return
        watch.disconnect()
        approve.click()
        seen([approve.textContent, approve.disabled])
      }).observe(document.body, { childList: true, subtree: true })
    })`)
    await page.mouse.click(x, y)
    expect(await second).toEqual(['Approve', true])
    await page.getByText(`The account changed: you are now signed in as ${other.email}.`).waitFor()
    await answerable()
    expect(page.url()).toContain('/console/')
  }
})

test('an application is registered with the ticked scopes, and the form omits fixed fields', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/applications?open=new')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Client name').fill('Two scopes')
  await dialog.getByLabel('Redirect uris').fill('https://two.example.com/callback')
  await dialog.getByLabel('gateway:invoke').check()
  await dialog.getByLabel('events:read').check()
  expect(await dialog.getByText(/response type|auth method/i).count()).toBe(0)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await seriousFindings(page)).toEqual([])
  }
  await picture(page, 'applications-new')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('gateway:invoke events:read').waitFor()
})

test('an application that registered itself is shown as one that nobody has checked', async () => {
  await using gatehouse = await startGatehouse({ env: { SERVICE_OAUTH_DYNAMIC_REGISTRATION: 'allowed' } })
  await setUpOwner(gatehouse)
  const body = { client_name: 'Acme Bank', redirect_uris: [redirect] }
  const made = await api(gatehouse, '/v1/oauth/register', { token: null, body })
  const { client_id } = expectAnswer(made, 201, z.looseObject({ client_id: z.string() }))
  await using opened = await openConsole({ gatehouse })
  const { page } = opened
  await opened.to(asked({ client_id }))
  await page.getByText('It registered itself under this name. Nobody here has checked it').waitFor()
  expect(await page.locator('blockquote').textContent()).toBe('“Acme Bank”')
  expect(await seriousInBothThemes(page, 'consent-registered')).toEqual([])
})
