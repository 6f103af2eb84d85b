/**
 * What a browser carries while its person is at an authorization server (members/sessions/sealed-attempt.ts). An answer
 * counts for the person and the server that it asked for. So nobody connects an account of theirs to another person
 * here, nor another person's account to theirs.
 */
import { z } from 'zod'
import { sealedAttempts } from '../members/sessions/sealed-attempt.ts'

export const connectionAttempts = sealedAttempts({
  cookie: 'gatehouse_connect',
  what: 'connection',
  asked: z.object({
    serverId: z.string(),
    userId: z.string(),
    /** The server's address, which must not have changed when the answer comes. */
    url: z.string(),
    issuer: z.string(),
    resource: z.string(),
    clientId: z.string(),
    scope: z.string().nullable(),
  }),
})
export type Attempt = ReturnType<typeof connectionAttempts.of>
