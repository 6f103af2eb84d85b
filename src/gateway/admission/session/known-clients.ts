/**
 * How coding agents name themselves and their sessions, as data: one row each with what was seen and where. A request
 * of any other client costs one look at its User-Agent. To add a client, add its row.
 */
import { isObject, type JsonObject, parseObject } from '../../../languages/reading/json-value.ts'

interface KnownClient {
  /** As events show it; the name that `connect` knows it by. */
  readonly name: string
  /** How its User-Agent begins, in lower case; none if it does not name itself there. */
  readonly userAgents: readonly string[]
  /** The headers that name a session, the first one first. */
  readonly headers: readonly string[]
  /** The member of the body that names it, where no header does. */
  readonly member?: { readonly of: string; readonly name: string; readonly read?: (text: string) => string | null }
  /** What the client sends, and where that was seen. */
  readonly reason: string
}

export const knownClients: readonly KnownClient[] = [
  {
    name: 'claude-code',
    userAgents: ['claude-cli/'],
    headers: ['x-claude-code-session-id'],
    member: { of: 'metadata', name: 'user_id', read: sessionOfUserId },
    reason:
      'Run of 2.1.328: the header, and the same id in metadata.user_id, which is JSON; older versions end the id with _session_UUID and send no header',
  },
  {
    name: 'codex',
    userAgents: ['codex'],
    headers: ['session-id', 'session_id'],
    member: { of: 'client_metadata', name: 'session_id' },
    reason:
      'Run of 0.169.0: codex_exec, codex_cli_rs, codex-tui or codex_vscode; the header over HTTP, the member in each frame of a WebSocket. Versions before May 2026 wrote session_id. thread-id differs for subagents of one session',
  },
  {
    name: 'opencode',
    userAgents: ['opencode/'],
    headers: ['x-session-affinity'],
    reason: 'Run of 1.18.33: x-session-id, which every client may send, and the same in x-session-affinity',
  },
  {
    name: 'gemini-cli',
    userAgents: ['geminicli'],
    headers: [],
    reason:
      'Run of 0.61.0: GeminiCLI-tui/0.61.0, no session. x-gemini-api-privileged-user-id is the same for all sessions of a host. GEMINI_CLI_CUSTOM_HEADERS=x-session-id:ID names one',
  },
  {
    name: 'cline',
    userAgents: ['cline/'],
    headers: ['x-task-id'],
    reason:
      "The editor's extension names itself, and the task to the provider Cline. Run of the command line 3.0.65: the AI SDK's own User-Agent and no session, as any program on that SDK",
  },
  {
    name: 'cursor',
    userAgents: [],
    headers: [],
    member: { of: 'metadata', name: 'cursorConversationId' },
    reason: "Its servers send a person's requests on, with the id of the conversation in the member",
  },
]

/*
 * Not in the table, because they name neither themselves nor a session: aider 0.86 (`OpenAI/Python`) and Continue 1.5.47
 * (`ls/JS`).
 */

/** The client of a request, by its User-Agent or by a member that only this client sends; undefined for any other. */
export function clientOf(userAgent: string | null, body: Readonly<JsonObject>): KnownClient | undefined {
  const beginning = userAgent === null ? null : anyUserAgent.exec(userAgent)
  if (beginning !== null) return byUserAgent.get(beginning[0].toLowerCase())
  for (const client of byMember) if (memberOf(client, body) !== null) return client
  return undefined
}

const byUserAgent = new Map(knownClients.flatMap((client) => client.userAgents.map((name) => [name, client] as const)))
const anyUserAgent = new RegExp(`^(?:${[...byUserAgent.keys()].join('|')})`, 'i')
const byMember = knownClients.filter(({ userAgents }) => userAgents.length === 0)

/** What the client names its session; null if it names none. */
export function sessionOf(client: KnownClient, headers: Headers, body: Readonly<JsonObject>): string | null {
  for (const name of client.headers) {
    const value = headers.get(name)
    if (value !== null) return value
  }
  return memberOf(client, body)
}

function memberOf({ member }: KnownClient, body: Readonly<JsonObject>): string | null {
  if (member === undefined) return null
  const object = body[member.of]
  const value = isObject(object) ? object[member.name] : null
  if (typeof value !== 'string') return null
  return member.read === undefined ? value : member.read(value)
}

/** A longer one is not Claude Code's: it has three ids. */
const longestUserId = 1000

function sessionOfUserId(userId: string): string | null {
  if (userId.length > longestUserId) return null
  const session = parseObject(userId)?.session_id ?? /_session_([\w-]+)$/.exec(userId)?.[1]
  return typeof session === 'string' ? session : null
}
