import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, expectAnswer } from '../support/client.ts'
import { endConsole, openConsole, owner, picture, seriousFindings, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

/** Where a program on this computer listens for its answer. */
const listener = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('You can close this page') })
afterAll(() => listener.stop(true))

const verifier = 'a-verifier-of-more-than-43-characters-which-is-random'
const redirect = `http://127.0.0.1:${listener.port}/callback`
const asked = (changes: Record<string, string> = {}) =>
  `/authorize-program?${new URLSearchParams({
    client_id: 'gatehouse-cli',
    redirect_uri: redirect,
    code_challenge: new Bun.CryptoHasher('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state: 'a state & <more>',
    ...changes,
  })}`

const exchange = async (code: string, redirect_uri = redirect) => {
  const { gatehouse } = await sharedConsole()
  const body = { code, code_verifier: verifier, client_id: 'gatehouse-cli', redirect_uri }
  const answer = await api(gatehouse, '/v1/auth/session/exchange-code', { token: null, body })
  return expectAnswer(answer, 201, z.looseObject({ user: z.looseObject({ email: z.string() }) }))
}

test('a person who signs in on the page authorizes a program, which exchanges the code for a session', async () => {
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await opened.to(asked())
  await page.getByLabel('E-mail address').fill(owner.email)
  await page.getByLabel('Password').fill(owner.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText(`127.0.0.1:${listener.port}`).waitFor()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await seriousFindings(page)).toEqual([])
    await picture(page, `program-${colorScheme}`)
  }
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.waitForURL(/^http:[^?]*\/callback/)
  const answered = new URL(page.url()).searchParams
  expect(answered.get('state')).toBe('a state & <more>')
  expect((await exchange(answered.get('code') ?? '')).user.email).toBe(owner.email)
})

test('a denial is reported to the program, which gets no code', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(asked())
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.waitForURL(/^http:[^?]*\/callback/)
  const answered = Object.fromEntries(new URL(page.url()).searchParams)
  expect(answered).toEqual({ error: 'access_denied', state: 'a state & <more>' })
})

test('a program without a listener gets its code by copy and paste', async () => {
  const outOfBand = 'urn:ietf:wg:oauth:2.0:oob'
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(asked({ redirect_uri: outOfBand }))
  await page.getByRole('button', { name: 'Approve' }).click()
  const code = (await page.locator('[data-secret]').textContent()) ?? ''
  expect((await exchange(code, outOfBand)).user.email).toBe(owner.email)
})

test('an invalid authorization request is reported and leads nowhere', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(asked({ redirect_uri: 'https://evil.example/' }))
  await page.getByRole('alert').waitFor()
  expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
  expect(page.url()).toContain('/console/authorize-program')
})
