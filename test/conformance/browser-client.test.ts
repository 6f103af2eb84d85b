/**
 * An application that is a page of another origin, in a real browser: it uses PKCE, and what is not for pages stays
 * shut.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { approvedCode } from './flow.ts'
import { type Person, person, register } from './people.ts'

setDefaultTimeout(60_000)

let gatehouse: Gatehouse
let ada: Person
let clientId: string
let browser: Browser
let page: Page
const origin = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: () =>
    new Response('<!doctype html><title>An application</title>', { headers: { 'content-type': 'text/html' } }),
})

beforeAll(async () => {
  gatehouse = await startGatehouse()
  ada = await person(gatehouse, 'ada', 'owner')
  clientId = await register(gatehouse, { scope: 'gateway:invoke tokens:read' })
  browser = await launchBrowser()
  page = await browser.newPage()
  await page.goto(origin.url.href)
}, 240_000)
afterAll(async () => {
  await browser?.close()
  await origin.stop(true)
  await gatehouse?.stop()
})

interface Read {
  status: number
  body: Record<string, string>
}

/** What the page's script can read of an answer; null where the browser keeps it from the page. */
const fromPage = (url: string, init: object = {}): Promise<Read | null> =>
  page.evaluate(
    `fetch(${JSON.stringify(url)}, ${JSON.stringify(init)})
      .then(async (answer) => ({ status: answer.status, body: await answer.json() }))
      .catch(() => null)`,
  )

const form = (fields: Record<string, string>) => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
})
const json = (fields: Record<string, string>) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'mcp-protocol-version': '2025-11-25' },
  body: JSON.stringify(fields),
})

test('a page discovers the endpoints by the metadata of both listeners', async () => {
  const server = await fromPage(`${gatehouse.baseUrl}/.well-known/oauth-authorization-server`)
  expect(server?.body.token_endpoint).toBe(`${gatehouse.baseUrl}/v1/oauth/token`)
  for (const base of [gatehouse.baseUrl, gatehouse.gatewayUrl]) {
    const headers = { 'mcp-protocol-version': '2025-11-25' }
    const resource = await fromPage(`${base}/.well-known/oauth-protected-resource`, { headers })
    expect(resource?.body.resource).toBe(base)
  }
})

test('a page exchanges a code, refreshes and revokes, and reads error reasons', async () => {
  const { request } = await approvedCode(gatehouse, clientId, ada)
  const token = `${gatehouse.baseUrl}/v1/oauth/token`
  const given = await fromPage(token, form(request))
  expect(given?.status).toBe(200)
  const refreshToken = given?.body.refresh_token ?? ''
  const refreshed = await fromPage(
    token,
    json({ grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken }),
  )
  expect(refreshed?.status).toBe(200)
  const last = { client_id: clientId, token: refreshed?.body.refresh_token ?? '' }
  expect((await fromPage(`${gatehouse.baseUrl}/v1/oauth/revoke`, json(last)))?.status).toBe(200)
  expect(await fromPage(token, form(request))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
})

test('CORS exposes nothing else to a page, and nothing with browser credentials', async () => {
  const headers = { authorization: `Bearer ${gatehouse.adminToken}` }
  for (const path of ['/v1/tokens', '/v1/auth/session', '/v1/openapi.json', '/healthz']) {
    expect([path, await fromPage(gatehouse.baseUrl + path, { headers })]).toEqual([path, null])
  }
  const metadata = `${gatehouse.baseUrl}/.well-known/oauth-authorization-server`
  expect(await fromPage(metadata, { credentials: 'include' })).toBeNull()
  const plain = await fetch(`${gatehouse.baseUrl}/v1/tokens`, { method: 'OPTIONS' })
  expect([plain.status, plain.headers.get('access-control-allow-origin')]).toEqual([405, null])
})
