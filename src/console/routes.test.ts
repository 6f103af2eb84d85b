import { expect, test } from 'bun:test'
import { testApplication } from '../api/testing/application.ts'
import { consoleRoutes } from './routes.ts'

const ledger = { answers: true }

const serve = (consoleUrl: string) =>
  testApplication({
    features: [
      consoleRoutes({
        consoleUrl: () => consoleUrl,
        baseUrl: () => 'http://localhost:7070',
        gatewayUrl: () => 'http://localhost:7080/"><script>',
        isSignedIn: (request) =>
          ledger.answers
            ? Promise.resolve(request.headers.has('cookie'))
            : Promise.reject(new Error('The ledger is away')),
        isSetUp: () => Promise.resolve(true),
      }),
    ],
    authenticate: () => Promise.reject(new Error('The console needs nobody')),
    answers: { begin: () => Promise.reject(new Error('Nothing is written')) },
  })

const server = serve('http://localhost:7070/console')
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  server.fetch(new Request(`http://localhost:7070${path}`, { headers, method }))

/** The files that the page names. */
async function filesOf(page: Response): Promise<string[]> {
  return [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
}

test('serves the page at every path below its own, with a strict content security policy', async () => {
  for (const path of ['/console', '/console/', '/console/tokens/an-id', '/console/oauth/authorize?client_id=x']) {
    const page = await get(path)
    expect([path, page.status, page.headers.get('content-type')]).toEqual([path, 200, 'text/html; charset=utf-8'])
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toStartWith("default-src 'none';")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('serves a page without an inline script and escapes the data in it', async () => {
  const text = await (await get('/console')).text()
  expect(text.match(/<script/g)).toEqual(['<script'])
  expect(text).not.toMatch(/<style|style=|\son\w+=/)
})

test('states in the page whether somebody is signed in, and serves it when that is unknown', async () => {
  const said = async (headers?: Record<string, string>) =>
    /&quot;signed_in&quot;:(\w+)/.exec(await (await get('/console', headers)).text())?.[1]
  expect([await said(), await said({ cookie: 'a=b' })]).toEqual(['false', 'true'])
  ledger.answers = false
  expect(await said({ cookie: 'a=b' })).toBe('null')
  ledger.answers = true
})

test('preloads the session in the page of a signed-in person only', async () => {
  const asks = async (headers?: Record<string, string>) =>
    (await (await get('/console', headers)).text()).includes('rel="preload" as="fetch" href="/v1/auth/session"')
  expect([await asks(), await asks({ cookie: 'a=b' })]).toEqual([false, true])
})

test('states whether an owner exists only in the setup page', async () => {
  const said = async (path: string) => /&quot;set_up&quot;:(\w+)/.exec(await (await get(path)).text())?.[1]
  expect([await said('/console/setup'), await said('/console'), await said('/console/tokens')]).toEqual([
    'true',
    'null',
    'null',
  ])
})

test('serves its files under names made from their content, compressed when the browser accepts it', async () => {
  const first = await filesOf(await get('/console'))
  const script = await (await get(first.find((path) => path.endsWith('.js')) ?? '')).text()
  const later = new Set([...script.matchAll(/chunk-\w+\.js/g)].map(([name]) => `/console/assets/${name}`))
  expect([first.length, later.size]).toEqual([3, 1])
  const files = [...first, ...later]
  let compressed = 0
  for (const path of files) {
    expect(path).toMatch(/^\/console\/assets\/[a-z]+-\w+\.(js|css|svg)$/)
    const plain = await get(path)
    const zipped = await get(path, { 'accept-encoding': 'gzip, br' })
    expect([path, plain.status, plain.headers.get('content-encoding')]).toEqual([path, 200, null])
    expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    const bytes = await zipped.bytes()
    compressed += bytes.byteLength
    expect(new TextDecoder().decode(Bun.gunzipSync(new Uint8Array(bytes)))).toBe(await plain.text())
  }
  console.info(`the console's files are ${(compressed / 1000).toFixed(1)} kB compressed`)
  expect(compressed).toBeLessThan(150_000)
})

test('answers 404 for an unknown file and 405 for a write', async () => {
  expect((await get('/console/assets/main-0.js')).status).toBe(404)
  expect((await get('/console/assets/..%2Fmain.tsx')).status).toBe(404)
  expect((await get('/consoles')).status).toBe(404)
  expect((await get('/console/tokens', {}, 'POST')).status).toBe(405)
})

test('leaves the API addresses alone when the console is at the root of its origin', async () => {
  const root = serve('https://console.example.com/')
  const at = async (path: string) => (await root.fetch(new Request(`http://localhost:7070${path}`))).status
  expect(await Promise.all(['/', '/tokens', '/v1/nothing', '/.well-known/nothing'].map(at))).toEqual([
    200, 200, 404, 404,
  ])
})
