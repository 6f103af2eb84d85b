import { expect, test } from 'bun:test'
import { handbookResponse } from './site.ts'

const get = (path: string): Promise<Response> => handbookResponse(new Request(`http://127.0.0.1${path}`))

test('a page comes as HTML that may load its style sheet and run nothing', async () => {
  const response = await get('/docs/handbook/policies/pii')
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toStartWith("default-src 'none'; style-src 'self';")
  const html = await response.text()
  expect(html).toContain('<title>Personal data: pii – Gatehouse</title>')
  expect(html).not.toMatch(/<script|style=|https?:\/\//)
  const [, style = ''] = /<link rel="stylesheet" href="([^"]+)"/.exec(html) ?? []
  expect((await get(style)).headers.get('content-type')).toBe('text/css; charset=utf-8')
})

test('the root is the table of contents', async () => {
  expect(await (await get('/docs/handbook')).text()).toContain('href="/docs/handbook/first-hour"')
})

test('a search shows what it looked for as text', async () => {
  const html = await (await get('/docs/handbook/search?q=%3Cscript%3E%22')).text()
  expect(html).toContain('value="&lt;script&gt;&quot;"')
  expect(html).toContain('No page has these words')
  expect(await (await get('/docs/handbook/search?q=rotate')).text()).toContain('href="/docs/handbook/tokens"')
})

test('a page that there is not is not_found', async () => {
  expect(get('/docs/handbook/none')).rejects.toMatchObject({ code: 'not_found' })
})
