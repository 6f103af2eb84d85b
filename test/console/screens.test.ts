/** Every screen in both themes and at the width of a telephone: what axe finds, what does not fit, what keys reach. */
import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { chat, createToken } from '../client.ts'
import { until } from '../eventually.ts'
import { make, type OpenPage, openConsole, picture, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)

const axe = await Bun.file(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir)).text()
const violations = z.array(
  z.looseObject({ id: z.string(), impact: z.string().nullable(), nodes: z.array(z.looseObject({ html: z.string() })) }),
)

/** Paths by the heading that says the screen is there. */
let screens: [path: string, heading: string][] = []

beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'looked at', max_budget: 5, max_requests: 100 })
  const policy = await make('/v1/policies', {
    name: 'looked at',
    kind: 'pii',
    stages: ['pre_request'],
    config: { action: 'redact' },
  })
  for (const model of ['simulator/echo', 'simulator/lorem', 'no/such-model']) {
    await (await chat(gatehouse, { token: token.token_value, model, text: 'to ann@example.com' })).text()
  }
  screens = [
    ['/', 'Overview'],
    ['/traffic', 'Traffic'],
    ['/tokens', 'Tokens'],
    ['/tokens/new', 'New token'],
    [`/tokens/${token.id}`, 'looked at'],
    ['/escalations', 'Escalations'],
    ['/policies', 'Policies'],
    ['/policies/new', 'New policy'],
    [`/policies/${policy.id}`, 'looked at'],
    ['/spend', 'Spend'],
    ['/catalog', 'Catalog'],
    ['/catalog?open=new', 'Catalog'],
    ['/applications', 'Applications'],
    ['/people', 'People'],
    ['/settings', 'Settings'],
    ['/search?q=looked', 'Search: looked'],
    ['/nowhere', 'There is no such page'],
  ]
}, 240_000)

async function look({ page, to }: OpenPage, path: string, heading: string): Promise<void> {
  await to(path)
  await page.locator('h1', { hasText: heading }).waitFor()
  await until(`all of ${path} is there`, async () => (await page.locator('.skeleton').count()) === 0)
}

const fileName = (path: string): string =>
  path
    .replace(/[0-9a-f-]{36}/, 'one')
    .replace(/[^a-z]+/g, '-')
    .replace(/^-|-$/g, '') || 'overview'

for (const theme of ['light', 'dark'] as const) {
  test(`axe finds nothing serious on any screen, in the ${theme} theme`, async () => {
    await using opened = await openConsole({ theme, width: 1600 })
    const found: string[] = []
    for (const [path, heading] of screens) {
      await look(opened, path, heading)
      await opened.page.evaluate(axe)
      const said = violations.parse(await opened.page.evaluate('axe.run().then(({ violations }) => violations)'))
      const serious = said.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      found.push(...serious.map(({ id, nodes }) => `${path} ${id}: ${nodes.map(({ html }) => html).join('\n  ')}`))
      await picture(opened.page, `${fileName(path)}-1600-${theme}`)
    }
    expect(found).toEqual([])
  })

  test(`nothing is wider than a telephone of 390 pixels, in the ${theme} theme`, async () => {
    await using opened = await openConsole({ theme, width: 390 })
    const wide: string[] = []
    for (const [path, heading] of screens) {
      await look(opened, path, heading)
      const beyond = await opened.page.evaluate('document.documentElement.scrollWidth - innerWidth')
      if (z.number().parse(beyond) > 0) wide.push(`${path}: ${beyond} pixels`)
      await picture(opened.page, `${fileName(path)}-390-${theme}`)
    }
    expect(wide).toEqual([])
  })
}

test('the sign-in page has nothing serious either, and shows nothing of the console', async () => {
  for (const theme of ['light', 'dark'] as const) {
    await using opened = await openConsole({ as: null, theme })
    await look(opened, '/tokens', 'Sign in')
    await opened.page.evaluate(axe)
    const said = violations.parse(await opened.page.evaluate('axe.run().then(({ violations }) => violations)'))
    expect(said.filter(({ impact }) => impact === 'serious' || impact === 'critical')).toEqual([])
    expect(await opened.page.getByRole('navigation').count()).toBe(0)
    await picture(opened.page, `sign-in-${theme}`)
  }
})

test('a token is made by the keyboard alone', async () => {
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

test('/ searches, ? lists the keys, Escape closes, and a pasted id leads to its record', async () => {
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

test('whoever may not see a screen is told which permission it needs', async () => {
  const member = { email: 'member@example.com', name: 'Mia', password: 'another long secret 2' }
  await make('/v1/users', { ...member, role: 'member' })
  await using opened = await openConsole({ as: member })
  const { page } = opened
  await opened.to('/policies')
  await page.getByText('policies:read').waitFor()
  expect(await page.getByRole('link', { name: 'Policies' }).count()).toBe(0)
})

test('the first screen is there within the time that was promised', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const times: number[] = []
  for (let round = 0; round < 3; round += 1) {
    await opened.to('/tokens')
    await page.locator('tbody tr').first().waitFor()
    times.push(
      z.number().parse(await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0].startTime`)),
    )
  }
  console.info(`the first screen of the console: ${times.map((time) => time.toFixed(0)).join(', ')} ms`)
  expect(Math.min(...times)).toBeLessThan(1000)
})
