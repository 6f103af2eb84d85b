import { expect, test } from 'bun:test'
import { isFromOurPage, isLoopback, keepSession, readSessionCookie } from './session-cookie.ts'

const withHeaders = (headers: Record<string, string>) => new Request('http://localhost/', { headers })

test('the cookie is closed to scripts and, except on loopback, to plain HTTP', () => {
  expect(keepSession('secret', 60, 'http://127.0.0.1:7070')).toBe(
    'gatehouse_session=secret; Max-Age=60; HttpOnly; SameSite=Lax; Path=/',
  )
  expect(keepSession('secret', 60, 'https://gatehouse.example')).toBe(
    '__Host-gatehouse_session=secret; Max-Age=60; HttpOnly; SameSite=Lax; Path=/; Secure',
  )
  expect(keepSession('secret', 60, 'http://gatehouse.example')).toEndWith('; Secure')
})

test('refuses two session cookies, since one of them was planted', () => {
  const read = (cookie: string) => readSessionCookie(withHeaders({ cookie }), 'http://127.0.0.1:7070')
  expect(read('a=b; gatehouse_session=one; c=d')).toBe('one')
  expect(read('gatehouse_session=one; gatehouse_session=two')).toBeNull()
  expect(read('xgatehouse_session=one')).toBeNull()
})

test('over HTTPS accepts only the cookie name that no neighbour site can set', () => {
  const read = (cookie: string) => readSessionCookie(withHeaders({ cookie }), 'https://gatehouse.example')
  expect(read('gatehouse_session=planted')).toBeNull()
  expect(read('gatehouse_session=planted; __Host-gatehouse_session=ours')).toBe('ours')
})

test('decides by browser headers alone whether a request is from our page', () => {
  const origins = ['https://gatehouse.example']
  expect(isFromOurPage(withHeaders({ 'sec-fetch-site': 'same-origin' }), origins)).toBe(true)
  expect(isFromOurPage(withHeaders({ origin: 'https://gatehouse.example' }), origins)).toBe(true)
  expect(isFromOurPage(withHeaders({ 'sec-fetch-site': 'same-site' }), origins)).toBe(false)
  expect(isFromOurPage(withHeaders({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }), origins)).toBe(
    false,
  )
  expect(isFromOurPage(withHeaders({ origin: 'null' }), origins)).toBe(false)
  expect(isFromOurPage(withHeaders({ origin: 'https://gatehouse.example.evil.example' }), origins)).toBe(false)
  expect(isFromOurPage(withHeaders({}), origins)).toBe(false)
})

test('loopback is this host and nothing that looks like it', () => {
  expect(['http://localhost:1', 'http://127.9.9.9', 'http://[::1]:80'].map(isLoopback)).toEqual([true, true, true])
  expect(['http://localhost.example', 'http://127.0.0.1.example', 'http://10.0.0.1'].map(isLoopback)).toEqual([
    false,
    false,
    false,
  ])
})
