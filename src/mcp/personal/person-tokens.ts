/**
 * The access tokens of callers' own accounts, in the memory of one gateway process. A token that is older than
 * `recheckMilliseconds` is asked for again before it is used, so that a person who disconnects is followed within
 * seconds. While the control plane does not answer, the one that is there goes on until it expires; how long a gateway
 * serves at all without a control plane is `max_staleness`.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { McpCaller } from '../connection.ts'
import type { AccessTokens, PersonTokenReply, PersonTokenRequest } from './person-token.ts'

/** After so long it is asked for again. */
const recheckMilliseconds = 5000
/** How often a stream that stays open is looked at. */
const watchMilliseconds = 10_000
const mostKept = 10_000
const keptMilliseconds = 15 * 60_000
/** The first version with elicitation by URL, and the only one with an error for it. */
const urlElicitationError = '2025-11-25'

type Connected = Extract<PersonTokenReply, { status: 'connected' }>

interface Kept extends Connected {
  askedAt: number
  /** Monotonic; null where it is unknown. */
  expiresAt: number | null
}

export interface PersonTokensOptions {
  /** Rejects when the control plane is unreachable. */
  ask(request: PersonTokenRequest): Promise<PersonTokenReply>
  clock: Clock
  /** Overrides `watchMilliseconds`. */
  watchMilliseconds?: number
}

interface Shown {
  readonly hash: string
  readonly secret: string
}

interface Server {
  readonly id: string
  readonly name: string
  /** Where the tokens are sent. */
  readonly url: string
}

export class PersonTokens {
  readonly #options: PersonTokensOptions
  readonly #kept = new LRUCache<string, Kept>({ max: mostKept, ttl: keptMilliseconds })
  readonly #asking = new Map<string, Promise<Kept>>()
  /** Who was told to connect, and has to list again afterwards. */
  readonly #missed = new LRUCache<string, true>({ max: mostKept, ttl: keptMilliseconds })

  constructor(options: PersonTokensOptions) {
    this.#options = options
  }

  /** Those of one connection. It stays with the person who opened it, whatever credential is shown later. */
  of(
    server: Server,
    caller: Pick<McpCaller, 'credential' | 'capabilities' | 'protocolVersion' | 'notify'>,
  ): AccessTokens {
    let userId: string | null = null
    let connectUrl: string | null = null
    const tokens = {
      token: async (refused: string | null = null) => {
        const { hash, secret } = caller.credential()
        if (secret === undefined) throw noPerson(server)
        const kept = await this.#token(server, { hash, secret }, refused).catch((error: unknown) => {
          throw error instanceof NotConnected ? notConnected(server, caller, error.connectUrl) : error
        })
        userId ??= kept.user_id
        connectUrl = kept.connect_url
        if (this.#missed.delete(keyOf(server, hash))) {
          for (const kind of ['tools', 'prompts', 'resources']) {
            caller.notify(`notifications/${kind}/list_changed`, undefined)
          }
        }
        if (kept.user_id === userId) return kept.access_token
        throw new Failure('mcp.session_ended', { message: 'The credential belongs to another person now' })
      },
      watch: (stop: () => void) => {
        const look = () => void tokens.token().catch((error) => isAccountGone(error) && stop())
        const timer = setInterval(look, this.#options.watchMilliseconds ?? watchMilliseconds)
        timer.unref()
        return () => clearInterval(timer)
      },
      // One person's account says nothing of the server, whose circuit is everybody's.
      refusal: (status: number, challenge: string | null) =>
        status === 401 || status === 403 ? accountRefused(server, caller, { status, challenge, connectUrl }) : null,
    }
    return tokens
  }

  async #token(server: Server, { hash, secret }: Shown, refused: string | null): Promise<Kept> {
    const key = keyOf(server, hash)
    const kept = this.#kept.get(key)
    const now = this.#options.clock.monotonic()
    const isRefused = kept !== undefined && kept.access_token === refused
    if (kept !== undefined && !isRefused && now - kept.askedAt < recheckMilliseconds && !hasExpired(kept, now)) {
      return kept
    }
    const shared = this.#asking.get(key)
    const asking = shared ?? this.#ask(server, key, secret, isRefused ? refused : null)
    this.#asking.set(key, asking)
    try {
      const given = await asking
      // Whoever asked did not know that the server refuses it.
      const isOld = shared !== undefined && given.access_token === refused
      return isOld ? await this.#token(server, { hash, secret }, refused) : given
    } catch (error) {
      const isUnreachable = error instanceof Failure && error.code === 'dependency_unavailable'
      if (isUnreachable && kept !== undefined && !isRefused && !hasExpired(kept, now)) return kept
      throw error
    } finally {
      if (this.#asking.get(key) === asking) this.#asking.delete(key)
    }
  }

  async #ask(server: Server, key: string, credential: string, refused: string | null): Promise<Kept> {
    const reply = await this.#options.ask({
      server_id: server.id,
      server_url: server.url,
      credential,
      refused: refused === null ? null : createHash('sha256').update(refused).digest('hex'),
    })
    const askedAt = this.#options.clock.monotonic()
    if (reply.status !== 'connected') this.#kept.delete(key)
    if (reply.status === 'no_person') throw noPerson(server)
    if (reply.status === 'not_connected') {
      this.#missed.set(key, true)
      throw new NotConnected(reply.connect_url)
    }
    if (reply.status === 'unavailable') {
      throw new Failure('dependency_unavailable', {
        message: `No access token for your account at the MCP server ${server.name} could be had: retry shortly`,
      })
    }
    const expiresAt = reply.expires_in === null ? null : askedAt + 1000 * reply.expires_in
    const kept = { ...reply, askedAt, expiresAt }
    this.#kept.set(key, kept)
    return kept
  }
}

/** A token that was given for one address is never sent to another. */
const keyOf = ({ id, url }: Server, hash: string): string => `${id} ${hash} ${url}`

/** No token for now is no reason: the stream may go on. */
const isAccountGone = (error: unknown): boolean =>
  error instanceof Failure && ['mcp.not_connected', 'mcp.no_person', 'mcp.session_ended'].includes(error.code)

const hasExpired = ({ expiresAt }: Kept, now: number): boolean => expiresAt !== null && now >= expiresAt

/** As several callers may wait for it, each makes the failure that its own client understands. */
class NotConnected extends Error {
  readonly connectUrl: string

  constructor(connectUrl: string) {
    super('The person has no connection')
    this.connectUrl = connectUrl
  }
}

const noPerson = ({ name }: Server): Failure =>
  new Failure('mcp.no_person', {
    message: `The MCP server ${name} is used with the account of a person: sign in by OAuth, or use a token that you made for yourself`,
  })

interface Refused {
  status: number
  /** The server's `WWW-Authenticate`. */
  challenge: string | null
  connectUrl: string | null
}

/** A server that wants more scope says so (RFC 6750 section 3.1): the person can be asked for that. */
function accountRefused({ name }: Server, caller: Client, { status, challenge, connectUrl }: Refused): Failure {
  const isShort = challenge !== null && /\berror\s*=\s*"?insufficient_scope\b/i.test(challenge)
  const [, scope] = /\bscope\s*=\s*"([\x21\x23-\x5b\x5d-\x7e ]{1,512})"/i.exec(challenge ?? '') ?? []
  if (connectUrl === null || !isShort || scope === undefined) {
    const message = `The MCP server ${name} refuses your account (${status}): it may lack a right there, or has to be connected again`
    return new Failure('mcp.account_refused', { message })
  }
  const url = new URL(connectUrl)
  url.searchParams.set('scope', scope)
  const message = `The MCP server ${name} needs more of your account (${scope}): connect it again: ${url.href}`
  return new Failure('mcp.account_refused', { message, extra: addressToOpen(caller, url.href) })
}

type Client = Pick<McpCaller, 'capabilities' | 'protocolVersion'>

function notConnected({ name }: Server, caller: Client, url: string): Failure {
  const message = `Connect your account at the MCP server ${name} first: ${url}`
  return new Failure('mcp.not_connected', { message, extra: addressToOpen(caller, url) })
}

/**
 * Tells a client that opens addresses to open this one, in the way of its version: by an error with an elicitation
 * (2025-11-25), or by a result that asks for input (from 2026-07-28 on).
 */
function addressToOpen({ capabilities: { elicitation }, protocolVersion }: Client, url: string) {
  const opensUrls =
    protocolVersion >= urlElicitationError &&
    typeof elicitation === 'object' &&
    elicitation !== null &&
    'url' in elicitation
  const way = protocolVersion === urlElicitationError ? 'error' : 'input_required'
  return { connect_url: url, ...(opensUrls && { elicitation_id: crypto.randomUUID(), elicitation: way }) }
}
