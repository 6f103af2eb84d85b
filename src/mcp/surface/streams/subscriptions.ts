/**
 * The streams of changes that a caller opened by `subscriptions/listen` (2026-07-28, Subscriptions). Each says first what
 * it will tell, and then only that. Every message carries the id of the request that opened the stream.
 */
import { type RpcId, rpcCodes } from '../../../lib/json/json-rpc.ts'
import type { Json } from '../../connection.ts'
import { McpError } from '../../mcp-error.ts'
import { isJson, metaKeys } from '../../protocol.ts'
import { notificationText, resultText } from '../json-rpc.ts'
import type { EventStream } from './event-stream.ts'

const most = 64

export interface SubscriptionFilter {
  readonly toolsListChanged?: true
  readonly promptsListChanged?: true
  readonly resourcesListChanged?: true
  /** Published addresses. */
  readonly resourceSubscriptions?: readonly string[]
}

/** The member of a filter that asks for a notification. */
const listMembers: ReadonlyMap<string, keyof SubscriptionFilter> = new Map([
  ['notifications/tools/list_changed', 'toolsListChanged'],
  ['notifications/prompts/list_changed', 'promptsListChanged'],
  ['notifications/resources/list_changed', 'resourcesListChanged'],
])

interface Subscription {
  readonly id: RpcId
  readonly filter: SubscriptionFilter
  readonly stream: EventStream
}

export class Subscriptions {
  readonly #open = new Set<Subscription>()
  readonly #openStream: () => EventStream

  constructor(openStream: () => EventStream) {
    this.#openStream = openStream
  }

  get size(): number {
    return this.#open.size
  }

  /**
   * Opens a stream. `left` is called when its caller leaves, with the addresses that no other stream has. Throws an
   * McpError when there are too many.
   */
  add(id: RpcId, filter: SubscriptionFilter, left: (unused: readonly string[]) => void): ReadableStream<Uint8Array> {
    if (this.#open.size >= most) throw new McpError(rpcCodes.internalError, 'Too many subscriptions of this caller')
    const subscription = { id, filter, stream: this.#openStream() }
    const { stream } = subscription
    this.#open.add(subscription)
    stream.onLeave = () => {
      stream.end()
      if (this.#open.delete(subscription)) left(this.unused(filter))
    }
    stream.send(notificationText('notifications/subscriptions/acknowledged', marked(id, { notifications: filter })))
    const readable = stream.attach()
    if (readable === null) throw new Error('A new stream has its first event')
    return readable
  }

  listChanged(method: string): void {
    const member = listMembers.get(method)
    for (const { id, filter, stream } of this.#open) {
      if (member !== undefined && filter[member] === true) stream.send(notificationText(method, marked(id, {})))
    }
  }

  /** `params`: those of `notifications/resources/updated`, with a published address. */
  updated(params: Json): void {
    for (const { id, filter, stream } of this.#open) {
      if (filter.resourceSubscriptions?.some((uri) => uri === params.uri) !== true) continue
      stream.send(notificationText('notifications/resources/updated', marked(id, params)))
    }
  }

  /** Ends every stream by the result of its request. */
  close(): void {
    for (const { id, stream } of this.#open) {
      stream.send(resultText(id, marked(id, { resultType: 'complete' })))
      stream.end()
    }
    this.#open.clear()
  }

  /** The addresses of a filter that no open stream has. */
  unused({ resourceSubscriptions = [] }: SubscriptionFilter): readonly string[] {
    const used = new Set([...this.#open].flatMap(({ filter }) => filter.resourceSubscriptions ?? []))
    return resourceSubscriptions.filter((uri) => !used.has(uri))
  }
}

const marked = (id: RpcId, params: Json): Json => ({
  ...params,
  _meta: { ...(isJson(params._meta) && params._meta), [metaKeys.subscriptionId]: id },
})
