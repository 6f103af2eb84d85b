import { expect, test } from 'bun:test'
import { documentationPage } from './documentation.ts'

const [page, script, styles] = documentationPage()

test('the documentation page loads nothing from other hosts', async () => {
  const response = await page?.respond()
  const text = (await response?.text()) ?? ''
  expect(response?.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(text).toContain('data-url="/v1/openapi.json"')
  expect(text).toContain(`<script src="${script?.path}"`)
  expect([...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address)).toEqual([
    styles?.path,
    script?.path,
  ])
  expect(text).not.toMatch(/@import|url\((?!data:)/)
})

test('the page may run its own script only, and fetch from its own host only', async () => {
  const policy = (await page?.respond())?.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toMatch(/script-src 'self'( 'sha256-[A-Za-z0-9+/=]+')?;/)
  expect(policy).toContain("connect-src 'self'")
  expect(policy).not.toMatch(/https?:|\*|unsafe/)
})

test('the styles of the page, and those its script makes, are allowed by a nonce that no two answers share', async () => {
  const answers = await Promise.all([page?.respond(), page?.respond()])
  const nonces = await Promise.all(
    answers.map(async (answer) => {
      const text = (await answer?.text()) ?? ''
      const [, nonce = ''] =
        /style-src 'nonce-([^']+)'/.exec(answer?.headers.get('content-security-policy') ?? '') ?? []
      expect(text.match(/<style/g)?.length).toBe(text.split(`<style nonce="${nonce}"`).length - 1)
      expect(text).toContain(`<script nonce="${nonce}" src="${styles?.path}"`)
      expect(answer?.headers.get('cache-control')).toBe('no-store')
      return nonce
    }),
  )
  expect(new Set(nonces).size).toBe(2)
})

test('the script is carried along and may be kept for ever', async () => {
  const response = await script?.respond()
  expect(response?.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(response?.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  expect((await response?.text())?.length).toBeGreaterThan(1_000_000)
})
