/** Where a WebSocket is dialled, and the path whose requests its frames are (contract section 6). */
export const socketPaths: ReadonlyMap<string, string> = new Map([
  ['/v1/chat/completions/ws', '/v1/chat/completions'],
  ['/v1/responses/ws', '/v1/responses'],
])

/** The OpenAI client upgrades here; without an upgrade it is a path for POST. */
const alsoSocketPath = '/v1/responses'

/** The path whose requests the frames of a socket at this path are; null where no socket can be opened. */
export function socketTarget(path: string, { method, headers }: Request): string | null {
  if (method !== 'GET') return null
  if (path === alsoSocketPath && headers.get('upgrade')?.toLowerCase() === 'websocket') return path
  return socketPaths.get(path) ?? null
}
