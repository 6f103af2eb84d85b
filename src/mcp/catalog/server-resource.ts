/** The schemas of an MCP server's record (mcp/README.md): as it is written, and as it is shown without secrets. */
import { z } from 'zod'
import { idParams, resource, secret } from '../../api/resource.ts'
import { noSecret } from '../../identity/free-text.ts'
import { isWholeNano } from '../../lib/money.ts'
import { headersSchema } from '../../providers/headers.ts'
import { recordName } from '../../providers/record-name.ts'
import { timeoutFlags } from '../../providers/timeout-flags.ts'
import { presets, unknownPreset } from '../presets/presets.ts'

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

const dollars = z
  .number()
  .min(0)
  .max(10_000)
  .refine(isWholeNano, 'An amount has at most nine decimals: the least is a nano-dollar')
const price = dollars.describe('US dollars that a call of a tool costs')
const rate = z.number().int().min(1).max(1_000_000)

const toolLimitsSchema = z
  .record(
    z
      .string()
      .min(1)
      .max(128)
      .refine((name) => name.isWellFormed(), 'A name must be well-formed Unicode'),
    z
      .strictObject({
        price_per_call: price.nullable().default(null),
        requests_per_minute: rate.describe('The most calls a minute').nullable().default(null),
      })
      .refine(
        ({ price_per_call, requests_per_minute }) => price_per_call !== null || requests_per_minute !== null,
        'Give price_per_call, requests_per_minute or both',
      ),
  )
  .refine((limits) => Object.keys(limits).length <= 500, 'At most 500 tools')
  .describe("By the server's own name of a tool: its price, instead of the server's, and its own limit a minute")

const governance = {
  quarantined: z.boolean().describe('Whether every call of it is refused and nothing that it offers is listed'),
  tools: z
    .enum(['listed', 'searched'])
    .describe(
      'listed: callers are shown each of its tools; searched: search_tools finds them and call_tool calls them',
    ),
  price_per_call: price,
  requests_per_minute: rate.describe('The most requests a minute, of all callers together'),
  tool_limits: toolLimitsSchema,
}
const personal = z
  .boolean()
  .describe('Whether each person connects an account of their own, by OAuth; other callers are refused')

const url = address.describe('Where it is reached by Streamable HTTP')
const enabled = z.boolean().describe('Whether it is used')

const presetNames = presets.map((preset) => preset.name)

export const createMcpServerBody = z.strictObject({
  name: serverName.optional().meta({ description: `${serverName.description}; if left out: the name of the preset` }),
  preset: z
    .enum(presetNames, { error: ({ input }) => unknownPreset(typeof input === 'string' ? input : '') })
    .describe('A known server: it gives the name, the url or the command, and says which secrets are needed')
    .optional(),
  preset_secrets: z
    .record(z.string().max(128), secretText.meta(secret))
    .describe('What the preset needs, by the names in its documentation; stored encrypted and never shown')
    .optional(),
  preset_arguments: z
    .array(plain)
    .max(64)
    .describe("What follows the preset's own arguments, such as a directory")
    .optional(),
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
  quarantined: governance.quarantined.default(false),
  tools: governance.tools.default('listed'),
  price_per_call: governance.price_per_call.optional(),
  requests_per_minute: governance.requests_per_minute.optional(),
  tool_limits: governance.tool_limits.optional(),
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
  quarantined: governance.quarantined.optional(),
  tools: governance.tools.optional(),
  price_per_call: governance.price_per_call.nullable().optional(),
  requests_per_minute: governance.requests_per_minute.nullable().optional(),
  tool_limits: governance.tool_limits.nullable().optional(),
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
  quarantined: z.boolean(),
  tools: z.string(),
  price_per_call: z.number().nullable(),
  requests_per_minute: z.number().nullable(),
  tool_limits: toolLimitsSchema.nullable(),
  version: z.number().int(),
  created_at: z.string(),
})

export type CreateMcpServer = z.infer<typeof createMcpServerBody>
export type UpdateMcpServer = z.infer<typeof updateMcpServerBody>
export type McpServerReply = z.infer<typeof mcpServerSchema>
export type OAuthFields = z.infer<typeof oauthSchema>
export type ToolLimits = z.infer<typeof toolLimitsSchema>
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
  columns: ['id', 'name', 'url', 'command', 'approval', 'enabled', 'quarantined'],
  flags: {
    ...timeoutFlags,
    url: { hint: 'URL' },
    'oauth.token_url': { hint: 'URL' },
    'oauth.resource': { hint: 'URL' },
    preset_secrets: { name: 'secret' },
    preset_arguments: { name: 'preset-argument', commas: true },
    price_per_call: { hint: 'USD' },
    tool_limits: { json: '{"create_issue":{"price_per_call":0.01,"requests_per_minute":10}}' },
    'personal_oauth.issuer': { hint: 'URL' },
    'command.program': { name: 'program', hint: 'PATH' },
    'command.args': { name: 'argument', commas: true },
  },
})
