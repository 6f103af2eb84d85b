/**
 * A console in a real browser for tests: one installation for the tests of a file, which ends it with `endConsole`, and
 * one browser for those of a process. A page fails its test where its policy (CSP) is violated, a script fails or
 * complains, or anything is asked of another host.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { z } from 'zod'
import { sharedBrowser } from '../support/browser.ts'
import { api, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

export const owner = { email: 'owner@example.com', name: 'Olga Owner', password: 'a long enough secret 1' }

export interface Shared {
  browser: Browser
  gatehouse: Gatehouse
}

let shared: Promise<Shared> | null = null

/** The browser, and an installation whose owner is set up. */
export function sharedConsole(): Promise<Shared> {
  shared ??= start()
  return shared
}

export async function endConsole(): Promise<void> {
  const ended = await shared
  shared = null
  await ended?.gatehouse.stop()
}

async function start(): Promise<Shared> {
  const [browser, gatehouse] = await Promise.all([sharedBrowser(), startGatehouse()])
  await setUpOwner(gatehouse)
  return { browser, gatehouse }
}

export async function setUpOwner(gatehouse: Gatehouse): Promise<void> {
  const secret = new URL(gatehouse.ready.setup_url ?? '').hash.slice(1)
  const set = await fetch(`${gatehouse.baseUrl}/v1/auth/setup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ secret, ...owner }),
  })
  if (!set.ok) throw new Error(`The owner could not be set up: ${await set.text()}`)
}

export interface OpenOptions {
  gatehouse?: { baseUrl: string; ready: { console_url: string } }
  /** Null: nobody is signed in. */
  as?: { email: string; password: string } | null
  theme?: 'light' | 'dark'
  width?: number
}

export interface OpenPage extends AsyncDisposable {
  page: Page
  /** Goes to an address below the console's. */
  to(path: string): Promise<void>
  /** The same within the page that is open, as a link does: quicker, for it need not start again. */
  within(path: string): Promise<void>
}

/** A page of its own session; `await using` closes it and fails the test where the page misbehaved. */
export async function openConsole({
  as = owner,
  theme = 'light',
  width = 1280,
  ...given
}: OpenOptions = {}): Promise<OpenPage> {
  const { browser, gatehouse } = await sharedConsole()
  const { baseUrl, ready } = given.gatehouse ?? gatehouse
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width, height: 900 },
    permissions: ['clipboard-read', 'clipboard-write'],
    reducedMotion: 'reduce',
    locale: 'en-US',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const wrong: string[] = []
  page.on('console', (message) => {
    // The browser notes each answer of 400 and above by itself: what the API refuses is a test's own business.
    const ofAnAnswer = /^Failed to load resource: the server responded with a status of [45]\d\d/.test(message.text())
    if (message.type() === 'error' && !ofAnAnswer) wrong.push(message.text())
  })
  page.on('pageerror', (error) => wrong.push(String(error)))
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    const leaves = origin !== baseUrl && protocol !== 'data:' && !request.isNavigationRequest()
    if (leaves) wrong.push(`The page asked ${request.url()}`)
  })
  if (as !== null) {
    const { email, password } = as
    const answer = await context.request.post(`${baseUrl}/v1/auth/login`, { data: { email, password } })
    if (!answer.ok()) throw new Error(`Sign-in failed: ${await answer.text()}`)
  }
  return {
    page,
    to: async (path) => {
      await page.goto(`${ready.console_url}${path}`)
    },
    within: async (path) => {
      const address = JSON.stringify(`${ready.console_url}${path}`)
      await page.evaluate(`history.pushState(null, '', ${address}); dispatchEvent(new PopStateEvent('popstate'))`)
      await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))')
    },
    async [Symbol.asyncDispose]() {
      await context.close()
      if (wrong.length === 0) return
      // Said here as well: where the test has failed before, its runner shows neither of the two errors.
      console.error(wrong.join('\n'))
      throw new Error('The page misbehaved')
    },
  }
}

/** Expires nothing on the page is still on its way. */
export const allThere = (page: Page): Promise<unknown> =>
  until('all of the page is there', async () => (await page.locator('.skeleton').count()) === 0)

/** The text of what has the focus. */
export const focused = (page: Page): Promise<unknown> => page.evaluate('document.activeElement?.textContent?.trim()')

/** Moves the focus to what has this name, by Tab alone. */
export async function tabTo(
  page: Page,
  role: 'button' | 'link' | 'textbox' | 'combobox',
  name: string | RegExp,
  key: 'Tab' | 'Shift+Tab' = 'Tab',
): Promise<void> {
  const wanted = page.getByRole(role, { name, exact: true }).first()
  await wanted.waitFor()
  for (let step = 0; step < 80; step += 1) {
    if ((await wanted.and(page.locator(':focus')).count()) > 0) return
    await page.keyboard.press(key)
  }
  throw new Error(`Tab does not reach ${name}`)
}

const folder = process.env.GATEHOUSE_SCREENSHOTS

/** Whether pictures are kept. */
export const pictured = folder !== undefined

/** Keeps a picture in the folder that `GATEHOUSE_SCREENSHOTS` names; without it does nothing. */
export async function picture(page: Page, name: string): Promise<void> {
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`) })
}

const axe = await Bun.file(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir)).text()
const violations = z.array(
  z.looseObject({ id: z.string(), impact: z.string().nullable(), nodes: z.array(z.looseObject({ html: z.string() })) }),
)

/** What axe finds serious on a page as it is now, by all its rules; `within` is a selector of the part to look at. */
export async function seriousFindings(page: Page, within = 'html'): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe)
  const run = `axe.run('${within}', { resultTypes: ['violations'] }).then(({ violations }) => violations)`
  const said = violations.parse(await page.evaluate(run))
  return said
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join('\n  ')}`)
}

/** The same in both themes, a picture of each kept under the name. */
export async function seriousInBothThemes(page: Page, name: string, within?: string): Promise<string[]> {
  const found: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    found.push(...(await seriousFindings(page, within)).map((finding) => `${name} ${colorScheme} ${finding}`))
    await picture(page, `${name}-${colorScheme}`)
  }
  return found
}

const identified = z.looseObject({ id: z.uuid() })

/** The same at the widths of a desk and of a telephone: all four looks of a screen. */
export async function seriousInEveryLook(page: Page, name: string, within?: string): Promise<string[]> {
  const before = page.viewportSize()
  const found: string[] = []
  for (const [width, height] of [[1440, 900] as const, [390, 844] as const]) {
    await page.setViewportSize({ width, height })
    found.push(...(await seriousInBothThemes(page, `${name}-${width}`, within)))
  }
  if (before !== null) await page.setViewportSize(before)
  return found
}

/** Makes a record over the API, as the administrator. */
export async function make(path: string, body: object): Promise<z.infer<typeof identified>> {
  const { gatehouse } = await sharedConsole()
  return expectAnswer(await api(gatehouse, path, { body }), 201, identified)
}
