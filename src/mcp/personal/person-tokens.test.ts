import { beforeEach, expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { answering } from '../../languages/mcp/dialect.ts'
import type { PersonTokenReply, PersonTokenRequest } from './person-token.ts'
import { PersonTokens } from './person-tokens.ts'

const server = { id: '01990000-0000-7000-8000-00000000000a', name: 'tracker', url: 'https://mcp.test/mcp' }
const url = 'https://console.test/connections?server=tracker'

let now: number
let asked: PersonTokenRequest[]
let reply: PersonTokenReply | Failure
let tokens: PersonTokens
let told: string[]
beforeEach(() => {
  now = 0
  asked = []
  told = []
  reply = { status: 'connected', user_id: 'ann', connect_url: url, access_token: 'first', expires_in: 60 }
  tokens = new PersonTokens({
    watchMilliseconds: 2,
    clock: { now: () => now, monotonic: () => now },
    async ask(request) {
      asked.push(request)
      if (reply instanceof Failure) throw reply
      return reply
    },
  })
})

const hash = 'a'.repeat(64)
interface Credential {
  hash: string
  secret?: string
}
const callerFor = (
  credential: Credential,
  protocolVersion = '2025-11-25',
  capabilities: Record<string, unknown> = {},
) => ({
  credential: () => credential,
  protocolVersion,
  capabilities,
  notify: (method: string) => void told.push(method),
})
const callerOf = (
  credential: Credential = { hash, secret: 'secret of a' },
  ...more: [protocolVersion?: string, capabilities?: Record<string, unknown>]
) => tokens.of(server, callerFor(credential, ...more))

async function failureOf(call: Promise<unknown>): Promise<Failure> {
  const error = await call.catch((thrown: unknown) => thrown)
  if (error instanceof Failure) return error
  throw new Error(`No failure: ${String(error)}`)
}

test('asks once for many calls, and again after five seconds', async () => {
  const caller = callerOf()
  expect(await Promise.all([caller.token(), caller.token()])).toEqual(['first', 'first'])
  now = 4999
  await caller.token()
  expect(asked).toEqual([{ server_id: server.id, server_url: server.url, credential: 'secret of a', refused: null }])
  now = 5000
  await caller.token()
  expect(asked.length).toBe(2)
})

test('sends no token to another address of the server than the one it was given for', async () => {
  await callerOf().token()
  reply = { status: 'unavailable' }
  const moved = tokens.of({ ...server, url: 'https://moved.test/mcp' }, callerFor({ hash, secret: 'secret of a' }))
  expect((await failureOf(moved.token())).code).toBe('dependency_unavailable')
  expect(asked.map(({ server_url }) => server_url)).toEqual(['https://mcp.test/mcp', 'https://moved.test/mcp'])
})

test('asks at once for a token that the server has refused, and names it by its hash', async () => {
  const caller = callerOf()
  const first = await caller.token()
  reply = { status: 'connected', user_id: 'ann', connect_url: url, access_token: 'second', expires_in: null }
  expect(await caller.token(first)).toBe('second')
  expect(asked.at(-1)?.refused).toBe(new Bun.CryptoHasher('sha256').update('first').digest('hex'))
})

test('asks again for a refused token that another call was just given', async () => {
  const caller = callerOf()
  const first = await caller.token()
  now = 5000
  const recheck = caller.token()
  const instead = caller.token(first)
  reply = { status: 'connected', user_id: 'ann', connect_url: url, access_token: 'second', expires_in: null }
  expect([await recheck, await instead]).toEqual(['first', 'second'])
  expect(asked.map(({ refused }) => refused === null)).toEqual([true, true, false])
})

test('goes on with the token that is there while the control plane is away, until it expires', async () => {
  const caller = callerOf()
  await caller.token()
  reply = new Failure('dependency_unavailable')
  now = 59_999
  expect(await caller.token()).toBe('first')
  now = 60_000
  expect((await failureOf(caller.token())).code).toBe('dependency_unavailable')
})

test('follows a person who has disconnected within five seconds', async () => {
  const caller = callerOf()
  await caller.token()
  reply = { status: 'not_connected', connect_url: url }
  now = 5000
  expect((await failureOf(caller.token())).code).toBe('mcp.not_connected')
})

test('has a caller list again once the person has connected', async () => {
  const connected = reply
  reply = { status: 'not_connected', connect_url: url }
  const caller = callerOf()
  await failureOf(caller.token())
  reply = connected
  await caller.token()
  await caller.token()
  expect(told).toEqual(['tools', 'prompts', 'resources'].map((kind) => `notifications/${kind}/list_changed`))
})

test('gives each credential a token of its own, and nothing to one that is no person’s', async () => {
  const ann = callerOf({ hash: 'a'.repeat(64), secret: 'a secret' })
  const ben = callerOf({ hash: 'b'.repeat(64), secret: 'a secret' })
  await ann.token()
  reply = { status: 'connected', user_id: 'ben', connect_url: url, access_token: 'of ben', expires_in: 60 }
  expect(await ben.token()).toBe('of ben')
  expect(await ann.token()).toBe('first')
  expect((await failureOf(callerOf({ hash }).token())).code).toBe('mcp.no_person')
  reply = { status: 'no_person' }
  expect((await failureOf(callerOf({ hash: 'c'.repeat(64), secret: 'a secret' }).token())).code).toBe('mcp.no_person')
  expect(asked.length).toBe(3)
})

test('refuses a connection whose credential has become another person’s', async () => {
  const credential = { hash: 'a'.repeat(64), secret: 'a secret' }
  const caller = callerOf(credential)
  await caller.token()
  credential.hash = 'b'.repeat(64)
  reply = { status: 'connected', user_id: 'ben', connect_url: url, access_token: 'of ben', expires_in: 60 }
  expect((await failureOf(caller.token())).code).toBe('mcp.session_ended')
})

test('asks a client to open the address in the way of its version, if it opens any', async () => {
  reply = { status: 'not_connected', connect_url: url }
  const answerTo = async (version: string, capabilities: Record<string, unknown>, method = 'tools/call', params = {}) =>
    answering({ id: 7, method, params, sent: false }).errorBody(
      await failureOf(callerOf({ hash, secret: 'secret of a' }, version, capabilities).token()),
      'request',
    )
  const plain = { id: 7, error: { code: -32_000, data: { code: 'mcp.not_connected', connect_url: url } } }
  const opens = { elicitation: { url: {} } }
  expect(await answerTo('2025-06-18', opens)).toMatchObject(plain)
  expect(await answerTo('2025-11-25', {})).toMatchObject(plain)
  expect(await answerTo('2025-11-25', opens)).toMatchObject({
    error: { code: -32_042, data: { elicitations: [{ mode: 'url', url, elicitationId: expect.any(String) }] } },
  })
  expect(await answerTo('2026-07-28', {})).toMatchObject(plain)
  expect(await answerTo('2026-07-28', opens, 'completion/complete')).toMatchObject(plain)
  expect(await answerTo('2026-07-28', opens)).toMatchObject({
    id: 7,
    result: {
      resultType: 'input_required',
      inputRequests: { connect: { method: 'elicitation/create', params: { mode: 'url', url } } },
    },
  })
  // It sends its request again at once, and is not asked a second time.
  const inputResponses = { connect: { action: 'accept' } }
  const again = await answerTo('2026-07-28', opens, 'tools/call', { inputResponses })
  expect(again).toMatchObject(plain)
  expect(JSON.stringify(again)).not.toContain('elicitation')
})

test('names the scope that a server lacks of an account, and where to give it', async () => {
  const caller = callerOf({ hash, secret: 'secret of a' }, '2025-11-25', { elicitation: { url: {} } })
  await caller.token()
  const short = caller.refusal?.(403, 'Bearer error="insufficient_scope", scope="issues:write"')
  const address = `${url}&scope=issues%3Awrite`
  expect(short?.message).toContain(`needs more of your account (issues:write): connect it again: ${address}`)
  expect(short?.extra).toMatchObject({ connect_url: address, elicitation: 'error' })
  expect(caller.refusal?.(403, null)?.message).toContain('refuses your account (403)')
  expect(caller.refusal?.(401, 'Bearer error="invalid_token"')?.code).toBe('mcp.account_refused')
  expect(caller.refusal?.(500, null)).toBe(null)
})

test('ends an open stream once the person has disconnected, and not while no token is to be had', async () => {
  const caller = callerOf()
  await caller.token()
  let stopped = 0
  const unwatch = caller.watch?.(() => {
    stopped += 1
  })
  reply = { status: 'unavailable' }
  now = 60_000
  await until(() => asked.length > 3)
  expect(stopped).toBe(0)
  reply = { status: 'not_connected', connect_url: url }
  await until(() => stopped > 0)
  unwatch?.()
})

async function until(holds: () => boolean): Promise<void> {
  const end = Date.now() + 5000
  while (!holds()) {
    if (Date.now() > end) throw new Error('It did not happen')
    await Bun.sleep(1)
  }
}
