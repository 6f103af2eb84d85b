import { expect, test } from 'bun:test'
import { createRouter } from './router.ts'

const served = ['GET /v1/things/{id}', 'POST /v1/things', 'GET /assets/{name}', 'GET /*']
const calls = served.map((call) => {
  const [method = '', path = ''] = call.split(' ')
  return { method, path, handle: () => new Response(call) }
})
const answer = createRouter({
  calls,
  failed: (error) => new Response(String(error), { status: 500 }),
  notServed: (_request, allow) => new Response(allow.join(), { status: allow.length === 0 ? 404 : 405 }),
})

test('a path of no area of its own is for whoever serves all that nobody else does, in every area', async () => {
  const at = async (path: string, method = 'GET') =>
    (await answer(new Request(`http://localhost${path}`, { method }))).text()
  expect(await at('/v1/things/7')).toBe('GET /v1/things/{id}')
  expect(await at('/v1/things', 'POST')).toBe('POST /v1/things')
  expect(await at('/assets/some.js')).toBe('GET /assets/{name}')
  for (const path of ['/', '/events', '/events/7/more', '/v1/nothing', '/v1/things/7/more', '/assets/one/two']) {
    expect(await at(path)).toBe('GET /*')
  }
  expect(await at('/events', 'POST')).toBe('GET,HEAD')
  expect(await at('/v1/things', 'DELETE')).toBe('GET,HEAD,POST')
})

test('hosts may be as short as they like', async () => {
  for (const origin of [
    'http://a',
    'http://db',
    'http://gw:80',
    'http://[::1]',
    'http://localhost',
    'https://gw.example',
  ]) {
    const at = async (path: string) => (await answer(new Request(`${origin}${path}`))).text()
    expect([origin, await at('/v1/things/7'), await at('/')]).toEqual([origin, 'GET /v1/things/{id}', 'GET /*'])
  }
})

test('a path that is served is no value of another path’s parameter, whatever the method', async () => {
  const paths = ['POST /v1/things/check', 'GET /v1/things/{id}', 'DELETE /v1/things/{id}', 'PUT /v1/things/order']
  const route = createRouter({
    calls: paths.map((call) => {
      const [method = '', path = ''] = call.split(' ')
      return { method, path, handle: () => new Response(call) }
    }),
    failed: (error) => new Response(String(error), { status: 500 }),
    notServed: (_request, allow) => new Response(allow.join(), { status: allow.length === 0 ? 404 : 405 }),
  })
  const at = async (method: string, path: string) => {
    const answer = await route(new Request(`http://localhost/v1/things/${path}`, { method }))
    return [answer.status, await answer.text()]
  }
  expect(await at('POST', 'check')).toEqual([200, 'POST /v1/things/check'])
  for (const method of ['GET', 'DELETE', 'HEAD', 'QUERY']) expect(await at(method, 'check')).toEqual([405, 'POST'])
  expect(await at('GET', 'order')).toEqual([405, 'PUT'])
  expect(await at('DELETE', '7')).toEqual([200, 'DELETE /v1/things/{id}'])
})
