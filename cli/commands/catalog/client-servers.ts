/**
 * MCP servers as the files of clients name them: Claude Desktop, Claude Code, Cursor, Windsurf and Gemini CLI
 * (`mcpServers`), VS Code (`servers`, or `mcp.servers` in its settings). What a record has no place for is named, and
 * nothing is guessed. A record keeps arguments and addresses readable, so one that seems to hold a secret is refused.
 */
import { type ParseError, parse as parseJson } from 'jsonc-parser'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'

const texts = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String))
const entrySchema = z.looseObject({
  type: z.string().optional(),
  command: z.string().optional(),
  args: z.array(z.string()).optional(),
  env: texts.optional(),
  url: z.string().optional(),
  serverUrl: z.string().optional(),
  httpUrl: z.string().optional(),
  headers: texts.optional(),
  disabled: z.boolean().optional(),
})
const serversSchema = z.record(z.string(), z.unknown())
const fileSchema = z.looseObject({
  mcpServers: serversSchema.optional(),
  servers: serversSchema.optional(),
  mcp: z.looseObject({ servers: serversSchema.optional() }).optional(),
  inputs: z
    .array(z.looseObject({ id: z.string(), description: z.string().optional(), password: z.boolean().optional() }))
    .optional(),
})

export interface ClientServer {
  /** Its name in the file. */
  readonly name: string
  readonly entry: unknown
}

export interface ClientFile {
  readonly servers: readonly ClientServer[]
  /** What the file says of each placeholder `${input:ID}`. */
  readonly inputs: ReadonlyMap<string, { readonly description: string; readonly isSecret: boolean }>
}

/** Throws `usage`; the message repeats nothing of the file, which may hold secrets. */
export function readClientFile(text: string): ClientFile {
  const errors: ParseError[] = []
  const file = fileSchema.safeParse(parseJson(text, errors, { allowTrailingComma: true }))
  if (errors.length > 0) throw new Failure('usage', { message: 'The file is not valid JSON' })
  const servers = file.data?.mcpServers ?? file.data?.servers ?? file.data?.mcp?.servers
  if (file.data === undefined || servers === undefined) {
    throw new Failure('usage', {
      message: 'The file names no MCP servers: it needs mcpServers, servers or mcp.servers',
    })
  }
  const inputs = new Map(
    (file.data.inputs ?? []).map(({ id, description, password }) => [
      id,
      { description: description ?? id, isSecret: password === true },
    ]),
  )
  return { servers: Object.entries(servers).map(([name, entry]) => ({ name, entry })), inputs }
}

/** Gives the value of a placeholder; null where nobody knows it. */
export type Resolve = (placeholder: { name: string; isInput: boolean }) => Promise<string | null>

export interface Carried {
  /** For `POST /v1/catalog/mcp-servers`. */
  readonly body: Record<string, unknown>
  /** One line for each thing that was not carried over. */
  readonly lost: readonly string[]
}

const known: ReadonlySet<string> = new Set(Object.keys(entrySchema.shape))

/** The record of a server. Throws `usage` for one that cannot be carried over. */
export async function carry(
  { name, entry }: ClientServer,
  inputs: ClientFile['inputs'],
  resolve: Resolve,
): Promise<Carried> {
  const parsed = entrySchema.safeParse(entry)
  if (!parsed.success) throw refused(`its member ${parsed.error.issues[0]?.path.join('.')} cannot be read`)
  const { type, command, args, env, headers, disabled, url, serverUrl, httpUrl } = parsed.data
  const lost = Object.keys(parsed.data).flatMap((member) => (known.has(member) ? [] : [lostMember(member)]))
  const own = recordNameOf(name)
  if (own !== name) lost.push(`its name, which is ${own} now`)
  const common = { name: own, ...(disabled === true ? { enabled: false } : {}) }
  const fill = (text: string) => filled(text, resolve)
  const fillReadable = (text: string) =>
    filled(text, async (asked) => {
      if (asked.isInput && inputs.get(asked.name)?.isSecret === true) throw secretIsReadable()
      return await resolve(asked)
    })
  if (command !== undefined) {
    if (headers !== undefined) lost.push('headers, which a command does not have')
    const filledArguments = await Promise.all((args ?? []).map(fillReadable))
    requireReadable(filledArguments)
    return {
      body: {
        ...common,
        command: { program: await fill(command), args: filledArguments },
        ...(await secrets('environment', env, fill)),
      },
      lost,
    }
  }
  const address = httpUrl ?? url ?? serverUrl
  if (address === undefined) throw refused('it has neither a command nor an address')
  if (type === 'sse') throw refused('its transport is SSE: give the address of Streamable HTTP instead')
  if (env !== undefined) lost.push('env, which a server with an address does not have')
  const reached = await fillReadable(address)
  requireReadable([reached])
  return { body: { ...common, url: reached, ...(await secrets('headers', headers, fill)) }, lost }
}

const refused = (message: string): Failure => new Failure('usage', { message })

const lostMember = (member: string): string => {
  if (/approve|allow/i.test(member)) return `${member}: what may be called is decided by policies and approvals`
  return `${member}: a record has no such field`
}

async function secrets(
  field: 'environment' | 'headers',
  values: Readonly<Record<string, string>> | undefined,
  fill: (text: string) => Promise<string>,
): Promise<Record<string, unknown>> {
  if (values === undefined || Object.keys(values).length === 0) return {}
  const filledIn: Record<string, string> = {}
  for (const [name, value] of Object.entries(values)) filledIn[name] = await fill(value)
  return { [field]: filledIn }
}

const placeholder = /\$\{(?:(input|env):([^}]+)|([A-Za-z_]\w*)(?::-([^}]*))?|([^}]*))\}/g

async function filled(text: string, resolve: Resolve): Promise<string> {
  let result = ''
  let at = 0
  for (const match of text.matchAll(placeholder)) {
    const [whole, kind, named, variable, otherwise] = match
    const name = named ?? variable
    if (name === undefined) throw refused(`it needs ${whole}, which is known inside the client only`)
    const value = (await resolve({ name, isInput: kind === 'input' })) ?? otherwise ?? null
    if (value === null) throw refused(`it needs ${whole}: set the variable ${variableOf(name)}`)
    result += text.slice(at, match.index) + value
    at = match.index + whole.length
  }
  return result + text.slice(at)
}

/** The environment variable of a placeholder. */
export const variableOf = (name: string): string =>
  /^[A-Za-z_]\w*$/.test(name) ? name : name.replace(/\W/g, '_').toUpperCase()

const secretFlag = /^--?[\w-]*(?:key|token|secret|password|passwd|pat)(?:=|$)/i
const secretInside = /[?&][\w-]*(?:key|token|secret|password)=|\/\/[^\s/@:]+:[^\s/@]+@|Bearer\s+\S/i

/** Throws for an argument or an address that seems to hold a secret. */
function requireReadable(values: readonly string[]): void {
  const index = values.findIndex((value) => secretFlag.test(value) || secretInside.test(value))
  if (index < 0) return
  throw secretIsReadable()
}

const secretIsReadable = (): Failure =>
  refused('an argument or the address seems to hold a secret: move it into a variable or a header')

/** The name as a record may have it. */
function recordNameOf(name: string): string {
  const plain = name
    .replaceAll(/[^A-Za-z0-9._-]/g, '-')
    .replace(/_{2,}/g, '_')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64)
    .replace(/_+$/, '')
  return plain === '' ? 'server' : plain
}
