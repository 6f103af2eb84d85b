/**
 * A page of the handbook as HTML and as text for a terminal, and the search in them. Markdown is rendered by Bun.
 * HTML in a page is shown as text, comments are left out, and a link leads to a page of the handbook, to another
 * place by https, or nowhere.
 */
import type { HandbookPage } from './read-pages.ts'

export const handbookRoot = '/docs/handbook'

/** The address of a page. */
export const addressOf = (path: string): string => (path === 'index' ? handbookRoot : `${handbookRoot}/${path}`)

/** The path of the page that a link in another one leads to; null where it leads to none. */
function linkedPage(from: string, link: string): { path: string; fragment: string } | null {
  const [, file, fragment = ''] = /^([\w./-]+)\.md(#[\w-]*)?$/.exec(link) ?? []
  if (file === undefined) return null
  return { path: new URL(file, `http://handbook/${from}`).pathname.slice(1), fragment }
}

const withoutComments = (text: string): string => text.replaceAll(/^<!-- .*? -->\n+/gm, '')

export function pageHtml({ path, text }: HandbookPage): string {
  const html = Bun.markdown.html(withoutComments(text), {
    headings: { ids: true },
    noHtmlBlocks: true,
    noHtmlSpans: true,
  })
  return html.replaceAll(/<a href="([^"]*)"/g, (_, link: string) => {
    if (/^#[\w-]*$/.test(link)) return `<a href="${link}"`
    if (/^https:\/\//.test(link)) return `<a rel="noreferrer" href="${link}"`
    const target = linkedPage(path, link)
    return target === null ? '<a' : `<a href="${addressOf(target.path)}${target.fragment}"`
  })
}

/** For a terminal, without escape sequences. Links to other pages become the topics to ask for. */
export function pageText({ path, text }: HandbookPage, columns: number): string {
  const linked = withoutComments(text).replaceAll(
    /\[([^\]]+)\]\(([^)\s]+)\)/g,
    (whole, label: string, link: string) => {
      const target = linkedPage(path, link)
      return target === null ? whole : `${label} (help ${target.path})`
    },
  )
  return Bun.stripANSI(Bun.markdown.ansi(linked, { columns }))
}

/** A page for a topic as a person writes it: `tokens`, `policies/pii`, or only `pii` where one page ends so. */
export function findPage(pages: readonly HandbookPage[], topic: string): HandbookPage | null {
  const wanted = topic.toLowerCase()
  const exact = pages.find(({ path }) => path === wanted)
  if (exact) return exact
  const ending = pages.filter(({ path }) => path.endsWith(`/${wanted}`))
  return ending.length === 1 ? (ending[0] ?? null) : null
}

export interface SearchHit {
  page: HandbookPage
  /** A line in which a word stands. */
  line: string
}

const mostWords = 8

/** Pages that hold each word, those with more of them in their headings first. */
export function searchPages(pages: readonly HandbookPage[], asked: string): SearchHit[] {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean).slice(0, mostWords)
  const [first] = words
  if (first === undefined) return []
  const hits = pages.flatMap((page) => {
    const text = page.text.toLowerCase()
    if (!words.every((word) => text.includes(word))) return []
    const lines = page.text.split('\n')
    const has = (line: string) => words.filter((word) => line.toLowerCase().includes(word)).length
    const headings = lines.filter((line) => line.startsWith('#')).reduce((sum, line) => sum + has(line), 0)
    const [line = ''] = lines.filter((each) => has(each) > 0).toSorted((left, right) => has(right) - has(left))
    return [{ page, line, score: has(page.title) * 10 + headings }]
  })
  return hits.toSorted((left, right) => right.score - left.score)
}
