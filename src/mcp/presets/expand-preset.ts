/** The record that a preset makes: what the body says itself is kept, and the preset says the rest. */
import { wrong } from '../../providers/catalog/catalog-change.ts'
import type { Command, CreateMcpServer } from '../catalog/server-resource.ts'
import { type Preset, presetNamed } from './presets.ts'

export type NamedServer = Omit<CreateMcpServer, 'name' | 'preset' | 'preset_secrets' | 'preset_arguments'> & {
  name: string
}

/** Throws `invalid_parameter` for what a preset needs and the body lacks, and for what it has no use for. */
export function expandPreset(body: CreateMcpServer): NamedServer {
  const { preset: chosen, preset_secrets: secrets = {}, preset_arguments: more = [], name, ...rest } = body
  const preset = chosen === undefined ? undefined : presetNamed(chosen)
  if (preset === undefined) {
    if (name === undefined) throw wrong('name', 'Give a name: only a preset has one')
    if (Object.keys(secrets).length > 0)
      throw wrong('preset_secrets', 'They are for a preset: use headers or environment')
    if (more.length > 0) throw wrong('preset_arguments', 'They are for a preset: use command.args')
    return { ...rest, name }
  }
  for (const field of ['url', 'command'] as const) {
    if (rest[field] !== undefined) throw wrong(field, `The preset says it: leave ${field} or the preset out`)
  }
  const given = secretsOf(preset, secrets, rest)
  return { ...rest, name: name ?? preset.name, ...reachOf(preset, more), ...given }
}

function reachOf(
  { name, url, command, needs }: Preset,
  more: readonly string[],
): { url: string } | { command: Command } {
  if (command === undefined || url !== undefined) {
    if (more.length > 0) throw wrong('preset_arguments', `The preset ${name} starts no program`)
    return { url: url ?? '' }
  }
  if (needs !== undefined && more.length === 0) throw wrong('preset_arguments', `The preset ${name} needs ${needs}`)
  return { command: { program: command.program, args: [...command.args, ...more] } }
}

/** The secrets where the server expects them. */
function secretsOf(
  preset: Preset,
  secrets: Readonly<Record<string, string>>,
  { headers = {}, environment = {} }: Pick<CreateMcpServer, 'headers' | 'environment'>,
): Pick<CreateMcpServer, 'headers' | 'environment'> {
  for (const name of Object.keys(secrets)) {
    if (preset.secrets.some((secret) => secret.name === name)) continue
    const names = preset.secrets.map((secret) => secret.name)
    const known = names.length === 0 ? 'none' : names.join(', ')
    throw wrong(`preset_secrets.${name}`, `The preset ${preset.name} has no such secret; it takes ${known}`)
  }
  const all = {
    headers: { ...headers } as Record<string, string>,
    environment: { ...environment } as Record<string, string>,
  }
  for (const { name, about, header, optional } of preset.secrets) {
    const value = secrets[name]
    if (value !== undefined && header !== undefined) all.headers[header.name] = `${header.prefix}${value}`
    else if (value !== undefined) all.environment[name] = value
    const has = header === undefined ? all.environment[name] : all.headers[header.name]
    if (has !== undefined || optional === true) continue
    throw wrong(`preset_secrets.${name}`, `The preset ${preset.name} needs it: ${about}`)
  }
  return preset.url === undefined ? { environment: all.environment } : { headers: all.headers }
}
