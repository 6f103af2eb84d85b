/** Every dialog in its four looks: what axe finds in it, and that the keyboard closes it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { api, chat, createToken } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { allThere, endConsole, make, openConsole, seriousInEveryLook, sharedConsole } from './console.ts'
import { makeAskingPolicy } from './every-screen.ts'

setDefaultTimeout(60_000)

let tokenId = ''
let budgetId = ''

beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'asked about' })
  tokenId = token.id
  const scope = { kind: 'organization' }
  budgetId = (await make('/v1/budgets', { name: 'asked about', max_budget: 5, window: 'day', scope })).id
  const redirect_uris = ['https://asked.example.com/callback']
  await api(gatehouse, '/v1/oauth/clients', {
    body: { client_name: 'asked about', redirect_uris, scope: 'tokens:read' },
  })
  await makeAskingPolicy()
}, 240_000)
afterAll(endConsole)

/** A page whose dialogs are looked into one after another; what was found is thrown together at its end. */
async function lookIntoDialogs(path: string) {
  const opened = await openConsole({ width: 1600 })
  const { page } = opened
  await opened.to(path)
  const found: string[] = []
  return {
    ...opened,
    press: (name: string) => page.getByRole('button', { name, exact: true }).first().click(),
    async look(name: string): Promise<void> {
      await page.getByRole('dialog').waitFor()
      await allThere(page)
      found.push(...(await seriousInEveryLook(page, `dialog-${name}`, 'dialog')))
    },
    async leave(): Promise<void> {
      await page.keyboard.press('Escape')
      // By its element, not its role: what is closed has none at once, and only then changes the address.
      await page.locator('dialog').waitFor({ state: 'detached' })
    },
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      expect(found).toEqual([])
    },
  }
}

test('axe finds nothing in the dialogs that create a record of each kind', async () => {
  await using dialogs = await lookIntoDialogs('/catalog')
  const { page } = dialogs
  const catalog = [
    'providers',
    'models',
    'mcp-servers',
    'sinks',
    'gateways',
    'budgets',
    'consumer-groups',
    'access-policies',
  ]
  const paths = [...catalog.map((kind) => `/catalog?kind=${kind}`), '/people?kind=people', '/people?kind=teams']
  for (const path of [...paths, '/applications?']) {
    await dialogs.within(`${path}&open=new`)
    await dialogs.look(`new-${path.replace(/[^a-z]+/g, '-')}`)
    expect([path, await page.evaluate('document.activeElement.closest("dialog form") !== null')]).toEqual([path, true])
    await dialogs.leave()
  }
})

test('a form longer than the window shows its buttons, and no field with the focus is beneath them', async () => {
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  await opened.to('/catalog?kind=models&open=new')
  const add = page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true })
  await add.waitFor()
  await allThere(page)
  const top = 'document.querySelector("dialog form > .row:last-child").getBoundingClientRect().top'
  const hidden = `document.activeElement.closest('.row:last-child') === null
    && document.activeElement.getBoundingClientRect().bottom > ${top}`
  expect(await page.evaluate(`${top} < innerHeight`)).toBe(true)
  for (let field = 0; field < 20; field += 1) {
    await page.keyboard.press('Tab')
    expect([field, await page.evaluate(hidden)]).toEqual([field, false])
  }
})

test('axe finds nothing in the dialogs that change and delete a record and deactivate an application', async () => {
  await using dialogs = await lookIntoDialogs(`/catalog?kind=budgets&open=${budgetId}`)
  await dialogs.look('change')
  await dialogs.press('Delete')
  await dialogs.page.getByLabel('to confirm').waitFor()
  await dialogs.look('delete')
  await dialogs.leave()
  await dialogs.within('/applications')
  await dialogs.press('Deactivate')
  await dialogs.look('deactivate')
  const words = 'document.querySelector("dialog p")'
  expect(await dialogs.page.evaluate(`${words}.scrollWidth - ${words}.clientWidth`)).toBe(0)
  await dialogs.leave()
  await dialogs.within('/people?kind=members')
  await dialogs.press('Remove')
  await dialogs.look('remove')
  await dialogs.leave()
})

test('axe finds nothing in the dialogs that compare and reject offers of an MCP server', async () => {
  const { id } = await make('/v1/catalog/mcp-servers', { name: 'asked-about', url: 'https://mcp.example.com/mcp' })
  const offer = (name: string, digest: string, fields: object) => ({
    ...{ kind: 'tool', name, digest, status: 'held', approved_digest: 'former', misfit: null, changes: null },
    ...{ definition: { name, description: `as of ${digest}` }, gateway_id: null },
    ...{ first_seen_at: '2026-01-01T00:00:00Z', dismissed_at: null, dismissed_by: null, ...fields },
  })
  const offers = [
    offer('search', 'first', {}),
    offer('search', 'former', { status: 'approved' }),
    offer('search', 'latest', { changes: [{ path: 'description', before: '"as was"', after: '"as is"' }] }),
    offer('broken', 'odd', { approved_digest: null, misfit: 'description is no text' }),
    offer('old', 'rejected', { dismissed_at: '2026-01-02T00:00:00Z', dismissed_by: 'user:someone' }),
  ]
  await using dialogs = await lookIntoDialogs('/catalog?kind=mcp-servers')
  const { page } = dialogs
  await page.route(`**/v1/catalog/mcp-servers/${id}/offers?*`, (route) =>
    route.fulfill({ json: { offers, next_cursor: null } }),
  )
  await dialogs.press('Held offers: none')
  await page.getByText('as of latest').waitFor()
  await page.getByText('It cannot be approved: description is no text').waitFor()
  expect(await page.getByRole('button', { name: 'Approve this definition' }).count()).toBe(1)
  expect(await page.getByRole('button', { name: 'Dismiss', exact: true }).count()).toBe(2)
  await dialogs.look('offers')
  // What is pressed in a dialog is not pressed in the row that it was opened from.
  await page.getByText('as of latest').click()
  expect(new URL(page.url()).searchParams.has('open')).toBe(false)
  await dialogs.leave()
})

test('a provider is added by a preset and tested, and axe finds nothing in the dialog', async () => {
  await using dialogs = await lookIntoDialogs('/catalog?kind=providers')
  const { page } = dialogs
  await dialogs.press('Add provider')
  const form = page.getByRole('dialog')
  await form.getByLabel('Preset', { exact: true }).selectOption('ollama')
  await form.getByLabel('Name', { exact: true }).fill('local-models')
  await form.getByLabel('Base url').fill('http://127.0.0.1:1')
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  const row = page.getByRole('row').filter({ hasText: 'local-models' })
  await row.getByText('Ollama').waitFor()
  await row.getByRole('button', { name: 'Test' }).click()
  await page.getByText('Models fails').waitFor()
  await page.getByText('nothing listens there').first().waitFor()
  await dialogs.look('provider-test')
  await dialogs.leave()
})

test('axe finds nothing in the dialogs of a token and of its new secret', async () => {
  await using dialogs = await lookIntoDialogs(`/tokens/${tokenId}`)
  for (const name of ['Clone', 'Revoke', 'Emergency revoke', 'Rotate']) {
    await dialogs.press(name)
    await dialogs.look(name.toLowerCase().replace(' ', '-'))
    if (name !== 'Rotate') await dialogs.leave()
  }
  await dialogs.page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  await dialogs.page.locator('[data-secret]').waitFor()
  await dialogs.look('secret')
  await dialogs.press('I have saved it')
})

test('axe finds nothing in the dialogs for decisions, keys and time ranges', async () => {
  const { gatehouse } = await sharedConsole()
  const { token_value: token } = await createToken(gatehouse)
  // The gateway has the policy as soon as it has heard of it.
  await eventually(async () => {
    const answer = await chat(gatehouse, { token, model: 'simulator/echo', text: 'open the vault' })
    await answer.text()
    expect(answer.headers.get('x-service-verdict')).toBe('ESCALATE')
  })
  await using dialogs = await lookIntoDialogs('/escalations')
  const inbox = dialogs.page.getByLabel('The request')
  await until('the request is in the inbox', async () => {
    await dialogs.page.reload()
    await allThere(dialogs.page)
    return (await inbox.count()) > 0
  })
  await dialogs.page.keyboard.press('?')
  await dialogs.look('keyboard')
  await dialogs.leave()
  await dialogs.to('/')
  await dialogs.page.getByLabel('Time range').selectOption('custom')
  await dialogs.look('range')
  await dialogs.leave()
})
