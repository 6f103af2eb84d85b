import { expect, test } from 'bun:test'
import { isHostName } from './host-name.ts'

const hostOf = (url: string) => new URL(url).hostname

test.each([
  'https://gatehouse.example.com',
  'http://127.0.0.1:7070',
  'http://[::1]:1',
  'https://a_b',
  'https://bücher.example',
  'https://host.',
  'libsql://State-1.turso.io',
])('%s names a host', (url) => {
  expect(isHostName(hostOf(url))).toBe(true)
})

test.each([
  'https://x"y',
  'https://x"}$(A)',
  'https://$HOME',
  'https://a..b',
  'https://-a',
  `https://${'a'.repeat(64)}`,
  "https://x'y",
  'https://a`b`',
  'https://{a}',
  'https://a;b',
  'https://a&b',
  'libsql://$HOME',
])('%s does not', (url) => {
  expect(isHostName(hostOf(url))).toBe(false)
})
