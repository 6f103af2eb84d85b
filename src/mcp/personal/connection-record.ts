/** A person's connection to an MCP server, as the person sees it. */
import { z } from 'zod'

export const connectionSchema = z.object({
  server_id: z.uuid(),
  server: z.string().describe('The name of the MCP server'),
  url: z.string().describe('Where the MCP server is'),
  status: z.enum(['connected', 'not_connected']),
  issuer: z.string().nullable().describe('The authorization server of the account'),
  scope: z.string().nullable().describe('What the account lets Gatehouse do there, as its authorization server says'),
  connected_at: z.string().nullable(),
  connect_url: z.string().describe('The page of the console where you connect it'),
})
export type ConnectionRecord = z.infer<typeof connectionSchema>
