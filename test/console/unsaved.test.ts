/** A form with changes is not left without a question; what was saved is left without one. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { until } from '../support/eventually.ts'
import { allThere, endConsole, make, type OpenPage, openConsole } from './console.ts'

setDefaultTimeout(60_000)
afterAll(endConsole)

const budget = (name: string) =>
  make('/v1/budgets', { name, max_budget: 5, window: 'day', scope: { kind: 'organization' } })

/** Collects what the page asks; each question is answered by `leave`. */
function answering(page: Page, leave: () => boolean): string[] {
  const questions: string[] = []
  page.on('dialog', (dialog) => {
    questions.push(dialog.type())
    void (leave() ? dialog.accept() : dialog.dismiss())
  })
  return questions
}

async function newPolicy({ page, to }: OpenPage): Promise<void> {
  await to('/policies')
  await page.getByRole('link', { name: 'New policy' }).click()
  await page.getByRole('link', { name: 'Term filter' }).click()
  await page.getByLabel('Name').waitFor()
}

const leftBy: readonly (readonly [way: string, go: (page: Page) => Promise<unknown>])[] = [
  ['a link', (page) => page.getByRole('link', { name: 'Overview' }).click()],
  ['keys', (page) => page.evaluate('document.activeElement.blur()').then(() => page.keyboard.type('go'))],
  ['going back', (page) => page.evaluate('history.back()')],
  ['a reload', (page) => page.evaluate('setTimeout(() => location.reload())')],
]

test.each(leftBy)('a changed policy is kept where one does not want to leave it by %s', async (_way, go) => {
  await using opened = await openConsole()
  const { page } = opened
  const questions = answering(page, () => false)
  await newPolicy(opened)
  await page.getByLabel('Name').fill('half written')
  await go(page)
  await until('it asked', async () => questions.length > 0)
  expect(await page.getByLabel('Name').inputValue()).toBe('half written')
  expect(questions).toHaveLength(1)
})

test('a form without changes is left without a question, and so is the time range changed', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const questions = answering(page, () => false)
  await newPolicy(opened)
  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await newPolicy(opened)
  await page.getByLabel('Name').fill('half written')
  await page.getByLabel('Time range').selectOption('7d')
  expect(await page.getByLabel('Name').inputValue()).toBe('half written')
  expect(questions).toEqual([])
})

test('whoever agrees to leave is asked once', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const questions = answering(page, () => true)
  await newPolicy(opened)
  await page.getByLabel('Name').fill('half written')
  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('link', { name: 'Spend' }).click()
  await page.getByRole('heading', { name: 'Spend', exact: true }).waitFor()
  expect(questions).toEqual(['confirm'])
})

test('a policy that was created or saved is left without a question', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const questions = answering(page, () => false)
  await newPolicy(opened)
  await page.getByLabel('Name').fill('written and saved')
  await page.getByLabel('Terms').fill('transfer')
  await page.getByLabel('Action').selectOption('block')
  await page.getByRole('button', { name: 'Create policy' }).click()
  await page.getByRole('heading', { name: 'written and saved' }).waitFor()
  await page.getByLabel('Terms').fill('transfers')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved; gateways apply it').waitFor()
  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(questions).toEqual([])
})

test('a dialog with a changed form asks before Escape, Cancel and going back close it', async () => {
  const { id } = await budget('changed in a dialog')
  await using opened = await openConsole()
  const { page } = opened
  let leave = false
  const questions = answering(page, () => leave)
  await opened.to('/catalog?kind=budgets')
  await opened.within(`/catalog?kind=budgets&open=${id}`)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('another name')
  await allThere(page)
  const ways = [
    () => page.keyboard.press('Escape'),
    () => dialog.getByRole('button', { name: 'Cancel' }).click(),
    () => page.evaluate('history.back()'),
  ]
  for (const [index, go] of ways.entries()) {
    await go()
    await until('it asked', async () => questions.length > index)
    expect(await dialog.getByLabel('Name').inputValue()).toBe('another name')
  }
  leave = true
  await page.keyboard.press('Escape')
  await page.locator('dialog').waitFor({ state: 'detached' })
  expect(questions).toHaveLength(4)
})

test('Escape closes a dialog over a changed form without a question', async () => {
  await using opened = await openConsole()
  const { page } = opened
  const questions = answering(page, () => false)
  await newPolicy(opened)
  await page.getByLabel('Name').fill('half written')
  await page.evaluate('document.activeElement.blur()')
  await page.keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('dialog').waitFor({ state: 'detached' })
  expect(await page.getByLabel('Name').inputValue()).toBe('half written')
  expect(questions).toEqual([])
})
