import { expect, test } from 'bun:test'
import { handbookPages } from './pages.ts'
import { findPage, pageHtml, pageText, searchPages } from './render.ts'

const page = (text: string, path = 'tokens') => ({ path, title: 'Tokens', text })

test('links lead to pages of the handbook or to another host by https, and nowhere else', () => {
  const html = pageHtml(
    page(
      '[a](people.md#roles) [b](../people.md) [c](https://example.com) [d](javascript:alert) [e](#x)',
      'policies/pii',
    ),
  )
  expect([...html.matchAll(/<a[^>]*>/g)].map(([tag]) => tag)).toEqual([
    '<a href="/docs/handbook/policies/people#roles">',
    '<a href="/docs/handbook/people">',
    '<a rel="noreferrer" href="https://example.com">',
    '<a>',
    '<a href="#x">',
  ])
})

test('HTML in a page is shown as text', () => {
  const html = pageHtml(page('<script>alert(1)</script>\n\ntext <img src=x onerror=alert(1)>\n\n```html\n<b>\n```\n'))
  expect(html).not.toMatch(/<(?:script|img|b)\b/)
  expect(html).toContain('&lt;script&gt;')
})

test('every link of every page leads to a page', async () => {
  const pages = await handbookPages()
  const known = new Set(pages.map(({ path }) => (path === 'index' ? '/docs/handbook' : `/docs/handbook/${path}`)))
  const links = pages.flatMap((each) =>
    [...pageHtml(each).matchAll(/<a(?: href="(\/[^"#]*)[^"]*")?>/g)].map(([tag, target]) => ({
      at: each.path,
      tag,
      target,
    })),
  )
  expect(links.length).toBeGreaterThan(50)
  expect(links.filter(({ target }) => target === undefined || !known.has(target))).toEqual([])
})

test('a page is plain text in a terminal, with topics in the place of links', () => {
  const text = pageText(page('# Tokens\n\nSee [people](people.md).\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n'), 80)
  expect(text).toContain('See people (help people).')
  expect(text).not.toContain('\u001b')
})

test('a topic is the path of a page, or the end of one', async () => {
  const pages = await handbookPages()
  expect(findPage(pages, 'Tokens')?.path).toBe('tokens')
  expect(findPage(pages, 'pii')?.path).toBe('policies/pii')
  expect(findPage(pages, 'no-such-page')).toBeNull()
})

test('a search finds the pages that hold each word, those that are about it first', async () => {
  const pages = await handbookPages()
  expect(searchPages(pages, 'master KEY').map(({ page: { path } }) => path)).toContain('operations')
  expect(searchPages(pages, 'escalations')[0]?.page.path).toBe('escalations')
  expect(searchPages(pages, 'zyzzyva')).toEqual([])
  expect(searchPages(pages, '  ')).toEqual([])
})
