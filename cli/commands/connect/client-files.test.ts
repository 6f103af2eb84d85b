import { afterAll, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { aider } from '../../../src/clients/aider.ts'
import { claudeCode } from '../../../src/clients/claude-code.ts'
import { cline } from '../../../src/clients/cline.ts'
import { codex } from '../../../src/clients/codex.ts'
import { continueDev } from '../../../src/clients/continue.ts'
import { opencode } from '../../../src/clients/opencode.ts'
import type { Recipe } from '../../../src/clients/recipe.ts'
import { clientPlace, formerToken, planUndo, planWrite, undo, write } from './client-files.ts'

const homes = mkdtempSync(join(tmpdir(), 'gatehouse-clients-'))
afterAll(() => rmSync(homes, { recursive: true }))

let home = ''
let environment: Record<string, string> = {}
beforeEach(() => {
  home = mkdtempSync(join(homes, 'home-'))
  environment = { HOME: home }
})

const at = (path: string): string => join(home, path)
const text = (path: string): string => readFileSync(at(path), 'utf8')
const mode = (path: string): number => statSync(at(path)).mode & 0o777

function put(path: string, content: string, as = 0o644): void {
  mkdirSync(join(at(path), '..'), { recursive: true })
  writeFileSync(at(path), content)
  chmodSync(at(path), as)
}

function connect(recipe: Recipe, { token = 'gth_secret', models = ['m'] }: { token?: string; models?: string[] } = {}) {
  const place = clientPlace(recipe, environment)
  const { tokenFile } = place
  const { files } = recipe.setup({ gatewayUrl: 'http://127.0.0.1:7080', models, token, tokenFile })
  write(planWrite(files, place, environment), { place, token, tokenId: 'id' })
}

function disconnect(recipe: Recipe): void {
  const place = clientPlace(recipe, environment)
  undo(planUndo(recipe, place).steps, place)
}

const settings = '.claude/settings.json'
const original = '{\n  "theme": "dark",\n  "env": { "FOO": "1" }\n}\n'

test('keeps a copy, keeps the mode, and puts the secret into a file of its own', () => {
  put(settings, original)
  connect(claudeCode)
  expect(JSON.parse(text(settings))).toMatchObject({
    theme: 'dark',
    apiKeyHelper: `cat ${at('.config/gatehouse/clients/claude-code.token')}`,
    env: { FOO: '1', ANTHROPIC_BASE_URL: 'http://127.0.0.1:7080' },
  })
  expect([mode(settings), text(`${settings}.before-gatehouse`)]).toEqual([0o644, original])
  expect(text(settings)).not.toContain('gth_secret')
  expect(text('.config/gatehouse/clients/claude-code.token')).toBe('gth_secret\n')
  expect(mode('.config/gatehouse/clients/claude-code.token')).toBe(0o600)
  expect(text('.config/gatehouse/clients/claude-code.json')).not.toContain('gth_secret')
})

test('a file with the secret gets mode 0600, and its own mode again when it is taken back', () => {
  put('.aider.conf.yml', 'auto-commits: false\n', 0o664)
  connect(aider)
  expect(text('.aider.conf.yml')).toContain('gth_secret')
  expect(mode('.aider.conf.yml')).toBe(0o600)
  disconnect(aider)
  expect([text('.aider.conf.yml'), mode('.aider.conf.yml')]).toEqual(['auto-commits: false\n', 0o664])
})

test('taking back puts the same bytes back and leaves nothing behind', () => {
  put(settings, original)
  connect(claudeCode)
  disconnect(claudeCode)
  expect(text(settings)).toBe(original)
  expect(existsSync(at(`${settings}.before-gatehouse`))).toBe(false)
  expect(existsSync(at('.config/gatehouse/clients/claude-code.token'))).toBe(false)
  expect(() => disconnect(claudeCode)).toThrow('connect claude-code has written nothing here')
})

test('taking back removes a file that was not there', () => {
  connect(opencode)
  expect(mode('.config/opencode/opencode.json')).toBe(0o600)
  disconnect(opencode)
  expect(existsSync(at('.config/opencode/opencode.json'))).toBe(false)
})

test('taking back leaves what the client wrote since', () => {
  put(settings, original)
  connect(claudeCode)
  writeFileSync(at(settings), text(settings).replace('"dark"', '"light"'))
  disconnect(claudeCode)
  expect(JSON.parse(text(settings))).toEqual({ theme: 'light', env: { FOO: '1' } })
})

test('taking back without the copy takes back the members and never the file', () => {
  put(settings, original)
  connect(claudeCode)
  rmSync(at(`${settings}.before-gatehouse`))
  disconnect(claudeCode)
  expect(JSON.parse(text(settings))).toEqual(JSON.parse(original))
})

test('a second connection begins from the file without the first, and one undo takes both back', () => {
  put('.config/opencode/opencode.json', '{ "theme": "x" }\n')
  connect(opencode, { models: ['a', 'b'] })
  connect(opencode, { models: ['c'], token: 'gth_second' })
  expect(Object.keys(JSON.parse(text('.config/opencode/opencode.json')).provider.gatehouse.models)).toEqual(['c'])
  expect(text('.config/gatehouse/clients/opencode.token')).toBe('gth_second\n')
  expect(existsSync(at('.config/opencode/opencode.json.before-gatehouse.1'))).toBe(false)
  disconnect(opencode)
  expect(text('.config/opencode/opencode.json')).toBe('{ "theme": "x" }\n')
})

const edit = (path: string, ...changes: readonly (readonly [string, string])[]) =>
  writeFileSync(
    at(path),
    changes.reduce((now, [from, to]) => now.replace(from, to), text(path)),
  )

test('taking back leaves the members that the user has changed since', () => {
  const config = '.codex/config.toml'
  put(config, 'model = "gpt-5"\nmodel_provider = "azure"\n')
  connect(codex)
  edit(config, ['model = "m"', 'model = "o3"'], ['model_provider = "gatehouse"', 'model_provider = "openai"'])
  disconnect(codex)
  expect(text(config)).toBe('model = "o3"\nmodel_provider = "openai"\n')
})

test('taking back leaves a provider whole where the user has changed a part of it', () => {
  const config = '.codex/config.toml'
  connect(codex)
  edit(config, ['127.0.0.1:7080', '127.0.0.1:9999'])
  disconnect(codex)
  expect(Bun.TOML.parse(text(config))).toMatchObject({
    model_providers: {
      gatehouse: { name: 'Gatehouse', base_url: 'http://127.0.0.1:9999/v1', auth: { command: 'cat' } },
    },
  })
  expect(text(config)).not.toContain('model =')
  expect(text('.config/gatehouse/clients/codex.token')).toBe('gth_secret\n')
})

test('knows a new file in a linked folder again', () => {
  mkdirSync(at('dotfiles'))
  symlinkSync(at('dotfiles'), at('.codex'))
  connect(codex)
  connect(codex)
  disconnect(codex)
  expect(readdirSync(at('dotfiles'))).toEqual([])
})

test('taking back leaves a member removed that the user has removed', () => {
  put('.codex/config.toml', 'model = "gpt-5"\n')
  connect(codex)
  edit('.codex/config.toml', ['model = "m"\n', ''])
  disconnect(codex)
  expect(text('.codex/config.toml').trim()).toBe('')
})

test('taking back keeps what makes a file valid where the user has added to it', () => {
  const config = '.continue/config.yaml'
  connect(continueDev)
  edit(config, ['models:', '# mine\nrules: [be nice]\nmodels:'])
  disconnect(continueDev)
  expect(text(config)).toBe('name: Gatehouse\nversion: 0.0.1\nschema: v1\n# mine\nrules: [be nice]\n')
})

test('taking back keeps a changed name, and a comment alone', () => {
  const config = '.continue/config.yaml'
  connect(continueDev)
  edit(config, ['name: Gatehouse', 'name: Mine'])
  disconnect(continueDev)
  expect(text(config)).toBe('name: Mine\nversion: 0.0.1\nschema: v1\n')
  rmSync(at(config))
  connect(continueDev)
  edit(config, ['models:', '# mine\nmodels:'])
  disconnect(continueDev)
  expect(text(config)).toBe('name: Gatehouse\nversion: 0.0.1\nschema: v1\n# mine\n')
})

test('taking back leaves a provider that Cline added, its choice, and the version that it needs', () => {
  const path = '.cline/data/settings/providers.json'
  const change = (lastUsedProvider: string, others: object) => {
    const now = JSON.parse(text(path))
    const [id, made] = ['openai-compatible', now.providers['openai-compatible']]
    const providers = { ...others, [id]: { ...made, updatedAt: '2027-01-01T00:00:00.000Z' } }
    writeFileSync(at(path), JSON.stringify({ ...now, lastUsedProvider, providers }, null, 2))
  }
  connect(cline)
  change('anthropic', { anthropic: { settings: {} } })
  disconnect(cline)
  expect(JSON.parse(text(path))).toEqual({
    version: 1,
    lastUsedProvider: 'anthropic',
    modes: {},
    providers: { anthropic: { settings: {} } },
  })
  rmSync(at(path))
  connect(cline)
  change('openai-compatible', {})
  disconnect(cline)
  expect(existsSync(at(path))).toBe(false)
})

test('a change between two connections survives the taking back', () => {
  put('.codex/config.toml', 'model = "gpt-5"\n')
  connect(codex)
  edit('.codex/config.toml', ['model = "m"', 'model = "o3"'])
  connect(codex)
  disconnect(codex)
  expect(text('.codex/config.toml').trim()).toBe('model = "o3"')
  expect(existsSync(at('.codex/config.toml.before-gatehouse'))).toBe(false)
})

test('refuses a member of another kind in the file of each client, and writes nothing', () => {
  for (const [recipe, path, content, member] of [
    [opencode, '.config/opencode/opencode.json', '{"provider":3}', 'provider'],
    [cline, '.cline/data/settings/providers.json', '{"providers":3}', 'providers'],
    [continueDev, '.continue/config.yaml', 'models: {a: 1}\n', 'models'],
  ] as const) {
    put(path, content)
    expect(() => connect(recipe)).toThrow(new RegExp(`^${at(path)} has .* as its member ${member}, where`))
    expect(text(path)).toBe(content)
  }
  expect(existsSync(at('.config/gatehouse'))).toBe(false)
})

test('reads a file with a byte order mark and keeps the mark', () => {
  put(settings, `\uFEFF${original}`)
  connect(claudeCode)
  expect(readFileSync(at(settings)).subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]))
  edit(settings, ['"dark"', '"light"'])
  disconnect(claudeCode)
  expect(text(settings)).toStartWith('\uFEFF{')
  expect(text(settings)).toContain('"light"')
})

test('refuses a symbolic link to nothing, as the file and as its folder', () => {
  mkdirSync(at('.claude'))
  symlinkSync(at('nowhere.json'), at(settings))
  expect(() => connect(claudeCode)).toThrow(`${at(settings)} is a symbolic link to ${at('nowhere.json')}, which is not`)
  expect(lstatSync(at(settings)).isSymbolicLink()).toBe(true)
  symlinkSync(at('nowhere'), at('.codex'))
  expect(() => connect(codex)).toThrow(`${at('.codex')} is a symbolic link to ${at('nowhere')}`)
})

test('changes the file behind a symbolic link and keeps the link', () => {
  put('dotfiles/claude.json', original)
  mkdirSync(at('.claude'))
  symlinkSync(at('dotfiles/claude.json'), at(settings))
  connect(claudeCode)
  expect(lstatSync(at(settings)).isSymbolicLink()).toBe(true)
  expect(text('dotfiles/claude.json')).toContain('apiKeyHelper')
})

test('follows the variable that moves a directory of the client, and another name of its file', () => {
  environment = { HOME: home, CLAUDE_CONFIG_DIR: at('elsewhere') }
  connect(claudeCode)
  expect(existsSync(at('elsewhere/settings.json'))).toBe(true)
  put('.config/opencode/opencode.jsonc', '{\n  // mine\n  "theme": "x"\n}\n')
  connect(opencode)
  expect(text('.config/opencode/opencode.jsonc')).toContain('// mine')
  expect(existsSync(at('.config/opencode/opencode.json'))).toBe(false)
})

test('refuses a file that is not valid and writes nothing', () => {
  put(settings, '{ "theme": ')
  expect(() => connect(claudeCode)).toThrow(`${at(settings)} is not valid JSON`)
  expect(text(settings)).toBe('{ "theme": ')
  expect(existsSync(at('.config/gatehouse'))).toBe(false)
})

test('refuses a file that was changed after it was read', () => {
  put(settings, original)
  const place = clientPlace(claudeCode, environment)
  const connection = { gatewayUrl: 'http://g', models: [], token: 'gth_secret', tokenFile: place.tokenFile }
  const steps = planWrite(claudeCode.setup(connection).files, place, environment)
  writeFileSync(at(settings), '{}')
  expect(() => write(steps, { place, token: 'gth_secret', tokenId: null })).toThrow('was changed while')
  expect(text(settings)).toBe('{}')
})

test('refuses a file that is no text', () => {
  put(settings, '')
  writeFileSync(at(settings), Uint8Array.of(0xff, 0xfe, 0x00))
  expect(() => connect(claudeCode)).toThrow('it is no UTF-8 text')
})

test('knows the token of an earlier run, which the next run does not revoke', () => {
  const place = clientPlace(claudeCode, environment)
  expect(formerToken(place)).toBeNull()
  connect(claudeCode)
  expect(formerToken(place)).toBe('id')
})
