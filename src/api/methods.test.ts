import { expect, test } from 'bun:test'
import { ServedMethods } from './methods.ts'

const served = new ServedMethods(
  [
    'GET /v1/things/:id',
    'DELETE /v1/things/:id',
    'POST /v1/things/check',
    'POST /v1/things',
    'GET /assets/:name',
    'GET /console/*',
  ].map((route) => {
    const [method = '', path = ''] = route.split(' ')
    return { method, path }
  }),
)

test('names the methods of an address, HEAD wherever there is GET', () => {
  expect(served.of('/v1/things/7')).toEqual(['DELETE', 'GET', 'HEAD'])
  expect(served.of('/v1/things')).toEqual(['POST'])
  expect(served.of('/console/a/b')).toEqual(['GET', 'HEAD'])
  expect(served.of('/v1/nothing')).toEqual([])
})

test('a path without parameters is no value of a parameter of another path', () => {
  expect(served.of('/v1/things/check')).toEqual(['POST'])
  expect(served.ofFixedPath('/v1/things/check')).toEqual(['POST'])
  expect(served.ofFixedPath('/v1/things/7')).toBeNull()
})
