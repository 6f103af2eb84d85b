import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { hashSecret } from '../../identity/secret.ts'
import { type TemporaryOAuth, type TestPerson, temporaryOAuth } from '../../oauth/testing/oauth.ts'
import { revokeByLedger, revokeReported } from './tokens-to-revoke-again.ts'

let oauth: TemporaryOAuth
let client: string
let ada: TestPerson

beforeEach(async () => {
  oauth = await temporaryOAuth()
  client = await oauth.register()
  ada = await oauth.person()
})
afterEach(async () => {
  await oauth.remove()
})

const options = () => ({ ...oauth.server, recorder: () => oauth.server.recorder })
const endToken = (token: string) => oauth.call('POST', '/v1/oauth/revoke', { form: { token, client_id: client } })
/** The state as it was before anything was revoked. */
const restore = () => oauth.server.state.write([{ sql: 'update oauth_tokens set revoked_at = null', args: [] }])

test('revokes access tokens again that the ledger knows as revoked, by themselves or with their grant', async () => {
  const [one, two, kept] = [
    await oauth.tokens(client, ada),
    await oauth.tokens(client, ada),
    await oauth.tokens(client, ada),
  ]
  await endToken(one.access_token)
  await endToken(two.refresh_token)
  await restore()
  const works = () => Promise.all([one, two, kept].map(({ access_token: token }) => oauth.works(token)))
  expect(await works()).toEqual([true, true, true])
  expect(await revokeByLedger(options())).toBe(2)
  expect(await works()).toEqual([false, false, true])
  expect(await revokeByLedger(options())).toBe(0)
  const told = await recordedEvents(oauth.server.ledger, 'oauth.token_revoked')
  expect(told.filter(({ reason_code }) => reason_code === 'state.restored').length).toBe(2)
})

test('limits access tokens to what their users may do', async () => {
  await oauth.tokens(client, ada)
  await revokeByLedger(options())
  expect(await oauth.server.ledger.read('select user_id from pending_permission_updates')).toEqual([
    { user_id: ada.id },
  ])
})

test('revokes an access token again that a worker refused at a version that the state lacks', async () => {
  const [one, kept] = [await oauth.tokens(client, ada), await oauth.tokens(client, ada)]
  const revocations = [
    { hash: hashSecret(one.access_token), version: 1_000_000 },
    { hash: hashSecret(kept.access_token), version: 1 },
  ]
  expect(await revokeReported(options(), 'a worker', revocations)).toBe(1)
  expect([await oauth.works(one.access_token), await oauth.works(kept.access_token)]).toEqual([false, true])
})
