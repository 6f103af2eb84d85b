/** Sign-in at a real OpenID provider, in a real browser. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { z } from 'zod'
import { client, type IdentityProvider, startIdentityProvider } from '../fakes/identity-provider.ts'
import { api, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { endConsole, make, openConsole, owner, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)

const record = z.looseObject({ id: z.string(), redirect_uri: z.string() })
let provider: IdentityProvider
let providerId: string

beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  const port = await freePort()
  const body = {
    ...{ name: 'Acme sign-in', issuer: `http://127.0.0.1:${port}` },
    ...{ client_id: client.id, client_secret: client.secret },
    ...{ scope: 'openid email profile groups offline_access', recheck_seconds: 60, sign_out_at_provider: true },
    groups: [
      { group: 'staff', role: 'member' },
      { group: 'operators', role: 'operator' },
    ],
  }
  const made = expectAnswer(await api(gatehouse, '/v1/identity-providers', { body }), 201, record)
  providerId = made.id
  provider = await startIdentityProvider(port, made.redirect_uri, gatehouse.ready.console_url)
  provider.people.set('mia', { email: 'mia@acme.test', email_verified: true, name: 'Mia', groups: ['operators'] })
  provider.people.set('ben', { email: 'ben@acme.test', email_verified: true, name: 'Ben', groups: [] })
  provider.people.set('olga', { email: owner.email, email_verified: true, name: 'Olga', groups: ['staff'] })
}, 240_000)
afterAll(async () => {
  await provider?.[Symbol.asyncDispose]()
  await endConsole()
})

async function signInThere(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Continue with Acme sign-in' }).click()
  await page.getByLabel('Your name').fill(name)
  await page.getByRole('button', { name: 'Sign in here' }).click()
}

test('a person signs in at the provider and goes on where they were', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await opened.to('/tokens?status=active')
  await page.getByRole('button', { name: 'Continue with Acme sign-in' }).waitFor()
  expect(await seriousInBothThemes(page, 'sign-in-at-a-provider')).toEqual([])
  await signInThere(page, 'mia')
  await page.getByRole('heading', { name: 'Tokens' }).waitFor()
  expect(page.url()).toEndWith('/console/tokens?status=active')
  await opened.within('/settings')
  await page.getByText('mia@acme.test').waitFor()
  await page.getByText('Operator').first().waitFor()
})

test('signing out ends the session here and at the provider', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await opened.to('/settings')
  await signInThere(page, 'mia')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(`${provider.issuer}/**`)
  await page.getByRole('button', { name: 'Yes, sign me out' }).click()
  await page.getByRole('button', { name: 'Continue with Acme sign-in' }).click()
  await page.getByRole('heading', { name: 'Sign in at the provider' }).waitFor()
})

test('a person whom no group lets in is told so, and the reason leaves the address', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await opened.to('/traffic')
  await signInThere(page, 'ben')
  await page.getByText('None of your groups gives you access').waitFor()
  expect(page.url()).toEndWith('/console/traffic')
  expect(await seriousInBothThemes(page, 'sign-in-refused')).toEqual([])
})

test('an address of another account is not enough; linking it from that account is', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await make('/v1/users', { email: 'lin@acme.test', name: 'Lin', role: 'admin', password: 'a long enough secret 2' })
  provider.people.set('lin', { email: 'lin@acme.test', email_verified: true, name: 'Lin', groups: ['operators'] })
  await opened.to('/settings')
  await signInThere(page, 'lin')
  await page.getByText('Another account has your e-mail address').waitFor()
  await page.getByLabel('E-mail address').fill('lin@acme.test')
  await page.getByLabel('Password').fill('a long enough secret 2')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  const card = page.locator('section', { has: page.getByRole('heading', { name: 'Identity providers' }) })
  await card.getByLabel('Your password').fill('a long enough secret 2')
  await card.getByRole('button', { name: 'Link Acme sign-in' }).click()
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  await page.getByText('Operator').first().waitFor()
})

test('a program is let in by a person who comes from the provider', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  const { gatehouse } = await sharedConsole()
  const listener = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('You can close this page') })
  const verifier = 'a-verifier-of-more-than-43-characters-which-is-random'
  const redirect_uri = `http://127.0.0.1:${listener.port}/callback`
  const asked = new URLSearchParams({
    ...{ client_id: 'gatehouse-cli', redirect_uri, code_challenge_method: 'S256', state: 'a state & <more>' },
    code_challenge: new Bun.CryptoHasher('sha256').update(verifier).digest('base64url'),
  })
  await opened.to(`/authorize-program?${asked}`)
  await signInThere(page, 'mia')
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.waitForURL(/^http:[^?]*\/callback/)
  const code = new URL(page.url()).searchParams.get('code')
  const body = { code, code_verifier: verifier, client_id: 'gatehouse-cli', redirect_uri }
  const given = z.looseObject({ session_token: z.string(), user: z.looseObject({ email: z.string() }) })
  const answer = await api(gatehouse, '/v1/auth/session/exchange-code', { token: null, body })
  const { user } = expectAnswer(answer, 201, given)
  expect(user.email).toBe('mia@acme.test')
  await listener.stop(true)
})

test('a consent page goes on after the sign-in at the provider', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  const { gatehouse } = await sharedConsole()
  const registered = { client_name: 'A notebook', redirect_uris: ['http://127.0.0.1:9/cb'], scope: 'events:read' }
  const answer = await api(gatehouse, '/v1/oauth/clients', { body: registered })
  const { client_id } = expectAnswer(answer, 201, z.looseObject({ client_id: z.string() }))
  const asked = new URLSearchParams({
    ...{ response_type: 'code', client_id, redirect_uri: 'http://127.0.0.1:9/cb', scope: 'events:read', state: 's' },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
  })
  await opened.to(`/oauth/authorize?${asked}`)
  await signInThere(page, 'mia')
  await page.getByText('A notebook').waitFor()
  await page.getByRole('button', { name: 'Approve' }).waitFor()
})

test('a person who loses the group loses the session within a minute of the next question', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  const { gatehouse } = await sharedConsole()
  provider.people.set('eve', { email: 'eve@acme.test', email_verified: true, name: 'Eve', groups: ['staff'] })
  await opened.to('/settings')
  await signInThere(page, 'eve')
  await page.getByText('eve@acme.test').waitFor()
  provider.people.set('eve', { email: 'eve@acme.test', email_verified: true, name: 'Eve', groups: [] })
  // A change of the record has everybody asked about anew: the test need not wait for a minute.
  await api(gatehouse, `/v1/identity-providers/${providerId}`, { method: 'PATCH', body: { recheck_seconds: 61 } })
  await until('the session has ended', async () => {
    const answer = await page.context().request.get(`${gatehouse.baseUrl}/v1/auth/session`)
    return answer.status() === 401
  })
})

test('the form of a provider is made from its description, and shows what to register', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/people?kind=providers')
  await page.getByText('Acme sign-in').waitFor()
  await page.getByRole('button', { name: 'Add identity provider' }).click()
  await page.getByLabel('Name').first().fill('Second')
  await page.getByLabel('Issuer').fill('http://elsewhere.example.com')
  await page.getByLabel('Client id').fill('gatehouse')
  const dialog = page.getByRole('dialog')
  expect(await seriousInBothThemes(page, 'identity-provider-form', 'dialog')).toEqual([])
  await dialog
    .getByRole('button', { name: /^(Add|Create|Save)/ })
    .last()
    .click()
  await dialog.getByText('An issuer on another host needs https://').first().waitFor()
})
