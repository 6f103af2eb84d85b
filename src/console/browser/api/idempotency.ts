/**
 * The `Idempotency-Key` of what is sent (handbook/reference/http.md). Where no answer says what became of a write, the
 * next one with the same content is its repetition and goes under the same key, so that nothing is made twice. Whatever
 * else is written comes between, and ends that: by then the same content is meant anew.
 */

/** POSTs that change nothing that lasts, or are good for once by themselves. */
const without = /^\/v1\/(auth\/|oauth\/authorize\/|policies\/test$|policies\/[^/]+\/replay$)/

let unanswered: { content: string; key: string } | null = null

export interface IdempotentRequest {
  key: string | null
  /** Told what came of it: an answer that decides about the content, or none. */
  ended(outcome: 'decided' | 'unknown'): void
}

export function idempotencyOf(method: string, path: string, body: unknown): IdempotentRequest {
  if (method === 'GET' || without.test(path)) return { key: null, ended: () => undefined }
  const content = `${method} ${path} ${JSON.stringify(body)}`
  const key = method !== 'POST' ? null : unanswered?.content === content ? unanswered.key : newKey()
  return {
    key,
    ended: (outcome) => {
      unanswered = outcome === 'unknown' && key !== null ? { content, key } : null
    },
  }
}

/** `crypto.randomUUID` is missing on pages that come over plain HTTP. */
const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-')
