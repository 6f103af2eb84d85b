/** Requests that a policy or a limit stopped, as each role sees their story, and the limits of budgets and tokens. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { api, chat, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import {
  allThere,
  endConsole,
  make,
  openConsole,
  owner,
  picture,
  seriousInBothThemes,
  sharedConsole,
} from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

const roles = ['admin', 'operator', 'auditor', 'member'] as const
const accountOf = (role: string) => ({
  email: `${role}@example.com`,
  name: `A ${role}`,
  password: `a long secret of ${role}`,
})

let teamId = ''
let budgetId = ''
let tokenId = ''
/** Paths of the stories. */
let redacted = ''
let refused = ''

async function storyOf(requestId: string): Promise<string> {
  const { gatehouse } = await sharedConsole()
  const [outcome] = await eventsOfRequest(gatehouse, requestId)
  return `/traffic/${outcome?.exchange_id}`
}

beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  teamId = (await make('/v1/teams', { name: 'Checkout' })).id
  for (const role of roles) {
    const user = await make('/v1/users', { ...accountOf(role), role })
    await api(gatehouse, `/v1/teams/${teamId}/members`, { body: { user_id: user.id } })
  }
  await make('/v1/policies', {
    ...{ name: 'No addresses', kind: 'pii', stages: ['pre_request'], config: { types: ['email'], action: 'redact' } },
    targets: { teams: [teamId] },
  })
  const token = await createToken(gatehouse, { name: 'Till', roles: ['member'], bindings: { team_id: teamId } })
  tokenId = token.id
  const ask = async (requestId: string) => {
    const answer = await chat(gatehouse, {
      ...{ token: token.token_value, model: 'simulator/echo', text: 'to ann@example.com', requestId },
    })
    await answer.text()
    return answer.status
  }
  // Gateways learn of a policy and a budget within milliseconds.
  await eventually(async () => {
    const requestId = crypto.randomUUID()
    expect(await ask(requestId)).toBe(200)
    const verdicts = (await eventsOfRequest(gatehouse, requestId)).map(({ verdict }) => verdict)
    expect(verdicts).toContain('redact')
    redacted = await storyOf(requestId)
  })
  const scope = { kind: 'team', id: teamId }
  budgetId = (await make('/v1/budgets', { name: 'Tills', max_budget: 0.00001, window: 'month', scope })).id
  await eventually(async () => {
    const requestId = crypto.randomUUID()
    expect(await ask(requestId)).toBe(402)
    refused = await storyOf(requestId)
  })
}, 240_000)

/** The addresses in the console to which a page leads. */
const linksOf = async (page: Page): Promise<string[]> => {
  const found = await page.locator('main a[href]').all()
  const links = await Promise.all(found.map((link) => link.getAttribute('href')))
  return [...new Set(links.filter((link) => link !== null))]
}

for (const role of ['owner', ...roles] as const) {
  test(`the story of a request names its token, team, policy and limit to the role ${role}, and leads to nothing closed`, async () => {
    const { gatehouse } = await sharedConsole()
    const base = new URL(gatehouse.ready.console_url ?? '').pathname
    await using opened = await openConsole({ as: role === 'owner' ? owner : accountOf(role) })
    const { page } = opened
    await opened.to('/settings')
    const read = async (path: string): Promise<string> => {
      await opened.within(path)
      await page.locator('main h1').first().waitFor()
      await allThere(page)
      return (await page.locator('main').textContent()) ?? ''
    }
    const facts = async () => (await page.locator('.story .facts').allTextContents()).join('\n')
    expect(await read(redacted)).toContain('the policy “No addresses” matched in the request')
    expect(await page.locator('.story').textContent()).toContain('No addresses')
    for (const word of ['Till', 'Checkout']) expect(await facts()).toContain(word)
    expect(await facts()).not.toContain(tokenId)
    const links = new Set(await linksOf(page))
    expect(await read(refused)).toContain('the budget “Tills” of the team “Checkout”')
    expect(await facts()).toContain('Checkout')
    await picture(page, `refused-${role}`)
    for (const link of await linksOf(page)) links.add(link)
    await read('/')
    for (const link of await linksOf(page)) links.add(link)
    for (const link of [...links].filter((each) => each.startsWith(base))) {
      expect([link, await read(link.slice(base.length))]).toEqual([
        link,
        expect.not.stringMatching(/Permission missing|You do not have permission|Not found/),
      ])
    }
  })
}

test('a budget says who was refused, leads to those requests, and stays on its page when it is saved', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/budgets/${budgetId}`)
  const row = page.locator('section[aria-label="Who was refused"]').getByRole('row', { name: /Till/ })
  expect(await row.textContent()).toMatch(/Till\s*\d/)
  expect(await seriousInBothThemes(page, 'budget-refused')).toEqual([])
  await row.getByRole('link', { name: 'Till' }).click()
  await page.getByRole('heading', { name: 'Traffic' }).waitFor()
  await allThere(page)
  const requests = page.locator('section[aria-label="Requests"] tbody tr')
  expect(await requests.count()).toBeGreaterThan(0)
  expect(await page.getByRole('textbox', { name: 'Limit id' }).inputValue()).toBe(budgetId)
  await opened.to(`/budgets/${budgetId}`)
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByRole('dialog').getByLabel('Max budget').fill('0.00002')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved').waitFor()
  await page.getByText('of $0.000020').first().waitFor()
  expect(new URL(page.url()).pathname).toEndWith(`/budgets/${budgetId}`)
  await page.getByRole('heading', { name: 'Tills' }).waitFor()
})

test('a token shows the budget of its team among its limits, with when it resets', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${tokenId}`)
  const limits = page.getByRole('list', { name: 'Limits' })
  await limits.getByText('of team Checkout').waitFor()
  expect(await limits.textContent()).toMatch(/Budget Tills of team Checkout\$[\d.]+ of \$0\.0000\d+ usedResets /)
  expect(await seriousInBothThemes(page, 'token-limits')).toEqual([])
  await limits.getByRole('link', { name: 'Tills' }).click()
  await page.getByRole('heading', { name: 'Tills' }).waitFor()
})

test('a member sees the limits of the own token by name, without a link that the role cannot open', async () => {
  const { gatehouse } = await sharedConsole()
  await using opened = await openConsole({ as: accountOf('member') })
  const { page } = opened
  const { body } = await api(gatehouse, '/v1/users?limit=100')
  const userId = /"id":"([0-9a-f-]{36})"[^}]*"email":"member@example.com"/.exec(JSON.stringify(body))?.[1]
  const bindings = { team_id: teamId, user_id: userId }
  const { id: policyId } = await make('/v1/access-policies', { name: 'Slow lane', requests_per_minute: 60 })
  const own = await createToken(gatehouse, {
    ...{ name: 'Own', roles: ['member'], bindings, expires_in_seconds: 86_400, access_policy_ids: [policyId] },
  })
  await opened.to(`/tokens/${own.id}`)
  const limits = page.getByRole('list', { name: 'Limits' })
  await limits.waitFor()
  expect(await limits.textContent()).toContain('Budget Tills of team Checkout')
  expect(await limits.textContent()).toContain('Access policy Slow lane: 60 requests a minute')
  expect(await limits.getByRole('link').count()).toBe(0)
  const text = await page.locator('main').textContent()
  expect(text).toContain('Until ')
  expect(text).not.toMatch(/\d{4}-\d\d-\d\dT/)
})

test('a budget lists the tokens that it refused most often, and says where that could not be read', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const path = /\/v1\/usage\/report\?/
  const rows = Array.from({ length: 25 }, (_, index) => ({
    ...{ group: { token: `t-${index}` }, names: { token: `Till ${index}` }, requests: index + 1, cost: 0 },
  }))
  await page.route(path, (route) => route.fulfill({ json: { rows, totals: { requests: 325, cost: 0 } } }))
  await opened.to(`/budgets/${budgetId}`)
  const section = page.locator('section[aria-label="Who was refused"]')
  await section.getByRole('link', { name: 'Till 24' }).waitFor()
  expect(await section.locator('tbody tr').count()).toBe(20)
  await page.getByText('The 20 of 25 tokens that it refused most often.').waitFor()
  const all = await page.getByRole('link', { name: 'All refused requests' }).getAttribute('href')
  expect(all).toContain(`limit_id=${budgetId}`)
  await page.unroute(path)
  const error = { message: 'The report has too many rows', code: 'invalid_parameter', param: 'by' }
  await page.route(path, (route) => route.fulfill({ status: 400, json: { error } }))
  await api((await sharedConsole()).gatehouse, `/v1/budgets/${budgetId}`, {
    method: 'PATCH',
    body: { max_budget: 1000 },
  })
  await page.reload()
  await page.getByText('Whether it refused requests in this window could not be read.').waitFor()
})

test('a change of models that came too late shows both lists as a person writes them', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'Models' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${token.id}`)
  await page.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Models (fewer)').fill('gpt-*\nclaude-*')
  await api(gatehouse, `/v1/tokens/${token.id}`, { method: 'PATCH', body: { name: 'Models of others' } })
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('Yours: gpt-*, claude-*').waitFor()
  await dialog.getByText('Saved now: nothing').waitFor()
})

test('a token that was renamed in another tab meanwhile shows both names and takes the one that is chosen', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'First name' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${token.id}`)
  await page.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('My name')
  await api(gatehouse, `/v1/tokens/${token.id}`, { method: 'PATCH', body: { name: 'Their name' } })
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('Saved now: Their name').waitFor()
  await dialog.getByText('Yours: My name').waitFor()
  await dialog.getByRole('button', { name: 'Overwrite with mine' }).click()
  await page.getByRole('heading', { name: 'My name' }).waitFor()
})

test('the form of a budget asks once whose spend it bounds', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/catalog?kind=budgets&open=new')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Kind').selectOption('token')
  const text = (await dialog.textContent()) ?? ''
  expect(text.match(/whose spend/gi)).toHaveLength(1)
  expect(text).not.toContain('budget_id')
})
