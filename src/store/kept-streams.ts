/**
 * Reads of a libSQL server over streams that are kept: the client opens a stream for each call and closes it in the same
 * request, and for each stream sqld opens its database anew, schema and all, which is three quarters of what a small
 * read costs it (tried, 0.24.32: 1.6 ms of its processor instead of 0.4 for a row of the ledger). So this stands in the
 * client's `fetch`, leaves the closing out, and sends the next read on the same stream by the baton that the answer
 * brought (Hrana over HTTP, version 2). To the client each call looks as if it had been closed.
 *
 *   - Reads only: a stream that the server has given up, being restarted or tired of waiting, is one that never began,
 *     and the call goes out again as the client made it. No transaction outlives a call, so no snapshot is held between.
 *   - One call at a time on each; further ones go as the client made them, for the server has only so many connections.
 *   - A server that names another address for its streams, or answers in another form, is asked as the client does.
 */
export type ClientFetch = (request: Request) => Promise<Response>

/** sqld gives a stream up after ten seconds in which nothing came. */
const keptMs = 5000
/** None is used for longer: what is put in the database's place meanwhile, without a restart, is found by a new one. */
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

  /** Null where the call is to be made as the client made it. */
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
