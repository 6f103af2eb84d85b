/** One visit of an agent at the MCP servers of the demonstration: it begins a session, lists the tools and calls one. */
import { parseObject } from '../../../src/languages/reading/json-value.ts'

const version = '2025-11-25'

/** Resolves when the session has ended. Throws where the gateway does not answer. */
export async function visitMcp(gatewayUrl: string, token: string, signal: AbortSignal): Promise<void> {
  let session: string | null = null
  const send = async (message: object, method = 'POST'): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${gatewayUrl}/mcp`, {
      method,
      signal,
      headers: {
        ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': version },
        ...(session === null ? {} : { 'mcp-session-id': session }),
      },
      ...(method === 'POST' ? { body: JSON.stringify({ jsonrpc: '2.0', ...message }) } : {}),
    })
    session ??= answer.headers.get('mcp-session-id')
    return parseObject((await answer.text()).replace(/^[\s\S]*?data: (?=\{)/, '')) ?? {}
  }
  const clientInfo = { name: 'help-desk-agent', version: '2.0.0' }
  await send({ id: 1, method: 'initialize', params: { protocolVersion: version, capabilities: {}, clientInfo } })
  await send({ method: 'notifications/initialized' })
  await send({ id: 2, method: 'tools/list' })
  await send({
    ...{ id: 3, method: 'tools/call' },
    params: { name: 'helpdesk__find_ticket', arguments: { words: 'invoice' } },
  })
  await send({}, 'DELETE')
}
