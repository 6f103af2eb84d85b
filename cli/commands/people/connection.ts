/** `connection`: the own accounts at MCP servers of whoever is signed in. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { connectionSchema } from '../../../src/mcp/personal/connection-record.ts'
import type { Api } from '../../command/api.ts'
import { connect, recordFlags, showPage, showRecord } from '../../command/record.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const path = '/v1/connections'
const listSchema = z.object({ connections: z.array(connectionSchema) })
const fields = ['server', 'status', 'scope', 'connected_at', 'connect_url']

export const connectionCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Your own accounts at MCP servers: sign in first (auth login)' },
    subCommands: {
      list: () => list(terminal),
      disconnect: () => disconnect(terminal),
    },
  })

const list = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List them, each with the page of the console where you connect it' },
    args: recordFlags,
    async run({ args }) {
      const page = { ...(await connect(args, terminal).json({ path }, listSchema)), next_cursor: null }
      await showPage(page, { of: 'connections', fields, json: args.json, terminal })
    },
  })

const disconnect = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'End one: its tokens are revoked there if possible, and removed here' },
    args: {
      server: { type: 'positional', required: true, description: 'The MCP server, by its name or id' },
      ...recordFlags,
    },
    async run({ args }) {
      const api = connect(args, terminal)
      const id = await serverIdOf(api, args.server)
      const ended = await api.json({ method: 'DELETE', path: `${path}/${id}` }, connectionSchema)
      await showRecord(ended, args.json, terminal)
    },
  })

async function serverIdOf(api: Api, given: string): Promise<string> {
  const { connections } = await api.json({ path }, listSchema)
  const found = connections.find(({ server, server_id: id }) => server === given || id === given)
  if (found !== undefined) return found.server_id
  throw new Failure('not_found', { message: 'No such MCP server is used with your own account: connection list' })
}
