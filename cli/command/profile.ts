/**
 * Where an operator command finds the control plane and its token. Flags win over the environment, the environment over
 * what the profile file says by itself.
 *
 * - Address: `--api-url`; the profile, where `--profile`, `--region` or `--config` names it; SERVICE_API_URL; the
 *   profile
 *   that stands in the file as the default; the default of `up`.
 * - Token: that of the profile which a flag names; SERVICE_API_TOKEN; that of the default profile; the session which
 *   `auth login` kept for the address. Never a flag.
 *
 * A token goes to no host that it is not for: a profile's to the addresses of that profile, a region's to that
 * region's, and SERVICE_API_TOKEN, where SERVICE_API_URL stands beside it, not to the address of a profile that names
 * another.
 *
 * The profile file (`--config`, otherwise in the user's config directory) holds several installations by name and, for
 * each, its regions. Every command talks to one region. It may hold tokens, so it must be closed to other users.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ArgDef } from 'citty'
import { z } from 'zod'
import { environmentName, settingsSchema } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { connectionFlagNames } from './help.ts'
import { configDirectory, keptSession, sessionFile } from './session-file.ts'
import { readStructuredFile } from './settings.ts'

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
type Region = z.infer<typeof regionSchema>

/** The flags of every command that talks to the control plane. */
export const connectionFlags = {
  'api-url': { type: 'string', description: "The control plane's address; SERVICE_API_URL", valueHint: 'URL' },
  config: { type: 'string', description: 'The profile file: YAML, TOML or JSON', valueHint: 'FILE' },
  profile: { type: 'string', description: 'The profile in that file', valueHint: 'NAME' },
  region: { type: 'string', description: 'The region of that profile', valueHint: 'NAME' },
} as const satisfies Record<(typeof connectionFlagNames)[number], ArgDef>

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

/** Decides where to connect. Throws `usage` if a named profile or region does not exist. */
export function findConnection(args: ConnectionFlags, { environment }: Pick<Terminal, 'environment'>): Connection {
  const profile = readProfile(args, environment)
  const region = pickRegion(profile, args.region)
  const byFlag = [args.profile, args.region, args.config].some((flag) => flag !== undefined)
  const flagUrl = checkedUrl('--api-url', args['api-url'])
  const environmentUrl = checkedUrl(environmentName('api_url'), environment.SERVICE_API_URL)
  const profileUrl = region?.api_url ?? profile?.api_url
  const chosen = flagUrl ?? (byFlag ? profileUrl : undefined) ?? environmentUrl ?? profileUrl ?? localControlPlane
  const apiUrl = originOf(chosen)
  const profileToken = tokenFor(apiUrl, profile, region)
  const isElsewhere = flagUrl === undefined && environmentUrl !== undefined && originOf(environmentUrl) !== apiUrl
  const environmentToken = isElsewhere ? undefined : environment.SERVICE_API_TOKEN
  const token = (byFlag && profileToken) || environmentToken || profileToken
  return { apiUrl, apiToken: token || keptSession(sessionFile(args.config, environment), apiUrl) }
}

const originOf = (url: string): string => new URL(url).origin

function checkedUrl(where: string, written: string | undefined): string | undefined {
  const parsed = address.safeParse(written || undefined)
  if (parsed.success) return parsed.data
  throw new Failure('usage', { message: `${where}: ${parsed.error.issues[0]?.message}` })
}

/** The region's token or else the profile's, where the address is one that it is for. */
function tokenFor(apiUrl: string, profile: Profile | null, region: Region | null): string | undefined {
  const isHere = (url: string | undefined) => originOf(url ?? localControlPlane) === apiUrl
  if (region?.api_token && isHere(region.api_url ?? profile?.api_url)) return region.api_token
  const regional = Object.values(profile?.regions ?? {}).map(({ api_url }) => api_url)
  const written = [profile?.api_url, ...regional].filter((url) => url !== undefined)
  // A profile without any address is for the default one.
  return written.some(isHere) || (written.length === 0 && isHere(undefined)) ? profile?.api_token : undefined
}

function readProfile(args: ConnectionFlags, environment: Terminal['environment']): Profile | null {
  const path = args.config ?? standardPath(environment)
  if (path === null) {
    if (args.profile !== undefined) {
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
  const name = args.profile ?? parsed.data.profile ?? 'default'
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

function pickRegion(profile: Profile | null, wanted: string | undefined): Region | null {
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
