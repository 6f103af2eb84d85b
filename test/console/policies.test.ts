/** Policies in the console: a ready one to start from, its condition, what it did, its versions and back to one. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { api, chat, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, make, openConsole, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(180_000)
afterAll(endConsole)

test('starts from a ready policy, and completes and corrects its condition by keyboard', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/policies/new')
  expect(await seriousInBothThemes(page, 'policy-starting-points', 'main')).toEqual([])
  await page.getByRole('link', { name: 'A person decides' }).focus()
  await page.keyboard.press('Enter')
  const when = page.getByLabel('When', { exact: true })
  expect(await when.inputValue()).toBe('request.text.contains("refund")')
  await when.fill('')
  await when.pressSequentially('request.mod')
  await page.getByRole('option', { name: /^model/ }).waitFor()
  expect(await seriousInBothThemes(page, 'policy-completion', 'main')).toEqual([])
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await when.pressSequentially('.st')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.keyboard.type('gpt')
  expect(await when.inputValue()).toBe('request.model.startsWith("gpt")')
  expect(await page.getByRole('listbox').count()).toBe(0)

  await when.fill('request.stream &&\n request.txt == "a"')
  await page.getByRole('button', { name: 'Line 2, column 10' }).click()
  expect(await page.locator('.fault mark').textContent()).toBe('txt')
  expect(await seriousInBothThemes(page, 'policy-condition-wrong', 'main')).toEqual([])
  await page.keyboard.type('the ')
  expect(await when.inputValue()).toBe('request.stream &&\n request.the txt == "a"')
})

test('shows what a policy did and would do, who changed it, and leads back to a version', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'shop' })
  const policy = await make('/v1/policies', {
    ...{ name: 'names', kind: 'term-filter', stages: ['pre_request'] },
    config: { terms: ['bluebird'], action: 'block' },
  })
  await eventually(async () => {
    const answer = await chat(gatehouse, {
      ...{ token: token.token_value, model: 'simulator/echo', text: 'about bluebird', requestId: 'bluebird' },
    })
    await answer.text()
    expect(answer.headers.get('x-service-verdict')).toBe('BLOCK')
  })
  await eventsOfRequest(gatehouse, 'bluebird')
  const path = `/v1/policies/${policy.id}`
  const changed = { config: { terms: ['bluebird', 'redbird'], action: 'redact' }, mode: 'monitor' }
  expect((await api(gatehouse, path, { method: 'PATCH', body: changed })).status).toBe(200)

  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/policies')
  await page.getByRole('img', { name: /requests stopped$/ }).waitFor()
  await opened.within(`/policies/${policy.id}`)
  await allThere(page)
  const versions = page.getByRole('region', { name: 'Versions' })
  await versions.getByText('terms: bluebird → bluebird, redbird').waitFor()
  await versions.getByText('action: block → redact').waitFor()
  await versions
    .getByText(/by the token/)
    .first()
    .waitFor()
  await page.getByRole('region', { name: 'Activity' }).getByText('Stopped the request').waitFor()
  expect(await seriousInBothThemes(page, 'policy-versions', 'main')).toEqual([])

  await versions.getByRole('button', { name: 'Put into the form' }).focus()
  await page.keyboard.press('Enter')
  expect(await page.getByLabel('Terms').inputValue()).toBe('bluebird')
  await page.getByRole('button', { name: 'Save' }).click()
  await versions.getByText('action: redact → block').waitFor()
  await page.getByRole('button', { name: 'Replay' }).click()
  await page
    .getByText(/what it looks for is not recorded|it applies to/)
    .first()
    .waitFor()
})
