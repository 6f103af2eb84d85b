import { expect, test } from 'bun:test'
import { redirectUriFault, redirectWith } from './redirect-uri.ts'

test('accepts HTTPS anywhere and HTTP on loopback', () => {
  for (const uri of [
    'https://app.example.com/callback',
    'https://app.example.com',
    'https://app.example.com:8443/a/b?tenant=1',
    'http://localhost:3000/callback',
    'http://127.0.0.1/',
    'http://[::1]:9000/x',
  ]) {
    expect([uri, redirectUriFault(uri)]).toEqual([uri, null])
  }
})

test('refuses an address that is ambiguous or leads elsewhere', () => {
  for (const uri of [
    '/callback',
    'app.example.com/callback',
    'com.example.app:/callback',
    'javascript:alert(1)',
    'http://app.example.com/callback',
    'http://127.0.0.2/callback',
    'http://localhost.example.com/callback',
    'http://0.0.0.0/callback',
    'https://user@app.example.com/callback',
    'https://@app.example.com/callback',
    'https://:secret@app.example.com/callback',
    'https://app.example.com/callback#',
    'https://app.example.com/callback#part',
    'https://*.example.com/callback',
    'https://APP.example.com/callback',
    'HTTPS://app.example.com/callback',
    'https://app.example.com:443/callback',
    'https://app.example.com/a/../callback',
    'https:\\\\app.example.com\\callback',
    'https://app.example.com/call back',
    'https://app.example.com/callback\n',
    'https://app.example.com/callback?code=1',
    'https://app.example.com/callback?state=1',
    'https://bücher.example/callback',
    `https://app.example.com/${'x'.repeat(2000)}`,
  ]) {
    expect([uri, redirectUriFault(uri)]).toEqual([uri, expect.any(String)])
  }
})

test('appends the answer to an existing query', () => {
  const answer = { code: 'a b', state: null, iss: 'https://x' }
  const added = 'code=a%20b&iss=https%3A%2F%2Fx'
  expect(redirectWith('https://app.example.com', answer)).toBe(`https://app.example.com?${added}`)
  expect(redirectWith('https://app.example.com/?t=1', answer)).toBe(`https://app.example.com/?t=1&${added}`)
  expect(redirectWith('https://app.example.com/?', answer)).toBe(`https://app.example.com/?${added}`)
})
