/** Mistakes that an operator makes, and what each is answered: what is wrong, and what was meant or is to be done. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse

beforeAll(async () => {
  gatehouse = await startGatehouse()
  for (const name of ['app', 'twice', 'twice']) {
    await operate(gatehouse, 'token', 'create', '--name', name, '--purpose', 'general')
  }
  await operate(gatehouse, 'team', 'create', '--name', 'research')
}, 240_000)
afterAll(() => gatehouse?.stop())

const general = ['--purpose', 'general']
const make = ['token', 'create', '--name', 'x']

/** The command line, the exit code, and each text that must be said. */
const mistakes: [line: string[], code: number, said: string[]][] = [
  [['tokn', 'list'], 2, ['Unknown command "tokn"', 'did you mean token?', 'gatehouse --help']],
  [['token', 'creat'], 2, ['Unknown command "creat"', 'did you mean create?', 'gatehouse token --help']],
  [['token', 'list', '--jsn'], 2, ['Unknown option --jsn', 'did you mean --json?', 'gatehouse token list --help']],
  [['token', 'list', '--limit', '500'], 2, ['--limit takes a whole number from 1 to 100']],
  [['token', 'list', '--team-id', 'reserch'], 1, ['There is no team "reserch": did you mean "research"?']],
  [['token', 'get'], 2, ['Missing required positional argument: ID', 'gatehouse token get --help']],
  [['token', 'get', 'apq'], 1, ['There is no token "apq"', 'not_found', 'a list command shows']],
  [['token', 'get', ''], 2, ['An id or a name is needed']],
  [['token', 'delete', 'app'], 2, ['This revokes app, which cannot be undone: repeat the command with --yes']],
  [['token', 'delete', 'twice', '--yes'], 2, ['"twice" is the name of 2 records', 'use an id']],
  [make, 2, ['Missing required argument: --purpose']],
  [[...make, '--purpose', 'generl'], 2, ['--purpose takes general', 'did you mean general?']],
  [[...make, ...general, '--expires-in', 'soon'], 2, ['--expires-in takes', 'for example 15m, 12h or 30d']],
  [[...make, ...general, '--max-budget', '1e3'], 2, ['--max-budget takes an amount in US dollars']],
  [[...make, ...general, '--team-id', 'reserch'], 1, ['There is no team "reserch": did you mean "research"?']],
  [[...make, '--purpose', 'gateway-runtime'], 1, ['needs bindings.gateway_id']],
  [[...make, ...general, '--key-class', 'disposable'], 1, ['needs expires_in_seconds or expires_at']],
  [[...make, ...general, '--role', 'superuser'], 1, ['field roles.0', 'owner']],
  [['--api-token', 'gth_sesame', 'token', 'list'], 2, ['--api-token is not accepted', 'SERVICE_API_TOKEN']],
  [['team', 'create', '--name', 'research'], 1, ['There is a team of this name already']],
  [['team', 'remove-member', 'research', '..'], 2, ['An id or a name is needed']],
  [
    ['budget', 'create', '--name', 'b', '--max-budget', '5', '--scope', 'team'],
    1,
    ['Name the team, the user or the MCP server'],
  ],
  [['user', 'create', '--email', 'nope', '--name', 'N'], 1, ['Write an e-mail address']],
  [['user', 'update', 'owner@localhost'], 2, ['Name at least one field to change']],
  [['model', 'create', 'm', '--provider', 'simulatr'], 2, ['no provider "simulatr": did you mean "simulator"?']],
  [['provider', 'create', '--preset', 'grok'], 2, ['did you mean groq?']],
  [['provider', 'create', '--api-key', 'sk-sesame'], 2, ['Unknown option --api-key', 'did you mean --api-key-env?']],
  [['provider', 'create', '--preset', 'groq', '--api-key-env', 'NONE'], 2, ['The environment has no variable NONE']],
  [['events', 'tail'], 2, ['Missing required argument: --since']],
  [['events', 'tail', '--since', 'yesterday'], 1, ['Write an RFC 3339 timestamp', 'field since']],
  [['events', 'tail', '--since', '1h', '--verdict', 'blokced'], 2, ['did you mean blocked?']],
  [['events', 'tail', '--since', '1h', '--event-type', 'token.creatd'], 2, ['did you mean token.created?']],
  [['events', 'export', '--since', '1h'], 2, ['Missing required argument: --format']],
  [['usage', 'report', '--month', '2026-13'], 2, ['--month takes a month, for example 2026-11']],
  [['usage', 'report', '--by', 'colour'], 1, ['Name one or more of team, token, user']],
  [['--profile', 'work', 'token', 'list'], 2, ['There is no profile file: name one with --config']],
  [['--region', 'eu', 'token', 'list'], 2, ['The profile has no region "eu"']],
  [['--api-url', 'http://127.0.0.1:1', 'token', 'list'], 1, ['could not be reached', 'Check that it runs']],
  [['help', 'polices'], 2, ['There is no such topic: did you mean policies?']],
  [['connect', 'cursr'], 2, ['There is no such client: did you mean cursor?']],
  [['gateway', 'delete', 'local', '--yes'], 1, ['Tokens in force are bound to this gateway: revoke them first']],
  [['cache', 'clear', '--model', 'simulator/eco'], 1, ['There is no model "simulator/eco"', 'not_found']],
  [['policy', 'get', 'none', '-o', 'yml'], 2, ['-o takes text, json, yaml: did you mean yaml?']],
  [['gateway', 'update', 'local', '--spend-owner', 'team:reserch'], 1, ['no team "reserch": did you mean "research"?']],
  [
    ['model', 'update', 'simulator/echo', '--fallback', 'nope'],
    1,
    ['The catalog lists no model "nope"', 'fallbacks.0'],
  ],
  [[...make, ...general, '--expires-at', 'tomorrow'], 1, ['Write a time as 2030-01-31T12:00:00Z', 'expires_at']],
  [['policy', 'test', '--file', 'no.yaml', '--request', 'r.json'], 2, ['no.yaml cannot be read: ENOENT, there is no']],
  [['config', 'explain', '--config', '/'], 2, ['/: name the file .yaml, .toml or .json']],
  [['apply', '-f', '/none.yaml'], 2, ['/none.yaml cannot be read: ENOENT, there is no such file']],
  [['team', 'add-member', 'reserch', 'owner@localhost'], 1, ['There is no team "reserch": did you mean "research"?']],
  [['backup', '/none/b', '--data', '/none'], 2, ['/none holds no state.db', '--data']],
  [['restore', '/none/b', '--data', '/none', '--yes'], 2, ['There is no file /none/b']],
  [['up', '--gateway-listen', 'nowhere'], 2, ['--gateway-listen: Write HOST:PORT']],
]

test('each mistake is answered with what is wrong and what to do', async () => {
  for (const [line, code, said] of mistakes) {
    const ran = await operate(gatehouse, ...line)
    const missing = said.filter((text) => !ran.stderr.includes(text))
    expect([line, ran.code, missing, missing.length > 0 ? ran.stderr : '']).toEqual([line, code, [], ''])
    expect(ran.stdout).toBe('')
    // Neither a secret nor a stack.
    expect(ran.stderr).not.toContain('sesame')
    expect(ran.stderr).not.toMatch(/\n\s+at /)
  }
})
