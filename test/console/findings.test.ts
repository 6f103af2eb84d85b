/** What doctor found by itself, on the overview. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { allThere, endConsole, openConsole, picture, seriousInBothThemes } from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

const since = '2026-05-01T12:00:00.000Z'
const finding = (level: 'warn' | 'fail', what: string) => ({
  check: 'workers',
  level,
  what,
  todo: 'Look at its host',
  since,
})

test('the overview shows what doctor found, and nothing where all is well', async () => {
  await using opened = await openConsole()
  const { page } = opened
  let findings: object[] = []
  await page.route(/\/v1\/findings/, (route) =>
    route.fulfill({ json: { examined_at: since, findings, next_cursor: null } }),
  )
  const shown = page.locator('section[aria-label="Doctor"]')
  await opened.to('/')
  await allThere(page)
  expect(await shown.count()).toBe(0)
  findings = [finding('warn', 'Worker one is unreachable'), finding('fail', 'Worker two is <b>lost</b>')]
  await page.reload()
  await allThere(page)
  expect(await shown.getByText('Worker one is unreachable. Look at its host').count()).toBe(1)
  expect(await shown.getByText('Worker two is <b>lost</b>').count()).toBe(1)
  expect(await shown.getAttribute('class')).toContain('danger')
  await picture(page, 'findings')
  expect(await seriousInBothThemes(page, 'findings')).toEqual([])
})
