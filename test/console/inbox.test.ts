/** The inbox, while its list changes under who reads it: whatever comes or goes, no key acts on another request. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Locator } from 'playwright-core'
import { z } from 'zod'
import { until } from '../support/eventually.ts'
import { endConsole, type OpenPage, openConsole, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

/** A request that waits for a person, as the API lists it. */
const waiting = (id: string, reason_code: string) => ({
  ...{ id, reason_code, status: 'queued', attempts: 1, grant: null, note: null, resolution: null },
  ...{ queued_at: '2026-01-01T00:00:00Z', expires_at: '2099-01-01T00:00:00Z', takes_effect_at: null },
  ...{ claimed_by: null, resolved_by: null, resolved_at: null, user_id: null, user_name: null, team_name: null },
  token: { id: crypto.randomUUID(), name: 'asks', revoked: false },
  policy: { id: crypto.randomUUID(), name: 'asks for a person' },
  request: {
    ...{ route: '/v1/chat/completions', model: 'm', targets: [], request_id: null, digest: id, calls: [] },
    ...{
      provider: null,
      sent: false,
      prompt_redacted: null as string | null,
      answer_redacted: null,
      policy_version: null,
    },
  },
})
type Waiting = ReturnType<typeof waiting>

/** An inbox as it goes on by what is done in it; two of the three are equal where `equal` is set. */
async function openInbox({ page }: OpenPage, { looksAgain = true, equal = false, revoked = false } = {}) {
  const { gatehouse } = await sharedConsole()
  const session = await page.context().request.get(`${gatehouse.baseUrl}/v1/auth/session`)
  const reviewer = `user:${z.object({ user: z.object({ id: z.string() }) }).parse(await session.json()).user.id}`
  const reasons = ['the.first', 'the.second', 'the.third']
  const known = reasons.map((reason, index) => waiting(`0000000${9 - index}-0000-7000-8000-000000000000`, reason))
  const [first, second] = known
  for (const [index, { request, token }] of known.entries()) {
    request.prompt_redacted = `system: be brief\npay invoice ${index + 1}`
    token.revoked = revoked
  }
  if (equal && first !== undefined && second !== undefined)
    Object.assign(second, { policy: first.policy, request: first.request })
  let list = known
  const decided: { reason: string; body: unknown }[] = []
  const interval = looksAgain ? '(run) => own(run, 50)' : '() => 0'
  await page.addInitScript(`{ const own = setInterval; window.setInterval = ${interval} }`)
  const acted = (one: Waiting, action: string | undefined, body: Record<string, unknown> | null) => {
    if (action === 'claim') Object.assign(one, { status: 'claimed', claimed_by: reviewer })
    if (action === 'undo') Object.assign(one, { status: 'queued', resolution: null, resolved_by: null })
    if (action !== 'resolve') return
    decided.push({ reason: one.reason_code, body })
    const takes_effect_at = new Date(Date.now() + 10_000).toISOString()
    Object.assign(one, { status: 'deciding', resolution: body?.resolution, resolved_by: reviewer, takes_effect_at })
  }
  await page.route(/\/v1\/escalations(\/|\?)/, (route) => {
    const { pathname, searchParams } = new URL(route.request().url())
    const [, , , id, action] = pathname.split('/')
    const one = known.find((each) => each.id === id)
    if (id === undefined || one === undefined) {
      const status = searchParams.get('status')
      const asked = status === 'queued' || status === 'claimed' ? list.filter((each) => each.status === status) : list
      return route.fulfill({ json: { escalations: asked, next_cursor: null } })
    }
    acted(one, action, route.request().postDataJSON())
    return route.fulfill({ json: one })
  })
  const pane = page.getByLabel('The request')
  return {
    decided,
    /** A newer request comes in. */
    gain(one: Waiting) {
      list = [one, ...list]
    },
    /** Somebody else decides it. */
    lose(reason: string) {
      for (const one of known.filter(({ reason_code }) => reason_code === reason)) {
        Object.assign(one, { status: 'resolved', resolution: 'block' })
        list = list.filter((each) => each !== one)
      }
    },
    /** A decision takes effect: the list of what waits has it no longer. */
    settle(reason: string) {
      for (const one of known.filter(({ reason_code }) => reason_code === reason)) {
        Object.assign(one, { status: 'resolved' })
        list = list.filter((each) => each !== one)
      }
    },
    shows: (text: string) => pane.getByText(text, { exact: true }).waitFor(),
    reason: () => pane.locator('code').first().textContent(),
    leaves: (reason: string) => page.locator('tbody').getByText(reason).waitFor({ state: 'detached' }),
    undo: page.getByRole('button', { name: 'Undo' }),
  }
}

test('a decision applies to the request that was open when its note was begun, whatever arrives meanwhile', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('n')
  await page.keyboard.type('it was looked at')
  inbox.gain(waiting(crypto.randomUUID(), 'came.later'))
  await page.locator('tbody').getByText('came.later').waitFor()
  expect([await inbox.reason(), await page.getByLabel('Note').inputValue()]).toEqual(['the.first', 'it was looked at'])
  await page.keyboard.press('Control+Enter')
  await inbox.undo.waitFor()
  const body = { resolution: 'allow', note: 'it was looked at', grant_once_seconds: 900, undo_seconds: 10 }
  expect(inbox.decided).toEqual([{ reason: 'the.first', body }])
})

test('a key pressed after a decision acts on no other request, and j continues', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('j')
  await inbox.shows('the.second')
  await page.keyboard.press('a')
  await inbox.shows('Allowing')
  await page.keyboard.press('a')
  inbox.settle('the.second')
  await inbox.leaves('the.second')
  await page.keyboard.press('a')
  await inbox.shows('Allowed')
  expect(await inbox.reason()).toBe('the.second')
  await page.keyboard.press('j')
  await inbox.shows('the.third')
  await page.keyboard.press('b')
  await inbox.shows('Blocking')
  expect(inbox.decided).toEqual([
    { reason: 'the.second', body: { resolution: 'allow', grant_once_seconds: 900, undo_seconds: 10 } },
    { reason: 'the.third', body: { resolution: 'block', undo_seconds: 10 } },
  ])
})

test('a decision is undone by a key while it has not taken effect', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('b')
  await inbox.shows('Blocking')
  await page.keyboard.press('u')
  await inbox.shows('Waiting')
  await inbox.undo.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor()
})

test('a decision that is undone leaves its note and its choice to be sent again', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.getByLabel('Note').fill('it was looked at')
  await page.getByLabel('may it be sent again').selectOption('3600')
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await inbox.shows('Allowing')
  await inbox.undo.click()
  await inbox.shows('Waiting')
  expect(await page.getByLabel('Note').inputValue()).toBe('it was looked at')
  expect(await page.getByLabel('may it be sent again').inputValue()).toBe('3600')
})

test('an approval for a revoked token gives no leave to send again, and the pane says so', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened, { revoked: true })
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.getByText('The token asks is revoked: no request can be sent with it again').waitFor()
  expect(await page.getByLabel('may it be sent again').count()).toBe(0)
  await page.keyboard.press('a')
  await inbox.undo.waitFor()
  expect(inbox.decided).toEqual([{ reason: 'the.first', body: { resolution: 'allow', undo_seconds: 10 } }])
})

test('rows show by which text requests of the same reason differ, at 390 pixels too', async () => {
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  await openInbox(opened)
  await opened.to('/escalations')
  await page.locator('tbody').getByText('asks: pay invoice 1').waitFor()
  await page.locator('tbody').getByText('asks: pay invoice 3').waitFor()
})

test('at 390 pixels the request takes the place of the list, and no key decides about one that is not shown', async () => {
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  await page.locator('tbody').getByText('asks: pay invoice 2').waitFor()
  expect(await page.getByLabel('The request').isVisible()).toBe(false)
  await page.keyboard.press('a')
  await inbox.shows('the.first')
  expect(inbox.decided).toEqual([])
  expect(await page.locator('tbody').first().isVisible()).toBe(false)
  const top = (await page.getByLabel('The request').boundingBox())?.y ?? 0
  expect(top).toBeLessThan(300)
  await page.getByRole('link', { name: 'All requests' }).click()
  await page.locator('tbody').getByText('asks: pay invoice 2').click()
  await inbox.shows('the.second')
  await page.keyboard.press('b')
  await inbox.shows('Blocking')
  expect(inbox.decided).toEqual([{ reason: 'the.second', body: { resolution: 'block', undo_seconds: 10 } }])
})

test('at 390 pixels the focus is on the request that opens, and back on its row when it closes', async () => {
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  const row = page.getByRole('row', { name: 'asks: pay invoice 2' }).getByRole('link')
  const heading = page.getByLabel('The request').getByRole('heading', { level: 2 })
  const hasFocus = (part: Locator) =>
    until('it has the focus', async () => (await part.and(page.locator(':focus')).count()) > 0)
  await row.focus()
  await page.keyboard.press('Enter')
  await inbox.shows('the.second')
  await hasFocus(heading)
  await page.getByRole('link', { name: 'All requests' }).click()
  await hasFocus(row)
  await page.keyboard.press('a')
  await hasFocus(heading)
  await page.goBack()
  await hasFocus(row)
})

test('equal requests are one row, and one decision is about all of them', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened, { equal: true })
  await opened.to('/escalations')
  await page.getByText('2 equal requests wait').waitFor()
  expect(await page.locator('tbody tr').count()).toBe(2)
  await page.getByRole('button', { name: 'Block all 2' }).click()
  await inbox.undo.waitFor()
  expect(inbox.decided.map(({ reason }) => reason)).toEqual(['the.first', 'the.second'])
})

test('the menu updates its count right after a decision', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await openInbox(opened, { looksAgain: false })
  await opened.to('/escalations')
  await page.getByRole('link', { name: 'Escalations 3 waiting' }).waitFor()
  await page.keyboard.press('b')
  await page.getByRole('link', { name: 'Escalations 2 waiting' }).waitFor()
})

test('a claimed request stays in the list, and open for its claimer after it leaves the list', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('c')
  await inbox.shows('Release')
  await page.locator('tbody').getByText('You review it').waitFor()
  await page.getByLabel('Status').selectOption('queued')
  await inbox.leaves('the.first')
  await inbox.shows('the.second')
})

test('a request that somebody else decides stays open as decided, and one of another list does not', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const inbox = await openInbox(opened)
  await opened.to('/escalations')
  await inbox.shows('the.first')
  await page.keyboard.press('j')
  await inbox.shows('the.second')
  inbox.lose('the.second')
  await inbox.leaves('the.second')
  await inbox.shows('Blocked')
  expect(await inbox.reason()).toBe('the.second')
  await page.getByRole('button', { name: 'Next request' }).click()
  await inbox.shows('the.third')
  inbox.lose('the.third')
  await inbox.shows('Blocked')
  await page.getByLabel('Status').selectOption('every')
  await inbox.shows('the.first')
})

test('the address of a request opens it when the list does not contain it', async () => {
  await using opened = await openConsole()
  const inbox = await openInbox(opened)
  inbox.lose('the.third')
  await opened.to('/escalations?id=00000007-0000-7000-8000-000000000000')
  await inbox.shows('the.third')
  await inbox.shows('Blocked')
})
