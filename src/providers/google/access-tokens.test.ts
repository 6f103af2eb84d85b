import { afterAll, beforeEach, expect, test } from 'bun:test'
import { AccessTokens } from './access-tokens.ts'
import { readServiceAccount } from './service-account.ts'
import { testServiceKey } from './testing/service-key.ts'

const second = 1000
let elapsed = 0
const clock = { now: () => 1_700_000_000_000 + elapsed, monotonic: () => elapsed }

const issued = () => Response.json({ access_token: `token-${asked}`, expires_in: 3600, token_type: 'Bearer' })
let answer: () => Response | Promise<Response> = issued
let asked = 0
const endpoint = Bun.serve({
  port: 0,
  idleTimeout: 0,
  fetch() {
    asked += 1
    return answer()
  },
})
afterAll(() => endpoint.stop(true))

const account = readServiceAccount(testServiceKey(`${endpoint.url.origin}/token`))
let tokens = new AccessTokens(clock)
beforeEach(() => {
  elapsed = 0
  asked = 0
  answer = issued
  tokens = new AccessTokens(clock)
})

const waiting = new AbortController().signal
const token = async (signal = waiting) => (await tokens.of(account, fetch, signal)).text
/** The message of a call that gets no token. */
const refusal = () =>
  token().then(
    (text) => text,
    (error: Error) => `${error.name}: ${error.message}`,
  )
const refreshed = async (count: number) => {
  for (let tries = 0; asked < count && tries < 200; tries++) await Bun.sleep(5)
  // The answer still has to be read.
  await Bun.sleep(20)
}

test('asks once for calls that come together, and keeps the token', async () => {
  expect(await Promise.all([token(), token(), token()])).toEqual(['token-1', 'token-1', 'token-1'])
  elapsed = 1700 * second
  expect(tokens.of(account, fetch, waiting)).not.toBeInstanceOf(Promise)
  expect([await token(), asked]).toEqual(['token-1', 1])
})

test('refreshes in the background when half the life of a token has passed, once at a time', async () => {
  await token()
  elapsed = 1800 * second
  expect(await Promise.all([token(), token()])).toEqual(['token-1', 'token-1'])
  await refreshed(2)
  expect([await token(), asked]).toEqual(['token-2', 2])
})

test('keeps a token through an outage until it expires, then fails at once and says why', async () => {
  await token()
  answer = () => new Response('<html>down, secret</html>', { status: 503 })
  elapsed = 1800 * second
  expect(await token()).toBe('token-1')
  await refreshed(2)
  expect([await token(), asked]).toEqual(['token-1', 2])
  elapsed += 15 * second
  await token()
  await refreshed(3)
  expect([await token(), asked]).toEqual(['token-1', 3])
  elapsed = 3600 * second
  const message = 'AccessTokenError: The token endpoint of Google answered with status 503'
  expect(await refusal()).toBe(message)
  expect([await refusal(), asked]).toEqual([message, 4])
  answer = issued
  elapsed += 15 * second
  expect(await token()).toBe('token-5')
})

test('uses a valid token while the endpoint hangs, and a caller without one stops waiting when it leaves', async () => {
  await token()
  const hanging = Promise.withResolvers<Response>()
  answer = () => hanging.promise
  elapsed = 1800 * second
  expect(await Promise.all([token(), token()])).toEqual(['token-1', 'token-1'])
  elapsed = 3600 * second
  await refreshed(2)
  const leaving = new AbortController()
  const left = token(leaving.signal)
  const staying = token()
  leaving.abort(new Error('The caller left'))
  await expect(left).rejects.toThrow('The caller left')
  hanging.resolve(issued())
  expect([await staying, asked]).toEqual(['token-2', 2])
})

test('refuses an answer that is no access token', async () => {
  for (const rubbish of [
    () => new Response('<html>'),
    () => Response.json([]),
    () => Response.json({ access_token: 'a' }),
    () => Response.json({ access_token: '', expires_in: 3600 }),
    () => Response.json({ access_token: 'a\nb: c', expires_in: 3600 }),
    () => Response.json({ access_token: 'a', expires_in: -1 }),
    () => Response.json({ access_token: 'a', expires_in: 'soon' }),
    () => new Response('x'.repeat(100_000)),
    () => Response.redirect('https://elsewhere.example/'),
  ]) {
    tokens = new AccessTokens(clock)
    answer = rubbish
    expect(await refusal()).toStartWith('AccessTokenError: The ')
  }
})

test('names the error code of a revoked key and nothing else of the answer', async () => {
  answer = () => Response.json({ error: 'invalid_grant', error_description: 'secret' }, { status: 400 })
  expect(await refusal()).toBe(
    'AccessTokenError: The token endpoint of Google answered with status 400 (invalid_grant)',
  )
})

test('does not believe a life of more than a day', async () => {
  answer = () => Response.json({ access_token: `token-${asked}`, expires_in: 1e15 })
  await token()
  elapsed = 86_400 * second
  expect(await token()).toBe('token-2')
})

test('drops a refused token, but not one that is younger than 15 seconds', async () => {
  await token()
  expect(tokens.drop(account, 'token-1')).toBe(false)
  elapsed = 16 * second
  expect(tokens.drop(account, 'token-1')).toBe(true)
  // A call that was refused beside it waits for the same new token.
  expect(tokens.drop(account, 'token-1')).toBe(true)
  expect(await Promise.all([token(), token()])).toEqual(['token-2', 'token-2'])
})

test('keeps the tokens of two keys apart', async () => {
  await token()
  const other = readServiceAccount(testServiceKey(`${endpoint.url.origin}/token`, { client_email: 'other@x' }))
  expect((await tokens.of(other, fetch, waiting)).text).toBe('token-2')
})

test("takes the host's token and project from the metadata server, and only from Google's", async () => {
  const urls: string[] = []
  const metadata =
    (headers: Record<string, string>) =>
    async (url: string, init: BunFetchRequestInit): Promise<Response> => {
      urls.push(`${url} ${new Headers(init.headers).get('metadata-flavor')}`)
      const body = url.endsWith('/token') ? '{"access_token":"host-token","expires_in":3599}' : 'host-project\n'
      return new Response(body, { headers })
    }
  expect(await tokens.of(null, metadata({ 'Metadata-Flavor': 'Google' }), waiting)).toMatchObject({
    text: 'host-token',
    project: 'host-project',
  })
  const base = 'http://metadata.google.internal/computeMetadata/v1'
  expect(urls).toEqual([`${base}/instance/service-accounts/default/token Google`, `${base}/project/project-id Google`])
  tokens = new AccessTokens(clock)
  const asking = Promise.resolve(tokens.of(null, metadata({}), waiting))
  await expect(asking).rejects.toThrow('no metadata server')
})
