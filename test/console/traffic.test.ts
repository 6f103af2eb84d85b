/** The list of requests: columns, filters with suggestions, the export of what is shown, and a live list that holds still. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chat, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, openConsole, picture, seriousInBothThemes, sharedConsole } from './console.ts'

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
  expect(csv.split('\r\n')[0]).toEndWith(',config_version,token_id,cost,provider')
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
