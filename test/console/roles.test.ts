/**
 * Every screen as each role sees it: whoever may not do something is not offered it. What a role may do is the server's
 * own table (identity/permissions.ts).
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { z } from 'zod'
import { type Permission, permissionsOf, type Role } from '../../src/identity/permissions.ts'
import { api, chat, createToken } from '../support/client.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, make, openConsole, owner, sharedConsole } from './console.ts'
import { makeScreens, type Screens } from './every-screen.ts'

setDefaultTimeout(300_000)

const roles = ['admin', 'operator', 'auditor', 'member'] as const satisfies readonly Role[]
const accountOf = (role: Role) => ({
  email: `${role}@example.com`,
  name: `A ${role}`,
  password: `a long secret of ${role}`,
})

let screens: Screens = []
let ownPaths: readonly string[] = []

beforeAll(async () => {
  screens = await makeScreens()
  const { gatehouse } = await sharedConsole()
  await api(gatehouse, '/v1/oauth/clients', {
    body: { client_name: 'Notebook', redirect_uris: ['https://notebook.example.com/cb'], scope: 'gateway:invoke' },
  })
  const team = await make('/v1/teams', { name: 'Team of all roles' })
  const users = new Map<string, string>()
  for (const role of roles) users.set(role, (await make('/v1/users', { ...accountOf(role), role })).id)
  for (const user_id of users.values()) await api(gatehouse, `/v1/teams/${team.id}/members`, { body: { user_id } })
  const bindings = { team_id: team.id, user_id: users.get('member') }
  const token = await createToken(gatehouse, { name: "the member's own", roles: ['member'], bindings })
  const said = { token: token.token_value, model: 'simulator/echo', text: 'to ann@example.com', requestId: 'own' }
  await (await chat(gatehouse, said)).text()
  const [outcome] = await eventsOfRequest(gatehouse, 'own')
  ownPaths = [
    `/tokens/${token.id}`,
    `/traffic/${outcome?.exchange_id}`,
    '/search?q=own',
    '/tokens?name=nothing-has-this-name',
  ]
}, 300_000)
afterAll(endConsole)

/** What of a screen needs a permission to work: names of buttons and links, and parts of sentences that offer something. */
const offers: Partial<Record<Permission, readonly RegExp[]>> = {
  'tokens:write': [/^New token$/, /^Clone$/, /^Rotate$/, /Make one here/, /^Add workload identity$/],
  'tokens:revoke': [/^Revoke$/, /^Emergency revoke$/],
  'escalations:resolve': [/^Claim$/, /^If allowed, may it be sent again/, /allow · b block/],
  'policies:write': [/^New policy$/, /^Delete$/, /^Save$/],
  'catalog:write': [
    /^Add (provider|model|MCP server|gateway|budget|consumer group|access policy|dimension|alert|channel)$/,
    /Add one here/,
    /^Test$/,
  ],
  'members:write': [/^Add (person|team|identity provider|sink)$/, /^Invite/, /^Remove$/, /^Add a member$/],
  'oauth-clients:write': [/^Add application$/, /^Deactivate$/],
  'events:export': [/^Export/],
}

const shownSchema = z.object({
  words: z.array(z.string()),
  links: z.array(z.string()),
  text: z.string(),
  alerts: z.array(z.string()),
})

/** What a screen offers: its buttons and links, sentences outside records, and ids that stand for names. */
const look = async (page: Page): Promise<z.infer<typeof shownSchema>> =>
  shownSchema.parse(
    await page.evaluate(`(() => {
      const main = document.querySelector('main')
      const visible = [...main.querySelectorAll('button, a, .empty p, .keys, legend, label')]
      const clean = main.cloneNode(true)
      for (const part of clean.querySelectorAll('code, pre, input, textarea, datalist, option, [role=alert]')) part.remove()
      return {
        words: visible.map((element) => element.textContent.trim().replace(/\\s+/g, ' ')),
        links: [...main.querySelectorAll('a[href]')].map((link) => link.href),
        text: clean.textContent,
        alerts: [...main.querySelectorAll('[role=alert]')].map((alert) => alert.textContent),
      }
    })()`),
  )

const ids = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|…[0-9a-f]{8}\b/g

/** The same for each record of a kind. */
const patternOf = (address: string): string => {
  const { pathname, searchParams } = new URL(address)
  const kind = searchParams.get('kind') ?? ''
  return `${pathname.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '{id}')} ${kind} ${searchParams.has('open') ? 'open' : ''}`
}

async function visit(role: Role): Promise<{ wrong: string[]; seen: Set<string> }> {
  const { gatehouse } = await sharedConsole()
  const inside = gatehouse.ready.console_url ?? ''
  await using opened = await openConsole({ as: role === 'owner' ? owner : accountOf(role), width: 1600 })
  const { page } = opened
  const held = permissionsOf([role])
  const missing = Object.entries(offers).filter(([permission]) => !held.has(permission as Permission))
  const wrong: string[] = []
  const seen = new Set<string>()
  let at = '/'
  page.on('response', (answer) => {
    const refused = answer.status() === 403 && answer.url().includes('/v1/')
    if (refused)
      wrong.push(`${at} calls ${answer.request().method()} ${new URL(answer.url()).pathname}, which is refused`)
  })
  await opened.to('/')
  const links = new Map<string, { from: string; address: string }>()
  const shown = async (path: string) => {
    at = path
    await opened.within(path)
    await page.locator('main h1').first().waitFor()
    await allThere(page)
    return await look(page)
  }
  const judge = (path: string, { words, text }: z.infer<typeof shownSchema>) => {
    for (const word of words) seen.add(word)
    for (const [permission, names] of missing) {
      const offered = words.filter((word) => names.some((name) => name.test(word)))
      for (const word of offered) wrong.push(`${path} offers "${word}", which needs ${permission}`)
    }
    for (const [id] of text.matchAll(ids)) wrong.push(`${path} shows the id ${id}`)
  }
  for (const path of [...screens.map(([path]) => path), ...ownPaths]) {
    const found = await shown(path)
    if (found.text.includes('Permission missing') || found.text.includes('Page not found')) continue
    judge(path, found)
    for (const address of found.links) {
      if (!links.has(patternOf(address))) links.set(patternOf(address), { from: path, address })
    }
  }
  for (const { from, address } of links.values()) {
    if (address.startsWith(inside)) {
      const { text, alerts } = await shown(address.slice(inside.length))
      const dead =
        /Permission missing|Page not found/.exec(text)?.[0] ??
        alerts.find((alert) => /Not found|permission/.test(alert))
      if (dead !== undefined) wrong.push(`${from} links to ${address.slice(inside.length)}: ${dead}`)
    } else if (address.startsWith(gatehouse.baseUrl)) {
      const answer = await page.context().request.get(address, { maxRedirects: 0 })
      if ([403, 404].includes(answer.status()))
        wrong.push(`${from} links to ${address}, which answers ${answer.status()}`)
    }
  }
  return { wrong: [...new Set(wrong)], seen }
}

for (const role of roles) {
  test(`offers a person with the role ${role} nothing that the API refuses, and names instead of ids`, async () => {
    expect((await visit(role)).wrong).toEqual([])
  })
}

test('offers an owner everything that the other roles are looked through for', async () => {
  const { seen } = await visit('owner')
  const words = [...seen]
  const never = Object.values(offers)
    .flat()
    .filter((name) => !words.some((word) => name.test(word)))
  expect(never.map(String)).toEqual([])
})

test('an admin makes, renames, narrows and revokes tokens by keyboard at 390 pixels; a member is offered none of it', async () => {
  await make('/v1/teams', { name: 'Night shift' })
  await using opened = await openConsole({ as: accountOf('admin'), width: 390 })
  const { page } = opened
  await opened.to('/tokens')
  await page.getByRole('link', { name: 'New token' }).press('Enter')
  await page.getByLabel('Member').press('Space')
  await page.getByLabel('Name').focus()
  await page.keyboard.type('by keys')
  await page.getByLabel('Team', { exact: true }).focus()
  await page.keyboard.type('Night')
  await page.getByRole('button', { name: 'Create token' }).press('Enter')
  await page.locator('[data-secret]').waitFor()
  await page.getByRole('link', { name: 'I have saved it' }).press('Enter')
  await page.getByRole('link', { name: 'Night shift' }).first().waitFor()
  await page.getByRole('button', { name: 'Change' }).press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').focus()
  await page.keyboard.type(', renamed')
  await dialog.getByLabel('Requests (fewer)').focus()
  await page.keyboard.type('5')
  await page.keyboard.press('Enter')
  await dialog.getByRole('button', { name: 'Done' }).press('Enter')
  await page.getByRole('heading', { name: 'renamed' }).waitFor()
  await page.getByText('0 of 5 requests').waitFor()
  await opened.within('/tokens?name=by+keys')
  await page.getByLabel(/^Choose by keys/).press('Space')
  await page.getByRole('button', { name: 'Revoke 1 token' }).press('Enter')
  await dialog.getByRole('textbox').focus()
  await page.keyboard.type('1')
  await page.keyboard.press('Enter')
  await dialog.getByRole('button', { name: 'Done' }).press('Enter')
  await page.locator('tbody').getByText('Revoked').waitFor()
  await using asMember = await openConsole({ as: accountOf('member'), width: 390 })
  await asMember.to('/tokens')
  await asMember.page.getByRole('link', { name: "the member's own" }).waitFor()
  expect(await asMember.page.locator('main').getByRole('link', { name: 'New token' }).count()).toBe(0)
  expect(await asMember.page.locator('main').getByRole('checkbox').count()).toBe(0)
})
