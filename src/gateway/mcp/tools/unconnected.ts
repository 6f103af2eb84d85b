/**
 * What a list of tools shows of a server whose account the caller has not connected yet. Without it a model never calls
 * anything there, and its person is never told where to connect. The call of this tool fails like any other call to the
 * server, with the address; once the account is connected the server's own tools take its place.
 */
import { Failure } from '../../../failure.ts'
import type { Json, McpServerRecord } from '../../../mcp/connection.ts'
import { publishedOffer } from '../../../mcp/surface/names.ts'

/** The server's part of its name. */
export const connectTool = 'connect_account'

export const lacksAccount = (error: unknown): error is Failure =>
  error instanceof Failure && error.code === 'mcp.not_connected'

/** The credential is no person's, so there is nothing to connect. */
export const isNobody = (error: unknown): boolean => error instanceof Failure && error.code === 'mcp.no_person'

export const connectOffer = ({ name }: McpServerRecord, { message }: Failure): Json =>
  publishedOffer(name, {
    name: connectTool,
    title: `Connect your account at ${name}`,
    description: `${message}. The tools of ${name} are listed once that is done.`,
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true },
  })
