/** How refusals end a WebSocket (RFC 6455 section 7.4.1; gateway/README.md, WebSocket). */

export interface Ending {
  readonly code: number
  readonly reason: string
}

/** Refusals after which a connection cannot continue, by code. */
const endings: Readonly<Record<string, Ending>> = {
  invalid_json: { code: 1007, reason: 'A frame must be one JSON object' },
  json_too_deep: { code: 1007, reason: 'A frame is nested too deep' },
  request_too_large: { code: 1009, reason: 'A frame is too large' },
  missing_api_key: { code: 1008, reason: 'The token is refused' },
  invalid_api_token: { code: 1008, reason: 'The token is refused' },
  'tokens.expired': { code: 1008, reason: 'The token has expired' },
  draining: { code: 1001, reason: 'The gateway is shutting down' },
}

/** How a connection ends after a failure with this code; null where it goes on. */
export const endingOf = (code: string): Ending | null => endings[code] ?? null

/** The same for an answer of the gateway. */
export function endingAfter(status: number, body: string): Ending | null {
  if (status < 400) return null
  const frame: { error?: { code?: string } } = JSON.parse(body)
  return endingOf(frame.error?.code ?? '')
}
