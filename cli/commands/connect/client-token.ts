/**
 * The token that a client gets: made through the API with the operator's sign-in, or one that exists. A new one is
 * narrow: a member for model traffic, for the named models and budget, with an end, named after client, host and
 * person.
 */
import { hostname } from 'node:os'
import { z } from 'zod'
import type { Recipe } from '../../../src/clients/recipe.ts'
import { Failure } from '../../../src/failure.ts'
import { type Api, createApi } from '../../command/api.ts'
import type { Connection } from '../../command/profile.ts'
import { fromEnvironment, readAmount, readDuration, readList } from '../../command/values.ts'
import type { Input } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { given } from '../tokens/token-scope.ts'

/** How long a new token lives without `--expires`. */
const usualLife = '30d'

export const tokenFlags = {
  model: {
    type: 'string',
    repeatable: true,
    description:
      'A model or * glob that it may use (repeatable, or with commas); the first is for daily work, the last for small tasks',
  },
  'max-budget': { type: 'string', description: 'The most that the token may spend', valueHint: 'USD' },
  expires: {
    type: 'string',
    description: `How long the token lives: 12h, 7d (default ${usualLife})`,
    valueHint: 'TIME',
  },
  'token-env': { type: 'string', description: 'Make no token: use the one in this variable', valueHint: 'VARIABLE' },
  'token-stdin': { type: 'boolean', description: 'Make no token: use the one on stdin' },
} as const

export interface TokenFlags {
  readonly model: string | undefined
  readonly 'max-budget': string | undefined
  readonly expires: string | undefined
  readonly 'token-env': string | undefined
  readonly 'token-stdin': boolean | undefined
}

export interface ClientToken {
  secret: string
  /** Null for one that was given. */
  made: { id: string; name: string; expires_at: string | null } | null
}

const madeSchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  expires_at: z.string().nullable(),
  token_value: z.string(),
})

const callerSchema = z.looseObject({ user: z.looseObject({ id: z.string(), email: z.string() }).nullable() })

/** The models of the flag; globs bound the token and name no model to a client. */
export const readModels = (flags: TokenFlags): string[] =>
  flags.model === undefined ? [] : readList('--model', flags.model)

/** Checks the flags before anything is done. Throws `usage`. */
export function readTokenBody(flags: TokenFlags): Record<string, unknown> {
  const models = readModels(flags)
  const isGiven = flags['token-env'] !== undefined || flags['token-stdin'] === true
  if (flags['token-env'] !== undefined && flags['token-stdin']) {
    throw new Failure('usage', { message: '--token-env and --token-stdin both name a token: give one' })
  }
  if (isGiven && (flags['max-budget'] !== undefined || flags.expires !== undefined)) {
    throw new Failure('usage', { message: '--max-budget and --expires are for a new token: leave them out' })
  }
  return given({
    purpose: 'general',
    roles: ['member'],
    max_budget: flags['max-budget'] === undefined ? undefined : readAmount('--max-budget', flags['max-budget']),
    expires_in_seconds: readDuration('--expires', flags.expires ?? usualLife),
    bindings: models.length === 0 ? undefined : { model_filter: models },
  })
}

/** The token that the flags name; null where one is to be made. */
export async function givenToken(flags: TokenFlags, terminal: Terminal, input: Input): Promise<ClientToken | null> {
  const variable = flags['token-env']
  if (variable !== undefined) return { secret: checkedSecret(fromEnvironment(variable, terminal)), made: null }
  if (!flags['token-stdin']) return null
  if (input.interactive) terminal.note('The secret (it is not shown):')
  return { secret: checkedSecret(await input.hiddenLine()), made: null }
}

/** It stands in files and in headers, so what cannot be a secret is refused early. */
function checkedSecret(text: string): string {
  const secret = text.trim()
  if (/^[\w-]{8,200}$/.test(secret)) return secret
  throw new Failure('usage', { message: 'The given token is not the secret of a token: it begins with gth_' })
}

/** The roles of a given token beyond that of a client; none where the control plane does not say. */
export async function rolesBeyondNeed(secret: string, { apiUrl }: Connection): Promise<string[]> {
  const api = createApi({ apiUrl, apiToken: secret }, fetch)
  const known = z.looseObject({ roles: z.array(z.string()) })
  // The token works, as the check says: without an answer there is nothing to note.
  const { roles } = await api.json({ path: '/v1/auth/session' }, known).catch(() => ({ roles: [] }))
  return roles.filter((role) => role !== 'member')
}

/** Makes the token. Throws ApiRefusal, for example where the caller may make none. */
export async function makeToken(
  api: Api,
  {
    recipe,
    body,
    environment,
  }: { recipe: Recipe; body: Record<string, unknown>; environment: Terminal['environment'] },
): Promise<ClientToken> {
  const { user } = await api.json({ path: '/v1/auth/session' }, callerSchema)
  const host = hostname()
  const person = user?.email ?? environment.USER
  const named = {
    ...body,
    name: `${recipe.name} on ${host}${person ? ` for ${person}` : ''}`.slice(0, 200),
    metadata: { client: recipe.name, host: host.slice(0, 200) },
  }
  const { token_value, id, name, expires_at } = await api.json(
    { method: 'POST', path: '/v1/tokens', body: named },
    madeSchema,
  )
  return { secret: token_value, made: { id, name, expires_at } }
}
