/**
 * People, from the setup link of a first start to a session of the command line, through the calls that the console
 * makes.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { createdToken, errorAnswer, eventPage } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, parseOrKeep } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import {
  cleanEnvironment,
  collect,
  type Gatehouse,
  run,
  startGatehouse,
  temporaryDirectory,
} from '../support/harness.ts'
import { eventsOfRequest } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const owner = { email: 'owner@example.com', name: 'Olga', password: 'a long enough secret 1' }
const member = { email: 'member@example.com', name: 'Mia', password: 'another long secret 2' }
const home = temporaryDirectory()
const signedIn = z.object({ user: z.looseObject({ id: z.uuid(), email: z.string() }), csrf_token: z.string() })
const identified = z.looseObject({ id: z.uuid() })

let gatehouse: Gatehouse
let setupLink: URL

beforeAll(async () => {
  gatehouse = await startGatehouse()
  setupLink = new URL(gatehouse.ready.setup_url ?? '')
  const body = { secret: setupLink.hash.slice(1), ...owner }
  expectAnswer(await browse().post('/v1/auth/setup', body), 200, signedIn)
  const made = await api(gatehouse, '/v1/users', { body: { ...member, role: 'member' } })
  expectAnswer(made, 201, identified)
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  rmSync(home, { recursive: true, force: true })
})

/** A browser: it keeps its cookie, and says from which page a request comes. */
function browse() {
  let cookie = ''
  async function send(address: string, init: RequestInit) {
    const own = { origin: gatehouse.baseUrl, 'sec-fetch-site': 'same-origin', ...(cookie !== '' && { cookie }) }
    const headers = { ...own, ...Object.fromEntries(new Headers(init.headers)) }
    const answer = await fetch(new URL(address, gatehouse.baseUrl), { ...init, headers })
    const set = answer.headers.get('set-cookie')
    if (set !== null) cookie = set.split(';')[0] ?? ''
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: parseOrKeep(text), text }
  }
  const json = { 'content-type': 'application/json' }
  return {
    get: (address: string) => send(address, {}),
    post: (address: string, body: object, headers: Record<string, string> = {}) =>
      send(address, { method: 'POST', body: JSON.stringify(body), headers: { ...json, ...headers } }),
  }
}

async function signIn({ email, password }: { email: string; password: string }) {
  const browser = browse()
  const answer = await browser.post('/v1/auth/login', { email, password })
  return { browser, ...expectAnswer(answer, 200, signedIn) }
}

const decided = z.object({ redirect_to: z.url().nullable(), code: z.string().nullable() })

/** Signs in and answers what a program asks for on its page, as the console does. */
async function answer(page: string, person: { email: string; password: string }, approve: boolean) {
  const { browser, csrf_token } = await signIn(person)
  const asked = Object.fromEntries(new URL(page).searchParams)
  const headers = { 'x-csrf-token': csrf_token }
  const preview = await browser.post('/v1/auth/programs/preview', asked, headers)
  expect(expectAnswer(preview, 200, z.looseObject({ program: z.string() })).program).toBe('gatehouse-cli')
  return expectAnswer(await browser.post('/v1/auth/programs/decision', { ...asked, approve }, headers), 200, decided)
}

/** Starts `auth login`, gives the page it names; `type` answers its question, `ended` waits for it. */
async function login(...flags: string[]) {
  const child = Bun.spawn([await executable(), 'auth', 'login', ...flags], {
    cwd: home,
    env: cleanEnvironment(commandEnvironment()),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  const page = await eventually(() => {
    const found = /^\s+(http\S+)\s*$/m.exec(stderr())?.[1]
    if (found === undefined) throw new Error(`No page was shown: ${stderr()}`)
    return found
  })
  return {
    page,
    type(line: string) {
      child.stdin.write(`${line}\n`)
      return child.stdin.end()
    },
    ended: async () => ({ code: await child.exited, stdout: stdout(), stderr: stderr() }),
  }
}

const commandEnvironment = () => ({ SERVICE_API_URL: gatehouse.baseUrl, XDG_CONFIG_HOME: home })
const command = (...args: string[]) => run(args, { env: commandEnvironment() })
const sessions = () => join(home, 'gatehouse/sessions.json')

test('the setup link sends its secret to no server and works once', async () => {
  expect(setupLink.pathname + setupLink.search).not.toContain(setupLink.hash.slice(1))
  const page = await browse().get(setupLink.pathname)
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const body = { secret: setupLink.hash.slice(1), ...owner, email: 'thief@example.com' }
  const again = expectAnswer(await browse().post('/v1/auth/setup', body), 422, errorAnswer)
  expect(again.error.code).toBe('invalid_setup_link')
})

test('a wrong password and an unknown person get identical answers', async () => {
  const attempt = async (email: string) => {
    const answer = await browse().post('/v1/auth/login', { email, password: 'not the right password' })
    const { error } = expectAnswer(answer, 401, errorAnswer)
    return error
  }
  const wrong = await attempt(owner.email)
  expect(wrong.code).toBe('invalid_credentials')
  expect(await attempt('nobody@example.com')).toEqual(wrong)
})

test('a write by cookie needs the CSRF token of its session, and pages of other origins are refused', async () => {
  const { browser, csrf_token } = await signIn(owner)
  const other = await signIn(owner)
  const name = `team ${crypto.randomUUID()}`
  for (const headers of [{}, { 'x-csrf-token': 'made-up' }, { 'x-csrf-token': other.csrf_token }]) {
    const { error } = expectAnswer(await browser.post('/v1/teams', { name }, headers), 403, errorAnswer)
    expect(error.code).toBe('csrf_refused')
  }
  const foreign = { 'x-csrf-token': csrf_token, origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' }
  expect((await browser.post('/v1/teams', { name }, foreign)).status).toBe(403)
  const made = await browser.post('/v1/teams', { name }, { 'x-csrf-token': csrf_token })
  expect(expectAnswer(made, 201, identified).name).toBe(name)
  expect((await browser.post('/v1/auth/logout', {}, { 'x-csrf-token': csrf_token })).status).toBe(200)
  expect((await browser.get('/v1/teams')).status).toBe(401)
})

test("a team's administrator token cannot grant more than it has", async () => {
  const makeTeam = async () =>
    expectAnswer(await api(gatehouse, '/v1/teams', { body: { name: crypto.randomUUID() } }), 201, identified).id
  const [team, other] = [await makeTeam(), await makeTeam()]
  const bound = await createToken(gatehouse, { roles: ['admin'], bindings: { team_id: team }, max_requests: 100 })
  const create = (fields: object) =>
    api(gatehouse, '/v1/tokens', { token: bound.token_value, body: { name: 'x', purpose: 'general', ...fields } })
  const own = { bindings: { team_id: team }, max_requests: 100 }
  expectAnswer(await create(own), 201, createdToken)
  const beyond: object[] = [
    { max_requests: 100 },
    { ...own, bindings: { team_id: other } },
    { ...own, max_requests: 101 },
    { ...own, max_requests: null },
    { ...own, roles: ['owner'] },
  ]
  for (const fields of beyond) {
    const { error } = expectAnswer(await create(fields), 403, errorAnswer)
    expect([fields, error.type]).toEqual([fields, 'access_denied'])
  }
  const foreign = await createToken(gatehouse, { bindings: { team_id: other } })
  expect((await api(gatehouse, `/v1/tokens/${foreign.id}`, { token: bound.token_value })).status).toBe(404)
  const rotation = { method: 'POST', body: {}, token: bound.token_value }
  expect((await api(gatehouse, `/v1/tokens/${foreign.id}/rotate`, rotation)).status).toBe(404)
})

test('an operator reads the events of their own teams, and an owner all events', async () => {
  const makeTeam = async () =>
    expectAnswer(await api(gatehouse, '/v1/teams', { body: { name: crypto.randomUUID() } }), 201, identified).id
  const [mine, theirs] = [await makeTeam(), await makeTeam()]
  const operator = { email: 'operator@example.com', name: 'Otto', password: 'a third long secret 3' }
  expectAnswer(await api(gatehouse, '/v1/users', { body: { ...operator, role: 'operator' } }), 201, identified)
  const { user, browser } = await signIn(operator)
  expect((await api(gatehouse, `/v1/teams/${mine}/members`, { body: { user_id: user.id } })).status).toBe(201)
  const used = async (team_id: string) => {
    const { token_value: token } = await createToken(gatehouse, { bindings: { team_id } })
    const requestId = `seen-${crypto.randomUUID()}`
    await (await chat(gatehouse, { token, requestId, model: 'simulator/echo' })).text()
    await eventsOfRequest(gatehouse, requestId)
    return requestId
  }
  const [inMine, inTheirs] = [await used(mine), await used(theirs)]
  const seen = async (from: typeof browser) =>
    expectAnswer(await from.get('/v1/events?since=1h&event_type=gateway.request.outcome'), 200, eventPage).events.map(
      ({ request_id }) => request_id,
    )
  expect(await seen(browser)).toEqual([inMine])
  expect(await seen((await signIn(owner)).browser)).toEqual(expect.arrayContaining([inMine, inTheirs]))
})

test('auth login --headless accepts the code of the page, and status and logout follow the session', async () => {
  const before = await command('auth', 'status')
  expect([before.code, before.stdout]).toEqual([1, ''])
  expect(before.stderr).toContain('auth login')
  const session = await login('--headless')
  const { code } = await answer(session.page, owner, true)
  await session.type(code ?? '')
  const ended = await session.ended()
  expect([ended.code, ended.stdout]).toEqual([0, expect.stringContaining(owner.email)])
  expect(statSync(sessions()).mode & 0o777).toBe(0o600)
  expect((await command('auth', 'status')).stdout).toContain(owner.email)
  expect((await command('token', 'list')).code).toBe(0)
  const { sessions: kept } = z
    .object({ sessions: z.record(z.string(), z.object({ token: z.string() })) })
    .parse(await Bun.file(sessions()).json())
  const token = kept[gatehouse.baseUrl]?.token ?? ''
  expect(ended.stdout + ended.stderr).not.toContain(token)
  expect((await command('auth', 'logout')).code).toBe(0)
  expect((await command('auth', 'status')).code).toBe(1)
  expect((await api(gatehouse, '/v1/auth/session', { token })).status).toBe(401)
})

test('auth login receives the redirect on its listener, and a denial ends it', async () => {
  const session = await login('--json')
  const redirect = (await answer(session.page, member, true)).redirect_to ?? ''
  expect(redirect).toStartWith('http://127.0.0.1:')
  expect((await fetch(redirect.replace(/state=[^&]*/, 'state=forged'))).status).toBe(404)
  expect((await fetch(redirect)).status).toBe(200)
  const ended = await session.ended()
  expect([ended.code, JSON.parse(ended.stdout)]).toMatchObject([0, { user: { email: member.email } }])
  // A member may read no tokens of others and make none.
  expect((await command('token', 'create', '--name', 'x', '--purpose', 'general')).stderr).toContain(
    'permission_denied',
  )
  expect((await command('auth', 'logout', '--json')).stdout).toContain('"signed_out":true')
  const denied = await login()
  await fetch((await answer(denied.page, member, false)).redirect_to ?? '')
  const after = await denied.ended()
  expect([after.code, after.stdout]).toEqual([1, ''])
  expect(after.stderr).toContain('denied')
  expect(existsSync(sessions()) && (await Bun.file(sessions()).text())).not.toContain('gths_')
})
