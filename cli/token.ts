/** `token create|list|get|delete` (service.md, Token management). */
import { z } from 'zod'
import { Failure } from '../src/failure.ts'
import { createApi } from './api.ts'
import { command, type Group, type Leaf } from './command.ts'
import { type ConnectionFlags, connectionFlags, findConnection } from './profile.ts'
import { columns, printable } from './table.ts'
import type { Terminal } from './terminal.ts'

const purposes = ['general', 'gateway-runtime', 'integration'] as const

const recordSchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  token_prefix: z.string().optional(),
  purpose: z.string(),
  status: z.string().optional(),
  expires_at: z.string().nullish(),
  last_used_at: z.string().nullish(),
})
type TokenRecord = z.infer<typeof recordSchema>

const createdSchema = recordSchema.extend({ token_value: z.string() })
const pageSchema = z.looseObject({ tokens: z.array(recordSchema), next_cursor: z.string().nullable() })

const jsonFlag = { json: { type: 'boolean', description: 'Print the answer as JSON' } } as const
const tokenIdArgument = { token_id: { type: 'positional', description: "The token's id" } } as const

export const token = (terminal: Terminal): Group => ({
  about: 'Make, look at and revoke API tokens',
  commands: {
    create: async () => create(terminal),
    list: async () => list(terminal),
    get: async () => get(terminal),
    delete: async () => revoke(terminal),
  },
})

const connect = (flags: ConnectionFlags, terminal: Terminal) => createApi(findConnection(flags, terminal), fetch)

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make a token; its secret is shown this once',
    args: {
      name: { type: 'string', required: true, description: 'What to recognise it by' },
      purpose: { type: 'string', required: true, description: 'What it is for', valueHint: purposes.join('|') },
      'gateway-id': { type: 'string', description: 'The gateway it is bound to', valueHint: 'UUID' },
      'team-id': { type: 'string', description: 'The team it is bound to', valueHint: 'UUID' },
      'expires-in': { type: 'string', description: 'Days until it expires', valueHint: 'Nd' },
      ...jsonFlag,
      ...connectionFlags,
    },
    async run(flags) {
      const bindings = {
        ...(flags['gateway-id'] === undefined ? {} : { gateway_id: flags['gateway-id'] }),
        ...(flags['team-id'] === undefined ? {} : { team_id: flags['team-id'] }),
      }
      const expiry = flags['expires-in']
      const body = {
        name: flags.name,
        purpose: purposeInApi(flags.purpose),
        ...(Object.keys(bindings).length === 0 ? {} : { bindings }),
        ...(expiry === undefined ? {} : { expires_in_seconds: daysInSeconds(expiry) }),
      }
      const made = await connect(flags, terminal).json({ method: 'POST', path: '/v1/tokens', body }, createdSchema)
      if (flags.json) return terminal.write(`${JSON.stringify(made)}\n`)
      await terminal.write(fields(made))
      terminal.note('The secret is shown only now: keep it where secrets are kept')
    },
  })

const list = (terminal: Terminal): Leaf =>
  command({
    about: 'List tokens',
    args: {
      purpose: { type: 'string', description: 'Only tokens for this', valueHint: purposes.join('|') },
      status: { type: 'string', description: 'Only tokens in this state, for example active' },
      limit: { type: 'string', description: 'Tokens a page, 1 to 100 (default 100)', valueHint: 'N' },
      cursor: { type: 'string', description: 'Where the last page ended' },
      ...jsonFlag,
      ...connectionFlags,
    },
    async run(flags) {
      const { status, limit, cursor } = flags
      const purpose = flags.purpose === undefined ? undefined : purposeInApi(flags.purpose)
      const query = { purpose, status, limit, cursor }
      const page = await connect(flags, terminal).json({ path: '/v1/tokens', query }, pageSchema)
      if (flags.json) return terminal.write(`${JSON.stringify(page)}\n`)
      if (page.tokens.length === 0) return terminal.write('No tokens found\n')
      await terminal.write(columns([['ID', 'NAME', 'PURPOSE', 'STATUS', 'PREFIX', 'EXPIRES'], ...page.tokens.map(row)]))
      if (page.next_cursor !== null) terminal.note(`More: add --cursor ${page.next_cursor}`)
    },
  })

const get = (terminal: Terminal): Leaf =>
  command({
    about: 'Show one token, without its secret',
    args: { ...tokenIdArgument, ...jsonFlag, ...connectionFlags },
    async run(flags) {
      const record = await connect(flags, terminal).json({ path: tokenPath(flags.token_id) }, recordSchema)
      await terminal.write(flags.json ? `${JSON.stringify(record)}\n` : fields(record))
    },
  })

const revoke = (terminal: Terminal): Leaf =>
  command({
    about: 'Revoke a token',
    args: {
      ...tokenIdArgument,
      yes: { type: 'boolean', description: 'Really revoke it; there is no way back' },
      ...jsonFlag,
      ...connectionFlags,
    },
    async run(flags) {
      if (!flags.yes) {
        throw new Failure('usage', { message: 'Revoking cannot be undone: repeat the command with --yes' })
      }
      const request = { method: 'DELETE', path: tokenPath(flags.token_id) } as const
      const record = await connect(flags, terminal).json(request, recordSchema)
      await terminal.write(flags.json ? `${JSON.stringify(record)}\n` : fields(record))
    },
  })

const tokenPath = (id: string): string => `/v1/tokens/${encodeURIComponent(id)}`

function purposeInApi(purpose: string): string {
  if (!purposes.some((known) => known === purpose)) {
    throw new Failure('usage', { message: `--purpose is one of ${purposes.join(', ')}` })
  }
  return purpose.replaceAll('-', '_')
}

function daysInSeconds(text: string): number {
  const days = /^([1-9]\d{0,4})d$/.exec(text)?.[1]
  if (days === undefined) throw new Failure('usage', { message: '--expires-in takes whole days, for example 30d' })
  return Number(days) * 24 * 60 * 60
}

const row = (record: TokenRecord): string[] =>
  [
    record.id,
    record.name,
    record.purpose,
    record.status ?? '-',
    record.token_prefix ?? '-',
    record.expires_at ?? '-',
  ].map(printable)

/** A record as lines of `name  value`; what has no value is left out, what has parts is shown as JSON. */
function fields(record: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(record)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [name, printable(typeof value === 'object' ? JSON.stringify(value) : String(value))])
  return columns(lines)
}
