import { afterAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { pathOf, withAddress } from './request-path.ts'

const server = Bun.serve({
  port: 0,
  async fetch(request) {
    const addressed = withAddress(request)
    const { pathname, search } = new URL(addressed.url)
    return Response.json([pathOf(request.url), pathname, search, addressed.method, await addressed.text()])
  },
})
afterAll(() => server.stop(true))

/** What the server makes of a request, as it is written. */
async function asked(head: string, body = ''): Promise<unknown> {
  const socket = connect(server.port ?? 0, '127.0.0.1')
  let answer = ''
  for await (const bytes of socket.on('connect', () => socket.write(`${head}\r\n\r\n${body}`))) {
    answer += bytes
    if (answer.includes(']')) break
  }
  return JSON.parse(answer.slice(answer.indexOf('[')))
}

test('keeps path, query and body of a request with a missing, empty or invalid host', async () => {
  const healthz = ['/healthz', '/healthz', '?a=1', 'GET', '']
  for (const [version, host] of [
    ['1.0', ''],
    ['1.1', '\r\nHost: '],
    ['1.1', '\r\nHost: [x'],
    ['1.1', '\r\nHost: a'],
    ['1.1', '\r\nHost: a.example:80'],
  ]) {
    expect(await asked(`GET /healthz?a=1 HTTP/${version}${host}`)).toEqual(healthz)
  }
  const posted = await asked('POST /v1/tokens HTTP/1.0\r\nContent-Length: 2', 'ab')
  expect(posted).toEqual(['/v1/tokens', '/v1/tokens', '', 'POST', 'ab'])
  expect(await asked('GET //x/y HTTP/1.0')).toEqual(['//x/y', '//x/y', '', 'GET', ''])
})
