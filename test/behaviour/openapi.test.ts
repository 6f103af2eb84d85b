import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { RE2JS } from 're2js'
import { z } from 'zod'
import { expectGolden } from '../golden/golden-file.ts'
import { repository } from '../support/executable.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(120_000)

const operation = z.looseObject({
  /** Null where no permission is needed. */
  'x-permission': z.string().nullish(),
  'x-policy-stages': z.array(z.string()).optional(),
  servers: z.array(z.object({ url: z.string() })).optional(),
  responses: z.record(z.string(), z.unknown()),
})
const methods = ['get', 'post', 'put', 'patch', 'delete'] as const
const pathItem = z.looseObject({
  servers: z.array(z.object({ url: z.string() })).optional(),
  ...Object.fromEntries(methods.map((method) => [method, operation.optional()])),
})
const documentSchema = z.looseObject({
  openapi: z.string().startsWith('3.1'),
  info: z.looseObject({ version: z.string() }),
  paths: z.record(z.string(), pathItem),
})

let gatehouse: Gatehouse
let document: z.infer<typeof documentSchema>

beforeAll(async () => {
  gatehouse = await startGatehouse()
  document = documentSchema.parse(await (await fetch(`${gatehouse.baseUrl}/v1/openapi.json`)).json())
}, 240_000)
afterAll(() => gatehouse?.stop())

interface Described {
  method: string
  path: string
  url: string
  operation: z.infer<typeof operation>
}

const described = (): Described[] =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const found = operation.optional().parse(item[method])
      const url = found?.servers?.[0]?.url ?? item.servers?.[0]?.url ?? gatehouse.baseUrl
      return found ? [{ method: method.toUpperCase(), path, url, operation: found }] : []
    }),
  )

test('every route answers an unsupported method with 405 and names the supported ones', async () => {
  const id = '0198c8a2-5b1e-7c3a-9f00-123456789abc'
  for (const [path, routes] of Map.groupBy(described(), ({ path }) => path)) {
    const served = routes.map(({ method }) => method)
    // Retired.
    if (path === '/v1/oauth/authorize') served.push('POST')
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'QUERY']) {
      if (served.includes(method)) continue
      const answer = await fetch(`${routes[0]?.url}${path.replaceAll(/\{\w+\}/g, id)}`, { method })
      expect([method, path, answer.status]).toEqual([method, path, 405])
      expect(answer.headers.get('allow')?.split(', ')).toEqual(expect.arrayContaining(served))
    }
  }
})

test('the operations are those of the golden file', async () => {
  const operations = described().map(({ method, path }) => `${path} ${method}\n`)
  await expectGolden('product/operations.txt', operations.toSorted().join(''))
})

test('the document is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document))
  expect(errors ?? []).toEqual([])
  expect(valid).toBe(true)
})

test('redocly finds no error in the document', async () => {
  const directory = temporaryDirectory()
  try {
    const file = join(directory, 'openapi.json')
    await Bun.write(file, JSON.stringify(document))
    const redocly = join(repository, 'node_modules/@redocly/cli/bin/cli.js')
    const lint = Bun.spawn([process.execPath, redocly, 'lint', file], {
      cwd: directory,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: directory,
        REDOCLY_TELEMETRY: 'off',
        REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
      },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [code, ...texts] = await Promise.all([
      lint.exited,
      new Response(lint.stdout).text(),
      new Response(lint.stderr).text(),
    ])
    expect([code, code === 0 ? '' : texts.join('\n')]).toEqual([0, ''])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('both listeners serve the same document', async () => {
  const other: unknown = await (await fetch(`${gatehouse.gatewayUrl}/v1/openapi.json`)).json()
  expect(other).toEqual(JSON.parse(JSON.stringify(document)))
})

test('every served route is described, and none between our own processes', () => {
  const routes = described().map(({ method, path }) => `${method} ${path}`)
  expect(routes).toEqual(
    expect.arrayContaining([
      'POST /v1/tokens',
      'GET /v1/tokens',
      'GET /v1/tokens/{id}',
      'DELETE /v1/tokens/{id}',
      'GET /v1/events',
      'POST /v1/chat/completions',
      'GET /v1/models',
    ]),
  )
  expect(routes.filter((name) => /^GET \/v1\/models\/\{/.test(name)).length).toBe(1)
  expect(routes.filter((name) => name.includes('gateway-runtime'))).toEqual([])
})

test('every described route is served where the document says', async () => {
  const answers = await Promise.all(
    described().map(async ({ method, path, url }) => {
      const target = `${url}${path.replaceAll(/\{[^}]+\}/g, 'x')}`
      const { status } = await fetch(target, { method, redirect: 'manual' })
      return { route: `${method} ${path}`, status }
    }),
  )
  expect(answers.filter(({ status }) => status === 404 || status === 405 || status >= 500)).toEqual([])
})

test('every operation names its permission, and every gateway operation its policy stages', () => {
  const gatewayPaths = ['/v1/chat/completions', '/v1/models']
  for (const { method, path, url, operation: found } of described()) {
    expect([method, path, found['x-permission'] !== undefined]).toEqual([method, path, true])
    if (!gatewayPaths.some((start) => path.startsWith(start))) continue
    expect([path, url]).toEqual([path, gatehouse.gatewayUrl])
    expect([path, found['x-policy-stages'] !== undefined]).toEqual([path, true])
  }
})

test('no schema contains internals of the library that made it', () => {
  const text = JSON.stringify(document)
  for (const inside of ['"def":{', '"_zod"', '~standard']) expect(text).not.toContain(inside)
})

test('the version is the same everywhere', async () => {
  expect(document.info.version).toBe('0.2.0')
  for (const url of [gatehouse.baseUrl, gatehouse.gatewayUrl]) {
    expect(await (await fetch(`${url}/healthz`)).text()).toContain('"0.2.0"')
  }
  const manifest: unknown = await Bun.file(join(repository, 'package.json')).json()
  expect(manifest).toMatchObject({ version: '0.2.0' })
})

test('the documentation page loads nothing from other origins', async () => {
  const page = await fetch(`${gatehouse.baseUrl}/docs`)
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toContain('text/html')
  const html = await page.text()
  const links = [...html.matchAll(/(?:src|href)\s*=\s*["']?([^"'\s>]+)/g)].map(([, link]) => link ?? '')
  const own = (link: string) =>
    new URL(link, gatehouse.baseUrl).origin === gatehouse.baseUrl || link.startsWith('data:')
  expect(links.filter((link) => !own(link))).toEqual([])
  for (const link of links.filter((found) => !found.startsWith('data:') && !found.startsWith('#'))) {
    expect([link, (await fetch(new URL(link, `${gatehouse.baseUrl}/docs`))).status]).toEqual([link, 200])
  }
})

test('an undocumented path is 404 on both listeners', async () => {
  for (const url of [gatehouse.baseUrl, gatehouse.gatewayUrl]) {
    const answer = await fetch(`${url}/v1/no-such-thing`, {
      headers: { authorization: `Bearer ${gatehouse.adminToken}` },
    })
    expect([url, answer.status]).toEqual([url, 404])
    expect(await answer.json()).toMatchObject({ error: { code: 'not_found', type: 'invalid_request_error' } })
  }
})

test('Go and Python can compile every pattern of the document', () => {
  const patterns = new Set<string>()
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if ('pattern' in value && typeof value.pattern === 'string') patterns.add(value.pattern)
    for (const member of Object.values(value)) collect(member)
  }
  collect(document)
  expect(patterns.size).toBeGreaterThan(10)
  for (const pattern of patterns) {
    // RE2's syntax is that of Go; Python has no properties of characters, and Go no code units.
    expect(() => RE2JS.compile(pattern)).not.toThrow()
    expect(pattern).not.toMatch(/\\[pPuzZ]/)
  }
})
