import { afterAll, expect, test } from 'bun:test'
import { AccessTokens } from '../google/access-tokens.ts'
import { testServiceKey } from '../google/testing/service-key.ts'
import { listedModel } from '../prices/price-table.ts'
import type { Provider, UpstreamCall } from '../provider.ts'
import { vertex, vertexWith } from './vertex.ts'

interface Seen {
  path: string
  token: string | null
  version: string | null
  body: Record<string, unknown>
}
const seen: Seen[] = []
let issued = 0
let refuses: string | null = null
let isRevoked = false
const google = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname, search } = new URL(request.url)
    if (pathname === '/token') {
      issued += 1
      if (isRevoked) return Response.json({ error: 'invalid_grant' }, { status: 400 })
      return Response.json({ access_token: `token-${issued}`, expires_in: 3600 })
    }
    const token = request.headers.get('authorization')
    const version = request.headers.get('anthropic-version')
    seen.push({ path: pathname + search, token, version, body: JSON.parse(await request.text()) })
    if (token === refuses) return Response.json({ error: { code: 401 } }, { status: 401 })
    if (pathname.endsWith(':countTokens')) return Response.json({ totalTokens: 7 })
    return Response.json({ input_tokens: 9 })
  },
})
afterAll(() => google.stop(true))

let accounts = 0
/** Each provider has an account of its own, so that none has the token of another. */
const provider = (members: Partial<Provider> = {}): Provider => ({
  ...{ id: 'v', name: 'v', kind: 'vertex', baseUrl: google.url.origin, headers: {}, allowUnlistedModels: true },
  apiKey: testServiceKey(`${google.url.origin}/token`, { client_email: `a${++accounts}@x` }),
  ...members,
})

const call = (model: string, members: Partial<UpstreamCall> = {}): UpstreamCall => ({
  ...{ family: 'chat', model, stream: false, contentType: 'application/json', headers: {}, answerLimit: 1_000_000 },
  body: Buffer.from(`{"model":"${model}","messages":[], "max_tokens":5.0}`),
  signal: new AbortController().signal,
  ...members,
})

async function sent(of: Provider, asked: UpstreamCall) {
  seen.length = 0
  const answer = await vertex.send(of, asked, fetch)
  return { answer, seen: seen.map(({ path }) => path), first: seen[0] }
}

/** The addresses that a provider of Google's own would be asked at. */
async function addressesAt(baseUrl: string | null) {
  const urls: string[] = []
  const of = provider({ baseUrl })
  await vertex.send(of, call('gemini-2.5-flash'), async (url, init) => {
    if (url.endsWith('/token')) return await fetch(url, init)
    urls.push(url)
    return Response.json({})
  })
  return urls
}

test('asks Gemini and Anthropic models, each in its own way, with an access token', async () => {
  const of = provider()
  const place = '/v1/projects/my-project/locations/global/publishers'
  const gemini = await sent(of, call('gemini-2.5-flash', { body: Buffer.from('{"contents":[]}') }))
  expect(gemini.first).toMatchObject({
    path: `${place}/google/models/gemini-2.5-flash:generateContent`,
    token: expect.stringMatching(/^Bearer token-/),
    body: { contents: [] },
  })
  const stream = await sent(of, call('gemini-2.5-flash', { stream: true }))
  expect(stream.seen).toEqual([`${place}/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse`])
  const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'b' }
  const claude = await sent(of, call('claude-sonnet-4@20250514', { headers }))
  expect(claude.first).toMatchObject({
    path: `${place}/anthropic/models/claude-sonnet-4@20250514:rawPredict`,
    version: null,
  })
  expect(claude.first?.body).toEqual({ messages: [], max_tokens: 5, anthropic_version: 'vertex-2023-10-16' })
  const streamed = await sent(of, call('claude-sonnet-4@20250514', { stream: true }))
  expect(streamed.seen).toEqual([`${place}/anthropic/models/claude-sonnet-4@20250514:streamRawPredict`])
})

test('counts tokens with the method of each publisher', async () => {
  const of = provider()
  const body = Buffer.from('{"contents":[{"parts":[]}],"safetySettings":[]}')
  const gemini = await sent(of, call('gemini-2.5-flash', { countTokens: true, body }))
  expect(gemini.first).toMatchObject({
    path: expect.stringMatching(/flash:countTokens$/),
    body: { contents: [{ parts: [] }] },
  })
  expect(gemini.first?.body.safetySettings).toBeUndefined()
  expect(await gemini.answer.json()).toEqual({ input_tokens: 7 })
  const claude = await sent(of, call('claude-haiku-4-5', { countTokens: true }))
  expect(claude.first).toMatchObject({
    path: expect.stringMatching(/anthropic\/models\/count-tokens:rawPredict$/),
    body: { model: 'claude-haiku-4-5', anthropic_version: 'vertex-2023-10-16' },
  })
})

test('takes region and project from the base URL, or the project from the key', async () => {
  const path = (project: string, region: string) =>
    `/v1/projects/${project}/locations/${region}/publishers/google/models/gemini-2.5-flash:generateContent`
  expect(await addressesAt(null)).toEqual([`https://aiplatform.googleapis.com${path('my-project', 'global')}`])
  for (const [origin, region] of [
    ['https://aiplatform.googleapis.com', 'global'],
    ['https://europe-west1-aiplatform.googleapis.com', 'europe-west1'],
    ['https://aiplatform.eu.rep.googleapis.com', 'eu'],
  ] as const) {
    expect(await addressesAt(origin)).toEqual([origin + path('my-project', region)])
    expect(await addressesAt(`${origin}/v1/projects/other/locations/us-east5`)).toEqual([
      origin + path('other', 'us-east5'),
    ])
  }
  await expect(addressesAt('https://proxy.example/v1/projects/a%2fb/locations/x')).rejects.toThrow('not valid')
})

test("uses the host's account and project where the provider has no key", async () => {
  const asked: string[] = []
  const hosted = vertexWith(new AccessTokens({ now: Date.now, monotonic: () => 0 }))
  await hosted.send(provider({ baseUrl: null, apiKey: null }), call('gemini-2.5-flash'), async (url, init) => {
    asked.push(`${url} ${new Headers(init.headers).get('authorization')}`)
    const headers = { 'metadata-flavor': 'Google' }
    if (url.endsWith('/token')) return Response.json({ access_token: 'host', expires_in: 3600 }, { headers })
    return url.endsWith('/project-id') ? new Response('host-project', { headers }) : Response.json({})
  })
  const path = '/v1/projects/host-project/locations/global/publishers/google/models/gemini-2.5-flash:generateContent'
  expect(asked.at(-1)).toBe(`https://aiplatform.googleapis.com${path} Bearer host`)
  expect(asked).toHaveLength(3)
})

test("adds the surcharge of a region to Anthropic's models since Sonnet 4.5", () => {
  const input = (model: string, baseUrl: string | null) =>
    listedModel('vertex', baseUrl, model, Date.now())?.price.tiers[0]?.input
  const regional = 'https://europe-west1-aiplatform.googleapis.com'
  expect(input('claude-sonnet-4-5@20250929', null)).toBe(3_000_000)
  expect(input('claude-sonnet-4-5@20250929', regional)).toBe(3_300_000)
  expect(input('claude-sonnet-4-5', 'https://proxy.example/v1/projects/p/locations/us')).toBe(3_300_000)
  expect(input('claude-sonnet-4@20250514', regional)).toBe(3_000_000)
  expect(input('gemini-2.5-flash', regional)).toBe(300_000)
})

test('takes a new token and asks once more when Vertex AI refuses one that it took before', async () => {
  let elapsed = 0
  const aged = vertexWith(new AccessTokens({ now: Date.now, monotonic: () => elapsed }))
  const of = provider()
  const asked = async () => {
    seen.length = 0
    const { status } = await aged.send(of, call('claude-sonnet-4'), fetch)
    return [status, ...seen.map(({ token }): string | null => token)]
  }
  const [, first] = await asked()
  refuses = String(first)
  // A token of a few seconds is not the reason.
  expect(await asked()).toEqual([401, String(first)])
  elapsed = 20_000
  expect(await asked()).toEqual([200, String(first), `Bearer token-${issued}`])
  expect(await asked()).toEqual([200, `Bearer token-${issued}`])
  refuses = null
})

test('fails with the reason when a key that is in use is revoked', async () => {
  let elapsed = 0
  const aged = vertexWith(new AccessTokens({ now: Date.now, monotonic: () => elapsed }))
  const of = provider()
  await aged.send(of, call('gemini-2.5-flash'), fetch)
  refuses = seen.at(-1)?.token ?? null
  isRevoked = true
  elapsed = 20_000
  await expect(aged.send(of, call('gemini-2.5-flash'), fetch)).rejects.toThrow('status 400 (invalid_grant)')
  const before = issued
  await expect(aged.send(of, call('gemini-2.5-flash'), fetch)).rejects.toThrow('invalid_grant')
  expect(issued).toBe(before)
  isRevoked = false
  refuses = null
})

test('names each model once for policies, with or without its resource and version', () => {
  expect(vertex.modelNames?.('claude-sonnet-4@20250514')).toEqual({
    id: 'claude-sonnet-4@20250514',
    aliases: ['models/claude-sonnet-4@20250514', 'claude-sonnet-4-20250514', 'claude-sonnet-4'],
  })
  expect(vertex.modelNames?.('publishers/google/models/gemini-2.5-pro')).toEqual({
    id: 'gemini-2.5-pro',
    aliases: ['publishers/google/models/gemini-2.5-pro', 'models/gemini-2.5-pro'],
  })
  expect(vertex.modelNames?.('endpoints/123')).toBeNull()
  expect(vertex.modelNames?.('gemini:predict')).toBeNull()
  expect(vertex.forModel?.('publishers/anthropic/models/claude-opus-4')?.families).toEqual(['messages'])
})

test("sends the host's tokens to Google only, and takes only a service account's key", () => {
  const own = 'https://europe-west1-aiplatform.googleapis.com'
  expect(vertex.keyProblem?.(null, null)).toBeNull()
  expect(vertex.keyProblem?.(null, own)).toBeNull()
  for (const url of ['https://evil.example', 'https://googleapis.com.evil.example', 'https://evilgoogleapis.com']) {
    expect(vertex.keyProblem?.(null, url)).toContain('Give the key of a service account')
    const stolen = vertex.send(provider({ apiKey: null, baseUrl: url }), call('gemini-2.5-flash'), async () => {
      throw new Error('It asked')
    })
    expect(stolen).rejects.toThrow('sent to Google only')
  }
  expect(vertex.keyProblem?.('AIza-key', null)).toContain('no JSON key')
  expect(vertex.keyProblem?.(testServiceKey('https://oauth2.googleapis.com/token'), 'https://proxy.example')).toBeNull()
  expect(vertex.addressProblem(`${own}/v1beta/models`, {})).toContain('https://REGION-aiplatform.googleapis.com')
  expect(vertex.addressProblem(`${own}/v1/projects/p/locations/l`, {})).toBeNull()
})
