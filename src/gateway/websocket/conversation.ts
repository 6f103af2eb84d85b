/**
 * What a WebSocket of the responses language keeps between two frames: the last response and everything before it
 * (OpenAI's API guide, WebSocket mode). A frame may then send its new items only, with `previous_response_id`. The
 * gateway completes it into the whole request, so that policies see all of it, and every provider can answer it.
 *
 * - One response is kept, the last one, and only while the connection lasts. A provider that says that it has stored
 *   the response (`store: true`) gets the id as it is, and nothing is kept here.
 * - An id that is not kept is `previous_response_not_found` where the frame says `store: false`; otherwise it is read
 *   as the id of a stored response (`gateway/stored`). A frame that fails takes the response that it continues with it.
 *   The client then sends the conversation whole.
 * - Items are kept as the client sent and got them, before and after the policies. Reasoning that is not encrypted is
 *   left out, because no provider takes it back.
 * - The bytes of a conversation are bounded by the limit of a body, and counted in the memory of all conversations
 *   (`conversation-memory.ts`).
 */
import { Failure } from '../../failure.ts'
import { isGiven, isObject, type JsonObject, objectsOf, parseObject } from '../../languages/reading/json-value.ts'
import type { ConversationMemory } from './conversation-memory.ts'

interface LastResponse {
  id: string
  /** Input and output as the elements of a JSON array, without its brackets; null if the provider has stored them. */
  items: Uint8Array | null
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
/**
 * Events that end an item or a response. The name cannot stand like this inside of a text, where quotes are escaped.
 */
const notable = /"response\.(?:output_item\.done|completed|incomplete)"/

export class Conversation {
  readonly #memory: ConversationMemory
  readonly #limit: number
  #last: LastResponse | null = null
  /** The whole input of the running frame, like `LastResponse.items`; null if not all of it is known. */
  #input: Uint8Array | null = null
  /** The items of the running answer as JSON, by their place. */
  readonly #output = new Map<number, string>()
  #isClosed = false
  /** The running frame asks for no output (`generate: false`). */
  isWarmUp = false

  /** `limit`: the most bytes of one conversation. */
  constructor(memory: ConversationMemory, limit: number) {
    this.#memory = memory
    this.#limit = limit
  }

  /** How many bytes are put before a frame that continues the conversation. */
  get length(): number {
    return this.#last?.items?.length ?? 0
  }

  /**
   * Begins a frame with these items. Returns the items of the whole request where the frame must be completed; null
   * where it is sent as it is. Throws `previous_response_not_found`.
   */
  begin(frame: Readonly<JsonObject>, items: string): string | null {
    this.isWarmUp = frame.generate === false
    const { previous_response_id: previous, store } = frame
    if (!isGiven(previous)) {
      this.#keepInput(items)
      return null
    }
    const last = this.#last?.id === previous ? this.#last : null
    if (last !== null) this.#last = null
    const former = last?.items ?? null
    if (former === null) {
      // A warm-up is answered here, where nobody knows what its provider has stored.
      if (this.isWarmUp || (last === null && store === false)) throw notFound()
      return null
    }
    const whole = joined(decoder.decode(former), items)
    this.#keepInput(whole)
    return whole
  }

  /** Reads an event that goes to the client. */
  sent(data: string): void {
    if (!notable.test(data)) return
    const event = parseObject(data)
    if (event === null) return
    const { type, output_index: place, item, response } = event
    if (type === 'response.output_item.done' && isObject(item) && typeof place === 'number') this.#keepItem(place, item)
    else if ((type === 'response.completed' || type === 'response.incomplete') && isObject(response)) {
      this.#keep(response)
    }
  }

  /** The frame was answered, with whatever end. */
  end(): void {
    this.#input = null
    this.#output.clear()
    this.#count()
  }

  giveUp(): void {
    this.#last = null
    this.#input = null
    this.#output.clear()
  }

  /** The connection has ended. */
  close(): void {
    this.#isClosed = true
    this.giveUp()
    this.#memory.release(this)
  }

  #keepInput(items: string): void {
    this.#input = encoder.encode(items)
    this.#count()
  }

  #keepItem(place: number, item: JsonObject): void {
    if (this.#input === null) return
    this.#output.set(place, textOfItem(item))
    this.#count()
  }

  #keep({ id, store, output }: JsonObject): void {
    const input = this.#input
    this.#last = null
    if (typeof id === 'string' && store === true) this.#last = { id, items: null }
    else if (typeof id === 'string' && input !== null) {
      const items = encoder.encode(joined(decoder.decode(input), ...this.#answered(output)))
      if (items.length <= this.#limit) this.#last = { id, items }
    }
    this.end()
  }

  /** Some providers send the items with the last event, some one by one only. */
  #answered(output: unknown): readonly string[] {
    const items = objectsOf(output)
    if (items.length >= this.#output.size) return items.map(textOfItem)
    return [...this.#output].sort(([one], [other]) => one - other).map(([, text]) => text)
  }

  /** Counts what is kept, and gives it up where there is no memory for it. */
  #count(): void {
    let bytes = this.length + (this.#input?.length ?? 0)
    for (const text of this.#output.values()) bytes += text.length
    if (this.#isClosed || !this.#memory.hold(this, bytes)) this.giveUp()
  }
}

/** An item of an answer as one of the next input; empty where it is left out. */
const textOfItem = (item: JsonObject): string =>
  item.type === 'reasoning' && !isGiven(item.encrypted_content) ? '' : JSON.stringify(item)

const joined = (...items: readonly string[]): string => items.filter((text) => text !== '').join(',')

const notFound = (): Failure => new Failure('previous_response_not_found', { param: 'previous_response_id' })
