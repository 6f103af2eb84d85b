import { expect, test } from 'bun:test'
import { mcp } from '../dialects/mcp.ts'
import { answerElsewhere, type PassedRequest } from './mcp-elsewhere.ts'
import { prepared } from './test-relay.ts'

/** A gateway whose session is another worker's, which answers so. */
async function beside(answer: (request: PassedRequest) => Promise<Response>) {
  const { gateway } = await prepared(mcp, { stream: false })
  Object.assign(gateway.mcp, { neighbours: { sessionPrefix: '0.a.', ownerOf: () => answer } })
  return gateway
}

test.each(['GET', 'POST', 'DELETE'])(
  'the server lets %s wait for another worker as long as that takes',
  async (method) => {
    const limits: number[] = []
    const connection = { timeout: (_request: Request, seconds: number) => void limits.push(seconds) }
    const gateway = await beside(async ({ body }) => new Response(body))
    const headers = { 'mcp-session-id': '1.b.c' }
    const request = new Request('http://localhost/mcp', {
      method,
      headers,
      ...(method === 'POST' && { body: 'asked' }),
    })
    const answer = await answerElsewhere(gateway, { request, connection, requestId: 'r' })
    expect(await answer?.text()).toBe(method === 'POST' ? 'asked' : '')
    expect(limits).toEqual([0])
  },
)
