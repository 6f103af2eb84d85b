/** A caller of MCP 2026-07-28 that speaks plain HTTP, for the tests of this folder. */
import type { Json } from '../../mcp/connection.ts'
import { metaKeys, modernVersion, requestedName } from '../../mcp/protocol.ts'
import type { TestGateway } from './gateway.ts'
import { jsonHeaders, messagesOf } from './mcp.ts'

export interface ModernCallerOptions {
  readonly secret?: string
  readonly capabilities?: Json
  readonly meta?: Json
}

export interface ModernCaller {
  /** Sends a request whose headers repeat its body, with these changes of headers; null removes one. */
  post(method: string, params?: Json, headers?: Record<string, string | null>, signal?: AbortSignal): Promise<Response>
  /** The last message of the answer, in either form. */
  ask(method: string, params?: Json): Promise<Json>
  call(name: string, args?: Json, more?: Json): Promise<Json>
}

const all = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} }

export function modernCaller(
  { url, secret: own }: Pick<TestGateway, 'url' | 'secret'>,
  { secret = own, capabilities = all, meta = {} }: ModernCallerOptions = {},
): ModernCaller {
  let count = 0
  const caller: ModernCaller = {
    post(method, params = {}, changed = {}, signal) {
      count += 1
      const said = { [metaKeys.version]: modernVersion, [metaKeys.capabilities]: capabilities }
      const _meta = { ...said, ...meta, ...(params._meta as Json | undefined) }
      const name = requestedName(method, params)
      const headers = new Headers({
        ...jsonHeaders,
        authorization: `Bearer ${secret}`,
        'mcp-protocol-version': modernVersion,
        'mcp-method': method,
        ...(typeof name === 'string' && { 'mcp-name': name }),
      })
      for (const [key, value] of Object.entries(changed)) {
        if (value === null) headers.delete(key)
        else headers.set(key, value)
      }
      const body = JSON.stringify({ jsonrpc: '2.0', id: `m${count}`, method, params: { ...params, _meta } })
      return fetch(`${url}/mcp`, { method: 'POST', headers, body, ...(signal && { signal }) })
    },
    ask: async (method, params) => (await messagesOf(await caller.post(method, params))).at(-1) ?? {},
    call: (name, args = {}, more = {}) => caller.ask('tools/call', { name, arguments: args, ...more }),
  }
  return caller
}
