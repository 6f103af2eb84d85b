/**
 * The handbook at `/docs/handbook`: its pages and a search, as plain HTML without a script. The policy of each answer
 * (CSP) allows the style sheet and nothing else.
 */
import { Failure } from '../failure.ts'
import { version } from '../version.ts'
import { handbookPages } from './pages.ts'
import type { HandbookPage } from './read-pages.ts'
import { addressOf, handbookRoot, pageHtml, searchPages } from './render.ts'

const searchPath = `${handbookRoot}/search`
const stylePath = `${handbookRoot}/style-${version}.css`

const policy = [
  "default-src 'none'",
  "style-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const style = `:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
body { max-width: 56rem; margin: 0 auto; padding: 1rem 1.25rem 4rem }
header { display: flex; flex-wrap: wrap; gap: 1rem; align-items: center; justify-content: space-between }
input { font: inherit; padding: .25rem .5rem; width: 14rem }
h1 { line-height: 1.25 }
pre { padding: .75rem 1rem; overflow-x: auto; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 6px }
code { font: .9em ui-monospace, monospace }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent) }
`

const escaped = (text: string): string => Bun.escapeHTML(text)

const htmlPage = (title: string, content: string, asked = ''): Response =>
  new Response(
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} – Gatehouse</title>
<link rel="stylesheet" href="${stylePath}">
</head>
<body>
<header>
<a href="${handbookRoot}">The Gatehouse handbook</a>
<form action="${searchPath}" role="search"><input type="search" name="q" value="${escaped(asked)}" aria-label="Search the handbook" placeholder="Search"></form>
</header>
<main>
${content}
</main>
</body>
</html>
`,
    {
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': policy,
        'cache-control': 'no-store',
      },
    },
  )

/** A line of Markdown without the marks of headings, lists, tables and code. */
const plain = (line: string): string =>
  line
    .replace(/^[#|\s-]+/, '')
    .replaceAll('`', '')
    .replaceAll(/[\s|]*\|[\s|]*/g, ' · ')
    .replace(/ · $/, '')

function searchResult(pages: readonly HandbookPage[], asked: string): Response {
  const items = searchPages(pages, asked).map(
    ({ page, line }) =>
      `<li><a href="${addressOf(page.path)}">${escaped(page.title)}</a><br>${escaped(plain(line))}</li>`,
  )
  const found = items.length === 0 ? '<p>No page has these words.</p>' : `<ul>\n${items.join('\n')}\n</ul>`
  return htmlPage('Search', `<h1>Search</h1>\n${found}`, asked)
}

const styleSheet = (): Response =>
  new Response(style, {
    headers: {
      'content-type': 'text/css; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    },
  })

/** The patterns of the handbook's addresses, for the router. */
export const handbookPaths = [handbookRoot, `${handbookRoot}/{page}`, `${handbookRoot}/{page}/{part}`] as const

/** Answers a request to one of them. Throws `not_found` for a page that there is not. */
export async function handbookResponse(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url)
  if (pathname === stylePath) return styleSheet()
  const pages = await handbookPages()
  if (pathname === searchPath) return searchResult(pages, searchParams.get('q') ?? '')
  const page = pages.find(({ path }) => addressOf(path) === pathname)
  if (!page) throw new Failure('not_found', { message: `The handbook has no such page: see ${handbookRoot}` })
  return htmlPage(page.title, pageHtml(page))
}
