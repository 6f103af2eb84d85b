/** Why a call to another server failed, in words, without an address or a secret. */

const reasons: Readonly<Record<string, string>> = {
  ConnectionRefused: 'nothing listens there',
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'its name is unknown',
  EAI_AGAIN: 'its name could not be looked up',
  ECONNRESET: 'the connection was reset',
  ConnectionClosed: 'the connection was closed',
  FailedToOpenSocket: 'no connection could be made',
  EMFILE: 'this host has no file descriptor left (ulimit -n)',
  ENFILE: 'this host has no file descriptor left (ulimit -n)',
}

/** `error` as `fetch` throws it; `late` is the text for a time-out. */
export function callFailure(error: unknown, late: string): string {
  if (!(error instanceof Error)) return 'the call failed'
  if (error.name === 'TimeoutError') return late
  const code = 'code' in error ? String(error.code) : ''
  if (reasons[code] !== undefined) return reasons[code]
  return /CERT|SSL|TLS/i.test(code)
    ? `its certificate is not accepted (${code})`
    : `the call failed (${code || error.name})`
}
