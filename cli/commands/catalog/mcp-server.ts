/**
 * `mcp-server list|get|create|update|delete|tools|approve|withdraw`. Secrets are named by the variables of the environment that
 * hold them, never written into a flag: others can read a command line.
 */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import type { Api } from '../../command/api.ts'
import { command, type Group, type Leaf } from '../../command/command.ts'
import { fromEnvironment, pairsFromEnvironment } from '../../command/from-environment.ts'
import { connect, pageFlags, pageQuery, pageSchema, recordFlags, sendRecord, showPage } from '../../command/record.ts'
import {
  clearedFields,
  clearFlag,
  deleteOf,
  getOf,
  idArgument,
  linesOf,
  listOf,
  numberOf,
  type Resource,
  recordPath,
  requireChange,
} from '../../command/resource.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const server: Resource = {
  one: 'MCP server',
  of: 'mcp_servers',
  path: '/v1/catalog/mcp-servers',
  fields: ['id', 'name', 'url', 'command', 'approval', 'enabled'],
}

const clearable = ['headers', 'oauth', 'environment', 'timeouts']

const settingFlags = {
  url: { type: 'string', description: 'Where it is reached by Streamable HTTP', valueHint: 'URL' },
  'header-env': {
    type: 'string',
    description: 'A header and the variable that holds its value (repeatable)',
    valueHint: 'HEADER=NAME',
  },
  'oauth-token-url': { type: 'string', description: 'Where its access token is got', valueHint: 'URL' },
  'oauth-client-id': { type: 'string', description: 'As which client', valueHint: 'ID' },
  'oauth-secret-env': { type: 'string', description: "The variable that holds the client's secret", valueHint: 'NAME' },
  'oauth-scope': { type: 'string', description: 'For which scope', valueHint: 'SCOPE' },
  'oauth-resource': { type: 'string', description: 'For which resource', valueHint: 'URL' },
  program: { type: 'string', description: 'The program that gateways start instead', valueHint: 'PATH' },
  argument: { type: 'string', description: 'An argument of the program (repeatable)', valueHint: 'TEXT' },
  'environment-env': {
    type: 'string',
    description: 'A variable of the program and the one here that holds its value (repeatable)',
    valueHint: 'VARIABLE=NAME',
  },
  'connect-timeout': { type: 'string', description: 'How long a connection may take', valueHint: 'SECONDS' },
  'idle-timeout': { type: 'string', description: 'How long a call may be without progress', valueHint: 'SECONDS' },
  'total-timeout': { type: 'string', description: 'How long a call may take in all', valueHint: 'SECONDS' },
  approval: {
    type: 'string',
    description: 'Whether what it offers in its first 10 seconds is approved, or nothing before a person does',
    valueHint: 'first_use|required',
  },
  enabled: { type: 'boolean', description: 'It is used; --no-enabled: it is not' },
} as const

const repeatable = ['header-env', 'argument', 'environment-env', 'clear']

export const mcpServerCommands = (terminal: Terminal): Group => ({
  about: 'Say which MCP servers there are, and approve what they offer',
  commands: {
    list: async () => listOf(server, terminal),
    get: async () => getOf(server, terminal),
    create: async () => create(terminal),
    update: async () => update(terminal),
    delete: async () => deleteOf(server, 'Delete an MCP server, with what was approved of it', terminal),
    tools: async () => tools(terminal),
    approve: async () => approve(terminal),
    withdraw: async () => withdraw(terminal),
  },
})

const nameDescription = 'What stands before the names of its tools'

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Add an MCP server',
    args: {
      name: { type: 'string', required: true, description: nameDescription },
      ...settingFlags,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const body = { name: flags.name, ...fieldsOf(flags, terminal) }
      await sendRecord({ method: 'POST', path: server.path, body }, flags, terminal)
    },
  })

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change an MCP server; new secrets reach every gateway',
    args: {
      ...idArgument,
      name: { type: 'string', description: nameDescription },
      ...settingFlags,
      ...clearFlag,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const body = { name: flags.name, ...fieldsOf(flags, terminal), ...clearedFields(flags.clear, clearable) }
      requireChange(body)
      await sendRecord({ method: 'PATCH', path: recordPath(server, flags.id), body }, flags, terminal)
    },
  })

const tools = (terminal: Terminal): Leaf =>
  command({
    about: 'Show what a server was seen to offer, approved or held',
    args: { ...idArgument, ...pageFlags, ...recordFlags },
    async run(flags) {
      const path = `${recordPath(server, flags.id)}/offers`
      const page = await connect(flags, terminal).json({ path, query: pageQuery(flags) }, pageSchema)
      const fields = ['status', 'kind', 'name', 'digest', 'first_seen_at', 'misfit']
      await showPage(page, { of: 'offers', fields, json: flags.json, terminal })
    },
  })

const approve = (terminal: Terminal): Leaf =>
  command({
    about: 'Approve what a server offers: one definition by its digest, or all that is held',
    args: {
      ...idArgument,
      digest: { type: 'string', description: 'Of the definition, as `tools` shows it', valueHint: 'DIGEST' },
      held: { type: 'boolean', description: 'The newest definition of everything that is held' },
      ...recordFlags,
    },
    async run(flags) {
      if ((flags.digest === undefined) === (flags.held !== true)) {
        throw new Failure('usage', { message: 'Use either --digest or --held' })
      }
      const api = connect(flags, terminal)
      const path = `${recordPath(server, flags.id)}/offers`
      const offers = await offersOf(api, path)
      const chosen = flags.held ? newestHeld(offers) : offers.filter(({ digest }) => digest === flags.digest)
      if (chosen.length === 0 && flags.digest !== undefined) throw unseen()
      for (const { kind, name, digest } of chosen) {
        await api.json({ method: 'POST', path: `${path}/approve`, body: { kind, name, digest } }, z.looseObject({}))
        if (!flags.json) await terminal.write(`approved ${kind} ${printable(name)} ${digest}\n`)
      }
      if (flags.json) await terminal.write(`${JSON.stringify({ approved: chosen })}\n`)
      else if (chosen.length === 0) terminal.note('Nothing is held')
    },
  })

const withdraw = (terminal: Terminal): Leaf =>
  command({
    about: 'Take back the approval of one definition, which is held then',
    args: {
      ...idArgument,
      digest: {
        type: 'string',
        required: true,
        description: 'Of the definition, as `tools` shows it',
        valueHint: 'DIGEST',
      },
      ...recordFlags,
    },
    async run(flags) {
      const api = connect(flags, terminal)
      const path = `${recordPath(server, flags.id)}/offers`
      const [body] = (await offersOf(api, path)).filter(({ digest }) => digest === flags.digest)
      if (body === undefined) throw unseen()
      const { kind, name, digest } = body
      await sendRecord({ method: 'POST', path: `${path}/withdraw`, body: { kind, name, digest } }, flags, terminal)
    },
  })

const unseen = () =>
  new Failure('not_found', { message: 'The server was not seen to offer a definition of this digest' })

const offerSchema = z.object({
  kind: z.string(),
  name: z.string(),
  digest: z.string(),
  status: z.string(),
  misfit: z.string().nullish(),
})
type Offer = z.infer<typeof offerSchema>

/** In the order in which they were seen. */
async function offersOf(api: Api, path: string): Promise<Offer[]> {
  const found: Offer[] = []
  let cursor: string | undefined
  do {
    const page = await api.json({ path, query: { cursor } }, pageSchema)
    found.push(...z.array(offerSchema).parse(page.offers))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return found
}

/** A definition that was replaced by an approved one later on stays behind, and what nobody could read. */
function newestHeld(offers: readonly Offer[]): Offer[] {
  const newest = new Map(offers.map((offer) => [`${offer.kind} ${offer.name}`, offer]))
  return [...newest.values()].filter(({ status, misfit }) => status === 'held' && (misfit ?? null) === null)
}

type Flags = Readonly<Record<string, string | boolean | undefined>>

const text = (value: string | boolean | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

const fieldsOf = (flags: Flags, terminal: Terminal) => ({
  url: flags.url,
  headers: pairsFromEnvironment(text(flags['header-env']), { flag: '--header-env', example: 'X-Key=KEY' }, terminal),
  oauth: oauthOf(flags, terminal),
  command: commandOf(flags),
  environment: pairsFromEnvironment(
    text(flags['environment-env']),
    { flag: '--environment-env', example: 'API_KEY=MY_KEY' },
    terminal,
  ),
  timeouts: timeoutsOf(flags),
  approval: flags.approval,
  enabled: flags.enabled,
})

function oauthOf(flags: Flags, terminal: Terminal) {
  const [url, id, variable] = ['oauth-token-url', 'oauth-client-id', 'oauth-secret-env'].map((name) =>
    text(flags[name]),
  )
  const [scope, resource] = [text(flags['oauth-scope']), text(flags['oauth-resource'])]
  if ([url, id, variable, scope, resource].every((value) => value === undefined)) return undefined
  if (url === undefined || id === undefined || variable === undefined) {
    const message = 'Client credentials need --oauth-token-url, --oauth-client-id and --oauth-secret-env'
    throw new Failure('usage', { message })
  }
  return { token_url: url, client_id: id, client_secret: fromEnvironment(variable, terminal), scope, resource }
}

function commandOf(flags: Flags) {
  const [program, args] = [text(flags.program), linesOf(text(flags.argument))]
  if (program !== undefined) return { program, args: args ?? [] }
  if (args !== undefined) throw new Failure('usage', { message: 'Name the --program that the arguments are for' })
  return undefined
}

function timeoutsOf(flags: Flags) {
  const entries = (['connect', 'idle', 'total'] as const).flatMap((name) => {
    const seconds = numberOf(text(flags[`${name}-timeout`]), `--${name}-timeout`)
    return seconds === undefined ? [] : [[`${name}_seconds`, seconds] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
