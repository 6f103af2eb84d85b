/** `oauth-client create|list|get|update|deactivate|activate`. */
import { command, type Group, type Leaf } from '../../command/command.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import { getOf, linesOf, listOf, type Resource, recordPath, requireChange } from '../../command/resource.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const clients: Resource = {
  one: 'application',
  of: 'clients',
  path: '/v1/oauth/clients',
  fields: ['client_id', 'client_name', 'status', 'scope', 'redirect_uris'],
}

export const oauthClientCommands = (terminal: Terminal): Group => ({
  about: 'Register applications that act for people by OAuth',
  commands: {
    create: async () => create(terminal),
    list: async () => listOf(clients, terminal),
    get: async () => getOf(clients, terminal),
    update: async () => update(terminal),
    deactivate: async () => switchTo('deactivate', 'Stop new authorizations and refreshes of an application', terminal),
    activate: async () => switchTo('activate', 'Put an application back into service', terminal),
  },
})

const idArgument = { id: { type: 'positional', description: 'Its client_id' } } as const
const repeatable = ['redirect-uri', 'scope'] as const
const nameDescription = 'What people are asked to let in'
const redirectFlag = {
  type: 'string',
  description: 'Where people are sent back to, matched exactly; repeatable',
  valueHint: 'URI',
} as const
const scopeFlag = {
  type: 'string',
  description: 'What it may ask for, such as gateway:invoke; repeatable',
  valueHint: 'SCOPE',
} as const

/** What the flags say, by the names of RFC 7591; undefined for what they do not say. */
const bodyOf = (flags: {
  name?: string | undefined
  'redirect-uri'?: string | undefined
  scope?: string | undefined
}) => ({
  client_name: flags.name,
  redirect_uris: linesOf(flags['redirect-uri']),
  scope: linesOf(flags.scope)?.join(' '),
})

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Register an application: a public client, which has no secret',
    args: {
      name: { type: 'string', required: true, description: nameDescription },
      'redirect-uri': { ...redirectFlag, required: true },
      scope: { ...scopeFlag, required: true },
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      await sendRecord({ method: 'POST', path: clients.path, body: bodyOf(flags) }, flags, terminal)
    },
  })

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change an application; redirect URIs and scopes that are given replace those it has',
    args: {
      ...idArgument,
      name: { type: 'string', description: nameDescription },
      'redirect-uri': redirectFlag,
      scope: scopeFlag,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const body = bodyOf(flags)
      requireChange(body)
      await sendRecord({ method: 'PATCH', path: recordPath(clients, flags.id), body }, flags, terminal)
    },
  })

const switchTo = (what: 'activate' | 'deactivate', about: string, terminal: Terminal): Leaf =>
  command({
    about,
    args: { ...idArgument, ...recordFlags },
    async run(flags) {
      await sendRecord({ method: 'POST', path: `${recordPath(clients, flags.id)}/${what}` }, flags, terminal)
    },
  })
