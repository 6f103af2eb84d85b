import { afterAll, beforeEach, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let running: TestGateway
beforeEach(async () => {
  await running?.stop()
  running = await startTestGateway(() => new Response('no'), { drain_seconds: 0 })
})
afterAll(() => running.stop())

const ask = (secret: string, headers: Record<string, string> = {}) =>
  fetch(`${running.url}/managed/settings`, { headers: { authorization: `Bearer ${secret}`, ...headers } })
const settings = (id: string, teamIds: string[] = [], text = '{"model":"x"}') => ({
  ...{ id, teamIds, settings: text },
  checksum: `sha256:${id}`,
})
/** A person who signed in, with teams. */
const person = (...teamIds: string[]) => {
  const scope = ['gateway:invoke'] as const
  const delegation = { clientId: 'claude-code', grantId: 'g', scope, permissions: scope, resources: [], teamIds }
  return running.worker.addToken({ roles: [], delegation })
}

test('gives the settings with their uuid, checksum and entity tag, and 304 to one who has them', async () => {
  running.worker.managedSettings.push(settings('one'))
  const answer = await ask(running.secret)
  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual({ uuid: 'one', checksum: 'sha256:one', settings: { model: 'x' } })
  expect(answer.headers.get('etag')).toBe('"sha256:one"')
  for (const tag of ['"sha256:one"', 'W/"sha256:one"', '"other", "sha256:one"', '*']) {
    const known = await ask(running.secret, { 'if-none-match': tag })
    expect([known.status, await known.text(), known.headers.get('etag')]).toEqual([304, '', '"sha256:one"'])
  }
  expect((await ask(running.secret, { 'if-none-match': '"sha256:two"' })).status).toBe(200)
})

test('empty settings are an answer, and no settings are 404 in the form of the messages language', async () => {
  const none = await ask(running.secret)
  expect([none.status, await none.json()]).toEqual([
    404,
    expect.objectContaining({ type: 'error', error: expect.objectContaining({ type: 'not_found_error' }) }),
  ])
  running.worker.managedSettings.push(settings('empty', [], '{}'))
  expect(await (await ask(running.secret)).json()).toMatchObject({ uuid: 'empty', settings: {} })
})

test('the first that is for a team of the person or for everybody counts', async () => {
  running.worker.managedSettings.push(settings('red', ['r']), settings('blue', ['b', 'g']), settings('all'))
  const idFor = async (secret: string) => Object(await (await ask(secret)).json()).uuid
  expect(await idFor(person('b', 'r'))).toBe('red')
  expect(await idFor(person('g'))).toBe('blue')
  expect(await idFor(person('y'))).toBe('all')
  expect(await idFor(running.worker.addToken({ teamId: 'r' }))).toBe('red')
  expect(await idFor(running.worker.addToken({ ownerKind: 'team', ownerId: 'b' }))).toBe('blue')
  expect(await idFor(running.secret)).toBe('all')
})

test('refuses whoever has no token that may call models, and records each answer', async () => {
  running.worker.managedSettings.push(settings('one'))
  expect((await ask('gth_invented')).status).toBe(401)
  const delegation = { clientId: 'c', grantId: 'g', scope: [], permissions: [], resources: [], teamIds: [] }
  expect((await ask(running.worker.addToken({ roles: [], delegation }))).status).toBe(403)
  expect((await fetch(`${running.url}/managed/settings`, { method: 'POST' })).status).toBe(405)
  await ask(running.secret)
  const outcomes = running.worker.journal.outcomes().map(({ verdict, details }) => [verdict, details?.route])
  expect(outcomes).toEqual([
    ['deny', 'GET /managed/settings'],
    ['deny', 'GET /managed/settings'],
    ['allow', 'GET /managed/settings'],
  ])
})
