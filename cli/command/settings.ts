/**
 * The settings of the commands that serve: their flags, which come from the table in `src/config.ts`, and their file
 * (`--config`, YAML, TOML or JSON, told apart by the name's ending).
 */
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { ArgsDef } from 'citty'
import {
  environmentName,
  flagName,
  flagSettings,
  type LoadedSettings,
  loadSettings,
  type SettingName,
  settingsSchema,
} from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { repeatedMember } from '../../src/lib/json/json-members.ts'

const formats: Readonly<Record<string, (text: string) => unknown>> = {
  '.yaml': Bun.YAML.parse,
  '.yml': Bun.YAML.parse,
  '.toml': Bun.TOML.parse,
  '.json': parseJson,
}

/** A name given twice in one object is ambiguous: `JSON.parse` would take the last. */
function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (repeatedMember(text) !== null) throw new SyntaxError('A name stands twice')
  return value
}

const defaults = settingsSchema.parse({})

/** The flags of a command that serves, without those of settings it has no use for. */
export function settingFlags(useless: readonly SettingName[] = []): ArgsDef {
  const names = flagSettings.filter((name) => !useless.includes(name))
  const entries = names.map((name) => {
    const standard = defaults[name]
    const note = standard === undefined ? '' : ` (default ${standard})`
    const description = `${settingsSchema.shape[name].description ?? ''}${note}; ${environmentName(name)}`
    return [flagName(name).slice(2), { type: 'string', description, valueHint: valueHint(name) }] as const
  })
  const config = {
    type: 'string',
    description: 'The settings file: YAML, TOML or JSON, with the names of the environment in lower case',
    valueHint: 'FILE',
  } as const
  return { config, ...Object.fromEntries(entries) }
}

const valueHint = (name: SettingName): string =>
  name.endsWith('_listen') ? 'HOST:PORT' : name.endsWith('_url') ? 'URL' : name === 'data' ? 'DIR' : 'VALUE'

/** Loads the settings from the flags that were parsed, the environment and the file that `--config` names. */
export function readSettings(
  values: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): LoadedSettings {
  const flags: Partial<Record<SettingName, string>> = {}
  for (const name of flagSettings) {
    const value = values[flagName(name).slice(2)]
    if (typeof value === 'string') flags[name] = value
  }
  const path = values.config
  const file = typeof path === 'string' ? { path, values: readStructuredFile(path) } : undefined
  return loadSettings({ file, environment, flags })
}

/** Reads a file of plain data. Throws `usage`, naming the file, if it cannot be read or does not have its format. */
export function readStructuredFile(path: string): unknown {
  const parse = formats[extname(path).toLowerCase()]
  if (!parse) {
    throw new Failure('usage', { message: `${path}: name the file .yaml, .toml or .json, so that its format is known` })
  }
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Failure('usage', { message: `${path} cannot be read: ${unreadableBecause(error)}`, cause: error })
  }
}

/** Why a file cannot be read: the system's code in words, or what its parser says. */
export function unreadableBecause(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const words = { ENOENT: 'there is no such file', EACCES: 'this user may not read it', EISDIR: 'it is a folder' }[code]
  if (words !== undefined) return `${code}, ${words}`
  return code === '' && error instanceof Error ? error.message : code
}
