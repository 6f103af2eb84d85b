/** The view of sessions: from the list to one session, its turns and their exchange, by addresses alone. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createToken } from '../support/client.ts'
import { allThere, endConsole, make, openConsole, picture, seriousInBothThemes, sharedConsole } from './console.ts'
import { agentSession, makeSession } from './every-screen.ts'

setDefaultTimeout(120_000)

let token: { id: string; token_value: string }
beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  token = await createToken(gatehouse, { name: 'laptop of Ann' })
  await make('/v1/policies', { name: 'mail', kind: 'pii', stages: ['pre_request'], config: { action: 'redact' } })
  await makeSession(token.token_value)
}, 240_000)
afterAll(endConsole)

test('a list of sessions leads to one with its turns, tools and findings, and on to an exchange', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/sessions')
  await page.getByRole('cell', { name: 'claude-code' }).waitFor()
  await picture(page, 'sessions')
  await page.getByRole('link', { name: agentSession.slice(0, 24) }).click()
  await page.getByRole('heading', { name: 'Turns' }).waitFor()
  await page.getByRole('link', { name: 'laptop of Ann' }).waitFor()
  const turns = page.getByRole('region', { name: 'Turns' }).getByRole('row')
  await turns.nth(3).waitFor()
  expect(await turns.count()).toBe(4)
  expect(await turns.nth(1).textContent()).not.toContain('Bash')
  expect(await turns.nth(2).textContent()).toContain('Bash, Read')
  expect(await turns.nth(3).textContent()).toContain('PII: Redact')
  await allThere(page)
  expect(await seriousInBothThemes(page, 'session-1280')).toEqual([])
  await picture(page, 'session')
  await page.setViewportSize({ width: 390, height: 844 })
  await picture(page, 'session-390')
  await turns.nth(3).getByRole('link').click()
  await page.getByRole('heading', { name: 'What happened' }).waitFor()
  await page.getByRole('link', { name: agentSession }).click()
  await page.getByRole('heading', { name: 'Turns' }).waitFor()
})

test('filters of the list stand in its address, and one that finds nothing says so', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/sessions?client=codex')
  await page.getByText('No session matches these filters').waitFor()
  await page.getByLabel('Client', { exact: true }).selectOption('claude-code')
  await page.getByRole('link', { name: agentSession.slice(0, 24) }).waitFor()
  expect(new URL(page.url()).searchParams.get('client')).toBe('claude-code')
})

test('an address of a session without its token shows the sessions of that id', async () => {
  const { gatehouse } = await sharedConsole()
  const other = await createToken(gatehouse, { name: 'laptop of Bo' })
  await makeSession(other.token_value)
  await using opened = await openConsole()
  const { page } = opened
  await opened.to(`/sessions/${agentSession}`)
  await page.getByText('laptop of Ann').waitFor()
  await page.getByText('laptop of Bo').waitFor()
})
