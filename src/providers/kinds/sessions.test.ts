/** Where each kind opens its realtime sessions. */
import { afterAll, expect, test } from 'bun:test'
import type { Provider, ProviderKind } from '../provider.ts'
import { azureOpenai } from './azure-openai.ts'
import { openai } from './openai.ts'

const asked: { url: string; headers: Headers }[] = []
const server = Bun.serve({
  port: 0,
  fetch(request) {
    asked.push({ url: request.url, headers: new Headers(request.headers) })
    return new Response(null, { status: 404 })
  },
})
afterAll(() => server.stop(true))

const addresses: [kind: ProviderKind, path: string, address: string, header: string][] = [
  [openai, '', '/v1/realtime?model=gpt%20realtime', 'authorization'],
  [openai, '/compatible/v1/', '/compatible/v1/realtime?model=gpt%20realtime', 'authorization'],
  [azureOpenai, '', '/openai/v1/realtime?model=gpt%20realtime', 'api-key'],
  [azureOpenai, '/openai', '/openai/v1/realtime?model=gpt%20realtime', 'api-key'],
  [azureOpenai, '/openai/v1', '/openai/v1/realtime?model=gpt%20realtime', 'api-key'],
]

for (const [kind, path, address, header] of addresses) {
  test(`${kind.kind} with the base ${path || 'of an origin'} opens ${address}`, async () => {
    const provider: Provider = {
      ...{ id: 'p', name: 'p', kind: kind.kind, apiKey: 'key', headers: {}, allowUnlistedModels: true },
      baseUrl: `http://localhost:${server.port}${path}`,
    }
    const { promise, resolve } = Promise.withResolvers<string>()
    const call = { model: 'gpt realtime', headers: { 'user-agent': 'mine', [header]: "the caller's" } }
    kind.openSession?.(provider, call, { received: () => undefined, closed: resolve })
    await promise
    const request = asked.at(-1)
    expect(request?.url).toBe(`http://localhost:${server.port}${address}`)
    expect(request?.headers.get(header)).toBe(header === 'api-key' ? 'key' : 'Bearer key')
    expect(request?.headers.get('user-agent')).toBe('mine')
  })
}
