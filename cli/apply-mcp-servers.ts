/**
 * MCP servers as a file says them. Secrets stand in no file: `header_env`, `environment_env` and `client_secret_env` name
 * the variables that hold them. The API shows none, so that of a secret only its name can differ; its value is sent with
 * any other change of how the server is reached, and by `--secrets`.
 */
import { z } from 'zod'
import { type ApplyKind, type Changes, isWithin, type Present } from './apply-kind.ts'
import { fromEnvironment } from './from-environment.ts'
import type { Terminal } from './terminal.ts'

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
})
type Wanted = z.infer<typeof entry>

const reaching = ['url', 'command', 'header_env', 'oauth', 'environment_env'] as const
const plain = ['url', 'command', 'timeouts', 'approval', 'enabled'] as const

export const mcpServers: ApplyKind<Wanted> = {
  member: 'mcp_servers',
  one: 'MCP server',
  path: '/v1/catalog/mcp-servers',
  entry,
  changesOf,
  secretsOf,
  holdsSecrets: ({ header_env, environment_env, oauth }) =>
    Boolean(header_env) || Boolean(environment_env) || Boolean(oauth),
  bodyOf(wanted, changes, terminal) {
    const isSent = (field: keyof Wanted) => changes === null || changes[field] !== undefined
    const fields = Object.fromEntries(plain.filter(isSent).map((field) => [field, wanted[field]]))
    const name = changes === null ? { name: wanted.name } : {}
    return { ...name, ...fields, ...(reaching.some(isSent) ? secretsOf(wanted, terminal) : {}) }
  },
}

function changesOf(wanted: Wanted, present: Present): Changes {
  const changes: Changes = {}
  const compare = (field: keyof Wanted, to: unknown, from: unknown) => {
    if (to !== undefined && !isWithin(to, from)) changes[field] = { from, to }
  }
  for (const field of plain) compare(field, wanted[field], present[field])
  compare('header_env', namesOf(wanted.header_env), present.header_names)
  compare('environment_env', namesOf(wanted.environment_env), present.environment_names)
  compare('oauth', wanted.oauth && withoutVariable(wanted.oauth), present.oauth)
  return changes
}

const namesOf = (given: Wanted['header_env']) => (given === undefined ? undefined : Object.keys(given ?? {}).toSorted())

function withoutVariable({ client_secret_env: _, ...rest }: NonNullable<Wanted['oauth']>) {
  return rest
}

function secretsOf({ header_env, environment_env, oauth }: Wanted, terminal: Terminal): Record<string, unknown> {
  const valuesOf = (given: Wanted['header_env']) =>
    given && Object.fromEntries(Object.entries(given).map(([name, from]) => [name, fromEnvironment(from, terminal)]))
  const secret = oauth && {
    ...withoutVariable(oauth),
    client_secret: fromEnvironment(oauth.client_secret_env, terminal),
  }
  return { headers: valuesOf(header_env), environment: valuesOf(environment_env), oauth: secret }
}
