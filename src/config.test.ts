import { expect, test } from 'bun:test'
import {
  environmentName,
  flagName,
  flagSettings,
  loadSettings,
  type SettingSources,
  secretSettings,
  settingNames,
  settingsEnvironment,
} from './config.ts'
import { Failure } from './failure.ts'

const load = (sources: Partial<SettingSources>) => loadSettings({ environment: {}, flags: {}, ...sources })

function refusal(sources: Partial<SettingSources>): Failure {
  try {
    load(sources)
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error('The settings were accepted')
}

test('a flag wins over the environment, the environment over the file, the file over the default', () => {
  const file = { path: 'gatehouse.yaml', values: { drain_seconds: 1, body_limit_bytes: 2048, log_level: 'warn' } }
  const environment = { SERVICE_DRAIN_SECONDS: '2', SERVICE_BODY_LIMIT_BYTES: '4096' }
  const { settings, origins, written } = load({ file, environment, flags: { drain_seconds: '3' } })
  expect(settings).toMatchObject({
    drain_seconds: 3,
    body_limit_bytes: 4096,
    log_level: 'warn',
    data: './gatehouse-data',
  })
  expect(origins).toMatchObject({
    drain_seconds: 'flag',
    body_limit_bytes: 'environment',
    log_level: 'file',
    data: 'default',
  })
  expect(written).toEqual({
    drain_seconds: '--drain-seconds',
    body_limit_bytes: 'SERVICE_BODY_LIMIT_BYTES',
    log_level: 'gatehouse.yaml: log_level',
  })
})

test('an environment variable that is set to nothing counts as not set', () => {
  expect(load({ environment: { SERVICE_DRAIN_SECONDS: '' } }).origins.drain_seconds).toBe('default')
})

test('an unknown setting in the file is refused by name', () => {
  const failure = refusal({ file: { path: 'gatehouse.toml', values: { drain_second: 1 } } })
  expect(failure.code).toBe('unknown_parameter')
  expect(failure.message).toBe('gatehouse.toml: unknown setting "drain_second"')
})

test('a file that holds no map is refused, an empty one is not', () => {
  expect(refusal({ file: { path: 'list.yaml', values: ['a'] } }).code).toBe('invalid_parameter')
  expect(load({ file: { path: 'empty.yaml', values: null } }).origins.data).toBe('default')
})

test('a name from the prototype chain is no setting', () => {
  expect(refusal({ file: { path: 'a.json', values: JSON.parse('{"constructor":1}') } }).code).toBe('unknown_parameter')
})

test.each(['', '1.5', '-1', '1e2', 'ten', '3601', ' 5'])('"%s" is no whole number of seconds', (text) => {
  const failure = refusal({ flags: { drain_seconds: text } })
  expect(failure.message).toBe('--drain-seconds: Write a whole number from 0 to 3600')
})

test.each([[true], [null], [[5]], [2.5]])('%p in a file is no whole number of seconds', (value) => {
  expect(refusal({ file: { path: 'a.json', values: { drain_seconds: value } } }).code).toBe('invalid_parameter')
})

test.each(['7070', 'localhost', 'localhost:70700', ':7070', 'http://localhost:7070', '::1:7070'])(
  '"%s" is no address to listen at',
  (text) => {
    expect(refusal({ flags: { gateway_listen: text } }).message).toStartWith('--gateway-listen: ')
  },
)

test.each(['127.0.0.1:0', 'localhost:7070', '[::1]:7070', '0.0.0.0:65535'])(
  '"%s" is an address to listen at',
  (text) => {
    expect(load({ flags: { gateway_listen: text } }).settings.gateway_listen).toBe(text)
  },
)

test.each([
  'gateway.example.com',
  'ftp://a',
  'https://a/path',
  'https://a?x=1',
  'https://a#b',
  'https://u:p@a',
  'https://',
])('"%s" is no origin', (text) => {
  expect(refusal({ environment: { SERVICE_GATEWAY_URL: text } }).message).toStartWith('SERVICE_GATEWAY_URL: ')
})

test('an origin loses its trailing slash', () => {
  expect(load({ flags: { base_url: 'https://Gate.example.com/' } }).settings.base_url).toBe('https://gate.example.com')
})

test("a control plane's address with a path, a query or no host is refused, and the setting named", () => {
  const said = (api: string) => refusal({ environment: { SERVICE_API_URL: api } }).message
  expect(said('https://gate.example/base')).toStartWith('SERVICE_API_URL: An origin has no path')
  expect(said('https://gate.example?x=1')).toStartWith('SERVICE_API_URL: An origin has no query')
  expect(said('https://$HOME')).toStartWith('SERVICE_API_URL: Name a host')
  expect(load({ environment: { SERVICE_API_URL: 'https://gate.example/' } }).settings.api_url).toBe(
    'https://gate.example',
  )
})

test('a refusal never repeats the value, which may be a secret in the wrong place', () => {
  const failure = refusal({ environment: { SERVICE_DRAIN_SECONDS: 'gth_secret' } })
  expect(failure.message).not.toContain('gth_secret')
})

test('secrets have an environment name and no flag', () => {
  const secrets = [
    'api_token',
    'master_key',
    'master_key_next',
    'state_token',
    'events_password',
    'ledger_token',
    'state_read_token',
    'otlp_headers',
  ]
  expect([...secretSettings].map(String)).toEqual(secrets)
  for (const name of secretSettings) expect(flagSettings).not.toContain(name)
  expect(flagSettings.length + secretSettings.size).toBe(settingNames.length)
  expect(environmentName('api_token')).toBe('SERVICE_API_TOKEN')
  expect(flagName('control_plane_listen')).toBe('--control-plane-listen')
})

test('settings given to another process by its environment arrive as they were', () => {
  const { settings } = load({ flags: { base_url: 'https://a.example', drain_seconds: '7', data: '/srv/a b' } })
  expect(load({ environment: settingsEnvironment(settings) }).settings).toEqual(settings)
})

test('what a collector is sent is refused at the start where it cannot be decoded, and is not shown', () => {
  const failure = refusal({ environment: { SERVICE_OTLP_HEADERS: 'api-key=100%sure' } })
  expect(failure.param).toBe('otlp_headers')
  expect(failure.message).toContain('%25')
  expect(failure.message).not.toContain('sure')
  expect(load({ environment: { SERVICE_OTLP_HEADERS: 'api-key=100%25' } }).settings.otlp_headers).toBe('api-key=100%25')
})
