/**
 * The variables of conditions (policies/README.md): `request`, `response`, `token`, `model`, `now`. They are classes,
 * because the condition language knows its types by them. Expensive members (joined texts, lists of tools) are
 * computed on first use: most conditions use none of them.
 */
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { withDoubles } from '../../lib/json/exact-json.ts'
import { offeredTools } from '../tool-names.ts'

export class MessageView {
  readonly role: string
  readonly text: string

  constructor(role: string, text: string) {
    this.role = role
    this.text = text
  }
}

/** The call of a tool that a request is; of a request that calls none both are empty. */
export class ToolView {
  /** As callers know it: `<server>__<tool>`. */
  readonly name: string
  /** What the caller passes. Every number is a double. */
  readonly arguments: Record<string, unknown>

  constructor(name: string, given: Record<string, unknown>) {
    this.name = name
    this.arguments = given
  }
}

const noTool = new ToolView('', {})

interface RequestParts {
  family: string
  model: string
  stream: boolean
  sessionId: string | null
  /** The request's current texts. */
  texts(): readonly TextSlot[]
  body: Readonly<Record<string, unknown>> | null
  headers: Headers
}

/** Credentials are left out: more people see a policy than a request. */
const hiddenHeaders: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'cookie', 'proxy-authorization'])

export class RequestView {
  readonly family: string
  readonly model: string
  readonly stream: boolean
  readonly session_id: string
  readonly #parts: RequestParts
  #slots: readonly TextSlot[] | null = null
  #text: string | null = null
  #messages: MessageView[] | null = null
  #tools: string[] | null = null
  #tool: ToolView | null = null
  #headers: Record<string, string> | null = null

  constructor(parts: RequestParts) {
    this.#parts = parts
    this.family = parts.family
    this.model = parts.model
    this.stream = parts.stream
    this.session_id = parts.sessionId ?? ''
  }

  /** The request's current texts, found once until one is changed; not visible to conditions. */
  slots(): readonly TextSlot[] {
    this.#slots ??= this.#parts.texts()
    return this.#slots
  }

  /** All texts of the request, a line break between them. */
  get text(): string {
    this.#text ??= joined(this.slots())
    return this.#text
  }

  /** One entry for each text, with its role; an empty role if the dialect gives none. */
  get messages(): MessageView[] {
    if (this.#messages === null) {
      this.#messages = []
      for (const { kind, role, text } of this.slots()) {
        if (kind !== 'name') this.#messages.push(new MessageView(role ?? '', text))
      }
    }
    return this.#messages
  }

  /** Names of the offered tools. */
  get tools(): string[] {
    this.#tools ??= offeredTools(this.#parts.body)
    return this.#tools
  }

  /** The tool that a request to an MCP server calls. A request to a model calls none: `tools` has those that it offers. */
  get tool(): ToolView {
    this.#tool ??=
      this.family === 'mcp' && this.#parts.body?.method === 'tools/call' ? toolOf(this.#parts.body) : noTool
    return this.#tool
  }

  /** By name in lower case, without credentials and cookies. */
  get headers(): Record<string, string> {
    this.#headers ??= Object.fromEntries([...this.#parts.headers].filter(([name]) => !hiddenHeaders.has(name)))
    return this.#headers
  }

  /** Call it after a policy changed a text. */
  textsChanged(): void {
    this.#slots = null
    this.#text = null
    this.#messages = null
    this.#tools = null
    this.#tool = null
  }
}

function toolOf({ params, tools }: Readonly<Record<string, unknown>>): ToolView {
  const [called] = Array.isArray(tools) ? tools : []
  const name = isObject(called) && typeof called.name === 'string' ? called.name : ''
  const given = isObject(params) ? withDoubles(params.arguments) : null
  return new ToolView(name, isObject(given) ? given : {})
}

export interface ResponseParts {
  status: number
  texts(): readonly TextSlot[]
  toolCalls(): readonly string[]
}

export class ResponseView {
  readonly #parts: ResponseParts
  #slots: readonly TextSlot[] | null = null
  #text: string | null = null

  constructor(parts: ResponseParts) {
    this.#parts = parts
  }

  /** Whole numbers are BigInts in the condition language. */
  get status(): bigint {
    return BigInt(this.#parts.status)
  }

  /** The answer's current texts, like the request's `slots`. */
  slots(): readonly TextSlot[] {
    this.#slots ??= this.#parts.texts()
    return this.#slots
  }

  get text(): string {
    this.#text ??= joined(this.slots())
    return this.#text
  }

  /** Names of the tools that the model calls. */
  get tool_calls(): string[] {
    return [...this.#parts.toolCalls()]
  }

  textsChanged(): void {
    this.#slots = null
    this.#text = null
  }
}

/** Empty text for a missing value; `metadata` is the caller's own, if the token trusts it. */
export class TokenView {
  readonly id: string
  readonly purpose: string
  readonly roles: string[]
  readonly team_id: string
  readonly user_id: string
  readonly gateway_id: string
  readonly metadata: Record<string, string>

  constructor(token: {
    id: string
    purpose: string
    roles: readonly string[]
    teamId: string | null
    userId: string | null
    gatewayId: string | null
    metadata: Readonly<Record<string, string>>
  }) {
    this.id = token.id
    this.purpose = token.purpose
    this.roles = [...token.roles]
    this.team_id = token.teamId ?? ''
    this.user_id = token.userId ?? ''
    this.gateway_id = token.gatewayId ?? ''
    this.metadata = { ...token.metadata }
  }
}

export class ModelView {
  readonly id: string
  readonly provider: string
  /** Other names of the same model; only denials read them. */
  readonly aliases: readonly string[]

  constructor(id: string, provider: string, aliases: readonly string[] = []) {
    this.id = id
    this.provider = provider
    this.aliases = aliases
  }
}

export interface PolicyContext {
  readonly request: RequestView
  /** Null at pre_request: there is no answer yet, and conditions of that stage cannot use it. */
  readonly response: ResponseView | null
  readonly token: TokenView
  readonly model: ModelView
  readonly now: Date
}

/** Names are not spoken text: conditions have separate members for tool names. */
const said = (texts: readonly TextSlot[]): readonly TextSlot[] => texts.filter(({ kind }) => kind !== 'name')

const joined = (texts: readonly TextSlot[]): string =>
  said(texts)
    .map(({ text }) => text)
    .join('\n')

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
