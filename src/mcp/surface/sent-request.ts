/** A request of a caller on its way to a server, in the combinations of their generations. */
import type { Json, McpConnection, McpTrace } from '../connection.ts'
import { requestedUrls } from '../input-required.ts'
import { McpError } from '../mcp-error.ts'
import type { HeldCalls } from './held-calls.ts'
import type { RunningCall } from './running-call.ts'

export interface SentRequest {
  readonly method: string
  readonly params: Json
  readonly signal: AbortSignal
  readonly trace?: McpTrace
  readonly headers?: Readonly<Record<string, string>>
  /** The caller's answers to what the server asked, and the server's state; absent in a first request. */
  readonly answers?: Json
  readonly state?: string
}

type Progressed = (call: RunningCall, told: Json) => void

/** Sends it as one request. The connection asks an older caller what a server of 2026-07-28 needs. */
export async function sendAtOnce(
  connection: McpConnection,
  call: RunningCall,
  { method, params, signal, trace, headers, answers, state }: SentRequest,
  { level, progressed }: { level: string | null; progressed: Progressed },
): Promise<Json> {
  const input = { ...(answers && { inputResponses: answers }), ...(state !== undefined && { requestState: state }) }
  return await connection.request(
    method,
    { ...params, ...input },
    {
      ...{ signal, related: call, logLevel: level },
      ...(trace && { trace }),
      ...(headers && { headers }),
      ...(call.progressToken !== null && { onProgress: (told: Json) => progressed(call, told) }),
    },
  )
}

/** Sends a request of 2026-07-28 to a server with sessions, or goes on with the call that waits for its answers. */
export async function sendHeld(
  connection: McpConnection,
  call: RunningCall,
  { method, params, signal, trace, answers, state }: SentRequest,
  { held: calls, capabilities, progressed }: { held: HeldCalls; capabilities: Json; progressed: Progressed },
): Promise<Json> {
  const held = state === undefined ? calls.begin() : calls.find(state)
  if (state === undefined) {
    const onProgress = (told: Json) => {
      if (held.call !== null) progressed(held.call, told)
    }
    held.start((ended) =>
      connection.request(method, params, {
        ...{ signal: ended, related: held },
        ...(trace && { trace }),
        ...(call.progressToken !== null && { onProgress }),
      }),
    )
  } else held.answer(answers ?? {})
  try {
    const result = await held.next(call, signal)
    if (result.requestState === held.id) calls.keep(held)
    return result
  } catch (error) {
    const needed = error instanceof McpError ? requestedUrls(error, capabilities) : null
    if (needed === null) throw error
    return needed
  }
}
