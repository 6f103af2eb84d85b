import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedTexts } from '../../events/testing/recorded.ts'
import { type Log, silentLog } from '../../lib/log/log.ts'
import { unseal } from '../../lib/seal.ts'
import { type PreparedInstallation, prepareInstallation } from '../../members/testing/installation.ts'
import { openSecret } from '../../store/keys/secrets.ts'
import { providerKeyName } from '../credentials.ts'
import { presets } from '../presets/presets.ts'
import { findProviders, registerProvidersFromEnvironment } from './register-providers.ts'

let prepared: PreparedInstallation
beforeEach(async () => {
  prepared = await prepareInstallation()
})
afterEach(() => prepared.store.remove())

const start = (environment: Record<string, string>, log: Log = silentLog) =>
  registerProvidersFromEnvironment({ ...prepared.options, environment, log })
const stateWrite = (sql: string, ...args: string[]) => prepared.store.state.write([{ sql, args }])
const providers = () =>
  prepared.store.state.read<{
    id: string
    name: string
    base_url: string
    sealed_credentials: string
    version: number
  }>('select * from providers order by position')
const credentials = async (name: string): Promise<unknown> => {
  const row = (await providers()).find((provider) => provider.name === name)
  if (row === undefined) throw new Error('no such provider')
  const { ledger, masterKey } = prepared.options
  const key = Buffer.from((await openSecret(ledger, masterKey, providerKeyName(row.id))) ?? '', 'base64')
  return JSON.parse(unseal(key, row.sealed_credentials, row.id))
}

test('the simulator is always there, with its two models', async () => {
  await start({})
  expect(await providers()).toMatchObject([{ name: 'simulator', sealed_credentials: null }])
  expect(await prepared.store.state.read('select id from models order by id')).toEqual([
    { id: 'simulator/echo' },
    { id: 'simulator/lorem' },
  ])
})

test('a key in the environment makes a provider that serves unlisted models, in a fixed order', async () => {
  await start({
    GEMINI_API_KEY: 'g',
    ANTHROPIC_API_KEY: 'a',
    OPENAI_API_KEY: 'o',
    OPENAI_BASE_URL: 'http://127.0.0.1:1/v1/',
  })
  expect(await providers()).toMatchObject([
    { name: 'simulator', allow_unlisted_models: 0, position: 1 },
    { name: 'openai', allow_unlisted_models: 1, base_url: 'http://127.0.0.1:1/v1', position: 2 },
    { name: 'anthropic', base_url: null, position: 3 },
    { name: 'gemini', position: 4 },
  ])
  expect(await credentials('openai')).toEqual({ api_key: 'o', headers: {} })
})

test('registers every preset whose key is in the environment, under the name of the preset', async () => {
  const variables = presets.flatMap(({ kind: { environment } }) => environment?.apiKey ?? [])
  const environment = Object.fromEntries(variables.map((variable) => [variable, 'k']))
  await start({ ...environment, AZURE_OPENAI_ENDPOINT: 'https://name.openai.azure.com/', VLLM_BASE_URL: 'http://gpu' })
  const made = await providers()
  const named = presets.filter(({ kind: { environment: used } }) => used !== null).map(({ name }) => name)
  expect(made.map(({ name }) => name)).toEqual(['simulator', ...named])
  expect(made.find(({ name }) => name === 'groq')).toMatchObject({ kind: 'groq', allow_unlisted_models: 1 })
  expect(made.find(({ name }) => name === 'azure')).toMatchObject({ base_url: 'https://name.openai.azure.com' })
  expect(made.find(({ name }) => name === 'vllm')).toMatchObject({ base_url: 'http://gpu' })
})

test('makes no provider that lacks its address, and logs what is missing', async () => {
  const said: string[] = []
  await start({ AZURE_OPENAI_API_KEY: 'k' }, { ...silentLog, warn: (_, message) => void said.push(message) })
  expect((await providers()).map(({ name }) => name)).toEqual(['simulator'])
  expect(said).toEqual([expect.stringContaining('https://NAME.openai.azure.com')])
})

test('creates each provider once over repeated and simultaneous starts', async () => {
  const environment = { OPENAI_API_KEY: 'secret-key-1' }
  await Promise.all([start(environment), start(environment), start(environment)])
  const before = await providers()
  expect(before.map(({ name }) => name)).toEqual(['simulator', 'openai'])
  await start(environment)
  expect(await providers()).toEqual(before)
})

test('a base URL that a person wrote stays over a start whose environment names none', async () => {
  await start({ OPENAI_API_KEY: 'o' })
  await stateWrite("update providers set base_url = 'https://llm.internal/v1' where name = ?", 'openai')
  await start({ OPENAI_API_KEY: 'other' })
  expect((await providers()).find(({ name }) => name === 'openai')?.base_url).toBe('https://llm.internal/v1')
  expect(await credentials('openai')).toMatchObject({ api_key: 'other' })
})

test('a changed key or base URL updates the record; a key that is gone leaves it', async () => {
  await start({ OPENAI_API_KEY: 'first' })
  const [, before] = await providers()
  await start({ OPENAI_API_KEY: 'second', OPENAI_BASE_URL: 'https://example.com' })
  const [, after] = await providers()
  expect(after).toMatchObject({ id: before?.id, base_url: 'https://example.com' })
  expect(after?.version).toBeGreaterThan(before?.version ?? 0)
  expect(await credentials('openai')).toEqual({ api_key: 'second', headers: {} })
  await start({})
  expect((await providers())[1]).toEqual(after)
})

test('a start leaves a renamed simulator and a re-pointed model as a person left them', async () => {
  await start({ OPENAI_API_KEY: 'o' })
  const [, openai] = await providers()
  await stateWrite("update providers set name = 'practice' where name = 'simulator'")
  await stateWrite("update models set provider_id = ? where id = 'simulator/echo'", openai?.id ?? '')
  await stateWrite("update models set deleted = 1 where id = 'simulator/lorem'")
  const rows = async () => [await providers(), await prepared.store.state.read('select * from models order by id')]
  const before = await rows()
  await start({ OPENAI_API_KEY: 'o' })
  expect(await rows()).toEqual(before)
})

test('a start keeps the new name of a provider of the environment and gives it the new key', async () => {
  await start({ ANTHROPIC_API_KEY: 'first' })
  await stateWrite("update providers set name = 'claude' where name = 'anthropic'")
  await start({ ANTHROPIC_API_KEY: 'second' })
  expect((await providers()).map(({ name }) => name)).toEqual(['simulator', 'claude'])
  expect(await credentials('claude')).toEqual({ api_key: 'second', headers: {} })
})

test('does not create a deleted provider again at the next start, and logs that its key is ignored', async () => {
  const environment = { OPENAI_API_KEY: 'o' }
  await start(environment)
  await stateWrite('update providers set deleted = 1, sealed_credentials = null')
  await stateWrite('update models set deleted = 1')
  const before = await providers()
  const said: string[] = []
  await start(environment, { ...silentLog, info: (_, message) => void said.push(message) })
  expect(await providers()).toEqual(before)
  expect(said).toEqual([expect.stringContaining('made from OPENAI_API_KEY has been deleted')])
})

test("does not change a person's provider of the same name, and logs that", async () => {
  await start({})
  const columns = '(id, name, kind, position, version) '
  await stateWrite(`insert into providers ${columns} values ('own', 'openai', 'openai', 9, 1)`)
  const before = await providers()
  const said: string[] = []
  await start({ OPENAI_API_KEY: 'o' }, { ...silentLog, warn: (_, message) => void said.push(message) })
  expect(await providers()).toEqual(before)
  expect(said).toEqual([expect.stringContaining('another provider named openai')])
})

test('no key is in an event or in the databases as text', async () => {
  await start({ OPENAI_API_KEY: 'very-secret-key' })
  const { state, ledger } = prepared.store
  for (const [database, tables] of [
    [state, ['providers', 'change_log']],
    [ledger, ['segment_facets', 'secrets', 'pending_changes']],
  ] as const) {
    for (const table of tables) {
      expect(JSON.stringify(await database.read(`select * from ${table}`))).not.toContain('very-secret-key')
    }
  }
  expect((await recordedTexts(ledger)).join()).not.toContain('very-secret-key')
})

test('refuses an invalid base URL and names its variable', () => {
  for (const url of ['nonsense', 'ftp://host', 'https://user:pass@host', 'https://host/?a=b']) {
    expect(() => findProviders({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: url })).toThrow('OPENAI_BASE_URL')
  }
})
