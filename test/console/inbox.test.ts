/** The inbox, while its list changes under who reads it: whatever comes or goes, no key acts on another request. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { endConsole, type OpenPage, openConsole, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

/** A request that waits for a person, as the API lists it. */
const waiting = (id: string, reason_code: string) => ({
  ...{ id, reason_code, status: 'queued', attempts: 1, grant: null, note: null, resolution: null },
  ...{ queued_at: '2026-01-01T00:00:00Z', expires_at: '2099-01-01T00:00:00Z' },
  ...{ claimed_by: null, resolved_by: null, resolved_at: null },
  token: { id: crypto.randomUUID(), name: 'asks' },
  policy: { id: crypto.randomUUID(), name: 'asks for a person' },
  request: { route: '/v1/chat/completions', model: 'm', targets: [], request_id: null, digest: 'd'.repeat(64) },
})

test('a decision applies to the request that was open when it began, whatever arrives meanwhile', async () => {
  const [read, newer] = [crypto.randomUUID(), crypto.randomUUID()]
  const list = [waiting(read, 'read.first')]
  const decided: string[] = []
  await using opened = await openConsole()
  const { page } = opened
  // The inbox looks again without being waited for.
  await page.addInitScript('{ const own = setInterval; window.setInterval = (run) => own(run, 50) }')
  await page.route(/\/v1\/escalations\?/, (route) => route.fulfill({ json: { escalations: list, next_cursor: null } }))
  await page.route(/\/v1\/escalations\/.*\/resolve$/, (route) => {
    decided.push(new URL(route.request().url()).pathname.split('/')[3] ?? '')
    return route.fulfill({ json: list[0] })
  })
  await opened.to('/escalations')
  const shown = page.getByLabel('The request').getByRole('heading')
  await shown.waitFor()
  list.unshift(waiting(newer, 'came.later'))
  await page.getByRole('link', { name: 'came.later' }).waitFor()
  expect(await shown.textContent()).toBe('read.first')
  await page.keyboard.press('a')
  await page.getByRole('dialog').getByText('read.first').waitFor()
  await page.getByLabel('Note').fill('it was looked at')
  list.pop()
  await page.locator('tbody').getByText('read.first').waitFor({ state: 'detached' })
  expect(await page.getByLabel('Note').inputValue()).toBe('it was looked at')
  await page.getByRole('dialog').getByRole('button', { name: 'Allow' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(decided).toEqual([read])
})

/** An inbox of three, the newest first, as it goes on by what is done in it. */
async function openInbox(page: OpenPage['page'], looksAgain = true) {
  const reasons = ['the.first', 'the.second', 'the.third']
  const known = reasons.map((reason, index) => waiting(`0000000${9 - index}-0000-7000-8000-000000000000`, reason))
  let list = known
  const decided: string[] = []
  const interval = looksAgain ? '(run) => own(run, 50)' : '() => 0'
  await page.addInitScript(`{ const own = setInterval; window.setInterval = ${interval} }`)
  await page.route(/\/v1\/escalations(\/|\?)/, (route) => {
    const [, , , id, action] = new URL(route.request().url()).pathname.split('/')
    const one = known.find((each) => each.id === id)
    if (id === undefined || one === undefined) {
      return route.fulfill({ json: { escalations: list, next_cursor: null } })
    }
    if (action === 'resolve') decided.push(one.reason_code)
    if (action !== undefined) list = list.filter((each) => each !== one)
    if (action === 'claim') return route.fulfill({ json: Object.assign(one, { status: 'claimed' }) })
    if (action === 'resolve') Object.assign(one, { status: 'resolved', resolution: 'allow' })
    return route.fulfill({ json: one })
  })
  const pane = page.getByLabel('The request')
  return {
    decided,
    /** Somebody else decides it. */
    lose(reason: string) {
      for (const one of known.filter(({ reason_code }) => reason_code === reason)) {
        Object.assign(one, { status: 'resolved', resolution: 'block' })
        list = list.filter((each) => each !== one)
      }
    },
    shows: (text: string) => pane.getByText(text, { exact: true }).waitFor(),
    heading: () => pane.getByRole('heading').textContent(),
    leaves: (reason: string) => page.locator('tbody').getByText(reason).waitFor({ state: 'detached' }),
    dialogs: () => page.locator('dialog').count(),
  }
}

test('a key pressed after a decision acts on no other request, and j continues', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(page)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('j')
  await inbox.shows('the.second')
  await page.keyboard.press('a')
  await page.getByRole('dialog').getByRole('button', { name: 'Allow' }).click()
  await page.locator('dialog').waitFor({ state: 'detached' })
  await page.keyboard.press('a')
  await inbox.leaves('the.second')
  await page.keyboard.press('a')
  expect([await inbox.dialogs(), await inbox.heading()]).toEqual([0, 'the.second'])
  await inbox.shows('Allowed')
  await page.keyboard.press('j')
  await inbox.shows('the.third')
  await page.keyboard.press('b')
  await page.getByRole('dialog').getByText('the.third').waitFor()
  expect(inbox.decided).toEqual(['the.second'])
})

test('the menu updates its count right after a decision', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await openInbox(page, false)
  await opened.to('/escalations')
  await page.getByRole('link', { name: 'Escalations 3 waiting' }).waitFor()
  await page.keyboard.press('b')
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
  await page.getByRole('link', { name: 'Escalations 2 waiting' }).waitFor()
})

test('a claimed request stays open for its claimer after it leaves the list of waiting ones', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(page)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('c')
  await inbox.leaves('the.first')
  await inbox.shows('Release')
  await page.keyboard.press('a')
  await page.getByRole('dialog').getByText('the.first').waitFor()
})

test('a request that somebody else decides stays open as decided, and one of another list does not', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(page)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('j')
  await inbox.shows('the.second')
  inbox.lose('the.second')
  await inbox.leaves('the.second')
  await inbox.shows('Blocked')
  expect(await inbox.heading()).toBe('the.second')
  await page.getByRole('button', { name: 'Next request' }).click()
  await inbox.shows('the.third')
  inbox.lose('the.third')
  await inbox.shows('Blocked')
  await page.getByLabel('Status').selectOption('claimed')
  await inbox.shows('the.first')
})

test('the address of a request opens it when the list does not contain it', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(page)
  inbox.lose('the.third')
  await opened.to('/escalations?id=00000007-0000-7000-8000-000000000000')
  await inbox.shows('the.third')
  await inbox.shows('Blocked')
})
