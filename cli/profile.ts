/**
 * Where an operator command finds the control plane and its token. The address: `--api-url`, SERVICE_API_URL, the
 * profile, the default of `up`. The token: SERVICE_API_TOKEN, the profile, the session kept by `auth login` for that
 * address; never a flag.
 *
 * The profile file (`--config`, otherwise in the user's config directory) holds several installations by name and, for
 * each, its regions. Every command talks to one region. It may hold tokens, so it must be closed to other users.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { environmentName, settingsSchema } from '../src/config.ts'
import { Failure } from '../src/failure.ts'
import { configDirectory, keptSession, sessionFile } from './session-file.ts'
import { readStructuredFile } from './settings.ts'
import type { Terminal } from './terminal.ts'

const address = z
  .string()
  .superRefine((written, context) => {
    const problem = settingsSchema.shape.api_url.form.problem(written)
    if (problem !== null) context.addIssue(problem)
  })
  .optional()

const regionSchema = z.strictObject({ api_url: address, api_token: z.string().optional() })

const profileSchema = z.strictObject({
  ...regionSchema.shape,
  region: z.string().optional(),
  regions: z.record(z.string(), regionSchema).optional(),
})

const fileSchema = z.strictObject({ profile: z.string().optional(), profiles: z.record(z.string(), profileSchema) })

type Profile = z.infer<typeof profileSchema>

/** The flags of every command that talks to the control plane. */
export const connectionFlags = {
  'api-url': { type: 'string', description: "The control plane's address; SERVICE_API_URL", valueHint: 'URL' },
  config: { type: 'string', description: 'The profile file: YAML, TOML or JSON', valueHint: 'FILE' },
  profile: { type: 'string', description: 'The profile in that file', valueHint: 'NAME' },
  region: { type: 'string', description: 'The region of that profile', valueHint: 'NAME' },
} as const

export interface ConnectionFlags {
  'api-url': string | undefined
  config: string | undefined
  profile: string | undefined
  region: string | undefined
}

export interface Connection {
  apiUrl: string
  apiToken: string | null
}

const localControlPlane = 'http://127.0.0.1:7070'

/** Decides where to connect. Throws `usage` where what was named does not exist. */
export function findConnection(flags: ConnectionFlags, { environment }: Pick<Terminal, 'environment'>): Connection {
  const profile = readProfile(flags, environment)
  const region = pickRegion(profile, flags.region)
  const apiUrl = flags['api-url'] ?? environment.SERVICE_API_URL ?? region?.api_url ?? profile?.api_url
  const parsed = address.safeParse(apiUrl === '' ? undefined : apiUrl)
  if (!parsed.success) {
    const where = flags['api-url'] === undefined ? environmentName('api_url') : '--api-url'
    throw new Failure('usage', { message: `${where}: ${parsed.error.issues[0]?.message}` })
  }
  const found = (parsed.data ?? localControlPlane).replace(/\/+$/, '')
  const token = environment.SERVICE_API_TOKEN || region?.api_token || profile?.api_token
  return { apiUrl: found, apiToken: token || keptSession(sessionFile(flags.config, environment), found) }
}

function readProfile(flags: ConnectionFlags, environment: Terminal['environment']): Profile | null {
  const path = flags.config ?? standardPath(environment)
  if (path === null) {
    if (flags.profile !== undefined) {
      throw new Failure('usage', { message: 'There is no profile file: name one with --config' })
    }
    return null
  }
  const parsed = fileSchema.safeParse(readStructuredFile(path))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new Failure('usage', { message: `${path}: ${issue?.path.join('.')}: ${issue?.message}` })
  }
  assertPrivate(path, JSON.stringify(parsed.data).includes('"api_token"'))
  const name = flags.profile ?? parsed.data.profile ?? 'default'
  const profile = Object.hasOwn(parsed.data.profiles, name) ? parsed.data.profiles[name] : undefined
  if (!profile) {
    const known = Object.keys(parsed.data.profiles).join(', ')
    throw new Failure('usage', { message: `${path} has no profile "${name}": it has ${known || 'none'}` })
  }
  return profile
}

function standardPath(environment: Terminal['environment']): string | null {
  const directory = configDirectory(environment)
  const names = ['profiles.yaml', 'profiles.toml', 'profiles.json']
  return names.map((name) => join(directory, name)).find((path) => existsSync(path)) ?? null
}

function assertPrivate(path: string, holdsToken: boolean): void {
  if (holdsToken && (statSync(path).mode & 0o077) !== 0) {
    throw new Failure('usage', { message: `${path} holds a token and is open to other users: chmod 600 it` })
  }
}

function pickRegion(profile: Profile | null, wanted: string | undefined): z.infer<typeof regionSchema> | null {
  const name = wanted ?? profile?.region
  if (name === undefined) return null
  const regions = profile?.regions ?? {}
  const region = Object.hasOwn(regions, name) ? regions[name] : undefined
  if (!region) {
    const known = Object.keys(regions).join(', ')
    throw new Failure('usage', { message: `The profile has no region "${name}": it has ${known || 'none'}` })
  }
  return region
}
