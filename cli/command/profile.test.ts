import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConnectionFlags, findConnection } from './profile.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-profile-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const none: ConnectionFlags = { 'api-url': undefined, config: undefined, profile: undefined, region: undefined }
const find = (flags: Partial<ConnectionFlags>, environment: Record<string, string> = {}) =>
  findConnection({ ...none, ...flags }, { environment: { HOME: directory, ...environment } })

function profileFile(name: string, content: string, mode = 0o600): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  chmodSync(path, mode)
  return path
}

const yaml = `
profile: work
profiles:
  work:
    api_url: https://work.example
    api_token: gth_work
    region: eu
    regions:
      eu: { api_url: https://eu.work.example }
      us: { api_url: https://us.work.example, api_token: gth_us }
  home:
    api_url: https://home.example/
  local:
    api_token: gth_local
`
const path = profileFile('profiles.yaml', yaml)
mkdirSync(join(directory, 'with-default-profile', 'gatehouse'), { recursive: true })
profileFile('with-default-profile/gatehouse/profiles.yaml', yaml)

test('by default connects to the control plane of up on this host, without a token', () => {
  expect(find({})).toEqual({ apiUrl: 'http://127.0.0.1:7070', apiToken: null })
})

const env = { SERVICE_API_URL: 'https://env.example/', SERVICE_API_TOKEN: 'gth_env' }
const tokenOnly = { SERVICE_API_TOKEN: 'gth_env' }
const urlOnly = { SERVICE_API_URL: 'https://env.example' }
const home = join(directory, 'with-default-profile')
const combinations: readonly (readonly [
  flags: Partial<ConnectionFlags>,
  environment: Record<string, string>,
  apiUrl: string,
  apiToken: string | null,
])[] = [
  [{}, env, 'https://env.example', 'gth_env'],
  [{ 'api-url': 'https://flag.example/' }, env, 'https://flag.example', 'gth_env'],
  [{ 'api-url': 'https://flag.example' }, urlOnly, 'https://flag.example', null],
  // A profile that a flag names wins over the environment, with its token.
  [{ config: path }, env, 'https://eu.work.example', 'gth_work'],
  [{ config: path, region: 'us' }, env, 'https://us.work.example', 'gth_us'],
  [{ config: path, region: 'us' }, tokenOnly, 'https://us.work.example', 'gth_us'],
  [{ config: path, region: 'us' }, urlOnly, 'https://us.work.example', 'gth_us'],
  // SERVICE_API_TOKEN goes with SERVICE_API_URL, not to the address of a profile.
  [{ config: path, profile: 'home' }, env, 'https://home.example', null],
  [{ config: path, profile: 'home' }, tokenOnly, 'https://home.example', 'gth_env'],
  // --api-url wins over all; a profile's token goes only where the profile says.
  [{ config: path, region: 'us', 'api-url': 'https://flag.example' }, {}, 'https://flag.example', null],
  [{ config: path, region: 'us', 'api-url': 'https://flag.example' }, env, 'https://flag.example', 'gth_env'],
  [{ config: path, region: 'us', 'api-url': 'https://WORK.example:443' }, {}, 'https://work.example', 'gth_work'],
  [{ config: path, region: 'eu', 'api-url': 'https://us.work.example' }, {}, 'https://us.work.example', 'gth_work'],
  [{ config: path, profile: 'local' }, {}, 'http://127.0.0.1:7070', 'gth_local'],
  [{ config: path, profile: 'local' }, urlOnly, 'https://env.example', null],
  // The standard profile file, named by no flag, comes after the environment.
  [{}, { ...env, XDG_CONFIG_HOME: home }, 'https://env.example', 'gth_env'],
  [{}, { ...urlOnly, XDG_CONFIG_HOME: home }, 'https://env.example', null],
  [{}, { ...tokenOnly, XDG_CONFIG_HOME: home }, 'https://eu.work.example', 'gth_env'],
  [{ region: 'us' }, { ...env, XDG_CONFIG_HOME: home }, 'https://us.work.example', 'gth_us'],
  [{ profile: 'home' }, { ...env, XDG_CONFIG_HOME: home }, 'https://home.example', null],
]

for (const [flags, environment, apiUrl, apiToken] of combinations) {
  const said = `${JSON.stringify(flags)} with ${JSON.stringify(environment)}`.replaceAll(directory, '')
  test(`${said} connects to ${apiUrl} with ${apiToken ?? 'no token'}`, () => {
    expect(find(flags, environment)).toEqual({ apiUrl, apiToken })
  })
}

test('a profile gives its default region, or the region that is named', () => {
  expect(find({ config: path })).toEqual({ apiUrl: 'https://eu.work.example', apiToken: 'gth_work' })
  expect(find({ config: path, region: 'us' })).toEqual({ apiUrl: 'https://us.work.example', apiToken: 'gth_us' })
  expect(find({ config: path, profile: 'home' })).toEqual({ apiUrl: 'https://home.example', apiToken: null })
})

test("a profile file in the user's config directory is found", () => {
  const home = join(directory, 'config')
  mkdirSync(join(home, 'gatehouse'), { recursive: true })
  profileFile('config/gatehouse/profiles.json', '{"profiles":{"default":{"api_url":"https://kept.example"}}}')
  expect(find({}, { XDG_CONFIG_HOME: home }).apiUrl).toBe('https://kept.example')
})

test('refuses a profile or region that does not exist and lists those that do', () => {
  expect(() => find({ config: path, profile: 'play' })).toThrow('has no profile "play": it has work, home, local')
  expect(() => find({ config: path, region: 'ap' })).toThrow('no region "ap": it has eu, us')
  expect(() => find({ region: 'eu' })).toThrow('no region "eu"')
  expect(() => find({ profile: 'work' })).toThrow('no profile file')
  expect(() => find({ config: join(directory, 'none.yaml') })).toThrow('none.yaml cannot be read: ENOENT')
})

test('refuses a profile file with a token that other users can read', () => {
  const open = profileFile('open.yaml', yaml, 0o644)
  expect(() => find({ config: open })).toThrow('chmod 600')
})

test('refuses an unknown field or a wrong address without repeating values', () => {
  const unknown = profileFile('unknown.json', '{"profiles":{"default":{"token":"gth_sesame"}}}')
  expect(() => find({ config: unknown })).toThrow('profiles.default')
  expect(() => find({ 'api-url': 'gth_sesame' })).toThrow('--api-url: Write an address')
  expect(() => find({}, { SERVICE_API_URL: 'https://env.example/base' })).toThrow(
    'SERVICE_API_URL: An origin has no path',
  )
})
