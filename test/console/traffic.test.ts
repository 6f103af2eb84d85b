/** The list of requests: columns, filters with suggestions, the export of what is shown, and a live list that holds still. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chat, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, make, openConsole, picture, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)

let secret = ''

async function send(requestId: string, model = 'simulator/echo'): Promise<void> {
  const { gatehouse } = await sharedConsole()
  await (await chat(gatehouse, { token: secret, model, requestId })).text()
  await eventsOfRequest(gatehouse, requestId)
}

beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  secret = (await createToken(gatehouse, { name: 'nightly batch' })).token_value
  for (let number = 0; number < 40; number += 1) await send(`seen-${number}`, number === 0 ? 'no/model' : undefined)
}, 240_000)
afterAll(endConsole)

test('a reader chooses and orders columns by keyboard, and the address and the export follow', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic')
  await allThere(page)
  await page.getByRole('button', { name: 'Columns' }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  for (const title of ['Reason', 'Status', 'Latency', 'First token', 'Tokens', 'Model']) {
    await dialog.getByRole('checkbox', { name: title, exact: true }).press('Space')
  }
  await dialog.getByRole('checkbox', { name: 'Token', exact: true }).press('Space')
  await dialog.getByRole('button', { name: 'Token earlier' }).press('Enter')
  await dialog.getByRole('checkbox', { name: 'Provider' }).press('Space')
  expect(await seriousInBothThemes(page, 'traffic-columns', 'dialog')).toEqual([])
  await dialog.getByRole('button', { name: 'Show', exact: true }).press('Enter')
  await page.getByRole('cell', { name: 'nightly batch' }).first().waitFor()
  const header = () => page.getByRole('columnheader').allTextContents()
  expect(await header()).toEqual(['Time', 'Verdict', 'Token', 'Cost', 'Provider'])
  await page.reload()
  await page.getByRole('cell', { name: 'nightly batch' }).first().waitFor()
  expect(await header()).toEqual(['Time', 'Verdict', 'Token', 'Cost', 'Provider'])
  expect(await seriousInBothThemes(page, 'traffic-chosen')).toEqual([])
  const { gatehouse } = await sharedConsole()
  const address = await page.getByRole('link', { name: 'Export' }).getAttribute('href')
  const csv = await (await page.context().request.get(`${gatehouse.baseUrl}${address}`)).text()
  expect(csv.split('\r\n')[0]).toBe('timestamp,verdict,token_id,cost,provider')
})

test('a refusal shows its reason in words beside the code', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic?request_id=seen-0')
  const cell = page.getByRole('cell', { name: /No provider has this model/ })
  expect(await cell.locator('code').textContent()).toBe('model_not_found')
})

test('the header stays in view while the rows scroll, and rows do not move while they are read', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic')
  await allThere(page)
  const list = page.getByRole('region', { name: 'Requests' })
  const rows = list.locator('tbody tr')
  await list.evaluate('document.querySelector("section.table").scrollTop = 200')
  const header = await list.getByRole('columnheader', { name: 'Time' }).boundingBox()
  expect(Math.abs((header?.y ?? 0) - ((await list.boundingBox())?.y ?? 0))).toBeLessThan(2)
  await picture(page, 'traffic-scrolled')
  const place = async () => (await rows.nth(10).boundingBox())?.y
  const [before, first] = [await place(), await rows.first().textContent()]
  await send('arrives-while-read')
  const newer = page.getByRole('button', { name: 'Show 1 newer event' })
  await newer.waitFor()
  expect([await place(), await rows.first().textContent()]).toEqual([before, first])
  await newer.click()
  await until('the newest is shown', async () => (await rows.first().textContent()) !== first)
})

test('a filter suggests names while one types, and finds by the name', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic')
  const token = page.getByRole('combobox', { name: 'Token', exact: true })
  await token.fill('nigh')
  await page.locator('#filter-token-list option[value="nightly batch"]').waitFor({ state: 'attached' })
  await token.fill('nightly batch')
  await token.press('Enter')
  await until('the address has it', async () => new URL(page.url()).searchParams.get('token') === 'nightly batch')
  await page.getByRole('button', { name: 'More filters' }).click()
  const team = page.getByRole('combobox', { name: 'Team' })
  await team.focus()
  await page.locator('#filter-team-list option[value="default"]').waitFor({ state: 'attached' })
})

test('the list and its columns fit a phone', async () => {
  await using opened = await openConsole({ width: 390, theme: 'dark' })
  const { page } = opened
  await opened.to('/traffic?columns=time,verdict,token,team,user,provider,policy')
  await page.getByRole('cell', { name: 'nightly batch' }).first().waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  expect(await seriousInBothThemes(page, 'traffic-phone')).toEqual([])
  await page.getByRole('button', { name: 'Columns' }).click()
  expect(await seriousInBothThemes(page, 'traffic-phone-columns')).toEqual([])
})

test('a span dragged over on a chart becomes the time range', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic')
  await page.getByRole('button', { name: 'Chart' }).click()
  const over = page.locator('.chart .u-over')
  await over.waitFor()
  const place = await over.boundingBox()
  if (place === null) throw new Error('The chart has no place')
  const y = place.y + place.height / 2
  await page.mouse.move(place.x + place.width * 0.5, y)
  await page.mouse.down()
  await page.mouse.move(place.x + place.width * 0.75, y, { steps: 4 })
  await page.mouse.up()
  await until('the address has the span', () => new URL(page.url()).searchParams.has('until'))
  const query = new URL(page.url()).searchParams
  const hours = (Date.parse(query.get('until') ?? '') - Date.parse(query.get('since') ?? '')) / 3_600_000
  expect(hours).toBeGreaterThan(5)
  expect(hours).toBeLessThan(7)
  expect(query.get('chart')).toBe('on')
  await allThere(page)
  expect(await seriousInBothThemes(page, 'traffic-chart')).toEqual([])
})

test('the chart shows the verdict that is filtered by, which its legend chooses', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic?chart=on')
  const legend = page.locator('.legend')
  await legend.getByRole('link', { name: 'Allow' }).waitFor()
  await legend.getByRole('link', { name: 'Deny' }).click()
  await legend.getByRole('link', { name: 'Allow' }).waitFor({ state: 'detached' })
  expect(await legend.getByRole('link').allTextContents()).toEqual(['Deny'])
  expect(await page.getByRole('button', { name: 'Chart' }).getAttribute('aria-pressed')).toBe('true')
})

test('the chart of a token that is filtered by its name keeps the name when a verdict is chosen', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic?chart=on&token=nightly+batch')
  await page.locator('.legend').getByRole('link').first().click()
  await until('the verdict is chosen', () => new URL(page.url()).searchParams.has('verdict'))
  expect(new URL(page.url()).searchParams.get('token')).toBe('nightly batch')
  await page.locator('.legend').getByRole('link').first().waitFor()
})

test('yesterday and today are time ranges by one choice', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/spend?by=token')
  await page.getByRole('row', { name: /nightly batch/ }).waitFor()
  await page.getByLabel('Time range').selectOption('Yesterday')
  await page.getByText('No spend in this time range').first().waitFor()
  await page.getByLabel('Time range').selectOption('Today')
  await page.getByRole('row', { name: /nightly batch/ }).waitFor()
  expect(new URL(page.url()).searchParams.get('range')).toBe('today')
})

test('a view is saved under a name, opened again and forgotten', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/traffic?verdict=deny%2Cblock%2Crate_limit&columns=time,token')
  await page.getByRole('button', { name: 'Views' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Save what is shown as').fill('Refused today')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await opened.to('/traffic')
  await page.getByRole('button', { name: 'Views' }).click()
  expect(await seriousInBothThemes(page, 'traffic-views', 'dialog')).toEqual([])
  await dialog.getByRole('button', { name: 'Refused today', exact: true }).click()
  await until('the view is shown', () => page.url().includes('columns=time%2Ctoken'))
  expect(await page.getByLabel('Verdict', { exact: true }).inputValue()).toBe('deny,block,rate_limit')
  await page
    .getByRole('row', { name: /nightly batch/ })
    .first()
    .waitFor()
  await page.getByRole('button', { name: 'Views' }).click()
  await dialog.getByRole('button', { name: 'Copy the address of Refused today' }).click()
  const copied = String(await page.evaluate('navigator.clipboard.readText()'))
  expect(new URL(copied).searchParams.get('verdict')).toBe('deny,block,rate_limit')
  expect(new URL(copied).pathname).toBe(new URL(page.url()).pathname)
  await dialog.getByRole('button', { name: 'Forget Refused today' }).click()
  await dialog.getByText('No view is saved').waitFor()
})

test('the number of refused requests on the overview leads to all of them', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/')
  await page.getByRole('link', { name: /^Refused/ }).click()
  await page.getByRole('row', { name: /No provider has this model/ }).waitFor()
  expect(new URL(page.url()).searchParams.get('verdict')).toBe('deny,block,rate_limit')
})

test('the story of a request has its parts in order, its cost by part, and its text with findings marked', async () => {
  const { gatehouse } = await sharedConsole()
  await make('/v1/policies', {
    ...{ name: 'wires need a person', kind: 'escalate', stages: ['pre_request'] },
    ...{ when: 'request.text.contains("wire")', config: { reason_code: 'a.wire', capture_escalated: true } },
  })
  const text = 'wire it to ann@example.com'
  await until('the gateway has the policy', async () => {
    const answer = await chat(gatehouse, { token: secret, model: 'simulator/echo', text, requestId: 'wired' })
    await answer.text()
    return answer.headers.get('x-service-verdict') === 'ESCALATE'
  })
  const story = async (requestId: string) => {
    const outcomes = (await eventsOfRequest(gatehouse, requestId)).filter(
      ({ prompt_redacted, event_type }) =>
        event_type === 'gateway.request.outcome' && (requestId !== 'wired' || prompt_redacted !== undefined),
    )
    return `/traffic/${outcomes.at(-1)?.exchange_id}`
  }
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(await story('seen-3'))
  await allThere(page)
  const steps = await page.locator('.story > li').allTextContents()
  const order = ['Received', 'Attempt 1', 'Answered 200'].map((step) => steps.findIndex((one) => one.includes(step)))
  expect(order).toEqual(order.toSorted((one, other) => one - other))
  expect(order).not.toContain(-1)
  await page.getByText('Input', { exact: true }).waitFor()
  expect(await seriousInBothThemes(page, 'story')).toEqual([])
  await opened.to(await story('wired'))
  expect(await page.locator('.captured mark').textContent()).toBe('[EMAIL]')
  await page.getByRole('button', { name: 'Try a policy on it' }).click()
  const dialog = page.getByRole('dialog')
  expect(await dialog.getByLabel('Request').inputValue()).toContain('wire it to [EMAIL]')
  await dialog.getByRole('button', { name: 'Try', exact: true }).click()
  await dialog.getByText('a.wire').waitFor()
  expect(await seriousInBothThemes(page, 'story-try', 'dialog')).toEqual([])
})

test('says once that a filter of the address is refused, and clears it', async () => {
  await using opened = await openConsole()
  const { page } = opened
  let asked = 0
  page.on('request', (request) => {
    if (request.url().includes('/v1/events?') && request.url().includes('verdict=odd')) asked += 1
  })
  await page.clock.install()
  await opened.to('/traffic?verdict=odd')
  await page.getByText('Invalid request').waitFor()
  // Longer than the list waits before it reads again, and than a failed read waits.
  await page.clock.runFor(30_000)
  expect(asked).toBe(1)
  await page.getByRole('button', { name: 'Clear the filter Verdict' }).click()
  await page.getByText('Invalid request').waitFor({ state: 'detached' })
  expect(new URL(page.url()).searchParams.has('verdict')).toBe(false)
})

test('finds a token and a request by the first characters of their ids', async () => {
  const { gatehouse } = await sharedConsole()
  const { id, token_value: token } = await createToken(gatehouse, { name: 'sought by a part' })
  await (await chat(gatehouse, { token, model: 'simulator/echo', requestId: 'sought-by-a-part' })).text()
  const [outcome] = await eventsOfRequest(gatehouse, 'sought-by-a-part')
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/search?q=${id.slice(0, 23)}`)
  await page.getByRole('heading', { name: 'sought by a part' }).waitFor()
  await opened.to(`/search?q=…${id.slice(-8)}`)
  await page.getByRole('heading', { name: 'sought by a part' }).waitFor()
  const exchange = String(outcome?.exchange_id)
  await opened.to(`/search?q=${exchange.slice(0, 8)}`)
  await page
    .locator(`.hits a[href*="${exchange}"]`)
    .or(page.getByRole('heading', { name: 'simulator/echo' }))
    .first()
    .waitFor()
  await opened.to(`/search?q=${exchange.slice(0, 23)}`)
  await page.getByRole('heading', { name: 'simulator/echo' }).waitFor()
  expect(page.url()).toContain(exchange)
})

test('the search goes on where a page of requests ends early, and opens one alone only after all were read', async () => {
  const { gatehouse } = await sharedConsole()
  const { token_value: token } = await createToken(gatehouse, { name: 'asks for the search' })
  const ids = ['found-late', 'found-later']
  for (const requestId of ids) {
    await (await chat(gatehouse, { token, model: 'simulator/echo', requestId })).text()
  }
  const [late, later] = await Promise.all(ids.map(async (id) => (await eventsOfRequest(gatehouse, id))[0]))
  await using opened = await openConsole()
  const { page } = opened
  let pages = 0
  let ends = true
  await page.route(/\/v1\/events\?.*exchange_prefix=/, (route) => {
    pages += 1
    const isLast = ends && pages === 3
    const events = pages === 2 ? [late] : isLast ? [later] : []
    return route.fulfill({ json: { events, next_cursor: isLast ? null : `page ${pages}`, follow: '' } })
  })
  const prefix = String(late?.exchange_id).slice(0, 18)
  await opened.to(`/search?q=${prefix}`)
  await page.locator('.hits li').nth(1).waitFor()
  expect(await page.locator('.hits li').count()).toBe(2)
  ;[pages, ends] = [0, false]
  await opened.to(`/search?q=${prefix}`)
  await page.getByText('Not all requests were searched').waitFor()
  expect(await page.locator('.hits li').count()).toBe(1)
  await page.unroute(/\/v1\/events\?.*exchange_prefix=/)
  await page.route(/\/v1\/teams\?/, (route) => route.fulfill({ status: 500, json: {} }))
  await opened.to(`/search?q=${String(late?.exchange_id).slice(0, 23)}`)
  await page.getByText('There may be more than what is shown').waitFor()
  await page.locator(`.hits a[href*="${late?.exchange_id}"]`).waitFor()
})

test('asks once which record has an id, and the browser notes no failed request', async () => {
  const { gatehouse } = await sharedConsole()
  const { id } = await createToken(gatehouse, { name: 'sought by id' })
  await using opened = await openConsole()
  const { page } = opened
  const failed: string[] = []
  page.on('response', (response) => {
    if (response.status() >= 400) failed.push(response.url())
  })
  await opened.to(`/search?q=${id}`)
  await page.getByRole('heading', { name: 'sought by id' }).waitFor()
  await opened.to(`/search?q=${crypto.randomUUID()}`)
  await page.getByText('Nothing matches').waitFor()
  expect(failed).toEqual([])
})
