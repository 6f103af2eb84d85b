/** Forms offer records by their names, also those beyond the first page, and no form asks for an id. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { z } from 'zod'
import { api, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { allThere, endConsole, make, openConsole, owner, seriousFindings, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

const teamCount = 103

let teams: Promise<unknown> | null = null
const makeTeams = (): Promise<unknown> => {
  teams ??= (async () => {
    for (let number = 1; number <= teamCount; number += 1) await make('/v1/teams', { name: `Team ${number}` })
  })()
  return teams
}

/** The search has answered: what was typed in the dialog is the name of a record. */
const taken = (page: Page): Promise<unknown> =>
  eventually(async () =>
    expect(await page.evaluate('document.querySelector("dialog [list]").validationMessage')).toBe(''),
  )

test('typing the name of a team keeps the members that are shown, and adds nothing to the history', async () => {
  for (let number = 10; number < 35; number += 1) await make('/v1/teams', { name: `Crew ${number}` })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/people?kind=members')
  await page.getByRole('cell', { name: owner.email }).waitFor()
  const steps = () => page.evaluate('history.length')
  const [before, address] = [await steps(), page.url()]
  const team = page.getByLabel('Team', { exact: true })
  await team.fill('')
  await team.pressSequentially('Crew 2')
  expect([await steps(), page.url(), await team.inputValue()]).toEqual([before, address, 'Crew 2'])
  await team.pressSequentially('4')
  await eventually(async () => expect(new URL(page.url()).searchParams.get('team')).not.toBeNull())
  expect([await steps(), await team.inputValue()]).toEqual([Number(before) + 1, 'Crew 24'])
})

test('no screen reads more than a page of the teams, and a token is found by the 103rd team', async () => {
  await makeTeams()
  await using opened = await openConsole()
  const { page } = opened
  const asked: string[] = []
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (pathname === '/v1/teams' && searchParams.has('cursor')) asked.push(page.url())
  })
  const screens = ['/', '/traffic', '/spend', '/policies', '/people', '/people?kind=members', '/search?q=Team']
  for (const path of [...screens, '/tokens/new', '/catalog?kind=gateways&open=new', '/tokens']) {
    await opened.to(path)
    await allThere(page)
  }
  const filter = page.getByLabel('Team', { exact: true })
  await filter.fill('Team 103')
  await eventually(async () => expect(new URL(page.url()).searchParams.get('team_id')).not.toBeNull())
  expect(await filter.inputValue()).toBe('Team 103')
  expect(asked).toEqual([])
})

test('the tokens read the list of teams once, and say where it could not be read', async () => {
  const { gatehouse } = await sharedConsole()
  const { id } = await make('/v1/teams', { name: 'Checkout' })
  await createToken(gatehouse, { name: 'till', bindings: { team_id: id } })
  await using opened = await openConsole()
  const { page } = opened
  let [reads, failed] = [0, true]
  await page.route(/\/v1\/teams\b/, (route) => {
    if (new URL(route.request().url()).pathname === '/v1/teams') reads += 1
    const error = { message: 'The database is full', type: 'server_error', code: 'internal', param: null }
    return failed ? route.fulfill({ status: 500, json: { error } }) : route.continue()
  })
  await opened.to('/tokens?name=till')
  const note = page.getByRole('alert').filter({ hasText: 'The database is full' })
  await note.waitFor()
  ;[reads, failed] = [0, false]
  await note.getByRole('button', { name: 'Try again' }).click()
  await note.waitFor({ state: 'detached' })
  expect(reads).toBe(1)
  await opened.within('/policies')
  await opened.within('/tokens?name=till')
  await page.getByRole('row', { name: 'till' }).getByRole('cell', { name: 'Checkout' }).waitFor()
})

test('a filter keeps a text that names nothing, and says so or that the names could not be read', async () => {
  await makeTeams()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens')
  const filter = page.locator('input#filter-team_id')
  const said = page.getByRole('status').filter({ hasText: /name/ })
  await filter.fill('Taem')
  await said.getByText('No name has this text').waitFor()
  await filter.blur()
  expect(await filter.inputValue()).toBe('Taem')
  await filter.fill('eam 10')
  await filter.blur()
  await said.getByText('Choose one of the names in the list').waitFor()
  expect(await seriousFindings(page, '.filters')).toEqual([])
  await page.route(/\/v1\/teams\?.*name=/, (route) => route.fulfill({ status: 500, json: {} }))
  await filter.fill('eam 5')
  await said.getByText('The names could not be read').waitFor()
})

test('an answer that comes after a filter was cleared does not set it', async () => {
  await makeTeams()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens')
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  await page.route(/\/v1\/teams\?.*name=Team/, async (route) => {
    await held
    await route.continue().catch(() => undefined)
  })
  const filter = page.locator('input#filter-team_id')
  const asked = page.waitForRequest(/\/v1\/teams\?.*name=Team/)
  await filter.fill('Team 103')
  await asked
  await page.getByRole('button', { name: 'Clear team' }).click()
  release()
  await page.waitForLoadState('networkidle')
  expect([new URL(page.url()).searchParams.get('team_id'), await filter.inputValue()]).toEqual([null, ''])
})

test('a budget is made for the 103rd of the teams, found by its name', async () => {
  await makeTeams()
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  await opened.to('/catalog?kind=budgets&open=new')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('of one team')
  await dialog.getByLabel('Max budget').fill('5')
  await dialog.getByLabel('Window').selectOption('month')
  await dialog.getByLabel('Kind').selectOption('team')
  const team = dialog.getByLabel('Team', { exact: true })
  await team.fill('Team 104')
  await dialog.getByRole('button', { name: 'Add' }).click()
  expect(await page.evaluate('document.querySelector("dialog [list]").validationMessage')).toBe(
    'Choose one of the names in the list',
  )
  await team.fill('Team 103')
  await taken(page)
  expect(await seriousFindings(page, 'dialog')).toEqual([])
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.getByText('Added').waitFor()
  await page.getByRole('link', { name: 'Who used it' }).click()
  await page.locator('.facts').getByRole('link', { name: 'Team 103' }).click()
  await page.getByRole('dialog', { name: 'Team 103' }).waitFor()
})

test('a team that was chosen does not stay when the budget becomes one of the organization', async () => {
  await makeTeams()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/catalog?kind=budgets&open=new')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('of all')
  await dialog.getByLabel('Max budget').fill('5')
  await dialog.getByLabel('Window').selectOption('week')
  await dialog.getByLabel('Kind').selectOption('team')
  await dialog.getByLabel('Team', { exact: true }).fill('Team 7')
  await taken(page)
  await dialog.getByLabel('Kind').selectOption('organization')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.locator('tbody').getByText('of all').waitFor()
})

test('a budget asks for a tool only where it is of an MCP server, and keeps none for another scope', async () => {
  await make('/v1/catalog/mcp-servers', { name: 'mail', url: 'https://mail.example.com/mcp' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/catalog?kind=budgets&open=new')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('without a tool')
  await dialog.getByLabel('Max budget').fill('5')
  await dialog.getByLabel('Window').selectOption('week')
  const tool = dialog.getByLabel('Tool', { exact: true })
  expect(await tool.count()).toBe(0)
  await dialog.getByLabel('Kind').selectOption('mcp_server')
  await tool.fill('send')
  await dialog.getByLabel('Kind').selectOption('organization')
  expect(await tool.count()).toBe(0)
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.locator('tbody').getByText('without a tool').waitFor()
})

test('tokens are found by a part of their name for a consumer group and for an alert', async () => {
  const { gatehouse } = await sharedConsole()
  for (let number = 1; number <= 25; number += 1) await createToken(gatehouse, { name: `worker ${number}` })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/catalog?kind=consumer-groups&open=new')
  const group = page.getByRole('dialog')
  await group.getByLabel('Name').fill('workers')
  await group.getByLabel('Requests per minute').fill('60')
  await group.getByLabel('Find in tokens').fill('worker 25')
  await group.getByLabel('worker 25').check()
  await group.getByRole('button', { name: 'Add' }).click()
  await page.locator('tbody').getByText('workers').waitFor()
  await opened.to('/alerts?kind=alerts&open=new')
  const alert = page.getByRole('dialog')
  await alert.getByLabel('Name').fill('worker is refused')
  await alert.getByLabel('Condition').selectOption('refusals')
  await alert.getByLabel('Kind').selectOption('token')
  const token = alert.getByLabel('Token', { exact: true })
  await token.fill('worker 24')
  const offered = alert.locator('datalist option')
  await eventually(async () => expect(await offered.count()).toBe(1))
  await token.fill((await offered.first().getAttribute('value')) ?? '')
  await alert.getByRole('button', { name: 'Add' }).click()
  await page.locator('tbody').getByText('Token worker 24').waitFor()
})

/** Of JSON Schema as much as leads to fields that hold ids. */
interface Part {
  format?: string | undefined
  properties?: Record<string, Part> | undefined
  items?: Part | boolean | undefined
  anyOf?: Part[] | undefined
  oneOf?: Part[] | undefined
  'x-record'?: unknown
  'x-record-of'?: unknown
}

const partSchema: z.ZodType<Part> = z.lazy(() =>
  z.looseObject({
    format: z.string().optional(),
    properties: z.record(z.string(), partSchema).optional(),
    items: z.union([z.boolean(), partSchema]).optional(),
    anyOf: z.array(partSchema).optional(),
    oneOf: z.array(partSchema).optional(),
  }),
)

function idsWithoutRecords(part: Part, path: string): string[] {
  if (part['x-record'] !== undefined || part['x-record-of'] !== undefined) return []
  if (part.format === 'uuid') return [path]
  return [
    ...Object.entries(part.properties ?? {}).flatMap(([name, inner]) => idsWithoutRecords(inner, `${path}.${name}`)),
    ...[typeof part.items === 'object' ? part.items : [], part.anyOf ?? [], part.oneOf ?? []]
      .flat()
      .flatMap((inner) => idsWithoutRecords(inner, path)),
  ]
}

/** The bodies of which the console makes forms. */
const formPaths = [
  ...['/v1/catalog/providers', '/v1/catalog/models', '/v1/catalog/mcp-servers', '/v1/sinks', '/v1/gateways'],
  ...['/v1/workload-identities', '/v1/budgets', '/v1/consumer-groups', '/v1/access-policies'],
  ...['/v1/attribution-dimensions', '/v1/users', '/v1/teams', '/v1/identity-providers', '/v1/oauth/clients'],
  ...['/v1/alerts', '/v1/alert-channels', '/v1/policies'],
]

test('each field of a form that holds an id says of which records it is', async () => {
  const { gatehouse } = await sharedConsole()
  const bodySchema = z.object({
    requestBody: z.object({ content: z.object({ 'application/json': z.object({ schema: partSchema }) }) }),
  })
  const description = z
    .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse((await api(gatehouse, '/v1/openapi.json')).body)
  const found = formPaths.flatMap((path) => {
    const { requestBody } = bodySchema.parse(description.paths[path]?.post)
    return idsWithoutRecords(requestBody.content['application/json'].schema, path)
  })
  expect(found).toEqual([])
})
