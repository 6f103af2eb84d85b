/** What browsers, callers and hasty people do that nobody meant: the console stays readable and loses nothing. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { allThere, endConsole, make, openConsole, owner, picture, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)
beforeAll(async () => {
  await sharedConsole()
}, 240_000)
afterAll(endConsole)

test('an invalid browser language does not blank the page', async () => {
  await using opened = await openConsole()
  await opened.page.addInitScript(`
    Object.defineProperty(navigator, 'language', { configurable: true, value: 'en-US@posix' })
    Object.defineProperty(navigator, 'languages', { configurable: true, value: ['en-US@posix'] })
  `)
  await opened.to('/')
  await opened.page.getByRole('heading', { name: 'Overview' }).waitFor()
})

test('a name with two spaces can be typed, and a rotated secret survives Escape until it is kept', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'two  blanks' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens')
  await page.locator(`a[href$="${token.id}"]`).click()
  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  await page.locator('[data-secret]').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  // Where a browser insists on the second one, the dialog is opened again.
  await page.locator('[data-secret]').waitFor()
  await page.goBack()
  await page.locator('[data-secret]').waitFor()
  await page.getByRole('button', { name: 'I have saved it' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('two blanks')
  expect(await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).isEnabled()).toBe(true)
})

test('typed text survives the end of a session and is sent with the new CSRF token', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name', { exact: true }).fill('typed before')
  await page.waitForLoadState('networkidle')
  const { email, password } = owner
  const { gatehouse } = await sharedConsole()
  const signIn = () => page.context().request.post(`${gatehouse.baseUrl}/v1/auth/login`, { data: { email, password } })
  await page.context().clearCookies()
  // What the page asks for by itself may have found it out before.
  await page.getByRole('button', { name: 'Create token' }).dispatchEvent('click')
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByLabel('Password').waitFor({ state: 'detached' })
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('typed before')
  expect((await signIn()).ok()).toBe(true)
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.locator('[data-secret]').waitFor()
})

test('a token whose answer was lost is not created again, and the form links to it', async () => {
  const { gatehouse } = await sharedConsole()
  await using opened = await openConsole()
  const { page } = opened
  let lost = 0
  await page.route('**/v1/tokens', async (route) => {
    if (route.request().method() !== 'POST' || lost > 0) return await route.continue()
    lost += 1
    await route.fetch()
    await route.fulfill({ status: 504, body: 'A proxy that gave up' })
  })
  const make = page.getByRole('button', { name: 'Create token' })
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name', { exact: true }).fill('its answer is lost')
  await make.click()
  await page.getByText('Request failed').waitFor()
  await make.click()
  await page.getByText('It was created already').waitFor()
  const listed = z.object({ tokens: z.array(z.looseObject({ id: z.string(), name: z.string() })) })
  const { tokens } = expectAnswer(await api(gatehouse, '/v1/tokens?limit=100'), 200, listed)
  const [made, ...more] = tokens.filter(({ name }) => name === 'its answer is lost')
  expect(more).toEqual([])
  await page.getByRole('link', { name: 'Open it' }).click()
  await page.waitForURL(`**/tokens/${made?.id}*`)
  await opened.within('/tokens/new')
  await page.getByLabel('Member').check()
  await page.getByLabel('Name', { exact: true }).fill('its answer is lost')
  await make.click()
  await page.locator('[data-secret]').waitFor()
})

test('typed text survives a sign-in as another account elsewhere, and the page names the account', async () => {
  const { gatehouse } = await sharedConsole()
  const other = { email: 'second@example.com', password: 'a long enough secret 2' }
  await make('/v1/users', { ...other, name: 'Second', role: 'admin' })
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/tokens/new')
  await page.getByLabel('Member').check()
  const name = page.getByLabel('Name', { exact: true })
  await name.fill('typed by the owner')
  const answer = await page.context().request.post(`${gatehouse.baseUrl}/v1/auth/login`, { data: other })
  expect(answer.ok()).toBe(true)
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByRole('heading', { name: 'The account changed' }).waitFor()
  await page.getByText(`You are now signed in as ${other.email}.`).waitFor()
  await page.getByRole('button', { name: 'Go on as Second' }).click()
  expect(await name.inputValue()).toBe('typed by the owner')
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.locator('[data-secret]').waitFor()
})

test('a model name of 200 letters or with direction overrides does not widen the page', async () => {
  const { gatehouse } = await sharedConsole()
  const token = await createToken(gatehouse, { name: 'asks for odd models' })
  for (const model of ['m'.repeat(200), 'gpt\u202E4']) {
    await (await chat(gatehouse, { token: token.token_value, model, requestId: 'odd-model' })).text()
  }
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  const [odd] = await eventsOfRequest(gatehouse, 'odd-model')
  await make('/v1/users', { email: `${'m'.repeat(60)}@example.com`, name: 'W'.repeat(100), role: 'member' })
  await make('/v1/teams', { name: 't'.repeat(100) })
  const paths = ['/traffic', `/traffic/${odd?.exchange_id}`, '/spend', '/', '/people', '/people?kind=members']
  await opened.to('/')
  for (const path of paths) {
    await opened.within(path)
    await allThere(page)
    for (const width of [390, 1600]) {
      await page.setViewportSize({ width, height: 844 })
      const beyond = z.number().parse(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
      expect([path, width, beyond]).toEqual([path, width, 0])
      await picture(page, `long-${path.replace(/[^a-z]+/g, '-')}-${width}`)
    }
  }
  await page.setViewportSize({ width: 390, height: 844 })
  await opened.within('/traffic')
  await page.getByText('gpt⟨U+202E⟩4').first().waitFor()
  const row = await page.locator('tr', { hasText: 'mmmm' }).first().boundingBox()
  expect(row?.height).toBeLessThan(80)
})

test('an address that is not valid text shows the not-found page', async () => {
  await using opened = await openConsole()
  await opened.to('/')
  for (const path of ['/tokens/%E0%A4%A', '/traffic/%FF', '/policies/%FF']) {
    await opened.within(path)
    await opened.page.getByRole('heading', { name: 'Page not found' }).waitFor()
    await opened.within('/settings')
    await opened.page.getByRole('heading', { name: 'Settings' }).waitFor()
  }
})

test('long names and phone widths push no column out of the table, and amounts stay whole', async () => {
  const { gatehouse } = await sharedConsole()
  await make('/v1/policies', {
    ...{ name: 'W'.repeat(200), kind: 'pii', stages: ['pre_request'] },
    config: { action: 'redact' },
  })
  const { token_value: token } = await createToken(gatehouse, { name: 'of two models' })
  for (const model of ['simulator/lorem', 'of_one/model_2026_07_18']) {
    await (await chat(gatehouse, { token, model, requestId: 'usual-models' })).text()
  }
  await eventsOfRequest(gatehouse, 'usual-models')
  await using opened = await openConsole({ width: 390 })
  const { page } = opened
  const broadFont = `document.body.style.letterSpacing = '1px'`
  const beyond = `(() => {
    const { scrollWidth, clientWidth } = document.querySelector('main section.table')
    return scrollWidth - clientWidth
  })()`
  for (const [path, width] of [
    ['/traffic', 390],
    ['/policies', 390],
    ['/policies', 1600],
  ] as const) {
    await page.setViewportSize({ width, height: 844 })
    await opened.to(path)
    await page.locator('main section.table tbody tr').first().waitFor()
    await page.evaluate(broadFont)
    expect([path, width, await page.evaluate(beyond)]).toEqual([path, width, 0])
    await picture(page, `columns-${path.slice(1)}-${width}`)
  }
  await page.setViewportSize({ width: 390, height: 844 })
  await opened.to('/')
  await page.locator('.figure').first().waitFor()
  await allThere(page)
  await page.evaluate(broadFont)
  await page.evaluate(`for (const one of document.querySelectorAll('.figure')) one.textContent = '$0.000103'`)
  const broken = `[...document.querySelectorAll('.figure')].filter(
    ({ offsetHeight, scrollWidth, clientWidth }) => offsetHeight > 40 || scrollWidth > clientWidth).length`
  expect(await page.evaluate(broken)).toBe(0)
})

test('headings skip no level in an empty list, and a short id stays on one line', async () => {
  const { gatehouse } = await sharedConsole()
  const scope = 'gateway:invoke mcp:invoke tokens:read events:read events:export'
  const body = { client_name: 'M'.repeat(60), redirect_uris: ['https://line.example.com/'], scope }
  expect((await api(gatehouse, '/v1/oauth/clients', { body })).status).toBe(201)
  await using opened = await openConsole({ width: 730 })
  const { page } = opened
  await opened.to('/catalog?kind=consumer-groups')
  await page.getByText('No consumer groups yet').waitFor()
  const levels = `[...document.querySelectorAll('h1, h2, h3')].map(({ tagName }) => Number(tagName[1]))`
  const found = z.array(z.number()).parse(await page.evaluate(levels))
  expect(found.filter((level, index) => level > (found[index - 1] ?? 0) + 1)).toEqual([])
  await opened.within('/applications')
  const id = page.locator('td code[title]').first()
  await id.waitFor()
  expect((await id.boundingBox())?.height).toBeLessThan(25)
})

test('a conflicting change shows both versions and can be saved over or discarded without losing typed text', async () => {
  const { gatehouse } = await sharedConsole()
  const policy = { name: 'contested', kind: 'pii', stages: ['pre_request'], config: { action: 'redact' } }
  const records = [
    ['/v1/teams', '/people?kind=teams&open=', await make('/v1/teams', { name: 'contested' })],
    ['/v1/policies', '/policies/', await make('/v1/policies', policy)],
  ] as const
  await using opened = await openConsole()
  const { page } = opened
  for (const [route, screen, { id }] of records) {
    const path = `${route}/${id}`
    const rename = (name: string) => api(gatehouse, path, { method: 'PATCH', body: { name } })
    const nameNow = async () => expectAnswer(await api(gatehouse, path), 200, z.looseObject({ name: z.string() })).name
    await opened.to(screen + id)
    const name = page.getByLabel('Name', { exact: true })
    const save = page.getByRole('button', { name: 'Save', exact: true })
    await name.fill('mine')
    await rename('theirs')
    await save.click()
    await page.getByText('Saved now: theirs').waitFor()
    expect(await name.inputValue()).toBe('mine')
    await page.getByRole('button', { name: 'Overwrite with mine' }).click()
    await page.getByText('Saved now: theirs').waitFor({ state: 'detached' })
    expect(await nameNow()).toBe('mine')
    await opened.to(screen + id)
    await name.fill('mine again')
    await rename('theirs again')
    await save.click()
    await page.getByRole('button', { name: 'Discard mine' }).click()
    await page.getByText('Saved now').waitFor({ state: 'detached' })
    expect([await name.inputValue(), await nameNow()]).toEqual(['theirs again', 'theirs again'])
  }
})

test('names that look like markup are shown as text on every screen', async () => {
  const { gatehouse } = await sharedConsole()
  const name = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`
  const token = await createToken(gatehouse, { name })
  const made = await api(gatehouse, '/v1/oauth/clients', {
    body: { client_name: name, redirect_uris: ['https://markup.example.com/'], scope: 'tokens:read' },
  })
  const { client_id } = expectAnswer(made, 201, z.looseObject({ client_id: z.string() }))
  const [team, policy] = await Promise.all([
    make('/v1/teams', { name }),
    make('/v1/policies', { name, kind: 'pii', stages: ['pre_request'], config: { action: 'redact' } }),
    make('/v1/users', { email: 'markup@example.com', name, role: 'member' }),
    make('/v1/budgets', { name, max_budget: 1, window: 'day', scope: { kind: 'organization' } }),
  ])
  await (await chat(gatehouse, { token: token.token_value, model: name, requestId: 'markup' })).text()
  const [event] = await eventsOfRequest(gatehouse, 'markup')
  await using opened = await openConsole()
  const { page } = opened
  const consent = new URLSearchParams({
    ...{ response_type: 'code', client_id, redirect_uri: 'https://markup.example.com/', state: name },
    ...{ code_challenge: 'c'.repeat(43), code_challenge_method: 'S256' },
  })
  await opened.to(`/oauth/authorize?${consent}`)
  await page.locator('blockquote', { hasText: '<img' }).waitFor()
  expect(await page.locator('img, main script').count()).toBe(0)
  await opened.to('/')
  for (const path of [
    ...['/', '/traffic', '/traffic?event_type=all', `/traffic/${event?.exchange_id}`, '/tokens', '/policies', '/spend'],
    ...[`/tokens/${token.id}`, `/policies/${policy.id}`, '/applications', `/applications?open=${client_id}`],
    ...['/people', '/people?kind=teams', `/people?kind=members&team=${team.id}`, '/spend?by=token', '/spend?by=team'],
    ...['/catalog?kind=budgets', `/search?q=${encodeURIComponent('<img')}`],
  ]) {
    await opened.within(path)
    await page.locator('h1').waitFor()
    await allThere(page)
    expect([path, await page.locator('img, body script').count()]).toEqual([path, 0])
  }
  expect(await page.title()).not.toBe('taken')
})
