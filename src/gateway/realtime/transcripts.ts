/**
 * What was said, in writing. A policy that reads text reads it in the transcript: until then no response begins, and
 * the client does not see it. What a policy refuses, or would have changed, is removed from the conversation, because
 * nothing can be cut out of sound.
 */
import { Failure } from '../../failure.ts'
import { isObject, type JsonObject, textOf } from '../../languages/reading/json-value.ts'
import type { LiveSession } from './live-session.ts'
import { RecentIds } from './recent-ids.ts'

/** How long a transcript is awaited before what was said counts as unreadable. */
const waitMilliseconds = 15_000
/** So many transcripts of one session may be missing at once. */
const mostWriting = 64

interface Unread {
  /** Resolves with whether it may stay. */
  readonly read: PromiseWithResolvers<boolean>
  readonly timer: ReturnType<typeof setTimeout>
}

export class Transcripts {
  readonly #session: LiveSession
  readonly #unread = new Map<string, Unread>()
  readonly #removed = new RecentIds()
  /** What the provider writes a transcript of; called with its last event. */
  readonly #writing = new Map<string, (event: JsonObject | null) => void>()

  constructor(session: LiveSession) {
    this.#session = session
  }

  /** Something was said that must be read first. Resolves with whether it may stay. */
  await(itemId: string): Promise<boolean> {
    const read = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => this.unreadable(itemId), waitMilliseconds)
    timer.unref()
    this.#unread.set(itemId, { read, timer })
    return read.promise
  }

  /** Resolves when everything that was said is read. */
  async read(): Promise<void> {
    while (this.#unread.size > 0) await Promise.all([...this.#unread.values()].map(({ read }) => read.promise))
  }

  /** The provider has written a transcript, which `event` tells. */
  async written(event: JsonObject, text: string): Promise<void> {
    const session = this.#session
    const itemId = textOf(event.item_id) ?? ''
    if (this.#removed.has(itemId)) return
    const content = [{ type: 'input_audio', transcript: textOf(event.transcript) ?? '' }]
    const item = { type: 'message', role: 'user', content }
    let passed: JsonObject | null = null
    const answer = await session.govern.event(session.arrivalOf({ input: [item] }), session.facts, (body) => {
      passed = body
    })
    if (passed === null) {
      const refusal: unknown = await answer.json()
      if (isObject(refusal)) session.tellError(refusal, null)
      return this.#settle(itemId, false)
    }
    if (!Bun.deepEquals(passed, { input: [item] })) {
      const message = 'A policy changes what was said, and nothing can be changed in sound: it was removed'
      session.refuse(new Failure('policy_denied', { param: 'audio', message }), null)
      return this.#settle(itemId, false)
    }
    void session.tell(text)
    this.#settle(itemId, true)
  }

  /** There is no transcript. */
  unreadable(itemId: string): void {
    if (!this.#unread.has(itemId)) return
    const message = 'A policy must read what was said, and there is no transcript of it: it was removed'
    this.#session.refuse(new Failure('transcription_required', { param: 'audio', message }), null)
    this.#settle(itemId, false)
  }

  begin(itemId: string): void {
    const session = this.#session
    const { transcriptionModel: model, heardSeconds: seconds } = session
    session.heardSeconds = 0
    if (model === null) return
    if (this.#writing.size >= mostWriting) {
      session.breach('it took in more turns of speech than it transcribes')
      return
    }
    const { promise, resolve } = Promise.withResolvers<JsonObject | null>()
    this.#writing.set(itemId, resolve)
    const arrival = session.arrivalOf({})
    void session.govern.speech(arrival, session.facts, { model, seconds, written: promise }).then(async (answer) => {
      this.#writing.delete(itemId)
      if (answer.status === 204 || session.isEnding) return
      const refusal: unknown = await answer.json()
      if (isObject(refusal)) session.tellError({ ...refusal, type: 'error' }, null)
      session.endWith({ code: 1008, reason: 'The transcript of what was said was refused' }, true)
    })
  }

  ended(event: JsonObject): void {
    this.#writing.get(textOf(event.item_id) ?? '')?.(event)
  }

  clear(): void {
    for (const resolve of this.#writing.values()) resolve(null)
    for (const itemId of [...this.#unread.keys()]) this.#settle(itemId, true)
  }

  #settle(itemId: string, stays: boolean): void {
    const unread = this.#unread.get(itemId)
    this.#unread.delete(itemId)
    if (!stays) {
      this.#removed.add(itemId)
      this.#session.toProvider({ type: 'conversation.item.delete', item_id: itemId })
    }
    if (unread === undefined) return
    clearTimeout(unread.timer)
    unread.read.resolve(stays)
  }
}
