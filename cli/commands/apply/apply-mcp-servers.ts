/**
 * MCP servers as a file says them. Secrets stand in no file: `header_env`, `environment_env` and `client_secret_env`
 * name the variables that hold them. The API shows none, so that of a secret only its name can differ; its value is
 * sent with any other change of how the server is reached, and by `--secrets`. One that the file does not name is
 * taken away.
 */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { createMcpServerBody, type OAuthFields } from '../../../src/mcp/catalog/server-resource.ts'
import { checkAddress } from '../../../src/mcp/servers/server-address.ts'
import { fromEnvironment } from '../../command/values.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import type { ApplyKind, Changes, Present } from './apply-kind.ts'

const variables = z.record(z.string().min(1), z.string().min(1)).nullable().optional()
const seconds = z.number().optional()

const entry = z.strictObject({
  name: z.string().min(1),
  url: z.string().optional(),
  header_env: variables,
  oauth: z
    .strictObject({
      token_url: z.string(),
      client_id: z.string(),
      client_secret_env: z.string().min(1),
      scope: z.string().optional(),
      resource: z.string().optional(),
    })
    .nullable()
    .optional(),
  command: z.strictObject({ program: z.string(), args: z.array(z.string()).default([]) }).optional(),
  environment_env: variables,
  timeouts: z
    .strictObject({ connect_seconds: seconds, idle_seconds: seconds, total_seconds: seconds })
    .nullable()
    .optional(),
  approval: z.enum(['first_use', 'required']).optional(),
  enabled: z.boolean().optional(),
  tools: z.enum(['listed', 'searched']).optional(),
  price_per_call: z.number().nullable().optional(),
  requests_per_minute: z.number().nullable().optional(),
  tool_limits: z
    .record(
      z.string(),
      z.strictObject({
        price_per_call: z.number().nullable().default(null),
        requests_per_minute: z.number().nullable().default(null),
      }),
    )
    .nullable()
    .optional(),
})
type Wanted = z.infer<typeof entry>

const reaching = ['url', 'command', 'header_env', 'oauth', 'environment_env'] as const
/** A quarantine is no part of a file: it ends by a decision of its own. */
const governance = ['tools', 'price_per_call', 'requests_per_minute', 'tool_limits'] as const
const plain = ['url', 'command', 'timeouts', 'approval', 'enabled', ...governance] as const
/** By the names of the file, those that the API has for what they hold. */
const secretFields = [
  ['header_env', 'headers'],
  ['environment_env', 'environment'],
  ['oauth', 'oauth'],
] as const

export const mcpServers: ApplyKind<Wanted> = {
  member: 'mcp_servers',
  one: 'MCP server',
  path: '/v1/catalog/mcp-servers',
  entry,
  check(wanted) {
    checkedTarget(wanted)
  },
  changesOf,
  hasSecrets: (wanted) => secretFields.some(([field]) => isNamed(wanted[field])),
  secretsOf,
  bodyOf(wanted, changes, terminal) {
    if (changes === null) return { ...onlyPlain(wanted, () => true), name: wanted.name, ...secretsOf(wanted, terminal) }
    const isChanged = (field: keyof Wanted) => changes[field] !== undefined
    const changedSecrets = secretFields.filter(([field]) => isChanged(field))
    return {
      ...onlyPlain({ ...newRecord, ...wanted }, isChanged),
      ...Object.fromEntries(changedSecrets.map(([, member]) => [member, null])),
      ...(reaching.some(isChanged) ? secretsOf(wanted, terminal) : {}),
    }
  },
}

/** What a record has of what its file leaves out. */
const newRecord = {
  timeouts: null,
  approval: 'first_use',
  enabled: true,
  tools: 'listed',
  price_per_call: null,
  requests_per_minute: null,
  tool_limits: null,
} as const

const onlyPlain = (wanted: Wanted, isSent: (field: keyof Wanted) => boolean) =>
  Object.fromEntries(plain.filter(isSent).map((field) => [field, wanted[field]]))

const isNamed = (given: Wanted['header_env'] | Wanted['oauth']): boolean =>
  given !== undefined && given !== null && Object.keys(given).length > 0

/** The record that an entry asks for, without secrets. Throws where the API would not take it. */
function checkedTarget({ name, url, command, timeouts, approval, enabled, ...rest }: Wanted) {
  const { header_env, environment_env, oauth, ...limits } = rest
  const stand = 'x'
  const standIns = (given: Wanted['header_env']) =>
    isNamed(given) ? Object.fromEntries(Object.keys(given ?? {}).map((each) => [each, stand])) : undefined
  const body = createMcpServerBody.safeParse({
    ...{ name, url, command, approval, enabled, timeouts: timeouts ?? undefined },
    ...Object.fromEntries(Object.entries(limits).map(([field, value]) => [field, value ?? undefined])),
    headers: standIns(header_env),
    environment: standIns(environment_env),
    oauth: oauth ? { ...withoutVariable(oauth), client_secret: stand } : undefined,
  })
  if (!body.success) throw new Failure('usage', { message: explained(body.error) })
  const { headers = {}, environment = {}, oauth: client = null, ...record } = body.data
  // Whether plain HTTP is allowed is a setting of the control plane.
  const reached = checkAddress(
    { plainHttp: 'anywhere' },
    { url: record.url ?? null, command: record.command ?? null, credentials: { headers, environment, oauth: client } },
  )
  return { ...record, ...reached }
}

function explained({ issues: [issue] }: z.ZodError): string {
  return `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not valid'}`
}

function changesOf(wanted: Wanted, present: Present): Changes {
  const { credentials, ...record } = checkedTarget(wanted)
  const { headers, environment, oauth } = credentials
  const changes: Changes = {}
  const compare = (field: keyof Wanted, to: unknown, from: unknown) => {
    if (!Bun.deepEquals(to, from)) changes[field] = { from, to }
  }
  for (const field of plain) compare(field, record[field] ?? null, present[field] ?? null)
  compare('header_env', Object.keys(headers).toSorted(), present.header_names)
  compare('environment_env', Object.keys(environment).toSorted(), present.environment_names)
  compare('oauth', oauth && withoutSecret(oauth), present.oauth)
  return changes
}

const withoutVariable = ({ client_secret_env: _, ...rest }: NonNullable<Wanted['oauth']>) => rest
const withoutSecret = ({ client_secret: _, ...rest }: OAuthFields) => rest

/** Only those that are named. */
function secretsOf({ header_env, environment_env, oauth }: Wanted, terminal: Terminal): Record<string, unknown> {
  const valuesOf = (given: Wanted['header_env']) =>
    Object.fromEntries(Object.entries(given ?? {}).map(([name, from]) => [name, fromEnvironment(from, terminal)]))
  return {
    ...(isNamed(header_env) ? { headers: valuesOf(header_env) } : {}),
    ...(isNamed(environment_env) ? { environment: valuesOf(environment_env) } : {}),
    ...(oauth
      ? { oauth: { ...withoutVariable(oauth), client_secret: fromEnvironment(oauth.client_secret_env, terminal) } }
      : {}),
  }
}
