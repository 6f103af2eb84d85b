/** What HTTP asks of every route of the gateway, whatever it does: methods, hosts, bodies, the request's id. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import type { GatewayRouteDescription } from '../api/openapi/gateway-routes.ts'
import { gatewayRouteDescriptions } from './openapi/http-routes.ts'
import { jsonHeaders, startMcpGateway, type TestCaller } from './testing/mcp.ts'

let gateway: Awaited<ReturnType<typeof startMcpGateway>>
beforeAll(async () => {
  gateway = await startMcpGateway([])
})
afterAll(() => gateway.stop())

/** A request as it is written; gives all that is answered before the connection ends. */
async function written(text: string): Promise<string> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  let answer = ''
  socket.setTimeout(5000, () => socket.destroy())
  for await (const bytes of socket.on('connect', () => socket.write(text))) answer += bytes
  return answer
}

const itself = ['/healthz', '/readyz', '/metrics', '/v1/openapi.json', '/.well-known/oauth-protected-resource']
const pathOf = ({ path }: GatewayRouteDescription) => path.replace('{model_id}', 'maker/model')

test('answers 405 with an Allow header to a method that the route does not have', async () => {
  const served = Map.groupBy(gatewayRouteDescriptions, pathOf)
  const routes = [...served].map(([path, routes]): [string, string[]] => [path, routes.map(({ method }) => method)])
  for (const [path, methods] of [...routes, ...itself.map((path): [string, string[]] => [path, ['GET', 'HEAD']])]) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'LOCK']) {
      if (methods.includes(method)) continue
      // Browsers ask first whether a page of another origin may read it.
      if (method === 'OPTIONS' && (path.startsWith('/.well-known/') || path === '/mcp/server-card')) continue
      const answer = await written(`${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
      expect([method, path, answer.split(' ')[1]]).toEqual([method, path, '405'])
      const allow = /\r\nallow: (.*)\r\n/i.exec(answer)?.[1]?.split(', ') ?? []
      expect(allow).toEqual(expect.arrayContaining(methods))
      expect(allow).not.toContain(method)
    }
  }
})

test('refuses a request with two Host headers with 400 on every route', async () => {
  for (const path of [...gatewayRouteDescriptions.map(pathOf), ...itself, '/nothing']) {
    for (const hosts of ['Host: a\r\nHost: b', 'Host: a\r\nHost: a', 'Host: a, b']) {
      const answer = await written(
        `POST ${path} HTTP/1.1\r\n${hosts}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
      )
      expect([path, answer.split(' ')[1]]).toEqual([path, '400'])
      expect(answer).toContain('bad_request')
      expect(answer).toContain('one Host header')
    }
  }
})

test('names the problem when the body is JSON but no object', async () => {
  for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/embeddings']) {
    for (const [body, message] of [
      ['[]', 'not an object'],
      ['[{"model":"m"}]', 'not an object'],
      ['"text"', 'not an object'],
      ['5', 'not an object'],
      ['null', 'not an object'],
      ['{"model"', 'not valid JSON'],
      ['', 'not valid JSON'],
    ] as const) {
      const answer = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        body,
      })
      const { error } = (await answer.json()) as { error: { code: string; message: string } }
      expect([answer.status, error.code, error.message]).toEqual([
        400,
        'invalid_json',
        expect.stringContaining(message),
      ])
    }
  }
})

test('refuses GET and DELETE of /mcp with 401 without a credential and 403 without the permission', async () => {
  const auditor = gateway.worker.addToken({ roles: ['auditor'] })
  const elsewhere = gateway.worker.addToken({ gatewayId: 'another' })
  for (const method of ['GET', 'DELETE']) {
    const ask = (secret: string | null) =>
      fetch(`${gateway.url}/mcp`, {
        method,
        headers: { accept: 'text/event-stream', ...(secret !== null && { authorization: `Bearer ${secret}` }) },
      })
    const answers = await Promise.all([null, 'gth_none', auditor, elsewhere].map(ask))
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 403, 403])
    const [, , lacking] = answers
    expect(await lacking?.json()).toMatchObject({ error: { data: { code: 'permission_denied', status: 403 } } })
    const statuses = gateway.worker.journal
      .outcomes()
      .slice(-4)
      .map(({ verdict, details }) => [verdict, details?.status])
    expect(statuses.toSorted()).toEqual([401, 401, 403, 403].map((status) => ['deny', status]))
  }
})

test('sends the request id with every answer of /mcp', async () => {
  const caller: TestCaller = await gateway.caller()
  const own = { 'x-request-id': 'mine-1' }
  const say = (message: object) => caller.post({ jsonrpc: '2.0', ...message }, own)
  const controller = new AbortController()
  const bearer = { ...own, authorization: `Bearer ${gateway.secret}` }
  const raw = (method: string, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}/mcp`, { method, headers: { ...jsonHeaders, ...bearer, ...headers } })
  const answers = {
    notification: await say({ method: 'notifications/initialized' }),
    ping: await say({ id: 1, method: 'ping' }),
    list: await say({ id: 2, method: 'tools/list' }),
    unknown: await say({ id: 3, method: 'of/tomorrow' }),
    stream: await caller.get(own, controller.signal),
    'no session': await raw('GET', { accept: 'text/event-stream' }),
    'other method': await raw('PUT'),
    'other origin': await raw('POST', { origin: 'https://elsewhere.example' }),
    'not JSON': await caller.post('{', own),
    ended: await raw('DELETE', { 'mcp-session-id': caller.session }),
  }
  controller.abort()
  const statuses = Object.values(answers).map(({ status }) => status)
  expect(statuses).toEqual([202, 200, 200, 200, 200, 400, 405, 403, 400, 200])
  for (const [name, { headers }] of Object.entries(answers)) {
    expect([name, headers.get('x-request-id')]).toEqual([name, 'mine-1'])
  }
})
