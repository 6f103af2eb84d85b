/**
 * What a person does faster than the page: between two pictures of it, between what it asks and the answer, or while it
 * draws itself anew. Nothing that was typed, pressed or meant is lost to the other.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { endConsole, make, openConsole, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

test('an id searched after other words opens its record, not the earlier result', async () => {
  const { gatehouse } = await sharedConsole()
  await createToken(gatehouse, { name: 'solitary' })
  const wanted = await createToken(gatehouse, { name: 'wanted by its id' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/search?q=solitary')
  await page.getByRole('main').getByRole('link', { name: 'solitary' }).waitFor()
  await page.getByLabel('Search, or paste an id').fill(wanted.id)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/tokens\//)
  await page.getByRole('heading', { name: 'wanted by its id' }).waitFor()
})

test('leaving the page asks for confirmation as soon as a secret is shown', async () => {
  const { gatehouse } = await sharedConsole()
  const { id } = await createToken(gatehouse, { name: 'left at once' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${id}`)
  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).waitFor()
  const asked = await page.evaluate(`new Promise((seen) => {
    new MutationObserver(() => {
      if (document.querySelector('[data-secret]') === null) return
      seen(!dispatchEvent(new Event('beforeunload', { cancelable: true })))
    }).observe(document.body, { childList: true, subtree: true })
    ;[...document.querySelectorAll('dialog button')].find((button) => button.textContent.trim() === 'Rotate').click()
  })`)
  expect(asked).toBe(true)
})

test('leaving asks for confirmation while a secret is being created, and its dialog cannot be closed', async () => {
  const { gatehouse } = await sharedConsole()
  const { id } = await createToken(gatehouse, { name: 'left too soon' })
  await using opened = await openConsole()
  const { page } = opened
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route(/\/v1\/tokens\/.*\/rotate$/, async (route) => {
    asked.resolve()
    await answered.promise
    await route.continue()
  })
  const questions: string[] = []
  page.on('dialog', (dialog) => {
    questions.push(dialog.message())
    void dialog.dismiss()
  })
  await opened.to('/tokens')
  await opened.within(`/tokens/${id}`)
  await page.getByRole('button', { name: 'Rotate' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Rotate' }).click()
  await asked.promise
  expect(await dialog.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true)
  await page.evaluate('history.back()')
  await until('it was asked', async () => questions.length > 0)
  expect(questions).toEqual([expect.stringContaining('secret')])
  answered.resolve()
  await page.locator('[data-secret]').waitFor()
})

test('a secret that arrives after its screen was left keeps the warning for another pending one', async () => {
  const { gatehouse } = await sharedConsole()
  const [left, stayed] = [
    await createToken(gatehouse, { name: 'left' }),
    await createToken(gatehouse, { name: 'stayed' }),
  ]
  await using opened = await openConsole()
  const { page } = opened
  const onTheWay = new Map([left, stayed].map(({ id }) => [id, Promise.withResolvers<void>()]))
  await page.route(/\/v1\/tokens\/.*\/rotate$/, async (route) => {
    const [, , , id = ''] = new URL(route.request().url()).pathname.split('/')
    await onTheWay.get(id)?.promise
    await route.continue()
  })
  let mayLeave = true
  let questions = 0
  page.on('dialog', (dialog) => {
    questions++
    void (mayLeave ? dialog.accept() : dialog.dismiss())
  })
  const rotate = async (id: string) => {
    await opened.within(`/tokens/${id}`)
    const asked = page.waitForRequest(new RegExp(`${id}/rotate$`))
    await page.getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    await asked
  }
  await opened.to('/tokens')
  await rotate(left.id)
  await rotate(stayed.id)
  expect(questions).toBe(1)
  mayLeave = false
  const answer = page.waitForResponse(new RegExp(`${left.id}/rotate$`))
  onTheWay.get(left.id)?.resolve()
  await (await answer).finished()
  await page.evaluate('new Promise((later) => setTimeout(later, 200))')
  await page.evaluate('history.back()')
  await until('it was asked again', async () => questions > 1)
  onTheWay.get(stayed.id)?.resolve()
  await page.locator('[data-secret]').waitFor()
})

test('a dialog closed by the browser leaves the focus where it moved', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/settings')
  await page.getByRole('button', { name: 'Keyboard' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  const focused = await page.evaluate(`(async () => {
    document.querySelector('dialog').close()
    document.querySelector('input[type=search]').focus()
    while (document.querySelector('dialog') !== null) await new Promise((task) => setTimeout(task))
    return document.activeElement.getAttribute('type')
  })()`)
  expect(focused).toBe('search')
})

test('two keys pressed quickly count as a pair, however long the page was busy between them', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/settings')
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  await page.evaluate(`(() => {
    const pressed = ['g', 'k'].map((key) => new KeyboardEvent('keydown', { key, bubbles: true }))
    document.body.dispatchEvent(pressed[0])
    const busyUntil = Date.now() + 1500
    while (Date.now() < busyUntil);
    document.body.dispatchEvent(pressed[1])
  })()`)
  await page.getByRole('heading', { name: 'Tokens' }).waitFor()
})

/** Each record that is made in a dialog: where, and the field that it begins with. */
const made = [
  ...['providers', 'mcp-servers', 'gateways', 'budgets', 'consumer-groups', 'access-policies'].map(
    (kind) => [`/catalog?kind=${kind}`, 'Name'] as const,
  ),
  ['/catalog?kind=models', 'Id'],
  ['/people?kind=people', 'Name'],
  ['/people?kind=teams', 'Name'],
  ['/applications?', 'Client name'],
] as const

test('the first field of a new record appears before the other records load and keeps typed text', async () => {
  await using opened = await openConsole()
  const { page } = opened
  let known = Promise.withResolvers<void>()
  await page.route('**/v1/openapi.json', async (route) => {
    await known.promise
    await route.continue()
  })
  for (const [path, label] of made) {
    known = Promise.withResolvers()
    await opened.to(`${path}&open=new`)
    const form = page.getByRole('dialog').locator('form')
    await form.waitFor()
    await page.keyboard.type('typed at once')
    await form.getByRole('status', { name: 'Loading' }).waitFor()
    expect([path, await form.getByRole('button', { name: 'Add', exact: true }).isDisabled()]).toEqual([path, true])
    known.resolve()
    await form.getByRole('status', { name: 'Loading' }).waitFor({ state: 'detached' })
    await page.keyboard.type(' and after')
    const first = form
      .locator('input, select, textarea')
      .first()
      .and(form.getByLabel(label, { exact: true }))
    expect([path, await first.inputValue()]).toEqual([path, 'typed at once and after'])
  }
})

test('only fields that offer records wait for these records and say so', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const known = Promise.withResolvers<void>()
  await page.route(/\/v1\/(teams|catalog\/providers)\?/, async (route) => {
    await known.promise
    await route.continue()
  })
  await opened.to('/catalog?kind=models&open=new')
  const dialog = page.getByRole('dialog')
  const [provider, add] = [dialog.getByLabel('Provider', { exact: true }), dialog.locator('button[type=submit]')]
  await provider.waitFor()
  expect([await provider.isDisabled(), await provider.textContent()]).toEqual([true, 'Loading…'])
  expect(await add.isDisabled()).toBe(true)
  await dialog.getByLabel('Upstream model').fill('typed meanwhile')
  // It asks before the changed form is left.
  page.on('dialog', (question) => void question.accept())
  await opened.within('/tokens/new')
  await page.getByLabel('Member').check()
  const team = page.getByLabel('Team', { exact: true })
  expect([await team.isDisabled(), await team.textContent()]).toEqual([true, 'Loading…'])
  await opened.within('/catalog?kind=models&open=new')
  await dialog.getByLabel('Upstream model').fill('typed meanwhile')
  known.resolve()
  await dialog.locator('select:enabled').first().waitFor()
  expect(await dialog.getByLabel('Upstream model').inputValue()).toBe('typed meanwhile')
  await until('it can be added', async () => await add.isEnabled())
})

test('a field whose records cannot be loaded says why and accepts typed ids', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const error = { type: 'server_error', code: 'dependency_unavailable', message: 'Not now', param: null }
  const providers = /\/v1\/catalog\/providers\?/
  await page.route(providers, (route) => route.fulfill({ status: 503, json: { error } }))
  await opened.to('/catalog?kind=models&open=new')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Upstream model').fill('kept')
  await dialog.getByRole('alert').getByText('Not now').waitFor()
  await dialog.getByRole('textbox', { name: 'Provider id' }).fill('by hand')
  expect(await dialog.locator('button[type=submit]').isEnabled()).toBe(true)
  await page.unroute(providers)
  await dialog.getByRole('button', { name: 'Try again' }).click()
  await dialog.getByRole('alert').waitFor({ state: 'detached' })
  await dialog.getByRole('combobox', { name: 'Provider', exact: true }).waitFor()
  expect(await dialog.getByLabel('Upstream model').inputValue()).toBe('kept')
  expect(await dialog.locator('button[type=submit]').isEnabled()).toBe(true)
})

const chain = z.object({ policies: z.array(z.looseObject({ name: z.string() })) })

test('a policy moved twice quickly stays where it was moved last', async () => {
  const { gatehouse } = await sharedConsole()
  for (const name of ['moved twice', 'stays', 'stays as well']) {
    await make('/v1/policies', { name, kind: 'pii', stages: ['pre_request'], config: { action: 'redact' } })
  }
  await using opened = await openConsole()
  const { page } = opened
  const [asked, firstSent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const under: string[] = []
  await page.route('**/v1/policies/order', async (route) => {
    under.push('asked')
    asked.resolve()
    await firstSent.promise
    const response = await route.fetch()
    under.push('answered')
    await route.fulfill({ response })
  })
  await opened.to('/policies')
  const handle = page.getByRole('button', { name: /^moved twice, number/ })
  await handle.press('ArrowDown')
  await asked.promise
  await handle.press('ArrowDown')
  await page.getByRole('button', { name: /^moved twice, number 3/ }).waitFor()
  firstSent.resolve()
  await page.getByText('moved twice is number 3 now').waitFor()
  expect(under).toEqual(['asked', 'answered', 'asked', 'answered'])
  const { policies } = expectAnswer(await api(gatehouse, '/v1/policies'), 200, chain)
  expect(policies.map(({ name }) => name)).toEqual(['stays', 'stays as well', 'moved twice'])
})

test('a move after a refused one is not made, and the stored order is shown', async () => {
  const { gatehouse } = await sharedConsole()
  await using opened = await openConsole()
  const { page } = opened
  const names = async () =>
    expectAnswer(await api(gatehouse, '/v1/policies'), 200, chain).policies.map(({ name }) => name)
  const kept = await names()
  const [asked, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let sent = 0
  await page.route('**/v1/policies/order', async (route) => {
    sent++
    asked.resolve()
    await refused.promise
    const error = { type: 'server_error', code: 'dependency_unavailable', message: 'Not now', param: null }
    await route.fulfill({ status: 503, json: { error } })
  })
  await opened.to('/policies')
  const handle = page.getByRole('button', { name: new RegExp(`^${kept[0]}, number`) })
  await handle.press('ArrowDown')
  await asked.promise
  await handle.press('ArrowDown')
  await page.getByRole('button', { name: `${kept[0]}, number 3` }).waitFor()
  refused.resolve()
  await page.getByRole('alert').waitFor()
  await page.getByRole('button', { name: `${kept[0]}, number 1` }).waitFor()
  expect(sent).toBe(1)
  expect(await names()).toEqual(kept)
})

test('a saved policy keeps text typed meanwhile, also in the request tried beside it', async () => {
  const body = { name: 'changed in haste', kind: 'pii', stages: ['pre_request'], config: { action: 'redact' } }
  const { id } = await make('/v1/policies', body)
  await using opened = await openConsole()
  const { page } = opened
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route(`**/v1/policies/${id}`, async (route) => {
    if (route.request().method() === 'PATCH') {
      asked.resolve()
      await answered.promise
    }
    await route.continue()
  })
  await opened.to(`/policies/${id}`)
  const [name, save] = [page.getByLabel('Name'), page.getByRole('button', { name: 'Save' })]
  await page.getByLabel('Request', { exact: true }).fill('{}')
  await name.fill('changed once')
  await save.click()
  await asked.promise
  await name.fill('changed twice')
  answered.resolve()
  await page.getByRole('heading', { name: 'changed once' }).waitFor()
  expect(await name.inputValue()).toBe('changed twice')
  expect(await page.getByLabel('Request', { exact: true }).inputValue()).toBe('{}')
  await save.click()
  await page.getByRole('heading', { name: 'changed twice' }).waitFor()
})

test('a typed filter survives a reload of the list', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await page.addInitScript('{ const own = setInterval; window.setInterval = (run) => own(run, 50) }')
  await opened.to('/traffic')
  const filter = page.getByLabel('Request id')
  await filter.pressSequentially('typed in')
  for (let times = 0; times < 3; times += 1) await page.waitForResponse(/\/v1\/events/)
  await filter.pressSequentially(' parts')
  expect(await filter.inputValue()).toBe('typed in parts')
  await page.keyboard.press('Enter')
  await page.waitForURL(/request_id=typed\+in\+parts/)
  await page.getByRole('button', { name: 'Clear request id' }).click()
  expect(await filter.inputValue()).toBe('')
})
