/** Lists of more than one page: what stands on a later page can be chosen, found and opened. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createToken } from '../support/client.ts'
import { allThere, endConsole, make, openConsole, seriousInBothThemes, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)

const pageLimit = 100
let lastTeam = ''

beforeAll(async () => {
  await sharedConsole()
  for (let number = 0; number <= pageLimit; number += 1) {
    const name = String(number).padStart(3, '0')
    await make('/v1/teams', { name: `team ${name}` }).then(({ id }) => {
      lastTeam = id
    })
    await make('/v1/policies', {
      ...{ name: `attached ${name}`, kind: 'term-filter', stages: ['pre_request'], enabled: false },
      config: { terms: ['never said'], action: 'block' },
    })
  }
}, 240_000)
afterAll(endConsole)

test('a token form offers the team and the policy of the second page', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name').fill('of a late team')
  await page.getByLabel('Team', { exact: true }).and(page.locator('input')).fill('team 100')
  await page.getByText('More restrictions').click()
  const policies = page.getByRole('group', { name: 'Attached policies' })
  await policies.getByText('Type part of a name').waitFor()
  expect(await policies.getByRole('checkbox').count()).toBe(20)
  await policies.getByRole('searchbox').fill('attached 100')
  await policies.getByLabel('attached 100').check()
  await policies.getByRole('searchbox').fill('')
  expect(await policies.getByLabel('attached 100').isChecked()).toBe(true)
  expect(await seriousInBothThemes(page, 'long-list')).toEqual([])
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByRole('link', { name: 'I have saved it' }).click()
  await page.getByText('team 100').first().waitFor()
  await page.getByRole('link', { name: 'attached 100' }).waitFor()
})

test('search finds records of each kind by part of the name and opens the one that is chosen', async () => {
  await make('/v1/users', { email: 'quokka@example.com', name: 'Quentin', role: 'auditor' })
  await make('/v1/catalog/providers', {
    name: 'quokka-cloud',
    kind: 'openai',
    base_url: 'https://quokka.example.com/v1',
  })
  await make('/v1/budgets', { name: 'quokka money', max_budget: 5, window: 'day', scope: { kind: 'organization' } })
  await make('/v1/teams', { name: 'Quokkas' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await allThere(page)
  await page.keyboard.press('/')
  await page.locator('input[type=search]:focus').waitFor()
  await page.keyboard.type('QUOKKA')
  await page.keyboard.press('Enter')
  const found = page.getByRole('main').getByRole('listitem')
  await found.filter({ hasText: 'quokka money' }).waitFor()
  expect((await found.allTextContents()).toSorted()).toEqual([
    'Budget quokka money',
    'Person Quentin',
    'Provider quokka-cloud',
    'Team Quokkas',
  ])
  expect(await seriousInBothThemes(page, 'search')).toEqual([])
  await page.getByRole('link', { name: 'quokka money' }).click()
  await page.getByRole('dialog').getByLabel('Name').waitFor()
  expect(await page.getByRole('dialog').getByLabel('Name').inputValue()).toBe('quokka money')
})

test('an id of a record on a later page leads the search to the open record', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/search?q=${lastTeam}`)
  await page.getByRole('dialog').getByLabel('Name').waitFor()
  expect(await page.getByRole('dialog').getByLabel('Name').inputValue()).toBe('team 100')
})

test('the example beside a new secret names a model that the token may use', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'only lorem', bindings: { model_filter: ['simulator/l*'] } })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/tokens/${token.id}`)
  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  const example = (await page.getByRole('dialog').locator('pre').textContent()) ?? ''
  expect(example).toContain('"model":"simulator/lorem"')
  const run = Bun.spawn(['sh', '-c', `${example} -s -o /dev/null -w '%{http_code}'`], {
    stdout: 'pipe',
    stderr: 'ignore',
  })
  expect(await new Response(run.stdout).text()).toBe('200')
})

test('the secret of an auditor’s token comes without examples, since it calls no model', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  await page.getByLabel('Auditor').check()
  await page.getByLabel('Name').fill('reads only')
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByText('A token of this role calls no model').waitFor()
  expect(await page.getByLabel('Client').count()).toBe(0)
})

test('an admin is offered no new secret of an owner’s token, which the API would refuse', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'of an owner', roles: ['owner'] })
  const credentials = { email: 'adam@example.com', password: 'a long enough secret 7' }
  await make('/v1/users', { ...credentials, name: 'Adam', role: 'admin' })
  const offered = async (as?: typeof credentials) => {
    await using opened = await openConsole(as === undefined ? {} : { as })
    await opened.to(`/tokens/${token.id}`)
    await opened.page.getByRole('button', { name: 'Revoke', exact: true }).waitFor()
    return await opened.page.getByRole('button', { name: 'Rotate' }).count()
  }
  expect([await offered(), await offered(credentials)]).toEqual([1, 0])
})
