/** Every screen in both themes and at the width of a telephone: what axe finds, what does not fit, what keys reach. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { createToken } from '../support/client.ts'
import {
  allThere,
  endConsole,
  make,
  type OpenPage,
  openConsole,
  seriousInBothThemes,
  seriousInEveryLook,
  sharedConsole,
} from './console.ts'
import { fileName, makeScreens, type Screens } from './every-screen.ts'

setDefaultTimeout(120_000)

let screens: Screens = []

beforeAll(async () => {
  screens = await makeScreens()
}, 240_000)
afterAll(endConsole)

async function look({ page, within }: OpenPage, path: string, heading: string): Promise<void> {
  await within(path)
  await page.locator('h1', { hasText: heading }).waitFor()
  await allThere(page)
}

test('axe finds no serious problem on any screen in any of its four looks', async () => {
  await using opened = await openConsole()
  await opened.to('/')
  const found: string[] = []
  for (const [path, heading] of screens) {
    await look(opened, path, heading)
    found.push(...(await seriousInEveryLook(opened.page, fileName(path))))
  }
  expect(found).toEqual([])
})

test('no screen is wider than the page, from 390 to 2560 pixels', async () => {
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  await opened.to('/')
  const wide: string[] = []
  for (const width of [390, 720, 1600, 2560]) {
    await page.setViewportSize({ width, height: 844 })
    for (const [path, heading] of screens) {
      await look(opened, path, heading)
      const beyond = z.number().parse(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
      if (beyond > 0) wide.push(`${path} at ${width}: ${beyond} pixels`)
    }
  }
  expect(wide).toEqual([])
})

test('axe finds no serious problem on the sign-in page, which shows nothing of the console', async () => {
  await using opened = await openConsole({ as: null })
  await opened.to('/tokens')
  await opened.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await seriousInBothThemes(opened.page, 'sign-in')).toEqual([])
  expect(await opened.page.getByRole('navigation').count()).toBe(0)
})

test('a token is created by keyboard alone', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('k')
  await page.getByRole('heading', { name: 'Tokens' }).waitFor()
  await page.getByRole('link', { name: 'New token' }).press('Enter')
  await page.getByLabel('Member').press('Space')
  await page.getByLabel('Name').press('x')
  await page.keyboard.press('Enter')
  await page.locator('[data-secret]').waitFor()
})

test('/ searches, ? lists the keys, Escape closes, and a pasted id opens its record', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'found by its id' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/settings')
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.keyboard.press('/')
  await page.keyboard.type(token.id)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'found by its id' }).waitFor()
})

test('a person without the permission of a screen sees its name', async () => {
  const member = { email: 'member@example.com', name: 'Mia', password: 'another long secret 2' }
  await make('/v1/users', { ...member, role: 'member' })
  await using opened = await openConsole({ as: member })
  const { page } = opened
  await opened.to('/policies')
  await page.getByText('policies:read').waitFor()
  expect(await page.getByRole('link', { name: 'Policies' }).count()).toBe(0)
})

test('a screen whose records fail to load shows an error and retries', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const error = {
    message: 'The ledger does not answer',
    type: 'service_unavailable',
    param: null,
    code: 'dependency_unavailable',
  }
  await page.route(/\/v1\/tokens\?/, (route) =>
    route.fulfill({ status: 503, json: { error, request_id: 'a-request' } }),
  )
  await opened.to('/tokens')
  expect(await page.getByRole('alert').textContent()).toContain('The ledger does not answer')
  expect(await page.getByText('No token fits').count()).toBe(0)
  await page.unroute(/\/v1\/tokens\?/)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('administrator').waitFor()
})

test('a page that cannot learn who is signed in says so and can retry', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await page.route(/console\/tokens$/, async (route) => {
    const answer = await route.fetch()
    const body = (await answer.text()).replace('signed_in&quot;:true', 'signed_in&quot;:null')
    await route.fulfill({ response: answer, body })
  })
  await opened.to('/tokens')
  expect(await page.getByRole('alert').textContent()).toContain('cannot reach its database')
  expect(await page.getByRole('navigation').count()).toBe(0)
  expect(await seriousInBothThemes(page, 'nobody-knows')).toEqual([])
  await page.unroute(/console\/tokens$/)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Tokens' }).waitFor()
})

const answered = z.array(z.object({ path: z.string(), startTime: z.number(), responseEnd: z.number() }))

test('the first screen requests the session once, in parallel with its script', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens')
  await page.locator('tbody tr').first().waitFor()
  const usable = z.number().parse(await page.evaluate('performance.now()'))
  console.info(`the first screen of the console is usable after ${usable.toFixed(0)} ms`)
  const asked = answered.parse(
    await page.evaluate(`performance.getEntriesByType('resource')
      .map(({ name, startTime, responseEnd }) => ({ path: new URL(name).pathname, startTime, responseEnd }))`),
  )
  const whoCalls = asked.filter(({ path }) => path === '/v1/auth/session')
  const script = asked.find(({ path }) => path.endsWith('.js'))
  expect(whoCalls).toHaveLength(1)
  expect(whoCalls[0]?.startTime).toBeLessThan(script?.responseEnd ?? 0)
})
