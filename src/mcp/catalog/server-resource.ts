/** The schemas of an MCP server's record (mcp/README.md): as it is written, and as it is shown without secrets. */
import { z } from 'zod'
import { idParams, resource, secret } from '../../api/resource.ts'
import { noSecret } from '../../identity/free-text.ts'
import { headersSchema } from '../../providers/headers.ts'
import { recordName } from '../../providers/record-name.ts'
import { timeoutFlags } from '../../providers/timeout-flags.ts'

const secretText = z.string().min(1).max(4096)
const address = z.string().max(2048)

/** A published name is split at its first two underscores in a row, so a server name holds none. */
export const serverName = recordName
  .refine((name) => !name.includes('__'), 'Two underscores in a row part the name from what the server offers')
  .refine(
    (name) => !name.endsWith('_'),
    'A name must not end with an underscore, because two underscores separate it from a tool',
  )
  .describe('What stands before the name of everything it offers, with two underscores between')

const oauthSchema = z
  .strictObject({
    token_url: address.describe('Where its access token is requested'),
    client_id: z.string().min(1).max(512).describe('The client that requests it'),
    client_secret: secretText.describe("The client's secret").meta(secret),
    scope: z.string().max(1024).describe('The scope that is requested').optional(),
    resource: address.describe('The resource that the token is for').optional(),
  })
  .describe('Client credentials (RFC 6749 section 4.4) for its access token; stored encrypted')

const personalOAuthSchema = z
  .strictObject({
    issuer: address.describe('Its authorization server; default: the one that the server names').optional(),
    client_id: z
      .string()
      .min(1)
      .max(512)
      .describe('The client that was registered there for this installation; default: it registers itself')
      .optional(),
    client_secret: secretText.describe("That client's secret").meta(secret).optional(),
    scope: z
      .string()
      .max(1024)
      .describe('The scope that people are asked for; default: what the server names')
      .optional(),
  })
  .describe('How people connect their accounts (personal), where the server does not say it all itself')

const plain = z
  .string()
  .max(4096)
  .regex(/^[^\0]*$/, 'Remove the NUL character')
  .refine(...noSecret)

const commandSchema = z
  .strictObject({
    program: plain.min(1).describe('A path, or a name that is looked for in the gateway’s PATH'),
    args: z.array(plain).max(64).default([]).describe('An argument of the program'),
  })
  .describe('Started by a gateway for each session, where its setting mcp_local_commands allows it')

const environmentSchema = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'A name is none that a variable can have'),
    z.string().max(32_768).meta(secret),
  )
  .refine((given) => Object.keys(given).length <= 64, 'At most 64 variables')
  .refine((given) => !Object.values(given).some((value) => value.includes('\0')), 'Leave the NUL character out')
  .describe('Variables that the command sees; beside them it sees PATH only. Kept encrypted and never shown')

const seconds = (most: number, meaning: string) => z.number().int().min(1).max(most).describe(meaning).optional()

export const mcpTimeoutsSchema = z
  .strictObject({
    connect_seconds: seconds(600, 'How long a connection may take'),
    idle_seconds: seconds(3600, 'How long a call may be without progress'),
    total_seconds: seconds(86_400, 'How long a call may take in all'),
  })
  .describe('What holds for this server instead of the settings')

const approval = z
  .enum(['first_use', 'required'])
  .describe(
    'first_use: what it offers in the first 10 seconds after it was first listed is approved, so too what it adds within them; required: nothing is before a person does',
  )

const personal = z
  .boolean()
  .describe('Whether each person connects an account of their own, by OAuth; other callers are refused')

const url = address.describe('Where it is reached by Streamable HTTP')
const enabled = z.boolean().describe('Whether it is used')

export const createMcpServerBody = z.strictObject({
  name: serverName,
  url: url.optional(),
  headers: headersSchema.optional(),
  oauth: oauthSchema.optional(),
  personal: personal.default(false),
  personal_oauth: personalOAuthSchema.optional(),
  command: commandSchema.optional(),
  environment: environmentSchema.optional(),
  timeouts: mcpTimeoutsSchema.optional(),
  approval: approval.default('first_use'),
  enabled: enabled.default(true),
})

const updateMcpServerBody = z.strictObject({
  name: serverName.optional(),
  url: url.optional(),
  headers: headersSchema.nullable().optional(),
  oauth: oauthSchema.nullable().optional(),
  personal: personal.optional(),
  personal_oauth: personalOAuthSchema.nullable().optional(),
  command: commandSchema.optional(),
  environment: environmentSchema.nullable().optional(),
  timeouts: mcpTimeoutsSchema.nullable().optional(),
  approval: approval.optional(),
  enabled: enabled.optional(),
})

const mcpServerSchema = z.object({
  id: z.string(),
  name: z.string(),
  url: z.string().nullable(),
  header_names: z.array(z.string()),
  oauth: oauthSchema.omit({ client_secret: true }).nullable(),
  personal: z.boolean(),
  personal_oauth: personalOAuthSchema.omit({ client_secret: true }).nullable(),
  command: z.object({ program: z.string(), args: z.array(z.string()) }).nullable(),
  environment_names: z.array(z.string()),
  timeouts: mcpTimeoutsSchema.nullable(),
  approval: z.string(),
  enabled: z.boolean(),
  version: z.number().int(),
  created_at: z.string(),
})

export type CreateMcpServer = z.infer<typeof createMcpServerBody>
export type UpdateMcpServer = z.infer<typeof updateMcpServerBody>
export type McpServerReply = z.infer<typeof mcpServerSchema>
export type OAuthFields = z.infer<typeof oauthSchema>
export type PersonalFields = z.infer<typeof personalOAuthSchema>
export type Command = z.infer<typeof commandSchema>

export const mcpServerResource = resource({
  name: 'mcp-server',
  one: 'MCP server',
  plural: 'mcp_servers',
  path: '/v1/catalog/mcp-servers',
  tag: 'Catalog',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Manage MCP servers, and approve what they offer',
  summaries: {
    list: 'List MCP servers, in the order they were made',
    get: 'Show one MCP server, without its secrets',
    create: 'Add an MCP server',
    update: 'Change an MCP server; new secrets reach every gateway',
    delete: 'Delete an MCP server, with its secrets and what was approved of it',
  },
  notes: { update: 'null takes some away' },
  record: mcpServerSchema,
  create: createMcpServerBody,
  update: updateMcpServerBody,
  columns: ['id', 'name', 'url', 'command', 'approval', 'enabled'],
  flags: {
    ...timeoutFlags,
    url: { hint: 'URL' },
    'oauth.token_url': { hint: 'URL' },
    'oauth.resource': { hint: 'URL' },
    'personal_oauth.issuer': { hint: 'URL' },
    'command.program': { name: 'program', hint: 'PATH' },
    'command.args': { name: 'argument', commas: true },
  },
})
