import { afterAll, afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from '../command/command.ts'
import { main } from '../main.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { auth } from './auth.ts'

const sessionToken = 'gths_session'
const user = { id: 'u', email: 'ann@example.com', name: 'Ann', role: 'admin' }
const session = { id: 's', expires_at: '2026-01-01T00:00:00.000Z' }
const code = 'gthc_code'

interface Seen {
  path: string
  authorization: string | null
  body: Record<string, string>
}
const seen: Seen[] = []
let loggedOut = 200
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const path = new URL(request.url).pathname
    const text = await request.text()
    seen.push({ path, authorization: request.headers.get('authorization'), body: text === '' ? {} : JSON.parse(text) })
    if (path === '/v1/auth/session/exchange-code') {
      return Response.json({ session_token: sessionToken, session, user }, { status: 201 })
    }
    if (path === '/v1/auth/logout') return Response.json({ error: { message: 'x', code: 'x' } }, { status: loggedOut })
    return Response.json({ kind: 'session', user, token_id: null, roles: ['admin'], session })
  },
})
afterAll(() => server.stop(true))

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gatehouse-auth-'))
  seen.length = 0
  loggedOut = 200
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const kept = () => join(home, 'gatehouse', 'sessions.json')
const terminalOf = (environment: Record<string, string> = {}) =>
  recordingTerminal({ environment: { XDG_CONFIG_HOME: home, SERVICE_API_URL: server.url.origin, ...environment } })

async function run(rawArguments: string[], environment: Record<string, string> = {}) {
  const terminal = terminalOf(environment)
  const exitCode = await main(rawArguments, terminal)
  return { exitCode, out: terminal.written(), notes: terminal.noted() }
}

/** Signs in as a person would who opens the page that is shown and answers it with `answer`. */
async function login(answer: (redirect: URL, state: string) => Promise<unknown>, ...flags: string[]) {
  const terminal = terminalOf()
  const shown = Promise.withResolvers<URL>()
  const listening = { ...terminal, note: (line: string) => listen(line) }
  const listen = (line: string) => {
    terminal.note(line)
    const url = /http\S+authorize-program\S+/.exec(line)?.[0]
    if (url !== undefined) shown.resolve(new URL(url))
  }
  const typed = async () => ` ${code} `
  const commands = auth(listening, { interactive: false, line: typed, hiddenLine: typed })
  const done = runCommandLine(commands, ['login', ...flags], listening)
  done.catch(() => undefined)
  const page = await shown.promise
  await answer(new URL(page.searchParams.get('redirect_uri') ?? ''), page.searchParams.get('state') ?? '')
  await done
  return { page, out: terminal.written(), notes: terminal.noted() }
}

const approve = (redirect: URL, state: string) => fetch(`${redirect}?${new URLSearchParams({ code, state })}`)

test('login shows a page, receives the code on loopback, and keeps the session readable by its owner only', async () => {
  const { page, out, notes } = await login(approve)
  expect(page.origin + page.pathname).toBe(`${server.url.origin}/console/authorize-program`)
  expect(page.searchParams.get('redirect_uri')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  const body = seen[0]?.body ?? {}
  const challenge = new Bun.CryptoHasher('sha256').update(body.code_verifier ?? '').digest('base64url')
  expect(page.searchParams.get('code_challenge')).toBe(challenge)
  expect(body).toMatchObject({ code, client_id: 'gatehouse-cli', redirect_uri: page.searchParams.get('redirect_uri') })
  expect(out).toBe(`Signed in at ${server.url.origin} as ann@example.com (admin)\n`)
  expect(out + notes).not.toContain(sessionToken)
  expect(statSync(kept()).mode & 0o777).toBe(0o600)
})

test('refuses a request to the loopback port without the state, and the sign-in goes on', async () => {
  await login(async (redirect, state) => {
    const others = [
      `${redirect}?code=planted&state=other`,
      `${redirect}?code=planted`,
      `${redirect.origin}/`,
      `${redirect}?state=${state}`,
    ]
    for (const url of others) expect((await fetch(url)).status).toBe(404)
    expect((await fetch(`${redirect}?code=planted&state=${state}`, { method: 'POST' })).status).toBe(404)
    await approve(redirect, state)
  })
  expect(seen.map(({ body }) => body.code)).toEqual([code])
})

test('ends when the sign-in is denied, and keeps no session', async () => {
  const denied = login((redirect, state) =>
    fetch(`${redirect}?${new URLSearchParams({ error: 'access_denied', state })}`),
  )
  await expect(denied).rejects.toThrow('denied')
  expect(await Bun.file(kept()).exists()).toBe(false)
})

test('with --headless, reads a typed code', async () => {
  const { page } = await login(async () => undefined, '--headless')
  expect(page.searchParams.get('redirect_uri')).toBe('urn:ietf:wg:oauth:2.0:oob')
  expect(seen[0]?.body).toMatchObject({ code, redirect_uri: 'urn:ietf:wg:oauth:2.0:oob' })
})

test('later commands use the session unless SERVICE_API_TOKEN is set', async () => {
  await login(approve)
  seen.length = 0
  expect((await run(['auth', 'status'])).out).toContain('Ann <ann@example.com>')
  await run(['auth', 'status'], { SERVICE_API_TOKEN: 'gth_token' })
  expect(seen.map(({ authorization }) => authorization)).toEqual([`Bearer ${sessionToken}`, 'Bearer gth_token'])
  expect(JSON.parse((await run(['auth', 'status', '--json'])).out)).toMatchObject({
    user: { email: 'ann@example.com' },
  })
})

test('sends a session to no other control plane', async () => {
  await login(approve)
  const status = await run(['auth', 'status', '--api-url', 'http://127.0.0.1:9'])
  expect(status.exitCode).toBe(1)
  expect(status.notes).toContain('Not signed in at http://127.0.0.1:9')
})

test('logout ends the session at the control plane and on this host, also if it had ended before', async () => {
  await login(approve)
  expect((await run(['auth', 'logout'])).exitCode).toBe(0)
  expect(readFileSync(kept(), 'utf8')).not.toContain(sessionToken)
  expect((await run(['auth', 'logout'])).exitCode).toBe(1)
  await login(approve)
  loggedOut = 401
  expect((await run(['auth', 'logout'])).exitCode).toBe(0)
  expect(readFileSync(kept(), 'utf8')).not.toContain(sessionToken)
})

test('refuses a session file that others can read', async () => {
  await login(approve)
  chmodSync(kept(), 0o644)
  const { exitCode, notes } = await run(['auth', 'status'])
  expect(exitCode).toBe(2)
  expect(notes).toContain('chmod 600')
})
