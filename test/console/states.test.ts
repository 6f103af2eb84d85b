/** What every screen shows while its records are on their way, where there are none, and where they do not come. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import { z } from 'zod'
import { until } from '../support/eventually.ts'
import { allThere, endConsole, type OpenPage, openConsole, picture, pictured } from './console.ts'
import { fileName, makeScreens, type Screens } from './every-screen.ts'

setDefaultTimeout(180_000)

let screens: Screens = []

beforeAll(async () => {
  screens = (await makeScreens()).filter(([path]) => path !== '/nowhere')
}, 240_000)
afterAll(endConsole)

/** What the screens ask for; who is signed in, and the description that forms are made from, come as always. */
const asked = /\/v1\/(?!auth\/session$|openapi)/

/** Those that ask for nothing before somebody fills them in. */
const asksNothing = new Set(['/tokens/new'])

/** Goes to each screen as it is then; in pictures at both widths and in both themes. */
async function throughScreens(opened: OpenPage, state: string, look: (path: string) => Promise<void>) {
  const { page } = opened
  for (const width of pictured ? [390, 1600] : [1280]) {
    await page.setViewportSize({ width, height: 900 })
    for (const [path] of screens) {
      if (asksNothing.has(path)) continue
      await opened.within(path)
      await look(path).catch((cause: unknown) => {
        throw new Error(`At ${path}`, { cause })
      })
      for (const colorScheme of pictured ? (['light', 'dark'] as const) : []) {
        await page.emulateMedia({ colorScheme })
        await picture(page, `${fileName(path)}-${state}-${width}-${colorScheme}`)
      }
    }
  }
}

const shown = (page: Page, what: string): Promise<number> => page.locator(what).count()

/** An answer without its records. What is about one record stays as it is. */
async function emptied(route: Route): Promise<void> {
  const response = await route.fetch()
  const body = z.record(z.string(), z.unknown()).parse(await response.json())
  const isPage =
    ['next_cursor', 'series', 'rows', 'models'].some((name) => name in body) || Object.keys(body).length === 1
  await route.fulfill({ response, json: isPage ? { ...withoutItems(body), next_cursor: null } : body })
}

const withoutItems = (body: object): object =>
  Object.fromEntries(Object.entries(body).map(([name, value]) => [name, emptyOf(value)]))

const emptyOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return []
  return typeof value === 'object' && value !== null ? withoutItems(value) : value
}

const refusedAs = (status: number, code: string) => (route: Route) =>
  route.fulfill({
    status,
    json: { error: { message: 'As the test has it', type: code, param: null, code }, request_id: 'a-request' },
  })

test('a screen shows its name and placeholders while its records load', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/nowhere')
  await page.locator('h1').waitFor()
  await page.route(asked, () => new Promise<void>(() => undefined))
  await throughScreens(opened, 'loading', async (path) => {
    await page.getByRole('status', { name: 'Loading' }).first().waitFor()
    expect([path, await shown(page, 'h1'), await shown(page, '[role=alert], .empty')]).toEqual([path, 1, 0])
  })
})

/** What stands where nothing is, by screen; absent: it is about one record, which is there or is not. */
const nothing: Readonly<Record<string, string>> = {
  '/': 'No request in this time range',
  '/traffic': 'No request in this time range',
  '/tokens': 'No token yet',
  '/escalations': 'No request is waiting',
  '/alerts': 'No alert has fired yet',
  '/alerts?kind=alerts': 'No alerts yet',
  '/alerts?kind=channels': 'No channels yet',
  '/policies': 'No policy yet',
  '/spend': 'No spend in this time range',
  '/reports': 'Nothing was spent in this month',
  '/catalog': 'No providers yet',
  '/catalog?kind=models': 'No models yet',
  '/catalog?kind=mcp-servers': 'No MCP servers yet',
  '/catalog?kind=gateways': 'No gateways yet',
  '/catalog?kind=budgets': 'No budgets yet',
  '/catalog?kind=consumer-groups': 'No consumer groups yet',
  '/catalog?kind=access-policies': 'No access policies yet',
  '/applications': 'No applications yet',
  '/people': 'No people yet',
  '/people?kind=teams': 'No teams yet',
  '/people?kind=members': 'No team yet',
  '/settings': 'No session',
  '/search?q=looked': 'Nothing matches',
}

test('a screen without records says what will appear there', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/nowhere')
  await page.locator('h1').waitFor()
  await page.route(asked, emptied)
  await throughScreens(opened, 'empty', async (path) => {
    await allThere(page)
    const words = nothing[path] ?? (path.startsWith('/traffic/') ? 'Exchange not found' : null)
    if (words !== null) await page.getByText(words).first().waitFor()
    expect([path, await shown(page, '[role=alert], tbody tr')]).toEqual([path, 0])
  })
})

const tryAgain = `[...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Try again')?.click()`

test('a screen whose records fail to load shows an error, not an empty list, and retries', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/nowhere')
  await page.locator('h1').waitFor()
  const fails = refusedAs(503, 'dependency_unavailable')
  await throughScreens(opened, 'error', async (path) => {
    await page.route(asked, fails)
    await opened.within('/nowhere')
    await opened.within(path)
    await page.getByRole('alert').first().waitFor()
    await allThere(page)
    expect([path, await shown(page, '.empty')]).toEqual([path, 0])
    await page.getByText('As the test has it').first().waitFor()
    if (pictured) return
    await page.unroute(asked, fails)
    await until('it is there again', async () => {
      // Within the page: a screen that looks again by itself may have taken the button away by the time of a click.
      await page.evaluate(tryAgain)
      return (await shown(page, '[role=alert], .skeleton')) === 0
    })
  })
})

test('a second press of "Try again" does not start the read over', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const tokens = /\/v1\/tokens\?/
  const fails = refusedAs(503, 'dependency_unavailable')
  await page.route(tokens, fails)
  await opened.to('/tokens')
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  await page.unroute(tokens, fails)
  let answer: () => void = () => undefined
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  let asked = 0
  await page.route(tokens, async (route) => {
    asked += 1
    await answered
    await route.continue()
  })
  await page.evaluate(tryAgain)
  await until('the records are on their way', () => asked === 1)
  await page.evaluate(tryAgain)
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))')
  expect(asked).toBe(1)
  answer()
  await until('it is there again', async () => (await shown(page, '[role=alert], .skeleton')) === 0)
  expect(asked).toBe(1)
})

test('a screen whose records are refused names the missing permission and does not retry', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/nowhere')
  await page.locator('h1').waitFor()
  await page.route(asked, refusedAs(403, 'permission_denied'))
  await throughScreens(opened, 'refused', async (path) => {
    // It searches wherever one may, and says nothing of the rest.
    if (path.startsWith('/search')) return
    await page.getByRole('alert').first().waitFor()
    await allThere(page)
    await page.getByText('You do not have permission').first().waitFor()
    expect([path, await shown(page, '.empty'), await page.getByRole('button', { name: 'Try again' }).count()]).toEqual([
      path,
      0,
      0,
    ])
  })
})

test('the refusal of an action is shown where it was pressed', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/nowhere')
  await page.locator('h1').waitFor()
  await page.route(/\/(claim|logout)$/, refusedAs(409, 'conflict'))
  for (const [path, name] of [
    ['/escalations', 'Claim'],
    ['/settings', 'Sign out'],
  ] as const) {
    await opened.within(path)
    await page.getByRole('button', { name, exact: true }).click()
    expect(await page.getByRole('alert').textContent()).toContain('As the test has it')
  }
})

test('a screen names its permission to a person who has none', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await page.route(/\/v1\/auth\/session$/, async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...z.looseObject({}).parse(await response.json()), permissions: [] } })
  })
  await opened.to('/nowhere')
  await page.locator('h1').waitFor()
  await throughScreens(opened, 'denied', async (path) => {
    await allThere(page)
    const open = path === '/settings' || path.startsWith('/search')
    expect([path, await page.getByText('Permission missing').count()]).toEqual([path, open ? 0 : 1])
    if (!open) expect(await page.locator('main code').textContent()).toMatch(/^[a-z-]+:(read|write|invoke)$/)
  })
})
