import { afterAll, beforeAll, expect, test } from 'bun:test'
import { silentLog } from '../lib/log/log.ts'
import { recheckIdentities } from '../members/identity-providers/recheck.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../members/testing/openid-provider.ts'
import { addProviderRecord, signInAt, whoIs } from '../members/testing/provider-sign-in.ts'
import { type TemporaryOAuth, type TestPerson, temporaryOAuth } from './testing/oauth.ts'

let oauth: TemporaryOAuth
let provider: OpenIdProvider
beforeAll(async () => {
  oauth = await temporaryOAuth()
  provider = startOpenIdProvider()
})
afterAll(async () => {
  await provider.stop()
  await oauth.remove()
})

test('a person who leaves the provider loses what applications hold in their name', async () => {
  const id = await addProviderRecord(oauth, provider, { recheck_seconds: 60 })
  const cookie = (await signInAt(oauth, provider, id)).session ?? ''
  const { csrf_token: csrf } = (await oauth.call('GET', '/v1/auth/session', { cookie })).json
  const browser = { cookie, csrf, userId: (await whoIs(oauth, cookie)).id }
  const ann: TestPerson = { id: browser.userId, browser, asPage: { cookie, headers: oauth.fromPage(browser) } }
  const client = await oauth.register()
  const given = await oauth.tokens(client, ann)
  expect(await oauth.works(given.access_token)).toBe(true)
  provider.refresh = 'withdrawn'
  oauth.clock.advance(60_000)
  await recheckIdentities({ ...oauth.dependencies, log: silentLog })
  expect((await oauth.refresh(client, given.refresh_token)).json.error).toBe('invalid_grant')
  oauth.clock.advance(6000)
  await oauth.settle()
  expect(await oauth.works(given.access_token)).toBe(false)
})
