/**
 * Reuses streams for reads of a libSQL server. The client opens a stream for each call and closes it in the same
 * request, and for each stream sqld opens its database anew with its schema, which is three quarters of the cost of a
 * small read (measured, 0.24.32: 1.6 ms of processor time instead of 0.4 for a row of the ledger). So this module
 * wraps the client's `fetch`, leaves the closing out, and sends the next read on the same stream with the baton of
 * the last answer (Hrana over HTTP, version 2). To the client each call looks closed.
 *
 * - Reads only: if the server has dropped a stream (a restart, a timeout), the read did not begin, and the call is
 *   sent again in the client's own form. No transaction outlives a call, so no snapshot is held between calls.
 * - One call at a time on each stream; further calls are sent in the client's own form, because the server's
 *   connections are limited.
 * - A server that names another address for its streams, or answers in another form, is called in the client's own
 *   form.
 */
export type ClientFetch = (request: Request) => Promise<Response>

/** sqld drops a stream after ten seconds without a request. */
const keptMs = 5000
/** The longest use of a stream: a database that is replaced without a restart is only seen by a new stream. */
const oldestMs = 60_000
/** At most so many, for each control plane and database: sqld takes 128 connections from all together. */
const mostKept = 4
const opening = '{"requests":[{"type":"execute",'
const closing = ',{"type":"close"}]}'
const answered = /^\{"baton":"([A-Za-z0-9+/=_-]+)","base_url":null,"results":\[/

interface Stream {
  baton: string | null
  openedAt: number
  usedAt: number
}

/** A `fetch` for a client that only reads. `now` is in milliseconds and never goes back. */
export function keptStreams(fetch: ClientFetch, now: () => number): ClientFetch {
  /** Used last, last. */
  const idle: Stream[] = []
  let busy = 0
  let understood = true

  const take = (): Stream => {
    const at = now()
    for (let kept = idle.pop(); kept !== undefined; kept = idle.pop()) {
      if (at - kept.usedAt < keptMs && at - kept.openedAt < oldestMs) return kept
    }
    return { baton: null, openedAt: at, usedAt: at }
  }

  /** Null if the call must be sent in the client's own form. */
  const onStream = async (request: Request, body: string): Promise<Response | null> => {
    const { baton, openedAt } = take()
    const kept = `{"baton":${JSON.stringify(baton)},${body.slice(1, -closing.length)}]}`
    const response = await fetch(new Request(request.url, { method: 'POST', headers: request.headers, body: kept }))
    if (!response.ok) return baton === null ? response : null
    const text = await response.text()
    const [head, next] = answered.exec(text) ?? []
    if (head === undefined || next === undefined) {
      understood = false
      return null
    }
    idle.push({ baton: next, openedAt, usedAt: now() })
    const results = text.slice(head.length, text.lastIndexOf(']'))
    return new Response(
      `{"baton":null,"base_url":null,"results":[${results},{"type":"ok","response":{"type":"close"}}]}`,
      { headers: { 'content-type': 'application/json' } },
    )
  }

  return async (request) => {
    if (request.method !== 'POST' || !understood) return await fetch(request)
    const body = await request.text()
    const asMade = () => fetch(new Request(request.url, { method: 'POST', headers: request.headers, body }))
    if (busy >= mostKept || !body.startsWith(opening) || !body.endsWith(closing)) return await asMade()
    busy += 1
    try {
      return (await onStream(request, body)) ?? (await asMade())
    } finally {
      busy -= 1
    }
  }
}
