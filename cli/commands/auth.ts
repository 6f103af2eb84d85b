/** `auth login|logout|status|setup-link`: the session that commands use where SERVICE_API_TOKEN is not set. */

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defineCommand } from 'citty'
import { z } from 'zod'
import { settingsSchema } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { createApi } from '../command/api.ts'
import { type ConnectionFlags, findConnection } from '../command/profile.ts'
import { recordFlags } from '../command/record.ts'
import { ApiRefusal } from '../command/report.ts'
import { forgetSession, keepSession, keptSession, sessionFile } from '../command/session-file.ts'
import { type Input, processInput } from '../terminal/input.ts'
import { printable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { signInByCode, signInByListener } from './sign-in.ts'

export const auth = (terminal: Terminal, input: Input = processInput) =>
  defineCommand({
    meta: { description: 'Sign in and out' },
    subCommands: {
      login: async () => login(terminal, input),
      logout: async () => logout(terminal),
      status: async () => status(terminal),
      'setup-link': async () => setupLink(terminal),
    },
  })

const login = (terminal: Terminal, input: Input) =>
  defineCommand({
    meta: { description: 'Sign in with the browser; later commands use the session' },
    args: {
      headless: { type: 'boolean', description: 'No browser on this host: type the code that the page shows' },
      'console-url': {
        type: 'string',
        description: "The console's address (default: api-url/console)",
        valueHint: 'URL',
      },
      ...recordFlags,
    },
    async run({ args }) {
      const { apiUrl, apiToken } = findConnection(args, terminal)
      const path = sessionFile(args.config, terminal.environment)
      const approval = {
        consoleUrl: (args['console-url'] ?? `${apiUrl}/console`).replace(/\/+$/, ''),
        api: createApi({ apiUrl, apiToken: null }, fetch),
        randomBytes,
        show: (url: string) => terminal.note(`Open this page to sign in:\n\n  ${url}\n`),
      }
      const given = args.headless
        ? await signInByCode(approval, () => {
            terminal.note('Then type the code it shows:')
            return input.line()
          })
        : await signInByListener(approval)
      const before = keptSession(path, apiUrl)
      keepSession(path, apiUrl, given.session_token)
      if (apiToken !== null && apiToken !== before) {
        terminal.note('Another token is set (SERVICE_API_TOKEN, or in the profile) and goes before this session')
      }
      const { user, session } = given
      await terminal.write(
        args.json
          ? `${JSON.stringify({ user, session })}\n`
          : `Signed in at ${apiUrl} as ${printable(user.email)} (${printable(user.role)})\n`,
      )
    },
  })

const logout = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'End the session, on this host and at the control plane' },
    args: recordFlags,
    async run({ args }) {
      const { apiUrl } = findConnection(args, terminal)
      const path = sessionFile(args.config, terminal.environment)
      const token = keptSession(path, apiUrl)
      if (token === null) throw new Failure('missing_api_key', { message: `No session is kept for ${apiUrl}` })
      await endSession(apiUrl, token)
      forgetSession(path, apiUrl)
      await terminal.write(args.json ? `${JSON.stringify({ signed_out: true })}\n` : `Signed out at ${apiUrl}\n`)
    },
  })

/** A session that has ended already is as good as ended now. */
async function endSession(apiUrl: string, apiToken: string): Promise<void> {
  try {
    const api = createApi({ apiUrl, apiToken }, fetch)
    await api.json({ method: 'POST', path: '/v1/auth/logout' }, z.looseObject({}))
  } catch (error) {
    if (!(error instanceof ApiRefusal) || error.status !== 401) throw error
  }
}

const callerSchema = z.looseObject({
  kind: z.string(),
  user: z.looseObject({ email: z.string(), name: z.string() }).nullable(),
  token_id: z.string().nullable(),
  roles: z.array(z.string()),
  session: z.looseObject({ expires_at: z.string() }).nullable(),
})

const status = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show who commands act as; fails where nobody is signed in' },
    args: recordFlags,
    async run({ args }) {
      const { apiUrl, apiToken } = requireCredential(args, terminal)
      const api = createApi({ apiUrl, apiToken }, fetch)
      const caller = await api.json({ path: '/v1/auth/session' }, callerSchema)
      if (args.json) return await terminal.write(`${JSON.stringify(caller)}\n`)
      const roles = caller.roles.join(', ')
      const who =
        caller.user === null
          ? `API token ${caller.token_id ?? '-'}`
          : `${caller.user.name} <${caller.user.email}>, until ${caller.session?.expires_at ?? '-'}`
      await terminal.write(`${printable(`${who}, ${roles}, at ${apiUrl}`)}\n`)
    },
  })

const setupLink = (terminal: Terminal) =>
  defineCommand({
    meta: { description: "Create a new one-time link that sets the first owner's password; prints it to stdout" },
    args: {
      data: {
        type: 'string',
        description: 'The data directory of this host, whose admin-token is used where no credential is set',
        valueHint: 'DIR',
      },
      ...recordFlags,
    },
    async run({ args }) {
      const connection = findConnection(args, terminal)
      const data = args.data ?? (terminal.environment.SERVICE_DATA || settingsSchema.parse({}).data)
      const apiToken = connection.apiToken ?? administratorToken(data, connection.apiUrl)
      if (apiToken === null) {
        throw new Failure('missing_api_key', {
          message: `An owner's token is needed: set SERVICE_API_TOKEN. Without one start the control plane again: each start makes a link while no owner has a password`,
        })
      }
      const api = createApi({ ...connection, apiToken }, fetch)
      const made = await api.json({ method: 'POST', path: '/v1/auth/setup-link', body: {} }, setupLinkSchema)
      terminal.note(`It works once, until ${made.expires_at}`)
      await terminal.write(args.json ? `${JSON.stringify(made)}\n` : `${made.setup_url}\n`)
    },
  })

const setupLinkSchema = z.looseObject({ setup_url: z.string(), expires_at: z.string() })

/**
 * The token that a first start without a terminal left in its data directory: it is for the control plane on this host.
 */
function administratorToken(data: string, apiUrl: string): string | null {
  const path = join(resolve(data), 'admin-token')
  const isThisHost = ['127.0.0.1', '[::1]', 'localhost'].includes(new URL(apiUrl).hostname)
  return isThisHost && existsSync(path) ? readFileSync(path, 'utf8').trim() : null
}

function requireCredential(args: ConnectionFlags, terminal: Terminal) {
  const connection = findConnection(args, terminal)
  if (connection.apiToken !== null) return connection
  throw new Failure('missing_api_key', {
    message: `Not signed in at ${connection.apiUrl}: use ${terminal.name} auth login, or set SERVICE_API_TOKEN`,
  })
}
